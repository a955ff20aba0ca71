import type { Frame } from '../formats/sd-jwt/disclosure-frame.ts';
import { isJsonObject, type Json, type JsonObject } from '../shared/json.ts';
import { referredSchema, schemaAt } from './frame-schema.ts';

/**
 * The frame with decoys for what a holder may lack: as many digests as there would be with all claims, so that their number says nothing of
 * this holder (RFC 9901 section 10.4). Only claims count that the schema knows, too; the others may be of any number.
 * @param root the JSON Schema that the claims fit.
 */
export function paddedFrame(frame: Frame, root: JsonObject, here: JsonObject | undefined = root): Frame {
  const schema = referredSchema(here, root);
  const below = (key: string) => schemaAt(schema ?? {}, key) || undefined;
  return {
    ...frame,
    padded: new Set([...frame.hidden].filter((key) => schema !== undefined && knows(schema, key))),
    children: new Map([...frame.children].map(([key, child]) => [key, paddedFrame(child, root, below(key) ?? {})])),
  };
}

function knows({ properties, prefixItems, items, maxItems }: JsonObject, key: string | number): boolean {
  if (typeof key === 'string') return isJsonObject(properties) && Object.hasOwn(properties, key) && properties[key] !== false;
  if (typeof maxItems === 'number' && key >= maxItems) return false;
  const listed = Array.isArray(prefixItems) ? (prefixItems as readonly Json[]) : [];
  return key < listed.length ? listed[key] !== false : isJsonObject(items) || items === true;
}
