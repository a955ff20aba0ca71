import { hash } from 'node:crypto';
import { findTimeProblem } from '../../domain/registrar/registration-certificate.ts';
import type { RegisteredUse, RegistrationCertificateRequest } from '../../domain/registrar/registration-certificate-request.ts';
import { canonicalJson } from '../../domain/shared/json.ts';
import type { RegistrarAccount } from '../ports/registrar.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { accountOf } from './registrar-account.ts';
import type { CheckedCertificate } from './registration-certificate-verifier.ts';

/** A certificate is replaced so long before it ends, or at half of its time if that is shorter. */
const RENEWAL_MS = 60_000;
/** Certificates may be revoked, which is looked up again after so long. */
const CHECK_MS = 60 * 60 * 1000;

/** What a presentation configuration, or the issuer, wants to have certified. */
export type WantedCertificate = RegisteredUse & {
  /** Hash of all that the certificate depends on. */
  readonly id: string;
  readonly request: RegistrationCertificateRequest;
  readonly account: RegistrarAccount | undefined;
};

export type UsableCertificate = {
  readonly certificate: CheckedCertificate;
  /** Milliseconds since the epoch. */
  readonly checkedAt: number;
  /** When it is time for another one. */
  readonly renewAt: number;
};

export async function wantedCertificate(
  configured: TenantConfiguration,
  use: RegisteredUse,
  request: RegistrationCertificateRequest,
): Promise<WantedCertificate> {
  const account = await accountOf(configured);
  const registrar = account && {
    ...account.configuration,
    // None of these says whose certificates they are.
    password: null,
    clientSecret: null,
    createdAt: null,
    updatedAt: null,
  };
  const dependsOn = canonicalJson([use.query ?? { issued: use.issued ?? [] }, request, registrar ?? null]);
  return { id: hash('sha256', dependsOn, 'base64url'), request, ...use, account };
}

/** @param obtainedAt with the end of the certificate, says how long it is meant to be used. */
export function usableFrom(
  certificate: CheckedCertificate,
  { request }: WantedCertificate,
  obtainedAt: Date,
  now: Date,
): UsableCertificate {
  const { expiresAt } = certificate;
  // Only what was issued for this very request can be issued again.
  const isRenewable = expiresAt !== undefined && request.body !== undefined;
  const renewAt = isRenewable
    ? expiresAt.getTime() - Math.min(RENEWAL_MS, (expiresAt.getTime() - obtainedAt.getTime()) / 2)
    : Number.POSITIVE_INFINITY;
  return { certificate, checkedAt: now.getTime(), renewAt };
}

export function isUsable({ certificate, checkedAt, renewAt }: UsableCertificate, now: Date): boolean {
  const age = now.getTime() - checkedAt;
  // A clock that was set back makes nothing live longer.
  const isRecent = age >= 0 && age < CHECK_MS;
  return isRecent && now.getTime() < renewAt && findTimeProblem(certificate, now) === undefined;
}
