import { explainReason } from './explanations.ts';
import type { Check } from './session-record.ts';

const MISSING = /^missing (credential_sets)?(.+)$/;

export function meaningOf(reason: string): string {
  return explainReason(reason)?.meaning ?? meaningOfMissing(reason) ?? reason;
}

export function causeOf(reason: string): string {
  return explainReason(reason)?.cause || meaningOf(reason);
}

function meaningOfMissing(reason: string): string | undefined {
  const [, isSet, name] = MISSING.exec(reason) ?? [];
  if (name === undefined) return undefined;
  return isSet === undefined ? `No valid presentation for the required query “${name}”` : 'No required set of credentials is complete';
}

/** The check from which a failed one follows; the fix is that of the earlier check. */
export function originOf(check: Check, report: readonly Check[]): Check | undefined {
  if (check.check !== 'response' || check.reason === undefined) return undefined;
  const before = report.slice(0, report.indexOf(check)).filter(({ result }) => result === 'failed');
  const [, isSet, name] = MISSING.exec(check.reason) ?? [];
  return before.find(({ id, reason }) => isSet !== undefined || id === name || reason === check.reason);
}

/** Such as `card: issuer signature`. */
export const titleOf = ({ id, check }: Check): string => (id === undefined ? check : `${id}: ${check}`);
