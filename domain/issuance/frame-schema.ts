import type { Frame } from '../formats/sd-jwt/disclosure-frame.ts';
import type { FieldError } from '../shared/failure.ts';
import { isJsonObject, type Json, type JsonObject } from '../shared/json.ts';

/**
 * Paths of a disclosure frame that no document of this JSON Schema has: a property that the schema rules out, a position beyond the end of
 * an array, properties of a value that is no object. References and combined schemas are not followed; they may allow anything.
 */
export function findFrameProblems(frame: Frame, schema: JsonObject, path: string): readonly FieldError[] {
  const faults: FieldError[] = [];
  const positions = [...frame.hidden].filter((key) => typeof key === 'number');
  const names = [...frame.hidden].filter((key) => typeof key === 'string');
  if (names.length > 0 && !admitsType(schema, 'object')) return [typeProblem(path, 'an object')];
  if (positions.length > 0 && !admitsType(schema, 'array')) return [typeProblem(path, 'an array')];
  for (const key of frame.hidden) {
    if (schemaAt(schema, key) === false) faults.push(absenceProblem(`${path}._sd`, key));
  }
  for (const [key, child] of frame.children) {
    const subschema = schemaAt(schema, key);
    if (subschema === false) faults.push(absenceProblem(path, key));
    else if (subschema !== undefined) faults.push(...findFrameProblems(child, subschema, `${path}.${key}`));
  }
  return faults;
}

/** @returns false if the schema allows no value, undefined if it does not decide. */
export function schemaAt(schema: JsonObject, key: string | number): JsonObject | false | undefined {
  const isObject = admitsType(schema, 'object');
  const isArray = admitsType(schema, 'array');
  if (!isObject && !isArray) return false;
  if (isObject && typeof key === 'string') {
    const { properties, additionalProperties, patternProperties } = schema;
    if (isJsonObject(properties) && Object.hasOwn(properties, key)) return asSchema(properties[key]);
    if (!isArray && additionalProperties === false && patternProperties === undefined) return false;
    return undefined;
  }
  if (!isArray) return undefined;
  const position = Number(key);
  if (!Number.isSafeInteger(position)) return isObject ? undefined : false;
  const { prefixItems, items, maxItems } = schema;
  if (typeof maxItems === 'number' && position >= maxItems) return false;
  const prefix = Array.isArray(prefixItems) ? (prefixItems as readonly Json[]) : [];
  return position < prefix.length ? asSchema(prefix[position]) : asSchema(items);
}

/** A longer chain of references is a cycle. */
const MAX_REFERENCES = 20;

/**
 * Resolves the reference of a schema within the same document.
 * @returns undefined for an unresolvable reference.
 */
export function resolveSchema(schema: JsonObject | undefined, root: JsonObject): JsonObject | undefined {
  let current = schema;
  for (let hop = 0; hop < MAX_REFERENCES; hop++) {
    const { $ref } = current ?? {};
    if (typeof $ref !== 'string') return current;
    current = $ref === '#' ? root : definition(root, $ref);
  }
  return undefined;
}

function definition(root: JsonObject, reference: string): JsonObject | undefined {
  const [, section = '', name = ''] = /^#\/(\$defs|definitions)\/([A-Za-z0-9_.-]+)$/.exec(reference) ?? [];
  const definitions = Object.hasOwn(root, section) ? root[section] : undefined;
  const entry = isJsonObject(definitions) && Object.hasOwn(definitions, name) ? definitions[name] : undefined;
  return isJsonObject(entry) ? entry : undefined;
}

function asSchema(value: Json | undefined): JsonObject | false | undefined {
  return value === false || isJsonObject(value) ? value : undefined;
}

/** JSON Schema Validation section 6.1.1; the schema compiler rejects unknown type names. */
const OTHER_TYPES: ReadonlySet<unknown> = new Set(['null', 'boolean', 'number', 'integer', 'string']);

function admitsType({ type }: JsonObject, expectedType: 'object' | 'array'): boolean {
  const excludes = (name: Json | undefined) => OTHER_TYPES.has(name) || name === (expectedType === 'object' ? 'array' : 'object');
  return !(Array.isArray(type) ? (type as readonly Json[]).every(excludes) : excludes(type));
}

function absenceProblem(path: string, key: string | number): FieldError {
  return { path, message: `the schema has no place for "${key}"` };
}

function typeProblem(path: string, what: string): FieldError {
  return { path: `${path}._sd`, message: `by the schema this is not ${what}` };
}
