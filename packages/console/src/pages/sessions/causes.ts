import { REASONS } from './explanations.ts';
import type { Check } from './session-record.ts';

const MISSING = /^missing (credential_sets)?(.+)$/;

export function causeOf(reason: string): string {
  const known = REASONS[reason];
  if (known !== undefined) return known;
  const [, isSet, name] = MISSING.exec(reason) ?? [];
  if (name === undefined) return reason;
  return isSet === undefined
    ? `no good presentation came for “${name}”, which the question requires`
    : 'no set of credentials that the question requires came as a whole';
}

/** The check from which a failed one follows: its own cure is none. */
export function originOf(check: Check, report: readonly Check[]): Check | undefined {
  if (check.check !== 'response' || check.reason === undefined) return undefined;
  const before = report.slice(0, report.indexOf(check)).filter(({ result }) => result === 'failed');
  const [, isSet, name] = MISSING.exec(check.reason) ?? [];
  return before.find(({ id, reason }) => isSet !== undefined || id === name || reason === check.reason);
}

/** Such as `card: issuer signature`. */
export const titleOf = ({ id, check }: Check): string => (id === undefined ? check : `${id}: ${check}`);
