import type { JsonObject } from '../../domain/shared/json.ts';

export type SchemaFault = {
  /** JSON Pointer of the fault, empty for the whole document. */
  readonly path: string;
  readonly message: string;
};

/** A compiled JSON Schema. @returns no fault for a valid document. Messages never repeat a value. */
export type CompiledSchema = (document: JsonObject) => readonly SchemaFault[];

/** JSON Schema 2020-12. */
export abstract class SchemaValidator {
  /**
   * Before a schema is stored, without compiling it: what is too large holds everybody up while it is compiled.
   * @throws Failure `invalid_input` that says what there is too much of.
   */
  abstract assertSize(schema: JsonObject): void;

  /** @throws Failure `invalid_input` when the schema itself is not valid or refers elsewhere. */
  abstract compile(schema: JsonObject): CompiledSchema;
}
