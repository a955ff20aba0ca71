import type { z } from 'zod';

type Unchanged<T> = T extends readonly (infer Entry)[]
  ? readonly Unchanged<Entry>[]
  : T extends object
    ? { readonly [Name in keyof T]: Unchanged<T[Name]> }
    : T;
/** A time is converted to text. */
type Source<T> = string extends T ? T | Date : Unchanged<T>;
type SourceOf<View> = {
  readonly [Name in keyof View as View[Name] & (null | undefined) extends never ? Name : never]: Source<View[Name]>;
} & {
  readonly [Name in keyof View as View[Name] & (null | undefined) extends never ? never : Name]?: Source<View[Name]> | null | undefined;
};

const NULLABLE = new WeakMap<z.ZodObject, ReadonlyMap<string, boolean>>();

/** Property names of a view, and if each may be null. */
function propertiesOf(view: z.ZodObject): ReadonlyMap<string, boolean> {
  const nullability =
    NULLABLE.get(view) ?? new Map(Object.entries(view.shape).map(([name, schema]) => [name, schema.safeParse(null).success]));
  NULLABLE.set(view, nullability);
  return nullability;
}

/**
 * Copies the properties of a view from an object, and no others. A missing value becomes null if the view allows that, and is left out
 * otherwise.
 */
export function viewOf<View extends z.ZodObject>(view: View, thing: SourceOf<z.output<View>>): z.output<View> {
  const properties = thing as Readonly<Record<string, unknown>>;
  const result: Record<string, unknown> = {};
  for (const [name, isNullable] of propertiesOf(view)) {
    const value = properties[name] ?? null;
    if (value !== null) result[name] = value instanceof Date ? value.toISOString() : value;
    else if (isNullable) result[name] = null;
  }
  return result as z.output<View>;
}
