import { type DisclosedObject, isUndisclosed } from '../../domain/formats/sd-jwt/disclosures.ts';
import type { Json, JsonObject } from '../../domain/shared/json.ts';

/** The claims as others may see them: withheld array members are gone (RFC 9901 section 7.1 step 3d). */
export function withoutTombstones(claims: DisclosedObject): JsonObject {
  return outputOf(claims) as JsonObject;
}

function outputOf(value: unknown): Json {
  if (typeof value !== 'object' || value === null) return value as Json;
  if (Array.isArray(value)) return value.filter((member) => !isUndisclosed(member)).map(outputOf);
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, outputOf(member)]));
}
