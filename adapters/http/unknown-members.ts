import type { z } from 'zod';
import type { FieldError } from '../../domain/shared/failure.ts';
import { currentName } from './shapes/key-reference.ts';

const MAX_FAULTS = 50;

/**
 * The members of a body that its schema does not know. A misspelt name must not be taken for none: whoever wrote
 * `txCode` for `tx_code` would believe that a code is asked for.
 * @param value that fits the schema, or a part of what does.
 * @param view what answers look like: whoever sends back what they read means no harm.
 * @returns one fault for each, with its path.
 */
export function unknownMembers(schema: z.ZodType, value: unknown, view?: z.ZodType): FieldError[] {
  const shown = (view as unknown as Schema | undefined)?._zod.def.shape ?? {};
  return walk(schema as unknown as Schema, value, [])
    .filter(({ path }) => !Object.hasOwn(shown, path))
    .slice(0, MAX_FAULTS);
}

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
    };
  };
  safeParse(value: unknown): { readonly success: boolean };
};

type Path = readonly (string | number)[];

function walk(schema: Schema, value: unknown, path: Path): FieldError[] {
  if (typeof value !== 'object' || value === null) return [];
  const { def } = schema._zod;
  if (def.shape !== undefined) return walkObject(def.shape, def.catchall, value as Members, path);
  if (def.element !== undefined && Array.isArray(value)) {
    const { element } = def;
    return value.flatMap((entry, index) => walk(element, entry, [...path, index]));
  }
  if (def.valueType !== undefined) {
    const { valueType } = def;
    return Object.entries(value).flatMap(([name, entry]) => walk(valueType, entry, [...path, name]));
  }
  // The form that the value has been read as
  const option = def.options?.find((candidate) => candidate.safeParse(value).success);
  // What is transformed is looked at before, and what was prepared after.
  const piped = def.in?._zod.def.type === 'transform' ? def.out : def.in;
  const inner = option ?? def.innerType ?? piped;
  return inner === undefined ? [] : walk(inner, value, path);
}

type Members = Readonly<Record<string, unknown>>;

function walkObject(
  shape: Readonly<Record<string, Schema>>,
  catchall: Schema | undefined,
  value: Members,
  path: Path,
): FieldError[] {
  return Object.entries(value).flatMap(([name, member]) => {
    const current = currentName(name);
    const known = Object.hasOwn(shape, current) ? shape[current] : undefined;
    if (known !== undefined) return walk(known, member, [...path, name]);
    const meant = Object.keys(shape).find((candidate) => letters(candidate) === letters(name));
    // Where other members are welcome, one that only looks like a known one is not.
    if (catchall !== undefined && meant === undefined) return [];
    const question = meant === undefined ? '' : `; did you mean ${meant}?`;
    return [{ path: [...path, name].join('.'), message: `there is no such member${question}` }];
  });
}

/** What is left of a name without case, underscores and a plural. */
function letters(name: string): string {
  return name
    .toLowerCase()
    .replaceAll(/[^a-z0-9]/g, '')
    .replace(/s$/, '');
}
