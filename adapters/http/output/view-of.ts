import type { z } from 'zod';

type Unchanged<T> = T extends readonly (infer Entry)[]
  ? readonly Unchanged<Entry>[]
  : T extends object
    ? { readonly [Name in keyof T]: Unchanged<T[Name]> }
    : T;
/** A time is shown as text. */
type Source<T> = string extends T ? T | Date : Unchanged<T>;
type SourceOf<View> = {
  readonly [Name in keyof View as View[Name] & (null | undefined) extends never ? Name : never]: Source<View[Name]>;
} & {
  readonly [Name in keyof View as View[Name] & (null | undefined) extends never ? never : Name]?: Source<View[Name]> | null | undefined;
};

const NULLABLE = new WeakMap<z.ZodObject, ReadonlyMap<string, boolean>>();

/** The members that a view names, and whether each may be null. */
function membersOf(view: z.ZodObject): ReadonlyMap<string, boolean> {
  const known = NULLABLE.get(view) ?? new Map(Object.entries(view.shape).map(([name, member]) => [name, member.safeParse(null).success]));
  NULLABLE.set(view, known);
  return known;
}

/**
 * What a view shows of a thing: the members that it names and no others. One without a value is null where the view has
 * null for it, and left out otherwise.
 */
export function viewOf<View extends z.ZodObject>(view: View, thing: SourceOf<z.output<View>>): z.output<View> {
  const members = thing as Readonly<Record<string, unknown>>;
  const shown: Record<string, unknown> = {};
  for (const [name, isNullable] of membersOf(view)) {
    const value = members[name] ?? null;
    if (value !== null) shown[name] = value instanceof Date ? value.toISOString() : value;
    else if (isNullable) shown[name] = null;
  }
  return shown as z.output<View>;
}
