import { createRequire } from 'node:module';
import type { Ajv2020 } from 'ajv/dist/2020.js';
import type addFormats from 'ajv-formats';
import { type CompiledSchema, type SchemaFault, SchemaValidator } from '../../application/ports/schema-validator.ts';
import { invalidInput } from '../../domain/shared/failure.ts';
import { canonicalJson, isJsonObject, type Json, type JsonObject } from '../../domain/shared/json.ts';
import { LinearPattern } from './linear-pattern.ts';
import { excessOf, measureSchema } from './schema-size.ts';
import { WorkExhausted, WorkMeter } from './work-meter.ts';

/** Loaded with the first schema: many tenants have none, and the compiler is a large part of an idle process. */
function loadCompiler(): { Compiler: typeof Ajv2020; formats: typeof addFormats.default } {
  const require = createRequire(import.meta.url);
  const { Ajv2020: Compiler } = require('ajv/dist/2020.js') as { Ajv2020: typeof Ajv2020 };
  const formats = require('ajv-formats') as typeof addFormats;
  return { Compiler, formats: formats.default };
}

/** A schema compiles to code, so its size bounds the work. */
const MAX_SCHEMA_LENGTH = 50_000;
/** Memory of a compiled schema, for caches. */
const OWN_BYTES = 50_000;
const SUBSCHEMA_BYTES = 1_100;
/** A portrait is the longest claim; an offer and the response of a claims webhook are limited to this size. */
const MAX_DOCUMENT_LENGTH = 1024 * 1024;
/** Objects, arrays and values of one document. */
const MAX_NODES = 2_000;
/** Limit of steps per validation, about a tenth of a second. */
const MAX_WORK = 500_000;
/** No valid value of a format is longer, and the expressions of formats backtrack. */
const MAX_FORMAT_LENGTH = 1_000;
/** Characters that are compared per step. */
const STEP_LENGTH = 16;
/** Steps for the serialization of one item of a list. */
const ITEM_STEPS = 20;
/** Limit of faults per result. */
const MAX_FAULTS = 20;

/** Formats that are checked against the calendar. */
const EXACT_FORMATS = ['date', 'time', 'date-time'] as const;
/** Other supported formats of JSON Schema Validation section 7.3, with fast expressions. */
const QUICK_FORMATS = [
  'duration',
  'uri',
  'uri-reference',
  'uri-template',
  'email',
  'hostname',
  'ipv4',
  'ipv6',
  'uuid',
  'json-pointer',
  'relative-json-pointer',
  'regex',
] as const;

/**
 * JSON Schema 2020-12 by Ajv. References outside the schema are rejected: nothing is ever fetched. Customers write the schemas and they run
 * on the main thread, so every validation counts its steps and is aborted when it takes too many.
 */
export class AjvSchemaValidator extends SchemaValidator {
  override assertSize(schema: JsonObject): void {
    assertLength(schema);
    const excess = excessOf(measureSchema(schema));
    if (excess !== undefined) throw invalidInput('schema', excess);
  }

  override compile(schema: JsonObject): CompiledSchema {
    assertLength(schema);
    const bytes = OWN_BYTES + SUBSCHEMA_BYTES * measureSchema(schema).subschemas;
    const meter = new WorkMeter(MAX_WORK);
    try {
      const validate = compilerFor(meter).compile(meteredSchema(schema));
      const check = (document: JsonObject): readonly SchemaFault[] => {
        const excess = excessOfDocument(document);
        if (excess !== undefined) return [{ path: '', message: excess }];
        meter.begin();
        try {
          if (validate(document)) return [];
        } catch (error) {
          return [{ path: '', message: unfinished(error) }];
        }
        return (validate.errors ?? [])
          .slice(0, MAX_FAULTS)
          .map((error): SchemaFault => ({ path: error.instancePath.replaceAll('/', '.'), message: error.message ?? 'is not valid' }));
      };
      return Object.assign(check, { bytes });
    } catch (error) {
      throw invalidInput('schema', `not a usable JSON Schema 2020-12: ${error instanceof Error ? error.message : 'unknown fault'}`);
    }
  }
}

