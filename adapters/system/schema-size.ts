import type { Json, JsonObject } from '../../domain/shared/json.ts';

/** Limits per schema. These parts take by far the most time to compile, some of them quadratic in their number. */
const LIMITS = { subschemas: 500, keywords: 2_000, 'levels of nesting': 64, patterns: 100, 'characters of patterns': 10_000 };

type SchemaSize = { -readonly [part in keyof typeof LIMITS]: number };

/** Keywords whose properties are schemas with names of the author. */
const SCHEMAS_BY_NAME = new Set(['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas']);
/** Keywords whose values are data: they are compared and not compiled. */
const DATA = new Set(['const', 'enum', 'default', 'examples', 'required', 'type']);

/** Counts without recursion and without interpreting the schema. */
export function measureSchema(schema: JsonObject): SchemaSize {
  const size = { subschemas: 0, keywords: 0, 'levels of nesting': 0, patterns: 0, 'characters of patterns': 0 };
  const pattern = (text: string) => {
    size.patterns++;
    size['characters of patterns'] += text.length;
  };
  const pending: { readonly value: Json; readonly level: number; readonly named?: boolean }[] = [{ value: schema, level: 1 }];
  for (let entry = pending.pop(); entry !== undefined; entry = pending.pop()) {
    const { value, level, named: isNamed = false } = entry;
    if (typeof value === 'boolean' || (typeof value === 'object' && value !== null)) size.subschemas++;
    size['levels of nesting'] = Math.max(size['levels of nesting'], level);
    if (typeof value !== 'object' || value === null) continue;
    for (const [name, child] of Object.entries(value) as [string, Json][]) {
      size.keywords++;
      // Names of the author are no keywords, whatever they are.
      if (!isNamed && name === 'pattern' && typeof child === 'string') pattern(child);
      if (!isNamed && name === 'patternProperties') for (const key of Object.keys(child ?? {})) pattern(key);
      if (!isNamed && DATA.has(name)) continue;
      pending.push({ value: child, level: level + 1, named: !isNamed && SCHEMAS_BY_NAME.has(name) });
    }
  }
  return size;
}

/** @returns a description of the exceeded limit. */
export function excessOf(size: SchemaSize): string | undefined {
  const part = (Object.keys(LIMITS) as (keyof typeof LIMITS)[]).find((name) => size[name] > LIMITS[name]);
  return part === undefined ? undefined : `the schema has more than ${LIMITS[part]} ${part}`;
}
