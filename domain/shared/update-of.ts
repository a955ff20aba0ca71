import { z } from 'zod';
import { strictInput } from './input-object.ts';

type Plain<S> =
  S extends z.ZodOptional<infer Inner>
    ? Plain<Inner>
    : S extends z.ZodDefault<infer Inner>
      ? Plain<Inner>
      : S extends z.ZodNullable<infer Inner>
        ? Plain<Inner>
        : S;
type IsOptional<S> = S extends z.ZodOptional | z.ZodDefault ? true : false;
type UpdateOf<Shape> = {
  [Name in keyof Shape]: IsOptional<Shape[Name]> extends true
    ? z.ZodOptional<z.ZodNullable<Plain<Shape[Name]> & z.ZodType>>
    : z.ZodOptional<Shape[Name] & z.ZodType>;
};

/**
 * The schema of a partial update: each property is optional, and null resets an optional one. Defaults do not apply, because omitted
 * properties are retained.
 */
export function updateOf<Shape extends z.ZodRawShape>({ shape }: z.ZodObject<Shape>) {
  const members = Object.entries(shape).map(([name, schema]) => {
    const isOptional = schema instanceof z.ZodOptional || schema instanceof z.ZodDefault;
    return [name, isOptional ? plain(schema).nullish() : (schema as z.ZodType).optional()];
  });
  return strictInput(Object.fromEntries(members) as UpdateOf<Shape>);
}

function plain(schema: z.core.$ZodType): z.ZodType {
  const isWrapped = schema instanceof z.ZodOptional || schema instanceof z.ZodDefault || schema instanceof z.ZodNullable;
  return isWrapped ? plain(schema.unwrap()) : (schema as z.ZodType);
}
