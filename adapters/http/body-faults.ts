import type { z } from 'zod';
import type { FieldError } from '../../domain/shared/failure.ts';
import { fieldErrors, wordedMembers } from '../../domain/shared/field-errors.ts';

const MAX_FAULTS = 50;

/**
 * All that is wrong with a body that does not fit its schema. A misspelt member is told beside the one that is missing
 * for it, once, with the name that was meant.
 * @param issues of a schema that parsed with `PARSING`.
 * @param unknown the members that the schema does not know.
 */
export function bodyFaults(
  issues: readonly z.core.$ZodIssue[],
  value: unknown,
  unknown: readonly FieldError[] = [],
): FieldError[] {
  const faults = fieldErrors(issues.slice(0, MAX_FAULTS), value);
  const hinted = new Set(unknown.map(({ path }) => path));
  const worded = new Set(wordedMembers(issues));
  return [
    ...faults.filter(({ path }) => !hinted.has(path)),
    ...unknown.filter(({ path }) => !worded.has(path)),
  ].slice(0, MAX_FAULTS);
}
