import type { Json, JsonObject } from '../../domain/shared/json.ts';

/** What may be written of each in one schema. These take by far the most to compile, some by the square of their number. */
const MOST = {
  subschemas: 500,
  keywords: 2_000,
  'levels of nesting': 64,
  patterns: 100,
  'characters of patterns': 10_000,
};

type SchemaSize = { -readonly [part in keyof typeof MOST]: number };

/** Keywords whose members are schemas under names of the author. */
const SCHEMAS_BY_NAME = new Set(['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas']);
/** Keywords whose values are data: they are compared and not compiled. */
const DATA = new Set(['const', 'enum', 'default', 'examples', 'required', 'type']);

/** Counts without recursion, and without looking at what anything means. */
export function measureSchema(schema: JsonObject): SchemaSize {
  const size = {
    subschemas: 0,
    keywords: 0,
    'levels of nesting': 0,
    patterns: 0,
    'characters of patterns': 0,
  };
  const pattern = (text: string) => {
    size.patterns++;
    size['characters of patterns'] += text.length;
  };
  const left: { readonly value: Json; readonly level: number; readonly named?: boolean }[] = [{ value: schema, level: 1 }];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const { value, level, named = false } = next;
    if (typeof value === 'boolean' || (typeof value === 'object' && value !== null)) size.subschemas++;
    size['levels of nesting'] = Math.max(size['levels of nesting'], level);
    if (typeof value !== 'object' || value === null) continue;
    for (const [name, member] of Object.entries(value) as [string, Json][]) {
      size.keywords++;
      // Under names of the author nothing is a keyword, whatever it is called.
      if (!named && name === 'pattern' && typeof member === 'string') pattern(member);
      if (!named && name === 'patternProperties') for (const key of Object.keys(member ?? {})) pattern(key);
      if (!named && DATA.has(name)) continue;
      left.push({ value: member, level: level + 1, named: !named && SCHEMAS_BY_NAME.has(name) });
    }
  }
  return size;
}

/** @returns what there is too much of. */
export function excessOf(size: SchemaSize): string | undefined {
  const part = (Object.keys(MOST) as (keyof typeof MOST)[]).find((name) => size[name] > MOST[name]);
  return part === undefined ? undefined : `the schema has more than ${MOST[part]} ${part}`;
}
