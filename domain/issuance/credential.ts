import type { JsonObject } from '../shared/json.ts';
import type { PublicJwk } from '../shared/jwk.ts';

const HOUR = 3600;
const DAY = 24 * HOUR;

/**
 * Times of a credential, which nobody can link copies by that are issued together or one after the other (RFC 9901
 * section 10.1, OpenID4VCI 1.0 section 15.4.1). Both are rounded down: to the day for lifetimes above two days, else to
 * the hour. Of less than two hours an hour cannot be taken away, so the end of each copy is drawn from the last tenth of
 * them instead. No credential counts longer than it was meant to.
 * @param drawn for this copy alone, from 0 to below 1; `drawnWithin` spreads those of a batch.
 */
export function credentialTimes(now: Date, lifeTimeSeconds: number | null | undefined, drawn: number): { iat: number; exp?: number } {
  const seconds = Math.floor(now.getTime() / 1000);
  if (lifeTimeSeconds === null || lifeTimeSeconds === undefined) return { iat: roundDown(seconds, DAY) };
  const unit = lifeTimeSeconds > 2 * DAY ? DAY : HOUR;
  const iat = roundDown(seconds, unit);
  const end = seconds + lifeTimeSeconds;
  if (lifeTimeSeconds >= 2 * HOUR) return { iat, exp: roundDown(end, unit) };
  return { iat, exp: end - Math.floor(drawn * (Math.floor(lifeTimeSeconds / 10) + 1)) };
}

/** The part of the range of expiry times from which that of a copy is drawn. */
export type ExpiryRange = 'whole' | 'first third' | 'last third';

/** A little less than a third: between the first and the last third lies more than a third of the range, also in whole seconds. */
const THIRD = 0.332;

/** @param random from 0 to below 1. @returns the same, within a part of the range. */
export function drawnWithin(range: ExpiryRange, random: number): number {
  if (range === 'whole') return random;
  return range === 'first third' ? THIRD * random : 1 - THIRD * (1 - random);
}

/**
 * Ranges for the expiry times of a batch. Drawn independently, the times of small batches often lie close together, which links the
 * copies. So one is drawn from the first third, one from the last, and chance decides which copies these are.
 * @param random two numbers from 0 to below 1.
 */
export function expiryRanges(count: number, random: readonly [number, number]): readonly ExpiryRange[] {
  const ranges = Array.from({ length: count }, (): ExpiryRange => 'whole');
  if (count < 2) return ranges;
  const first = Math.floor(random[0] * count);
  const last = (first + 1 + Math.floor(random[1] * (count - 1))) % count;
  ranges[first] = 'first third';
  ranges[last] = 'last third';
  return ranges;
}

/**
 * The lifetime of a credential that ends before a time, besides its own.
 * @param lifeTimeSeconds of its configuration; absent where it has no end of its own.
 */
export function lifeTimeWithin(
  now: Date,
  lifeTimeSeconds: number | null | undefined,
  endsBefore: Date | undefined,
): number | null | undefined {
  if (endsBefore === undefined) return lifeTimeSeconds;
  const left = Math.max(1, Math.ceil((endsBefore.getTime() - now.getTime()) / 1000) - 1);
  return Math.min(lifeTimeSeconds ?? left, left);
}

const roundDown = (seconds: number, unit: number) => Math.floor(seconds / unit) * unit;

/** The lifetime of an mdoc for which none was configured, since its end is mandatory (ISO/IEC 18013-5 section 9.1.2.4). */
export const MDOC_LIFETIME_SECONDS = 90 * DAY;

/**
 * Times of an mdoc, rounded likewise and within the validity of the certificate that vouches for it (ISO/IEC 18013-5
 * section 9.3.1). Where the certificate sets a bound the bound is the same for all copies, so they still look alike.
 * @param signer validity of the certificate; `now` lies within.
 * @param drawn for this copy alone, from 0 to below 1.
 */
export function mdocValidity(
  now: Date,
  lifeTimeSeconds: number | null | undefined,
  signer: { readonly notBefore: Date; readonly notAfter: Date },
  drawn: number,
): { readonly signed: Date; readonly validFrom: Date; readonly validUntil: Date } {
  const { iat, exp = iat } = credentialTimes(now, lifeTimeSeconds ?? MDOC_LIFETIME_SECONDS, drawn);
  const signed = iat * 1000 >= signer.notBefore.getTime() ? new Date(iat * 1000) : firstTime(signer, now);
  const validUntil = exp * 1000 <= signer.notAfter.getTime() ? new Date(exp * 1000) : lastTime(signer, now);
  return { signed, validFrom: signed, validUntil };
}

const HOUR_MS = HOUR * 1000;

/** The first full hour of a certificate, or its very beginning during the hour before. */
function firstTime({ notBefore }: { readonly notBefore: Date }, now: Date): Date {
  const full = Math.ceil(notBefore.getTime() / HOUR_MS) * HOUR_MS;
  return full <= now.getTime() ? new Date(full) : notBefore;
}

/** The last full hour of a certificate, or its very end during the hour after. */
function lastTime({ notAfter }: { readonly notAfter: Date }, now: Date): Date {
  const full = Math.floor(notAfter.getTime() / HOUR_MS) * HOUR_MS;
  return full > now.getTime() ? new Date(full) : notAfter;
}

/**
 * Times of an SD-JWT VC, which ends with the certificate that vouches for it at the latest: nobody could verify it any
 * longer. One without a lifetime stays without an end.
 * @param signer of the certificate that the credential carries; undefined when it carries none. `now` lies within.
 * @param drawn for this copy alone, from 0 to below 1.
 */
export function sdJwtTimes(
  now: Date,
  lifeTimeSeconds: number | null | undefined,
  signer: { readonly notAfter: Date } | undefined,
  drawn: number,
): { iat: number; exp?: number } {
  const { iat, exp } = credentialTimes(now, lifeTimeSeconds, drawn);
  if (exp === undefined) return { iat };
  if (signer === undefined || exp * 1000 <= signer.notAfter.getTime()) return { iat, exp };
  return { iat, exp: Math.floor(lastTime(signer, now).getTime() / 1000) };
}

/** Claims of the protocol in an SD-JWT VC (SD-JWT VC section 2.2.2, Token Status List section 6.2). */
export function protocolClaims(parts: {
  readonly issuer: string;
  readonly vct: string;
  /** Of the type metadata that the service hosts under `vct`. */
  readonly vctIntegrity?: string;
  readonly times: { readonly iat: number; readonly exp?: number };
  readonly holderKey?: PublicJwk;
  readonly status?: { readonly idx: number; readonly uri: string };
}): JsonObject {
  const { issuer, vct, vctIntegrity, times, holderKey, status } = parts;
  return {
    iss: issuer,
    vct,
    // SD-JWT VC section 6
    ...(vctIntegrity === undefined ? {} : { 'vct#integrity': vctIntegrity }),
    ...times,
    // RFC 7800 section 3.2: the public key alone, without anything that names its holder
    ...(holderKey === undefined ? {} : { cnf: { jwk: holderKey as unknown as JsonObject } }),
    ...(status === undefined ? {} : { status: { status_list: status } }),
  };
}
