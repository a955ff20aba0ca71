import { invalidInput } from '../shared/failure.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
const CA_DAYS = 3653;
/** Clocks of wallets and verifiers run behind ours; a certificate must be valid for them at once. */
const BACKDATED_MS = 5 * 60 * 1000;
/** RFC 5280 appendix A.1, `ub-common-name`. */
const COMMON_NAME_MAX = 64;

export const DEFAULT_CERT_VALIDITY_DAYS = 365;

export type Validity = { readonly notBefore: Date; readonly notAfter: Date };

/** The validity of the internal CA of a key chain: ten years. */
export function caValidity(now: Date): Validity {
  return validity(now, CA_DAYS);
}

/**
 * The validity of a leaf. It ends with its CA at the latest, because a path is only as valid as all of it (RFC 5280 section 6.1.3).
 * @throws Failure `invalid_input` when `days` is not a whole number from 1 to the life of the CA.
 */
export function leafValidity(now: Date, days: number, caNotAfter: Date): Validity {
  if (!Number.isInteger(days) || days < 1 || days > CA_DAYS) {
    throw invalidInput('certValidityDays', `Give a whole number of days from 1 to ${CA_DAYS}.`);
  }
  const own = validity(now, days);
  return own.notAfter <= caNotAfter ? own : { ...own, notAfter: caNotAfter };
}

/**
 * Common names of the CA and the leaf. They differ, because a path is built by names and a leaf named like its CA would look self-issued.
 */
export function commonNames(subjectName: string): { readonly ca: string; readonly leaf: string } {
  const suffix = ' CA';
  return {
    ca: cut(subjectName, COMMON_NAME_MAX - suffix.length) + suffix,
    leaf: cut(subjectName, COMMON_NAME_MAX),
  };
}

/** Whole code points only, so that no half of a surrogate pair ends up in a certificate. */
function cut(text: string, max: number): string {
  return [...text].slice(0, max).join('');
}

/**
 * Begins with the day, because the times of credentials are rounded down to it, and an mdoc is signed within the
 * validity of its certificate (ISO/IEC 18013-5 section 9.3.1). X.509 times count whole seconds.
 */
function validity(now: Date, days: number): Validity {
  const backdated = now.getTime() - BACKDATED_MS;
  const end = Math.floor(backdated / 1000) * 1000 + days * DAY_MS;
  return { notBefore: new Date(Math.floor(backdated / DAY_MS) * DAY_MS), notAfter: new Date(end) };
}
