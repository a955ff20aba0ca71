import { hash } from 'node:crypto';
import { findTimeProblem } from '../../domain/registrar/registration-certificate.ts';
import type { RegisteredUse, RegistrationCertificateRequest } from '../../domain/registrar/registration-certificate-request.ts';
import { canonicalJson } from '../../domain/shared/json.ts';
import type { RegistrarAccount } from '../ports/registrar.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { accountOf } from './registrar-account.ts';
import type { CheckedCertificate } from './registration-certificate-verifier.ts';

/** A certificate is renewed so long before it expires, or after half of its lifetime if that is shorter. */
const RENEWAL_MS = 60_000;
/** Interval of checks for revocation. */
const CHECK_MS = 60 * 60 * 1000;

/** The certificate that a presentation configuration, or the issuer, requires. */
export type CertificateRequirement = RegisteredUse & {
  /** Hash of everything that the certificate depends on. */
  readonly id: string;
  readonly request: RegistrationCertificateRequest;
  readonly account: RegistrarAccount | undefined;
};

export type UsableCertificate = {
  readonly certificate: CheckedCertificate;
  /** Milliseconds since the epoch. */
  readonly checkedAt: number;
  /** Time of the renewal, in milliseconds since the epoch. */
  readonly renewAt: number;
};

export async function certificateRequirement(
  tenant: TenantConfiguration,
  use: RegisteredUse,
  request: RegistrationCertificateRequest,
): Promise<CertificateRequirement> {
  const account = await accountOf(tenant);
  const registrar = account && {
    ...account.configuration,
    // These do not affect the certificate.
    password: null,
    clientSecret: null,
    createdAt: null,
    updatedAt: null,
  };
  const dependsOn = canonicalJson([use.query ?? { issued: use.issued ?? [] }, request, registrar ?? null]);
  return { id: hash('sha256', dependsOn, 'base64url'), request, ...use, account };
}

/** @param obtainedAt determines, with the expiry of the certificate, its intended lifetime. */
export function usableFrom(
  certificate: CheckedCertificate,
  { request }: CertificateRequirement,
  obtainedAt: Date,
  now: Date,
): UsableCertificate {
  const { expiresAt } = certificate;
  // Only a certificate that was issued for this request can be renewed.
  const isRenewable = expiresAt !== undefined && request.body !== undefined;
  const renewAt = isRenewable
    ? expiresAt.getTime() - Math.min(RENEWAL_MS, (expiresAt.getTime() - obtainedAt.getTime()) / 2)
    : Number.POSITIVE_INFINITY;
  return { certificate, checkedAt: now.getTime(), renewAt };
}

export function isUsable({ certificate, checkedAt, renewAt }: UsableCertificate, now: Date): boolean {
  const age = now.getTime() - checkedAt;
  // A negative age means that the clock was set back, which must not extend the cache time.
  const isRecent = age >= 0 && age < CHECK_MS;
  return isRecent && now.getTime() < renewAt && findTimeProblem(certificate, now) === undefined;
}
