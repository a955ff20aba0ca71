import { z } from 'zod';
import { type Certificate, KEY_USAGE } from '../formats/der/certificate.ts';
import type { CertificateList, ListScope } from '../formats/der/crl.ts';
import type { RevokedEntry } from '../formats/der/crl-entries.ts';
import { isSameName } from '../formats/der/name.ts';
import type { RevocationSources } from '../formats/der/revocation-sources.ts';
import { CLOCK_TOLERANCE_MS } from '../shared/clock-tolerance.ts';

export const CERTIFICATE_REVOCATION = ['off', 'if-available', 'required'] as const;

/** Setting for the revocation check of issuer certificates. */
export const CertificateRevocationChoice = z
  .enum(CERTIFICATE_REVOCATION)
  .nullish()
  .describe(
    'Revocation check of issuer certificates below the trusted one, by the revocation lists (CRLs) that ' +
      'they name, or by the responder (OCSP) if they name only that: off (default) does not check; if-available rejects revoked certificates and accepts those that cannot ' +
      'be checked, which the report states; required rejects both',
  );
export type CertificateRevocation = NonNullable<z.infer<typeof CertificateRevocationChoice>>;

const DAY_MS = 24 * 60 * 60 * 1000;
const SHORT_LIVED_MS = 7 * DAY_MS;
/** Delay before the next request to a source that failed or sent an unusable answer. */
export const RETRY_MS = 30_000;
/** Lifetime of a cached list, which bounds the time until a revocation takes effect, independent of `nextUpdate`. */
const FRESH_MS = 60 * 60 * 1000;

/**
 * Finds the reason why the issuer of a certificate may not sign this list; its signature was verified with the issuer's key.
 * `findTimeProblem` checks its times.
 * @returns undefined for a valid list.
 */
export function findListProblem(list: CertificateList, issuer: Certificate): string | undefined {
  // RFC 5280 section 6.3.3 (b)(1)
  if (!isSameName(list.issuer, issuer.subject)) return 'the list is of another issuer';
  // RFC 5280 section 6.3.3 (f)
  if (issuer.keyUsage !== undefined && !issuer.keyUsage.has(KEY_USAGE.cRLSign)) return 'the issuer may not sign lists';
  const { authorityKeyId } = list;
  const isOfOtherKey = authorityKeyId !== undefined && issuer.subjectKeyId !== undefined && authorityKeyId !== issuer.subjectKeyId;
  return isOfOtherKey ? 'the list is signed by another key' : undefined;
}

type Times = Pick<CertificateList, 'thisUpdate' | 'nextUpdate'>;

/** Finds the reason why a list is no proof that a certificate is not revoked. It still proves permanent revocations. */
export function findTimeProblem(list: Times, now: Date): string | undefined {
  if (isFromFuture(list, now)) return 'thisUpdate of the list is in the future';
  return list.nextUpdate <= now ? 'the list is out of date' : undefined;
}

export function isFromFuture({ thisUpdate }: Pick<Times, 'thisUpdate'>, now: Date): boolean {
  return thisUpdate.getTime() > now.getTime() + CLOCK_TOLERANCE_MS;
}

/**
 * True if a certificate is rejected for its entry. A hold may be lifted by a later list (RFC 5280 section 5.3.1), so it counts only on a
 * list without problems; every other revocation is final.
 */
export function isRevokedBy({ reason }: RevokedEntry, fault: string | undefined): boolean {
  return fault === undefined || (reason !== 'certificateHold' && reason !== 'removeFromCRL');
}

/** id-kp-OCSPSigning and id-pkix-ocsp-nocheck (RFC 6960 sections 4.2.2.2 and 4.2.2.2.1). */
const OCSP_SIGNING = '1.3.6.1.5.5.7.3.9';
const OCSP_NO_CHECK = '1.3.6.1.5.5.7.48.1.5';

/**
 * True if the issuer certified the responder for OCSP, and the responder's own revocation need not be checked: it has the nocheck extension
 * or a short lifetime.
 */
export function isAuthorizedResponder(responder: Certificate, issuer: Certificate): boolean {
  const lifetime = responder.notAfter.getTime() - responder.notBefore.getTime();
  return (
    isSameName(responder.issuer, issuer.subject) &&
    responder.extendedKeyUsage?.has(OCSP_SIGNING) === true &&
    (responder.extensions.has(OCSP_NO_CHECK) || lifetime <= SHORT_LIVED_MS)
  );
}

type Answer = { readonly status: string; readonly thisUpdate: Date; readonly nextUpdate?: Date };

/** RFC 6960 section 4.2.2.1: without `nextUpdate` newer answers are available at any time, so this one is cached briefly. */
export function answerExpiresAt({ thisUpdate, nextUpdate }: Answer): Date {
  return nextUpdate ?? new Date(thisUpdate.getTime() + FRESH_MS);
}

/** Finds the reason why an answer with a verified signature is unusable. */
export function findAnswerProblem(answer: Answer, now: Date): string | undefined {
  if (answer.status === 'unknown') return 'the responder does not know the certificate';
  if (isFromFuture(answer, now)) return 'thisUpdate of the answer is in the future';
  return answerExpiresAt(answer) <= now ? 'the answer is out of date' : undefined;
}

/** End of the time for which a list or an answer is served from the cache. */
export function cacheExpiresAt(times: Times, fetchedAt: Date): Date {
  // The list was unusable when it was fetched, so it is fetched again as after a failure.
  if (findTimeProblem(times, fetchedAt) !== undefined) return new Date(fetchedAt.getTime() + RETRY_MS);
  return new Date(Math.min(times.nextUpdate.getTime(), fetchedAt.getTime() + FRESH_MS));
}

/**
 * True if a list covers certificates of this kind with this distribution point (RFC 5280 section 6.3.3 (b)(2)). Otherwise an attacker could
 * substitute one part of a partitioned list for another.
 */
export function coversCertificate(
  scope: ListScope | undefined,
  { point, isAuthority }: { readonly point: readonly string[]; readonly isAuthority: boolean },
): boolean {
  if (scope?.points !== undefined && !scope.points.some((address) => point.includes(address))) return false;
  return scope?.only === undefined || (scope.only === 'authorities') === isAuthority;
}

/**
 * True for certificates whose revocation need not be checked. A certificate that names a source is always checked, however short its
 * lifetime is.
 */
export function isExemptFromRevocationCheck(sources: RevocationSources, isAuthority: boolean): boolean {
  if (isAuthority || sources.hasSources) return false;
  return sources.isNeverRevoked || sources.lifetime <= SHORT_LIVED_MS;
}
