import type { z } from 'zod';
import { letters, unknownMember } from '../../domain/shared/closest-name.ts';
import type { FieldError } from '../../domain/shared/failure.ts';
import { currentName } from './shapes/key-reference.ts';

const MAX_FAULTS = 50;

/**
 * The members of a body that its schema does not know. A misspelt name must not be taken for none: whoever wrote
 * `txCode` for `tx_code` would believe that a code is asked for.
 * @param value that fits the schema, a part of what does, or what was meant to.
 * @param view what answers look like: whoever sends back what they read means no harm.
 * @returns one fault for each, with its path.
 */
export function unknownMembers(schema: z.ZodType, value: unknown, view?: z.ZodType): FieldError[] {
  return walk(schema as unknown as Schema, value, [])
    .filter(({ path }) => !isShown(view, path))
    .slice(0, MAX_FAULTS)
    .map(({ path, name, known }) => ({ path, message: unknownMember(name, known) }));
}

/** The names of those members that answers have, and that cannot be written. */
export function readOnlyMembers(schema: z.ZodType, value: unknown, view: z.ZodType): string[] {
  return walk(schema as unknown as Schema, value, [])
    .filter(({ path }) => isShown(view, path))
    .map(({ path }) => path);
}

function isShown(view: z.ZodType | undefined, path: string): boolean {
  return Object.hasOwn((view as unknown as Schema | undefined)?._zod.def.shape ?? {}, path);
}

/** A member that stands where only others are known. */
type Unknown = { readonly path: string; readonly name: string; readonly known: readonly string[] };

/** As much of a zod schema as says where values have members. */
type Schema = {
  readonly _zod: {
    readonly def: {
      readonly type: string;
      readonly shape?: Readonly<Record<string, Schema>>;
      readonly catchall?: Schema;
      readonly element?: Schema;
      readonly valueType?: Schema;
      readonly innerType?: Schema;
      readonly in?: Schema;
      readonly out?: Schema;
      readonly options?: readonly Schema[];
      /** Of a literal. */
      readonly values?: readonly unknown[];
    };
  };
  safeParse(value: unknown): { readonly success: boolean };
};

type Path = readonly (string | number)[];

function walk(schema: Schema, value: unknown, path: Path): Unknown[] {
  if (typeof value !== 'object' || value === null) return [];
  const { def } = schema._zod;
  if (def.shape !== undefined) {
    return Array.isArray(value) ? [] : walkObject(def.shape, def.catchall, value as Members, path);
  }
  if (def.element !== undefined && Array.isArray(value)) {
    const { element } = def;
    return value.flatMap((entry, index) => walk(element, entry, [...path, index]));
  }
  if (def.valueType !== undefined) {
    const { valueType } = def;
    return Object.entries(value).flatMap(([name, entry]) => walk(valueType, entry, [...path, name]));
  }
  if (def.options !== undefined) return walkOptions(def.options, value, path);
  // What is transformed is looked at before, and what was prepared after.
  const piped = def.in?._zod.def.type === 'transform' ? def.out : def.in;
  const inner = def.innerType ?? piped;
  return inner === undefined ? [] : walk(inner, value, path);
}

/** In the form that the value has been read as; without one, members that no form of objects knows. */
function walkOptions(options: readonly Schema[], value: object, path: Path): Unknown[] {
  const read = options.find((candidate) => candidate.safeParse(value).success);
  if (read !== undefined) return walk(read, value, path);
  if (Array.isArray(value)) {
    const lists = options.filter((option) => option._zod.def.element !== undefined);
    return lists.length === 1 ? lists.flatMap((list) => walk(list, value, path)) : [];
  }
  const forms = options.filter((option) => option._zod.def.shape !== undefined);
  const named = forms.filter((form) => isNamedBy(form, value as Members));
  const [first, ...others] = named.length === 0 ? forms : named;
  if (first === undefined) return [];
  if (others.length === 0) return walk(first, value, path);
  const all = [first, ...others].map((form) => form._zod.def);
  const shape = Object.assign({}, ...all.map((def) => def.shape)) as Readonly<Record<string, Schema>>;
  return walkObject(
    shape,
    all.find((def) => def.catchall?._zod.def.type !== 'never')?.catchall,
    value as Members,
    path,
  );
}

/** Whether the value says of itself that it has this form, as with `type`. */
function isNamedBy(form: Schema, value: Members): boolean {
  return Object.entries(form._zod.def.shape ?? {}).some(([name, { _zod }]) =>
    _zod.def.values?.includes(value[name]),
  );
}

type Members = Readonly<Record<string, unknown>>;

function walkObject(
  shape: Readonly<Record<string, Schema>>,
  catchall: Schema | undefined,
  value: Members,
  path: Path,
): Unknown[] {
  return Object.entries(value).flatMap(([name, member]) => {
    const current = Object.hasOwn(shape, name) ? name : currentName(name);
    const known = Object.hasOwn(shape, current) ? shape[current] : undefined;
    if (known !== undefined) return walk(known, member, [...path, name]);
    const names = Object.keys(shape);
    const isOpen = catchall !== undefined && catchall._zod.def.type !== 'never';
    // Where other members are welcome, one that only looks like a known one is not.
    if (isOpen && !names.some((candidate) => letters(candidate) === letters(name))) return [];
    return [{ path: [...path, name].join('.'), name, known: names }];
  });
}
