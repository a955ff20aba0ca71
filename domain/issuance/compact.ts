import type { Json, JsonObject } from '../shared/json.ts';

/**
 * Omits absent and null properties and empty arrays at any depth. Items of an array stay, because they are counted: in a claims path
 * (OpenID4VCI 1.0 appendix C) a null means every element. Empty objects stay, because some of them mean "anything".
 */
export function compact(members: Readonly<Record<string, unknown>>): JsonObject {
  const result: Record<string, Json> = {};
  for (const [name, member] of Object.entries(members)) {
    if (member === undefined || member === null || (Array.isArray(member) && member.length === 0)) continue;
    result[name] = compactValue(member);
  }
  return result;
}

function compactValue(value: unknown): Json {
  if (Array.isArray(value)) return value.map(compactValue);
  if (typeof value === 'object' && value !== null) return compact(value as Record<string, unknown>);
  return value as Json;
}
