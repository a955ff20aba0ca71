import type { z } from 'zod';
import { type FieldError, invalidFields } from './failure.ts';
import type { Finding } from './finding.ts';
import { membersOf, parseWritten, safeParseWritten } from './parse-written.ts';
import { updateOf } from './update-of.ts';
import { valueOrUndefined } from './value-or-undefined.ts';

/** How a document is validated after a change of some of its properties. */
export type ChangeRules<S extends z.ZodObject> = {
  readonly schema: S;
  /** Faults between properties, which `schema` reports as well. */
  crossFieldFaults(body: z.output<S>): readonly FieldError[];
  /** Properties that one rule is about: a change of one of them is validated against the others. */
  readonly related: readonly (readonly string[])[];
};

export type Merged<Body> = {
  readonly body: Body;
  /** Names of the properties that the change contains. */
  readonly changed: ReadonlySet<string>;
};

const UPDATES = new WeakMap<z.ZodObject, z.ZodType>();

/**
 * Puts the properties of a change into a stored document; null resets one to its default. Only the change is validated: by the rules of its
 * own properties, and by the rules between them and others. A property that an earlier release accepted and that the
 * change does not contain is kept; `findOlderRuleProblems` warns about it.
 * @throws Failure `invalid_input`
 */
export function mergeChange<S extends z.ZodObject>(
  { schema, crossFieldFaults, related }: ChangeRules<S>,
  stored: object,
  change: object,
): Merged<z.output<S>> {
  const update = UPDATES.get(schema) ?? updateOf(schema);
  UPDATES.set(schema, update);
  const given = Object.entries(parseWritten(update, change) as object).filter(([, value]) => value !== undefined);
  const changed = new Set(given.map(([name]) => name));
  const before = withDefaults(schema, stored);
  const body = withDefaults(schema, { ...before, ...Object.fromEntries(given) });
  const isTouched = (property: string) =>
    changed.has(property) || related.some((group) => group.includes(property) && group.some((name) => changed.has(name)));
  const former = new Set(findProblems(crossFieldFaults, before)?.map(keyOf));
  const faults = findProblems(crossFieldFaults, body);
  // A stored document of a shape that the rules cannot read is validated as a whole.
  if (faults === undefined) return { body: parseWritten(schema, body), changed };
  const blocking = faults.filter((fault) => isTouched(propertyOf(fault)) || !former.has(keyOf(fault)));
  if (blocking.length > 0) throw invalidFields(blocking);
  return { body, changed };
}

/** Faults of a stored document by the rules of this release. They are accepted as long as nobody writes the property. */
export function findOlderRuleProblems(schema: z.ZodType, stored: object): Finding[] {
  const properties = membersOf(schema);
  const written = Object.entries(stored).filter(([name]) => properties.includes(name));
  const read = safeParseWritten(schema, Object.fromEntries(written));
  if (!('errors' in read)) return [];
  return read.errors.map(({ path, message }) => ({
    rule: 'docs/upgrading.md, Stricter rules',
    member: path,
    concerns: 'the next write of this property',
    message: `an earlier release accepted it, and it is rejected when it is written again: ${message}`,
    change: 'correct the property',
  }));
}

function withDefaults<S extends z.ZodObject>(schema: S, document: object): z.output<S> {
  const values = document as Readonly<Record<string, unknown>>;
  const entries = Object.entries(schema.shape).flatMap(([name, property]) => {
    const value = values[name];
    if (value !== undefined && value !== null) return [[name, value]];
    const { data } = (property as z.ZodType).safeParse(undefined);
    return data === undefined ? [] : [[name, data]];
  });
  return Object.fromEntries(entries);
}

/** @returns undefined when the rules fail to read the document. */
function findProblems<Body>(crossFieldFaults: (body: Body) => readonly FieldError[], body: Body): readonly FieldError[] | undefined {
  return valueOrUndefined(() => crossFieldFaults(body));
}

const propertyOf = ({ path }: FieldError) => path.split('.', 1)[0] ?? '';
const keyOf = ({ path, message }: FieldError) => `${path} ${message}`;
