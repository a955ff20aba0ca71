import type { z } from 'zod';

type DeepReadonly<T> = T extends readonly (infer Entry)[]
  ? readonly DeepReadonly<Entry>[]
  : T extends object
    ? { readonly [Name in keyof T]: DeepReadonly<T[Name]> }
    : T;
/** Type of the value that becomes a property of a view: a `Date` becomes a text. */
type SourceValue<T> = string extends T ? T | Date : DeepReadonly<T>;
type SourceOf<View> = {
  readonly [Name in keyof View as View[Name] & (null | undefined) extends never ? Name : never]: SourceValue<View[Name]>;
} & {
  readonly [Name in keyof View as View[Name] & (null | undefined) extends never ? never : Name]?:
    | SourceValue<View[Name]>
    | null
    | undefined;
};

/** Cache of `nullabilityOf`. */
const NULLABILITY = new WeakMap<z.ZodObject, ReadonlyMap<string, boolean>>();

/** Returns the property names of a view, each with true if it may be null. */
function nullabilityOf(view: z.ZodObject): ReadonlyMap<string, boolean> {
  const nullability =
    NULLABILITY.get(view) ?? new Map(Object.entries(view.shape).map(([name, schema]) => [name, schema.safeParse(null).success]));
  NULLABILITY.set(view, nullability);
  return nullability;
}

/**
 * Copies the properties of a view from an object, and no others. A missing value becomes null if the view allows that, and is left out
 * otherwise.
 */
export function viewOf<View extends z.ZodObject>(view: View, source: SourceOf<z.output<View>>): z.output<View> {
  const properties = source as Readonly<Record<string, unknown>>;
  const result: Record<string, unknown> = {};
  for (const [name, isNullable] of nullabilityOf(view)) {
    const value = properties[name] ?? null;
    if (value !== null) result[name] = value instanceof Date ? value.toISOString() : value;
    else if (isNullable) result[name] = null;
  }
  return result as z.output<View>;
}
