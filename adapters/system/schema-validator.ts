import { createRequire } from 'node:module';
import type { Ajv2020 } from 'ajv/dist/2020.js';
import type addFormats from 'ajv-formats';
import { type CompiledSchema, SchemaValidator } from '../../application/ports/schema-validator.ts';
import { invalidInput } from '../../domain/shared/failure.ts';
import type { JsonObject } from '../../domain/shared/json.ts';

/** Loaded with the first schema: many tenants have none, and the compiler is a large part of an idle process. */
function loadCompiler(): { Compiler: typeof Ajv2020; formats: typeof addFormats.default } {
  const require = createRequire(import.meta.url);
  const { Ajv2020: Compiler } = require('ajv/dist/2020.js') as { Ajv2020: typeof Ajv2020 };
  const formats = require('ajv-formats') as typeof addFormats;
  return { Compiler, formats: formats.default };
}

/** A schema compiles to code, so its size bounds the work. */
const MAX_SCHEMA_LENGTH = 200_000;
/** Faults that one answer names. */
const MAX_FAULTS = 20;

/** JSON Schema 2020-12 by Ajv. References outside the schema itself are refused: nothing is ever fetched. */
export class AjvSchemaValidator extends SchemaValidator {
  override compile(schema: JsonObject): CompiledSchema {
    if (JSON.stringify(schema).length > MAX_SCHEMA_LENGTH) {
      throw invalidInput('schema', `the schema is longer than ${MAX_SCHEMA_LENGTH} characters`);
    }
    // One instance per schema: identifiers of one customer's schema must not meet another's.
    const { Compiler, formats } = loadCompiler();
    const ajv = new Compiler({ strict: false, allErrors: false, validateFormats: true, logger: false });
    formats(ajv);
    try {
      const validate = ajv.compile(schema);
      return (document) => {
        if (validate(document)) return [];
        return (validate.errors ?? []).slice(0, MAX_FAULTS).map((error) => ({
          path: error.instancePath.replaceAll('/', '.'),
          message: error.message ?? 'is not valid',
        }));
      };
    } catch (error) {
      throw invalidInput(
        'schema',
        `not a usable JSON Schema 2020-12: ${error instanceof Error ? error.message : 'unknown fault'}`,
      );
    }
  }
}
