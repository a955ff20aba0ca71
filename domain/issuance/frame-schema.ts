import type { Frame } from '../formats/sd-jwt/disclosure-frame.ts';
import type { FieldError } from '../shared/failure.ts';
import { isJsonObject, type Json, type JsonObject } from '../shared/json.ts';

/**
 * Places of a disclosure frame that no document of this JSON Schema has: a member that the schema rules out, a position beyond the end of
 * an array, members of what is no object. References and combinations of schemas are not followed; what they say may allow anything.
 */
export function findFrameProblems(frame: Frame, schema: JsonObject, path: string): readonly FieldError[] {
  const faults: FieldError[] = [];
  const positions = [...frame.hidden].filter((key) => typeof key === 'number');
  const names = [...frame.hidden].filter((key) => typeof key === 'string');
  if (names.length > 0 && !admitsType(schema, 'object')) return [misfit(path, 'an object')];
  if (positions.length > 0 && !admitsType(schema, 'array')) return [misfit(path, 'an array')];
  for (const key of frame.hidden) {
    if (schemaAt(schema, key) === false) faults.push(absent(`${path}._sd`, key));
  }
  for (const [key, child] of frame.children) {
    const below = schemaAt(schema, key);
    if (below === false) faults.push(absent(path, key));
    else if (below !== undefined) faults.push(...findFrameProblems(child, below, `${path}.${key}`));
  }
  return faults;
}

/** @returns false where nothing can stand, undefined where the schema leaves it open. */
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

/** More in a row lead in a circle. */
const MAX_REFERENCES = 20;

/**
 * A schema, or what it refers to within the same document.
 * @returns undefined where that leads nowhere.
 */
export function referredSchema(schema: JsonObject | undefined, root: JsonObject): JsonObject | undefined {
  let next = schema;
  for (let hop = 0; hop < MAX_REFERENCES; hop++) {
    const { $ref } = next ?? {};
    if (typeof $ref !== 'string') return next;
    next = $ref === '#' ? root : definition(root, $ref);
  }
  return undefined;
}

function definition(root: JsonObject, reference: string): JsonObject | undefined {
  const [, place = '', name = ''] = /^#\/(\$defs|definitions)\/([A-Za-z0-9_.-]+)$/.exec(reference) ?? [];
  const all = Object.hasOwn(root, place) ? root[place] : undefined;
  const found = isJsonObject(all) && Object.hasOwn(all, name) ? all[name] : undefined;
  return isJsonObject(found) ? found : undefined;
}

function asSchema(value: Json | undefined): JsonObject | false | undefined {
  return value === false || isJsonObject(value) ? value : undefined;
}

/** JSON Schema Validation section 6.1.1; what is no type there is for the compiler to refuse. */
const OTHER_TYPES: ReadonlySet<unknown> = new Set(['null', 'boolean', 'number', 'integer', 'string']);

function admitsType({ type }: JsonObject, wanted: 'object' | 'array'): boolean {
  const excludes = (name: Json | undefined) => OTHER_TYPES.has(name) || name === (wanted === 'object' ? 'array' : 'object');
  return !(Array.isArray(type) ? (type as readonly Json[]).every(excludes) : excludes(type));
}

function absent(path: string, key: string | number): FieldError {
  return { path, message: `the schema has no place for "${key}"` };
}

function misfit(path: string, what: string): FieldError {
  return { path: `${path}._sd`, message: `by the schema this is not ${what}` };
}
