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
/** What a compiled schema takes in memory, for caches. */
const OWN_BYTES = 50_000;
const SUBSCHEMA_BYTES = 1_100;
/** A portrait is the longest claim there is; an offer and the response of a claims webhook have at most so many bytes. */
const MAX_DOCUMENT_LENGTH = 1024 * 1024;
/** Objects, arrays and values of one document. */
const MAX_NODES = 2_000;
/** Steps of one check, about a tenth of a second. */
const MAX_WORK = 500_000;
/** No format is longer, and their expressions backtrack. */
const MAX_FORMAT_LENGTH = 1_000;
/** Characters that are compared in one step. */
const STEP_LENGTH = 16;
/** What it takes to write one item of a list down for comparison. */
const ITEM_STEPS = 20;
/** Faults that one answer names. */
const MAX_FAULTS = 20;

/** Dates are checked against the calendar. */
const EXACT_FORMATS = ['date', 'time', 'date-time'] as const;
/** The rest of JSON Schema Validation section 7.3 that is known here, in expressions that are quick. */
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
 * JSON Schema 2020-12 by Ajv. References outside the schema itself are refused: nothing is ever fetched. Schemas are written by customers
 * and checked on the thread that serves all of them, so every check is counted and given up when it takes too long.
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

/** Says whether something is a schema. It knows none of the schemas themselves, so that all may ask the same one. */
let schemaOfSchemas: { readonly ajv: Ajv2020; readonly meter: WorkMeter } | undefined;

/** How a schema names the dialect, if it does. */
const DIALECTS: readonly unknown[] = [
  undefined,
  'https://json-schema.org/draft/2020-12/schema',
  'https://json-schema.org/draft/2020-12/schema#',
];

/** One instance per schema: identifiers of one customer's schema must not meet another's. */
function compilerFor(meter: WorkMeter): Ajv2020 {
  const ajv = makeCompiler(meter);
  const askItself = ajv.validateSchema.bind(ajv);
  // Each would compile it anew, which takes longer than most schemas.
  ajv.validateSchema = (schema, throwOrLogError) => {
    // A schema may name itself; and what else it names would be remembered for as long as the process lives.
    if (typeof schema === 'object' && !DIALECTS.includes(schema.$schema)) return askItself(schema, throwOrLogError);
    if (schemaOfSchemas === undefined) {
      const own = new WorkMeter(MAX_WORK);
      schemaOfSchemas = { ajv: makeCompiler(own), meter: own };
    }
    schemaOfSchemas.meter.begin();
    return schemaOfSchemas.ajv.validateSchema(schema, throwOrLogError);
  };
  return ajv;
}

function makeCompiler(meter: WorkMeter): Ajv2020 {
  const { Compiler, formats } = loadCompiler();
  const patterns = new Map<string, LinearPattern>();
  const regExp = (pattern: string): LinearPattern => {
    const known = patterns.get(pattern) ?? new LinearPattern(pattern, meter);
    patterns.set(pattern, known);
    return known;
  };
  const ajv = new Compiler({
    strict: false,
    allErrors: false,
    validateFormats: true,
    logger: false,
    // Written into each place that refers to them, definitions multiply.
    inlineRefs: false,
    // To make the code shorter takes longer than to run it.
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
    validate: (wanted: boolean, items: readonly Json[]) => !wanted || areUnique(items, meter),
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

/** Compares each with all others by its text, where one comparison after the other takes the square of their number. */
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
  const left: Json[] = [document];
  for (let nodes = 0; left.length > 0; nodes++) {
    if (nodes + left.length > MAX_NODES) return `has more than ${MAX_NODES} values`;
    const value = left.pop();
    if (typeof value !== 'object' || value === null) continue;
    for (const member of Object.values(value) as Json[]) left.push(member);
  }
  return JSON.stringify(document).length > MAX_DOCUMENT_LENGTH ? `is longer than ${MAX_DOCUMENT_LENGTH} characters` : undefined;
}

/** A recursive schema can exhaust the stack before it exhausts the meter. */
function unfinished(error: unknown): string {
  if (error instanceof WorkExhausted || error instanceof RangeError) return 'takes too much work to check';
  throw error;
}

/** Stands first in every subschema; its value is what one evaluation costs. */
const STEP_KEYWORD = 'step:weight';

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
/**
 * A copy of the schema in which every subschema is counted. A small schema can ask for endless work, for references
 * may double it again and again.
 * @throws Error for what could not be counted.
 */
function meteredSchema(schema: JsonObject): JsonObject {
  return metered(schema, true);
}

function metered(schema: JsonObject, isRoot: boolean): JsonObject {
  assertReferences(schema, isRoot);
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

function assertReferences(schema: JsonObject, isRoot: boolean): void {
  for (const [name, message] of REFUSED) if (Object.hasOwn(schema, name)) throw new Error(message);
  if (!isRoot && Object.hasOwn(schema, '$id')) throw new Error('$id is for the schema as a whole');
  if (!Object.hasOwn(schema, '$ref')) return;
  const { $ref } = schema;
  if (typeof $ref !== 'string' || !REFERENCE.test($ref)) {
    throw new Error('$ref may be # or #/$defs/<name>; nothing outside the schema is fetched');
  }
}
