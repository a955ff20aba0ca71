import { z } from 'zod';
import type { CreateDocumentOptions } from 'zod-openapi';
import { olderNameOf } from '../../../domain/shared/older-names.ts';
import { readOnlyNames } from '../input/read-only-properties.ts';
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
      { requestBody?: { content: Record<string, { schema: Schema }> }; parameters?: { name: string; in: string; example?: unknown }[] }
    >
  >;
};

/**
 * Responses reuse input schemas, some of which brand or rename their values. Such a value is sent in the form in which it was received, so
 * it is documented by its input type.
 */
export const DOCUMENT_OPTIONS: CreateDocumentOptions = {
  allowEmptySchema: { pipe: { output: true }, transform: true, custom: true },
  override({ zodSchema, jsonSchema, io }) {
    removeIntegerBounds(jsonSchema);
    describeDefault(jsonSchema, io);
    if (io === 'input') {
      excludeNul(jsonSchema);
      excludeNulInNames(jsonSchema);
    }
    // The format expresses the same and is easier to read.
    if (jsonSchema.format === 'date-time') delete jsonSchema.pattern;
    if (io !== 'output' || !(zodSchema instanceof z.ZodPipe)) return;
    if (!(zodSchema.out instanceof z.ZodTransform) || Object.keys(jsonSchema).length > 0) return;
    if (zodSchema.in instanceof z.ZodRecord || zodSchema.in instanceof z.ZodObject) jsonSchema.type = 'object';
    if (zodSchema.in instanceof z.ZodString) jsonSchema.type = 'string';
    if (zodSchema.in instanceof z.ZodArray) jsonSchema.type = 'array';
  },
};

/** The range of integers in JSON is not a limit of this interface, but generators would use its ends for examples. */
function removeIntegerBounds(schema: JsonSchema): void {
  if (schema.minimum === Number.MIN_SAFE_INTEGER) delete schema.minimum;
  if (schema.maximum === Number.MAX_SAFE_INTEGER) delete schema.maximum;
}

/** Adds a pattern to unconstrained texts, because the service rejects texts with NUL. */
function excludeNul(schema: JsonSchema): void {
  const { type, pattern, format, enum: values, const: value } = schema;
  const isUnconstrained = [pattern, format, values, value].every((constraint) => constraint === undefined);
  if (type === 'string' && isUnconstrained) schema.pattern = '^[^\\u0000]*$';
}

/** Adds the same pattern to the names of additional properties. */
function excludeNulInNames(schema: JsonSchema): void {
  const { type, additionalProperties, propertyNames } = schema;
  if (type !== 'object' || additionalProperties === undefined || additionalProperties === false) return;
  const names = typeof propertyNames === 'object' ? propertyNames : {};
  if (names.pattern === undefined && names.enum === undefined) schema.propertyNames = { ...names, pattern: '^[^\\u0000]*$' };
}

/** Moves the default to the description: generators treat a property with the keyword `default` as required. */
function describeDefault(schema: JsonSchema, io: 'input' | 'output'): void {
  if (schema.default === undefined) return;
  const defaultText = `Unless stated: \`${JSON.stringify(schema.default)}\``;
  delete schema.default;
  if (io === 'output' || /unless stated/i.test(schema.description ?? '')) return;
  schema.description = schema.description === undefined ? defaultText : `${schema.description}. ${defaultText}`;
}

/**
 * Adds rules that the schemas of zod cannot express.
 * @param isExact leaves out the rewrites for common generators.
 */
export function finishDocument(document: object, routes: readonly Route[], isExact = false): object {
  const result = mergeJsonSchemas(document as Document);
  const closedSchemas = new Set<Schema>();
  for (const route of routes) closeBody(result, route, closedSchemas);
  addParameterExamples(result.paths ?? {}, routes);
  for (const name of ['TrustAnchor', 'TrustListEntity']) {
    const { anyOf, oneOf } = (result.components?.schemas?.[name] ?? {}) as Record<string, Schema[]>;
    for (const alternative of anyOf ?? oneOf ?? []) addOlderNames(alternative);
  }
  if (!isExact) {
    simplify(result);
    adaptToGenerators(result);
  }
  return result;
}