/** Validates schemas. It stores none of them, so that all compilers can share it. */
let schemaOfSchemas: { readonly ajv: Ajv2020; readonly meter: WorkMeter } | undefined;

/** Values of `$schema` for the dialect. */
const DIALECTS: readonly unknown[] = [
  undefined,
  'https://json-schema.org/draft/2020-12/schema',
  'https://json-schema.org/draft/2020-12/schema#',
];

/** Creates one instance per schema: identifiers in schemas of different customers must not collide. */
function compilerFor(meter: WorkMeter): Ajv2020 {
  const ajv = createCompiler(meter);
  const validateItself = ajv.validateSchema.bind(ajv);
  // Each instance would compile the meta-schema again, which takes longer than most schemas.
  ajv.validateSchema = (schema, throwOrLogError) => {
    // A schema may refer to itself; other references would be stored for as long as the process lives.
    if (typeof schema === 'object' && !DIALECTS.includes(schema.$schema)) return validateItself(schema, throwOrLogError);
    if (schemaOfSchemas === undefined) {
      const sharedMeter = new WorkMeter(MAX_WORK);
      schemaOfSchemas = { ajv: createCompiler(sharedMeter), meter: sharedMeter };
    }
    schemaOfSchemas.meter.begin();
    return schemaOfSchemas.ajv.validateSchema(schema, throwOrLogError);
  };
  return ajv;
}

function createCompiler(meter: WorkMeter): Ajv2020 {
  const { Compiler, formats } = loadCompiler();
  const patterns = new Map<string, LinearPattern>();
  const regExp = (pattern: string): LinearPattern => {
    const cached = patterns.get(pattern) ?? new LinearPattern(pattern, meter);
    patterns.set(pattern, cached);
    return cached;
  };
  const ajv = new Compiler({
    strict: false,
    allErrors: false,
    validateFormats: true,
    logger: false,
    // Inlined definitions would multiply.
    inlineRefs: false,
    // Optimizing the code takes longer than running it.
    code: { optimize: false, regExp: Object.assign(regExp, { code: 'linearPattern' }) },
  });
  formats(ajv, { mode: 'full', formats: [...EXACT_FORMATS] });
  formats(ajv, { mode: 'fast', formats: [...QUICK_FORMATS] });
  for (const [name, format] of Object.entries(ajv.formats)) {
    ajv.addFormat(name, (text: string) => {
      meter.spend(1 + text.length);
      return text.length <= MAX_FORMAT_LENGTH && matches(format, text);
    });
  }
  ajv.removeKeyword('uniqueItems');
  ajv.addKeyword({
    keyword: 'uniqueItems',
    type: 'array',
    schemaType: 'boolean',
    error: { message: 'must NOT have duplicate items' },
    validate: (isUnique: boolean, items: readonly Json[]) => !isUnique || areUnique(items, meter),
  });
  ajv.addKeyword({
    keyword: STEP_KEYWORD,
    before: '$ref',
    schemaType: 'number',
    errors: false,
    validate: (weight: number, data: Json) => {
      meter.spend(weight * (1 + sizeOf(data)));
      return true;
    },
  });
  return ajv;
}

type Formats = Ajv2020['formats'];

function matches(format: Formats[string], text: string): boolean {
  const check = typeof format === 'object' && 'validate' in format ? format.validate : format;
  if (check instanceof RegExp) return check.test(text);
  return typeof check === 'function' && (check as (text: string) => unknown)(text) === true;
}

/** Compares items by their text, because pairwise comparison is quadratic. */
function areUnique(items: readonly Json[], meter: WorkMeter): boolean {
  const texts = items.map((item) => canonicalJson(item));
  meter.spend(texts.reduce((sum, text) => sum + ITEM_STEPS + text.length, 0));
  return new Set(texts).size === items.length;
}

