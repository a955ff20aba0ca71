import type { Frame } from '../formats/sd-jwt/disclosure-frame.ts';
import { isJsonObject, type Json, type JsonObject } from '../shared/json.ts';
import { resolveSchema, schemaAt } from './frame-schema.ts';

/**
 * Adds decoys for claims that a holder may lack, so that the number of digests does not depend on the holder (RFC 9901 section 10.4). Only
 * claims that the schema also describes are padded; the number of other claims is unlimited.
 * @param root the JSON Schema that the claims conform to.
 */
export function padFrame(frame: Frame, root: JsonObject, localSchema: JsonObject | undefined = root): Frame {
  const schema = resolveSchema(localSchema, root);
  const schemaBelow = (key: string) => schemaAt(schema ?? {}, key) || undefined;
  return {
    ...frame,
    padded: new Set([...frame.hidden].filter((key) => schema !== undefined && describesKey(schema, key))),
    children: new Map([...frame.children].map(([key, child]) => [key, padFrame(child, root, schemaBelow(key) ?? {})])),
  };
}

function describesKey({ properties, prefixItems, items, maxItems }: JsonObject, key: string | number): boolean {
  if (typeof key === 'string') return isJsonObject(properties) && Object.hasOwn(properties, key) && properties[key] !== false;
  if (typeof maxItems === 'number' && key >= maxItems) return false;
  const prefixSchemas = Array.isArray(prefixItems) ? (prefixItems as readonly Json[]) : [];
  return key < prefixSchemas.length ? prefixSchemas[key] !== false : isJsonObject(items) || items === true;
}
