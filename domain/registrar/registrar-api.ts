import { z } from 'zod';
import { textUpTo } from '../shared/bounds.ts';

const Id = textUpTo(200);

/** Responses of a registrar, reduced to the properties in use. Further properties are ignored. */
export const RelyingParties = z.array(z.looseObject({ id: Id })).max(1_000);
export type RelyingParty = { readonly id: string };

export const IssuedAccessCertificate = z.looseObject({ id: Id, crt: textUpTo(100_000) });
export type IssuedAccessCertificate = { readonly id: string; readonly crt: string };

export const IssuedRegistrationCertificate = z.looseObject({
  id: Id,
  jwt: textUpTo(64 * 1024),
  relyingPartyId: Id.nullish(),
  // Some registrars send the time, others a boolean.
  revoked: z.unknown().optional(),
});

export type IssuedRegistrationCertificate = {
  readonly id: string;
  readonly jwt: string;
  readonly relyingPartyId?: string;
  readonly revoked: boolean;
};

export type AccessCertificateRequest = {
  /** SubjectPublicKeyInfo as PEM (RFC 7468 section 13). */
  readonly publicKey: string;
  /** Host names. */
  readonly dns: readonly string[];
  readonly rpId: string;
};
