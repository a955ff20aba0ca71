import { readCertificate } from '../../domain/formats/der/certificate.ts';
import { CLOCK_TOLERANCE_MS } from '../../domain/shared/clock-tolerance.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import { Refusal } from '../../domain/shared/refusal.ts';
import { isWithin } from '../../domain/trust-lists/service-history.ts';
import type { ChainVerdict } from '../ports/certificates.ts';
import type { IssuerTrust } from './issuer-trust.ts';

/** How far the clock of an issuer may be ahead. */

type Issued = {
  readonly issuer: Extract<ChainVerdict, { trusted: true }>;
  /** DER in standard base64, leaf first. */
  readonly chain: readonly string[];
  readonly issuedAt: Date | undefined;
};

/** RFC 7519 section 4.1.6, where every presentation shows it: what the holder may leave out tells nothing. */
export function issuedAt({ iat }: JsonObject): Date | undefined {
  if (typeof iat !== 'number' || !Number.isFinite(iat)) return undefined;
  const time = new Date(iat * 1000);
  return Number.isNaN(time.getTime()) ? undefined : time;
}

/**
 * Where the status of a service counts as it was at the time of issuance (TS 119 612 section 5.6): that time has to be told, to
 * have come, to lie within the life of the certificate that signed, and in a period in which the service stood as it has to.
 * @throws Refusal `untrusted_chain`.
 */
export function assertCounted(
  { dated }: IssuerTrust,
  { issuer, chain, issuedAt: time }: Issued,
  now: Date,
): void {
  const periods = dated.get(issuer.anchor);
  if (periods === undefined) return;
  if (time === undefined) throw new Refusal('untrusted_chain', 'it does not say when it was issued');
  const signer = readCertificate(Buffer.from(chain[0] ?? '', 'base64'));
  const isPlausible =
    signer !== undefined &&
    time.getTime() <= now.getTime() + CLOCK_TOLERANCE_MS &&
    time >= signer.notBefore &&
    time <= signer.notAfter;
  if (!isPlausible) throw new Refusal('untrusted_chain', 'its time of issuance is not that of its signer');
  if (!isWithin(periods, time)) {
    throw new Refusal('untrusted_chain', 'the service of its issuer was not approved when it was issued');
  }
}
