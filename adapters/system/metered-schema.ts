import { isJsonObject, type Json, type JsonObject } from '../../domain/shared/json.ts';

/** Stands first in every subschema; its value is what one evaluation costs. */
export const STEP_KEYWORD = 'step:weight';

/** Keywords whose members are schemas under names of the author. */
const SCHEMAS_BY_NAME = ['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas'];
/** Keywords whose values are data, however much they look like schemas. */
const DATA = ['const', 'enum', 'default', 'examples', 'required', 'dependentRequired', 'type'];
/** Only places that certainly hold schemas, so that no evaluation escapes the count. */
const REFERENCE = /^#(?:\/(?:\$defs|definitions)\/[A-Za-z0-9_.-]+)?$/;
const REFUSED: ReadonlyMap<string, string> = new Map([
  ['$async', 'asynchronous schemas are not taken'],
  ['$dynamicRef', 'use $ref in place of $dynamicRef'],
  ['$recursiveRef', 'use $ref in place of $recursiveRef'],
]);
/** Characters of a keyword's value that count as one step. */
const STEP_LENGTH = 16;

/**
 * A copy of the schema in which every subschema is counted. A small schema can ask for endless work, for references
 * may double it again and again.
 * @throws Error for what could not be counted.
 */
export function meteredSchema(schema: JsonObject): JsonObject {
  return metered(schema, true);
}

function metered(schema: JsonObject, isRoot: boolean): JsonObject {
  checkReferences(schema, isRoot);
  let weight = 1;
  const members = Object.entries(schema).map(([name, value]): [string, Json] => {
    if (DATA.includes(name) || typeof value !== 'object' || value === null) {
      weight += JSON.stringify(value).length / STEP_LENGTH;
      return [name, value];
    }
    if (!SCHEMAS_BY_NAME.includes(name) || !isJsonObject(value)) return [name, inner(value)];
    const named = Object.entries(value);
    weight += named.length;
    return [name, Object.fromEntries(named.map(([key, member]) => [key, inner(member)]))];
  });
  return { ...Object.fromEntries(members), [STEP_KEYWORD]: Math.ceil(weight) };
}

function inner(value: Json): Json {
  if (Array.isArray(value)) return value.map((entry: Json) => inner(entry));
  return isJsonObject(value) ? metered(value, false) : value;
}

function checkReferences(schema: JsonObject, isRoot: boolean): void {
  for (const [name, message] of REFUSED) if (Object.hasOwn(schema, name)) throw new Error(message);
  if (!isRoot && Object.hasOwn(schema, '$id')) throw new Error('$id is for the schema as a whole');
  if (!Object.hasOwn(schema, '$ref')) return;
  const { $ref } = schema;
  if (typeof $ref !== 'string' || !REFERENCE.test($ref)) {
    throw new Error('$ref may be # or #/$defs/<name>; nothing outside the schema is fetched');
  }
}
