import { z } from 'zod';
import { type FieldError, invalidFields } from './failure.ts';
import { fieldErrors, PARSE_OPTIONS } from './field-errors.ts';
import { withCurrentNames } from './older-names.ts';

type ParseResult<T> = { readonly data: T } | { readonly errors: readonly FieldError[] };

/** Strict variants of schemas, cached because creating them is slow. */
const STRICT = new WeakMap<z.ZodType, z.ZodType>();

/** Parses input of administrators: older names of key chains are accepted, unknown properties are errors. */
export function safeParseInput<S extends z.ZodType>(schema: S, input: unknown): ParseResult<z.output<S>> {
  const { value, errors } = withCurrentNames(input, membersOf(schema));
  if (errors.length > 0) return { errors };
  const parsed = strictly(schema).safeParse(value, PARSE_OPTIONS);
  return parsed.success ? { data: parsed.data } : { errors: fieldErrors(parsed.error.issues, value) };
}

/** @throws Failure `invalid_input` with every error. */
export function parseInput<S extends z.ZodType>(schema: S, input: unknown): z.output<S> {
  const result = safeParseInput(schema, input);
  if ('errors' in result) throw invalidFields(result.errors);
  return result.data;
}

/** Property names of an object schema; empty for other schemas. */
export function membersOf(schema: z.ZodType): readonly string[] {
  return schema instanceof z.ZodObject ? Object.keys(schema.shape) : [];
}

function strictly<S extends z.ZodType>(schema: S): S {
  if (!(schema instanceof z.ZodObject)) return schema;
  const strict = STRICT.get(schema) ?? schema.strict();
  STRICT.set(schema, strict);
  return strict as unknown as S;
}
