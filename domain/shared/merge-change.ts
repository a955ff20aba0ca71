import type { z } from 'zod';
import { type FieldError, invalidFields } from './failure.ts';
import type { Finding } from './finding.ts';
import { membersOf, parseInput, safeParseInput } from './parse-input.ts';
import { updateOf } from './update-of.ts';
import { valueOrUndefined } from './value-or-undefined.ts';

/** Rules for validating a document after a change of some properties. */
export type ChangeRules<S extends z.ZodObject> = {
  readonly schema: S;
  /** Errors between properties, which `schema` reports as well. */
  crossFieldFaults(body: z.output<S>): readonly FieldError[];
  /** Groups of properties with a common rule: a change of one of them is validated against the others. */
  readonly related: readonly (readonly string[])[];
};

export type Merged<Body> = {
  readonly body: Body;
  /** Names of the properties that the change contains. */
  readonly changed: ReadonlySet<string>;
};

const UPDATES = new WeakMap<z.ZodObject, z.ZodType>();

/**
 * Merges a change into a stored document; null resets a property to its default. Only the change is validated: by the rules of its own
 * properties, and by the rules between them and others. A property that an earlier release accepted and that the change does not contain is
 * retained; `findOlderRuleProblems` warns about it.
 * @throws Failure `invalid_input`
 */
export function mergeChange<S extends z.ZodObject>(
  { schema, crossFieldFaults, related }: ChangeRules<S>,
  storedDocument: object,
  change: object,
): Merged<z.output<S>> {
  const update = UPDATES.get(schema) ?? updateOf(schema);
  UPDATES.set(schema, update);
  const changedEntries = Object.entries(parseInput(update, change) as object).filter(([, value]) => value !== undefined);
  const changedNames = new Set(changedEntries.map(([name]) => name));
  const previousDocument = withDefaults(schema, storedDocument);
  const body = withDefaults(schema, { ...previousDocument, ...Object.fromEntries(changedEntries) });
  const isTouched = (property: string) =>
    changedNames.has(property) || related.some((group) => group.includes(property) && group.some((name) => changedNames.has(name)));
  const previousProblems = new Set(findProblems(crossFieldFaults, previousDocument)?.map(keyOf));
  const faults = findProblems(crossFieldFaults, body);
  // A stored document that the rules cannot process is validated as a whole.
  if (faults === undefined) return { body: parseInput(schema, body), changed: changedNames };
  const blocking = faults.filter((fault) => isTouched(propertyOf(fault)) || !previousProblems.has(keyOf(fault)));
  if (blocking.length > 0) throw invalidFields(blocking);
  return { body, changed: changedNames };
}

/** Violations of the current rules by a stored document. They are accepted as long as the property is not written. */
export function findOlderRuleProblems(schema: z.ZodType, storedDocument: object): Finding[] {
  const properties = membersOf(schema);
  const currentEntries = Object.entries(storedDocument).filter(([name]) => properties.includes(name));
  const parsed = safeParseInput(schema, Object.fromEntries(currentEntries));
  if (!('errors' in parsed)) return [];
  return parsed.errors.map(({ path, message }) => ({
    rule: 'docs/reference/compatibility.md, Stricter rules',
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

/** @returns undefined when the rules throw for the document. */
function findProblems<Body>(crossFieldFaults: (body: Body) => readonly FieldError[], body: Body): readonly FieldError[] | undefined {
  return valueOrUndefined(() => crossFieldFaults(body));
}

const propertyOf = ({ path }: FieldError) => path.split('.', 1)[0] ?? '';
const keyOf = ({ path, message }: FieldError) => `${path} ${message}`;
