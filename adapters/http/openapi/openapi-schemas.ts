import { z } from 'zod';
import type { CreateDocumentOptions } from 'zod-openapi';
import { olderNameOf } from '../../../domain/shared/older-names.ts';
import { readOnlyNames } from '../input/read-only-members.ts';
import type { Route } from '../route.ts';
import { addParameterExamples } from './openapi-examples.ts';
import { adaptToGenerators, simplify } from './openapi-generators.ts';

type Override = NonNullable<CreateDocumentOptions['override']>;
type JsonSchema = Parameters<Override>[0]['jsonSchema'];
type Schema = Record<string, unknown> & { properties?: Record<string, Schema>; required?: string[] };
type Document = {
  components?: { schemas?: Record<string, Schema> };
  paths?: Record<
    string,
    Record<
      string,
      {
        requestBody?: { content: Record<string, { schema: Schema }> };
        parameters?: { name: string; in: string; example?: unknown }[];
      }
    >
  >;
};

/**
 * Answers reuse input schemas, and some of those brand or rename what they read. What goes out looks like what
 * came in, so it is described by the kind of its input.
 */
export const OPTIONS: CreateDocumentOptions = {
  allowEmptySchema: { pipe: { output: true }, transform: true, custom: true },
  override({ zodSchema, jsonSchema, io }) {
    withoutPlatformBounds(jsonSchema);
    tellDefault(jsonSchema, io);
    if (io === 'input') {
      sayThatItIsText(jsonSchema);
      sayThatNamesAreText(jsonSchema);
    }
    // The format says the same, and is read by more people.
    if (jsonSchema.format === 'date-time') delete jsonSchema.pattern;
    if (io !== 'output' || !(zodSchema instanceof z.ZodPipe)) return;
    if (!(zodSchema.out instanceof z.ZodTransform) || Object.keys(jsonSchema).length > 0) return;
    if (zodSchema.in instanceof z.ZodRecord || zodSchema.in instanceof z.ZodObject) jsonSchema.type = 'object';
    if (zodSchema.in instanceof z.ZodString) jsonSchema.type = 'string';
    if (zodSchema.in instanceof z.ZodArray) jsonSchema.type = 'array';
  },
};

/** What an integer can be in JSON is no bound of ours, and generators make examples of it. */
function withoutPlatformBounds(schema: JsonSchema): void {
  if (schema.minimum === Number.MIN_SAFE_INTEGER) delete schema.minimum;
  if (schema.maximum === Number.MAX_SAFE_INTEGER) delete schema.maximum;
}

/** NUL is in no text that is taken. */
function sayThatItIsText(schema: JsonSchema): void {
  const { type, pattern, format, enum: values, const: value } = schema;
  const isOpen = [pattern, format, values, value].every((each) => each === undefined);
  if (type === 'string' && isOpen) schema.pattern = '^[^\\u0000]*$';
}

/** Nor in the name of a member that nobody knows. */
function sayThatNamesAreText(schema: JsonSchema): void {
  const { type, additionalProperties, propertyNames } = schema;
  if (type !== 'object' || additionalProperties === undefined || additionalProperties === false) return;
  const names = typeof propertyNames === 'object' ? propertyNames : {};
  if (names.pattern === undefined && names.enum === undefined) schema.propertyNames = { ...names, pattern: '^[^\\u0000]*$' };
}

/** A default in words: generators take a member with the keyword for one that has to be sent. */
function tellDefault(schema: JsonSchema, io: 'input' | 'output'): void {
  if (schema.default === undefined) return;
  const words = `Unless stated: \`${JSON.stringify(schema.default)}\``;
  delete schema.default;
  if (io === 'output' || /unless stated/i.test(schema.description ?? '')) return;
  schema.description = schema.description === undefined ? words : `${schema.description}. ${words}`;
}

/**
 * Finishes what schemas alone cannot say.
 * @param isExact leaves out what is rewritten for common generators.
 */
