import { invalidInput } from '../shared/failure.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
const CA_DAYS = 3653;
/** Clocks of wallets and verifiers may be behind; a certificate must be valid for them immediately. */
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
 * The validity of a leaf. It ends with its CA at the latest, because a path is only valid as long as each of its certificates (RFC 5280
 * section 6.1.3).
 * @throws Failure `invalid_input` when `days` is not a whole number from 1 to the lifetime of the CA.
 */
export function leafValidity(now: Date, days: number, caNotAfter: Date): Validity {
  if (!Number.isInteger(days) || days < 1 || days > CA_DAYS) {
    throw invalidInput('certValidityDays', `Use a whole number of days from 1 to ${CA_DAYS}.`);
  }
  const fullValidity = validity(now, days);
  return fullValidity.notAfter <= caNotAfter ? fullValidity : { ...fullValidity, notAfter: caNotAfter };
}

/**
 * Common names of the CA and the leaf. They differ, because a path is built by names, and a leaf with the name of its CA would look
 * self-issued.
 */
export function commonNames(subjectName: string): { readonly ca: string; readonly leaf: string } {
  const suffix = ' CA';
  return { ca: truncate(subjectName, COMMON_NAME_MAX - suffix.length) + suffix, leaf: truncate(subjectName, COMMON_NAME_MAX) };
}

/** Truncates at code points, so that no lone surrogate gets into a certificate. */
function truncate(text: string, max: number): string {
  return [...text].slice(0, max).join('');
}

/**
 * A validity begins at the start of a day, because the times of credentials are rounded down to the day, and an mdoc must be signed within
 * the validity of its certificate (ISO/IEC 18013-5 section 9.3.1). X.509 times are whole seconds.
 */
function validity(now: Date, days: number): Validity {
  const backdated = now.getTime() - BACKDATED_MS;
  const end = Math.floor(backdated / 1000) * 1000 + days * DAY_MS;
  return { notBefore: new Date(Math.floor(backdated / DAY_MS) * DAY_MS), notAfter: new Date(end) };
}
