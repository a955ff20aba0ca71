/** Schema of the document, whose keywords are unchanged. */
type Schema = Record<string, unknown>;

const NULL = 'null';

/**
 * Rewrites all schemas of the document with constructs that common client generators support. The valid values stay the same.
 * openapi-generator for Python fails at null in a union of three, and at null anywhere in a schema that has `properties` and `allOf`.
 */
export function simplify(node: unknown): void {
  if (typeof node !== 'object' || node === null) return;
  for (const [name, child] of Object.entries(node)) {
    if (name !== 'example' && name !== 'examples') simplify(child);
  }
  const schema = node as Schema;
  if (isEmpty(schema['additionalProperties'])) schema['additionalProperties'] = true;
  if (Array.isArray(schema['anyOf'])) {
    flattenUnion(schema, schema['anyOf'] as Schema[]);
    joinNull(schema, schema['anyOf'] as Schema[]);
  }
  if (Array.isArray(schema['allOf']) && schema['properties'] !== undefined) moveConditions(schema, schema['allOf'] as Schema[]);
}

/** Empty schema `{}`, for which openapi-generator writes Go that does not compile; `true` means the same. */
function isEmpty(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0;
}

/** A union within a union is one union. */
function flattenUnion(schema: Schema, options: readonly Schema[]): void {
  schema['anyOf'] = options.flatMap((option) => {
    const isUnionAlone = Array.isArray(option['anyOf']) && Object.keys(option).length === 1;
    return isUnionAlone ? (option['anyOf'] as Schema[]) : [option];
  });
}

/** Merges null into the last option that is not a reference, in a union of three or more. */
function joinNull(schema: Schema, options: readonly Schema[]): void {
  const types = options.filter(({ type }) => type !== NULL);
  if (options.length < 3 || types.length === options.length) return;
  const index = types.findLastIndex(({ type, enum: values }) => typeof type === 'string' && !values);
  const option = types[index];
  if (option === undefined) return;
  schema['anyOf'] = types.with(index, { ...option, type: [option['type'], NULL] });
}

/**
 * Generators take `allOf` beside `properties` for inheritance. The keywords `if`, `then`, `else` and `not`, which they ignore, express the
 * same condition.
 */
function moveConditions(schema: Schema, conditions: readonly Schema[]): void {
  const [condition, ...otherConditions] = conditions;
  if (condition === undefined || otherConditions.length > 0) return;
  const keywords = 'if' in condition || 'not' in condition ? condition : conditionOf(condition);
  if (keywords === undefined) return;
  delete schema['allOf'];
  Object.assign(schema, keywords);
}

/** @returns `if`, `then` and `else` for alternatives of required properties; undefined for other schemas, such as references. */
function conditionOf({ anyOf, oneOf }: Schema): Schema | undefined {
  const [firstOption, ...otherOptions] = (anyOf ?? oneOf ?? []) as Schema[];
  if (firstOption === undefined || otherOptions.length === 0) return undefined;
  const anyOther = { anyOf: otherOptions };
  if (anyOf !== undefined)
    return Object.fromEntries([
      ['if', { not: firstOption }],
      ['then', anyOther],
    ]);
  return Object.fromEntries([
    ['if', firstOption],
    ['then', { not: anyOther }],
    ['else', { oneOf: otherOptions }],
  ]);
}

type Document = { readonly components?: { readonly schemas?: Record<string, Schema> } };

/**
 * Rewrites constructs for which openapi-generator writes code that does not compile. The types of the project's own client keep the exact
 * schemas.
 */
export function adaptToGenerators(document: Document): void {
  const schemas = document.components?.schemas ?? {};
  if (schemas['ClaimsAnswer'] !== undefined) mergeAlternatives(schemas['ClaimsAnswer']);
  openMapUnions(document);
  separateObjects(document, schemas);
  for (const schema of Object.values(schemas)) moveHasProperties(schema);
}

const TYPES = ['object', 'array', 'string', 'number', 'boolean', NULL];

/**
 * A map as one of several types does not compile in Java. Such a property becomes any JSON value for generators; `not` excludes the other
 * types.
 */
function openMapUnions(node: unknown): void {
  if (typeof node !== 'object' || node === null) return;
  for (const [name, child] of Object.entries(node)) {
    if (name !== 'example' && name !== 'examples') openMapUnions(child);
  }
  const schema = node as Schema;
  const options = schema['anyOf'];
  if (!Array.isArray(options)) return;
  const types = (options as Schema[]).flatMap(({ type }) => type).filter((type) => type !== NULL);
  const hasMap = (options as Schema[]).some(({ type, properties }) => type === 'object' && properties === undefined);
  if (!hasMap || types.length < 2 || types.some((type) => typeof type !== 'string')) return;
  delete schema['anyOf'];
  schema['not'] = { type: TYPES.filter((type) => !types.includes(type)) };
}

/** An object or a list of objects is exactly one of them: with `anyOf`, generators write one class that is both. */
function separateObjects(node: unknown, schemas: Record<string, Schema>): void {
  if (typeof node !== 'object' || node === null) return;
  for (const [name, child] of Object.entries(node)) {
    if (name !== 'example' && name !== 'examples') separateObjects(child, schemas);
  }
  const schema = node as Schema;
  const options = schema['anyOf'];
  if (!Array.isArray(options)) return;
  const types = (options as Schema[]).map(({ type, $ref }) => type ?? schemas[String($ref).split('/').at(-1) ?? '']?.['type']);
  if (!types.includes('object') || !types.includes('array')) return;
  delete schema['anyOf'];
  schema['oneOf'] = options;
}

/**
 * Merges an object and a map into one object: the response to a webhook for claims has the claims by configuration id as further
 * properties.
 */
function mergeAlternatives(answer: Schema): void {
  const [claims, deferral] = (answer['anyOf'] ?? []) as Schema[];
  if (claims === undefined || deferral === undefined) return;
  delete answer['anyOf'];
  Object.assign(answer, {
    type: 'object',
    description: `${claims['description']} Or with \`deferred\`: ${deferral['description']}`,
    properties: deferral['properties'],
    additionalProperties: claims['additionalProperties'],
  });
}

/**
 * The generated method for `password` has the name of the property `hasPassword`. Requests may send such a property back, so it stays valid
 * by its pattern.
 */
function moveHasProperties(schema: Schema): void {
  const properties = (schema['properties'] ?? {}) as Record<string, unknown>;
  for (const name of Object.keys(properties)) {
    const checkedProperty = name.slice('has'.length);
    if (!/^has[A-Z]/.test(name) || !Object.hasOwn(properties, checkedProperty.charAt(0).toLowerCase() + checkedProperty.slice(1))) continue;
    schema['patternProperties'] = { ...(schema['patternProperties'] as object), [`^${name}$`]: properties[name] };
    delete properties[name];
  }
}