export function finish(document: object, routes: readonly Route[], isExact = false): object {
  const named = withOneJson(document as Document);
  const closed = new Set<Schema>();
  for (const route of routes) closeBody(named, route, closed);
  addParameterExamples(named.paths ?? {}, routes);
  for (const name of ['TrustAnchor', 'TrustListEntity']) {
    const { anyOf, oneOf } = (named.components?.schemas?.[name] ?? {}) as Record<string, Schema[]>;
    for (const alternative of anyOf ?? oneOf ?? []) addOlderNames(alternative);
  }
  if (!isExact) {
    simplify(named);
    adaptToGenerators(named);
  }
  return named;
}

/** Any JSON has one schema. It is not spelled out: a schema of values within values is none that generators can write. */
function withOneJson(document: Document): Document {
  const { schemas = {} } = document.components ?? {};
  const anonymous = Object.keys(schemas).filter((name) => /^__schema\d+$/.test(name));
  if (anonymous.length === 0) return document;
  const text = JSON.stringify(document).replaceAll(/"#\/components\/schemas\/__schema\d+"/g, JSON_REFERENCE);
  const named = JSON.parse(text) as Document;
  const all = named.components?.schemas ?? {};
  for (const name of anonymous) delete all[name];
  all['Json'] = { description: 'Any JSON value' };
  return named;
}

const JSON_REFERENCE = '"#/components/schemas/Json"';

/** The schema of a body as it stands in the document: a component, or written where it is used. */
function bodyOf(document: Document, { path, method }: Route): Schema | undefined {
  const operation = document.paths?.[path.replaceAll(/:([A-Za-z]+)/g, '{$1}')]?.[method];
  const schema = Object.values(operation?.requestBody?.content ?? {})[0]?.schema;
  const reference = schema?.['$ref'];
  if (typeof reference !== 'string') return schema;
  return document.components?.schemas?.[nameIn(reference)];
}

/** A member that nobody knows is refused, but for those that answers have: what was read may be sent back. */
function closeBody(document: Document, route: Route, closed: Set<Schema>): void {
  const { surface, access, responses } = route;
  if (surface !== 'admin' || access === 'public') return;
  const schema = bodyOf(document, route);
  if (schema?.properties === undefined) return;
  if (!closed.has(schema)) addOlderNames(schema);
  closed.add(schema);
  schema['additionalProperties'] = false;
  if (route.edits?.id === undefined) return;
  const view = responses[200] ?? responses[201];
  const shown = view instanceof z.ZodObject ? componentOf(document, view) : undefined;
  for (const name of readOnlyNames(route)) {
    if (Object.hasOwn(schema.properties, name)) continue;
    const { $ref, ...member } = shown?.properties?.[name] ?? {};
    schema.properties[name] = $ref === undefined ? { ...member, readOnly: true } : { allOf: [{ $ref }], readOnly: true };
  }
}

function componentOf(document: Document, view: z.ZodObject): Schema | undefined {
  const { id } = view.meta() ?? {};
  return id === undefined ? undefined : document.components?.schemas?.[id];
}

function nameIn(reference: string): string {
  return reference.slice(reference.lastIndexOf('/') + 1);
}

/** The names that certificates had before they were key chains are taken, too: one of both where one is needed, or both alike. */
function addOlderNames(schema: Schema): void {
  const { properties = {}, required = [] } = schema;
  for (const name of Object.keys(properties)) {
    const older = olderNameOf(name);
    if (older === undefined || Object.hasOwn(properties, older)) continue;
    properties[older] = {
      ...properties[name],
      description: `The older name of \`${name}\`. A request that has both with different values is rejected with 400`,
    };
    if (!required.includes(name)) continue;
    schema.required = (schema.required ?? []).filter((other) => other !== name);
    demand(schema, { anyOf: [{ required: [name] }, { required: [older] }] });
  }
}

function demand(schema: Schema, condition: object): void {
  schema['allOf'] = [...((schema['allOf'] as object[] | undefined) ?? []), condition];
}