/** Replaces the recursive schemas of arbitrary JSON by one that is not recursive, because generators cannot handle recursion. */
function mergeJsonSchemas(document: Document): Document {
  const { schemas = {} } = document.components ?? {};
  const recursiveNames = Object.keys(schemas).filter((name) => /^__schema\d+$/.test(name));
  if (recursiveNames.length === 0) return document;
  const text = JSON.stringify(document).replaceAll(/"#\/components\/schemas\/__schema\d+"/g, JSON_REFERENCE);
  const renamedDocument = JSON.parse(text) as Document;
  const renamedSchemas = renamedDocument.components?.schemas ?? {};
  for (const name of recursiveNames) delete renamedSchemas[name];
  renamedSchemas['Json'] = { description: 'Any JSON value' };
  return renamedDocument;
}

const JSON_REFERENCE = '"#/components/schemas/Json"';

/** Returns the schema of the body of a route: a component, or inline. */
function bodyOf(document: Document, { path, method }: Route): Schema | undefined {
  const operation = document.paths?.[path.replaceAll(/:([A-Za-z]+)/g, '{$1}')]?.[method];
  const schema = Object.values(operation?.requestBody?.content ?? {})[0]?.schema;
  const reference = schema?.['$ref'];
  if (typeof reference !== 'string') return schema;
  return document.components?.schemas?.[nameIn(reference)];
}

/** Excludes unknown properties, except the read-only ones of the response: a resource that was read may be sent back. */
function closeBody(document: Document, route: Route, closedSchemas: Set<Schema>): void {
  const { surface, access, responses } = route;
  if (surface !== 'admin' || access === 'public') return;
  const schema = bodyOf(document, route);
  if (schema?.properties === undefined) return;
  if (!closedSchemas.has(schema)) addOlderNames(schema);
  closedSchemas.add(schema);
  schema['additionalProperties'] = false;
  if (route.edits?.id === undefined) return;
  const view = responses[200] ?? responses[201];
  const viewSchema = view instanceof z.ZodObject ? componentOf(document, view) : undefined;
  for (const name of readOnlyNames(route)) {
    if (Object.hasOwn(schema.properties, name)) continue;
    const { $ref, ...property } = viewSchema?.properties?.[name] ?? {};
    schema.properties[name] = $ref === undefined ? { ...property, readOnly: true } : { allOf: [{ $ref }], readOnly: true };
  }
}

function componentOf(document: Document, view: z.ZodObject): Schema | undefined {
  const { id } = view.meta() ?? {};
  return id === undefined ? undefined : document.components?.schemas?.[id];
}

function nameIn(reference: string): string {
  return reference.slice(reference.lastIndexOf('/') + 1);
}

/**
 * Adds the former names of properties, such as those that key chains had when they were called certificates. Where a property is required,
 * a request has one of the two names, or both with equal values.
 */
function addOlderNames(schema: Schema): void {
  const { properties = {}, required = [] } = schema;
  for (const name of Object.keys(properties)) {
    const formerName = olderNameOf(name);
    if (formerName === undefined || Object.hasOwn(properties, formerName)) continue;
    properties[formerName] = {
      ...properties[name],
      description: `The former name of \`${name}\`. A request that has both with different values is rejected with 400`,
    };
    if (!required.includes(name)) continue;
    schema.required = (schema.required ?? []).filter((requiredName) => requiredName !== name);
    addCondition(schema, { anyOf: [{ required: [name] }, { required: [formerName] }] });
  }
}

function addCondition(schema: Schema, condition: object): void {
  schema['allOf'] = [...((schema['allOf'] as object[] | undefined) ?? []), condition];
}