function sizeOf(data: Json): number {
  if (typeof data === 'string') return data.length / STEP_LENGTH;
  if (Array.isArray(data)) return data.length;
  return typeof data === 'object' && data !== null ? Object.keys(data).length : 0;
}

function assertLength(schema: JsonObject): void {
  if (JSON.stringify(schema).length > MAX_SCHEMA_LENGTH) {
    throw invalidInput('schema', `the schema is longer than ${MAX_SCHEMA_LENGTH} characters`);
  }
}

function excessOfDocument(document: JsonObject): string | undefined {
  const pending: Json[] = [document];
  for (let nodes = 0; pending.length > 0; nodes++) {
    if (nodes + pending.length > MAX_NODES) return `has more than ${MAX_NODES} values`;
    const value = pending.pop();
    if (typeof value !== 'object' || value === null) continue;
    for (const child of Object.values(value) as Json[]) pending.push(child);
  }
  return JSON.stringify(document).length > MAX_DOCUMENT_LENGTH ? `is longer than ${MAX_DOCUMENT_LENGTH} characters` : undefined;
}

/** A recursive schema can exhaust the stack before the meter. */
function unfinished(error: unknown): string {
  if (error instanceof WorkExhausted || error instanceof RangeError) return 'takes too much work to validate';
  throw error;
}

/** Comes first in every subschema; its value is the cost of one evaluation. */
const STEP_KEYWORD = 'step:weight';

/** Keywords whose properties are schemas with names of the author. */
const SCHEMAS_BY_NAME = ['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas'];
/** Keywords whose values are data, however much they look like schemas. */
const DATA = ['const', 'enum', 'default', 'examples', 'required', 'dependentRequired', 'type'];
/** References only to locations that certainly hold schemas, so that no evaluation escapes the count. */
const REFERENCE = /^#(?:\/(?:\$defs|definitions)\/[A-Za-z0-9_.-]+)?$/;
const REJECTED_KEYWORDS: ReadonlyMap<string, string> = new Map([
  ['$async', 'asynchronous schemas are not supported'],
  ['$dynamicRef', 'use $ref in place of $dynamicRef'],
  ['$recursiveRef', 'use $ref in place of $recursiveRef'],
]);
/**
 * Copies the schema so that every subschema is counted. A small schema can cause endless work, because references may double it repeatedly.
 * @throws Error for a schema that cannot be counted.
 */
function meteredSchema(schema: JsonObject): JsonObject {
  return metered(schema, true);
}

function metered(schema: JsonObject, isRoot: boolean): JsonObject {
  assertReferences(schema, isRoot);
  let weight = 1;
  const keywords = Object.entries(schema).map(([name, value]): [string, Json] => {
    if (DATA.includes(name) || typeof value !== 'object' || value === null) {
      weight += JSON.stringify(value).length / STEP_LENGTH;
      return [name, value];
    }
    if (!SCHEMAS_BY_NAME.includes(name) || !isJsonObject(value)) return [name, inner(value)];
    const namedSchemas = Object.entries(value);
    weight += namedSchemas.length;
    return [name, Object.fromEntries(namedSchemas.map(([key, child]) => [key, inner(child)]))];
  });
  return { ...Object.fromEntries(keywords), [STEP_KEYWORD]: Math.ceil(weight) };
}

function inner(value: Json): Json {
  if (Array.isArray(value)) return value.map((entry: Json) => inner(entry));
  return isJsonObject(value) ? metered(value, false) : value;
}

function assertReferences(schema: JsonObject, isRoot: boolean): void {
  for (const [name, message] of REJECTED_KEYWORDS) if (Object.hasOwn(schema, name)) throw new Error(message);
  if (!isRoot && Object.hasOwn(schema, '$id')) throw new Error('$id is only allowed for the whole schema');
  if (!Object.hasOwn(schema, '$ref')) return;
  const { $ref } = schema;
  if (typeof $ref !== 'string' || !REFERENCE.test($ref)) {
    throw new Error('$ref may be # or #/$defs/<name>; nothing outside the schema is fetched');
  }
}
