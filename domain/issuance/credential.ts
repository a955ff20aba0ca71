import type { JsonObject } from '../shared/json.ts';
import type { PublicJwk } from '../shared/jwk.ts';

const HOUR = 3600;
const DAY = 24 * HOUR;

/**
 * Times of a credential that do not link copies of a batch or of later batches (RFC 9901 section 10.1, OpenID4VCI 1.0 section 15.4.1). Both
 * times are rounded down: to the day for lifetimes above two days, otherwise to the hour. A lifetime below two hours is too short for that,
 * so the end of each copy is drawn from its last tenth. No credential is valid for longer than configured.
 * @param random of this copy, from 0 to below 1; `randomWithin` spreads the values of a batch.
 */
export function credentialTimes(now: Date, lifeTimeSeconds: number | null | undefined, random: number): { iat: number; exp?: number } {
  const seconds = Math.floor(now.getTime() / 1000);
  if (lifeTimeSeconds === null || lifeTimeSeconds === undefined) return { iat: roundDown(seconds, DAY) };
  const unit = lifeTimeSeconds > 2 * DAY ? DAY : HOUR;
  const iat = roundDown(seconds, unit);
  const end = seconds + lifeTimeSeconds;
  if (lifeTimeSeconds >= 2 * HOUR) return { iat, exp: roundDown(end, unit) };
  return { iat, exp: end - Math.floor(random * (Math.floor(lifeTimeSeconds / 10) + 1)) };
}

/** The part of the range of expiry times from which the time of a copy is drawn. */
export type ExpiryRange = 'whole' | 'first third' | 'last third';

/** Slightly less than a third: more than a third of the range lies between the first and the last third, also in whole seconds. */
const THIRD = 0.332;

/** Maps a random number (from 0 to below 1) into a part of the range. */
export function randomWithin(range: ExpiryRange, random: number): number {
  if (range === 'whole') return random;
  return range === 'first third' ? THIRD * random : 1 - THIRD * (1 - random);
}

/**
 * Ranges for the expiry times of a batch. Independent random times of a small batch often lie close together, which links the copies.
 * Therefore one random copy gets the first third of the range and another one the last third.
 * @param random two numbers from 0 to below 1.
 */
export function expiryRanges(count: number, random: readonly [number, number]): readonly ExpiryRange[] {
  const ranges = Array.from({ length: count }, (): ExpiryRange => 'whole');
  if (count < 2) return ranges;
  const firstThirdIndex = Math.floor(random[0] * count);
  const lastThirdIndex = (firstThirdIndex + 1 + Math.floor(random[1] * (count - 1))) % count;
  ranges[firstThirdIndex] = 'first third';
  ranges[lastThirdIndex] = 'last third';
  return ranges;
}

/**
 * Shortens the lifetime of a credential that has to end before a given time.
 * @param lifeTimeSeconds of its configuration; absent for credentials that do not expire.
 */
export function lifeTimeWithin(
  now: Date,
  lifeTimeSeconds: number | null | undefined,
  endsBefore: Date | undefined,
): number | null | undefined {
  if (endsBefore === undefined) return lifeTimeSeconds;
  const remainingSeconds = Math.max(1, Math.ceil((endsBefore.getTime() - now.getTime()) / 1000) - 1);
  return Math.min(lifeTimeSeconds ?? remainingSeconds, remainingSeconds);
}

const roundDown = (seconds: number, unit: number) => Math.floor(seconds / unit) * unit;

/** The lifetime of an mdoc without a configured one, because its end is mandatory (ISO/IEC 18013-5 section 9.1.2.4). */
export const MDOC_LIFETIME_SECONDS = 90 * DAY;

/**
 * Times of an mdoc, rounded like those of other credentials and limited to the validity of the signer's certificate (ISO/IEC 18013-5
 * section 9.3.1). A limit by the certificate is the same for all copies, so it does not distinguish them.
 * @param signer validity of the certificate, which includes `now`.
 * @param random of this copy, from 0 to below 1.
 */
export function mdocValidity(
  now: Date,
  lifeTimeSeconds: number | null | undefined,
  signer: { readonly notBefore: Date; readonly notAfter: Date },
  random: number,
): { readonly signed: Date; readonly validFrom: Date; readonly validUntil: Date } {
  const { iat, exp = iat } = credentialTimes(now, lifeTimeSeconds ?? MDOC_LIFETIME_SECONDS, random);
  const signedAt = iat * 1000 >= signer.notBefore.getTime() ? new Date(iat * 1000) : firstTime(signer, now);
  const validUntil = exp * 1000 <= signer.notAfter.getTime() ? new Date(exp * 1000) : lastTime(signer, now);
  return { signed: signedAt, validFrom: signedAt, validUntil };
}

const HOUR_MS = HOUR * 1000;

/** The first full hour of a certificate, or `notBefore` during the hour before. */
function firstTime({ notBefore }: { readonly notBefore: Date }, now: Date): Date {
  const full = Math.ceil(notBefore.getTime() / HOUR_MS) * HOUR_MS;
  return full <= now.getTime() ? new Date(full) : notBefore;
}

/** The last full hour of a certificate, or `notAfter` during the hour after. */
function lastTime({ notAfter }: { readonly notAfter: Date }, now: Date): Date {
  const full = Math.floor(notAfter.getTime() / HOUR_MS) * HOUR_MS;
  return full > now.getTime() ? new Date(full) : notAfter;
}

/**
 * Times of an SD-JWT VC. It expires with the signer's certificate at the latest, because it cannot be verified afterwards. A credential
 * without a lifetime does not expire.
 * @param signer of the certificate in the credential, whose validity includes `now`; undefined when it carries none.
 * @param random of this copy, from 0 to below 1.
 */
export function sdJwtTimes(
  now: Date,
  lifeTimeSeconds: number | null | undefined,
  signer: { readonly notAfter: Date } | undefined,
  random: number,
): { iat: number; exp?: number } {
  const { iat, exp } = credentialTimes(now, lifeTimeSeconds, random);
  if (exp === undefined) return { iat };
  if (signer === undefined || exp * 1000 <= signer.notAfter.getTime()) return { iat, exp };
  return { iat, exp: Math.floor(lastTime(signer, now).getTime() / 1000) };
}

/** Protocol claims of an SD-JWT VC (SD-JWT VC section 2.2.2, Token Status List section 6.2). */
export function protocolClaims(parts: {
  readonly issuer: string;
  readonly vct: string;
  /** Hash of the type metadata that the service hosts under `vct`. */
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
    // RFC 7800 section 3.2: the public key alone, without data about its holder
    ...(holderKey === undefined ? {} : { cnf: { jwk: holderKey as unknown as JsonObject } }),
    ...(status === undefined ? {} : { status: { status_list: status } }),
  };
}
