import { z } from 'zod';
import { type FieldError, invalidFields } from './failure.ts';
import { fieldErrors, PARSING } from './field-errors.ts';
import { withCurrentNames } from './older-names.ts';

type Read<T> = { readonly data: T } | { readonly errors: readonly FieldError[] };

/** Schemas that refuse what they would otherwise pass over; made once each, since making them takes long. */
const STRICT = new WeakMap<z.ZodType, z.ZodType>();

/** Reads what people write: by either of the names that key chains have, and without members that nobody knows. */
export function safeParseWritten<S extends z.ZodType>(schema: S, written: unknown): Read<z.output<S>> {
  const { value, errors } = withCurrentNames(written, membersOf(schema));
  if (errors.length > 0) return { errors };
  const parsed = strictly(schema).safeParse(value, PARSING);
  return parsed.success ? { data: parsed.data } : { errors: fieldErrors(parsed.error.issues, value) };
}

/** @throws Failure `invalid_input` that names every fault. */
export function parseWritten<S extends z.ZodType>(schema: S, written: unknown): z.output<S> {
  const read = safeParseWritten(schema, written);
  if ('errors' in read) throw invalidFields(read.errors);
  return read.data;
}

/** The members of an object; none of what is no object. */
export function membersOf(schema: z.ZodType): readonly string[] {
  return schema instanceof z.ZodObject ? Object.keys(schema.shape) : [];
}

function strictly<S extends z.ZodType>(schema: S): S {
  if (!(schema instanceof z.ZodObject)) return schema;
  const strict = STRICT.get(schema) ?? schema.strict();
  STRICT.set(schema, strict);
  return strict as unknown as S;
}
