import type { JsonObject } from '../../domain/shared/json.ts';

export type SchemaFault = {
  /** JSON Pointer of the fault, empty for the whole document. */
  readonly path: string;
  readonly message: string;
};

/** A compiled JSON Schema. @returns an empty list for a valid document. Messages never repeat a value. */
export type CompiledSchema = (document: JsonObject) => readonly SchemaFault[];

/** JSON Schema 2020-12. */
export abstract class SchemaValidator {
  /**
   * Checks the size of a schema before it is stored, without compiling it: compiling a large schema blocks the event loop.
   * @throws Failure `invalid_input` that names the limit that is exceeded.
   */
  abstract assertSize(schema: JsonObject): void;

  /** @throws Failure `invalid_input` when the schema itself is not valid or refers elsewhere. */
  abstract compile(schema: JsonObject): CompiledSchema;
}
