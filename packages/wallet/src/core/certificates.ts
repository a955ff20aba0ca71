import 'reflect-metadata';
import { AuthorityKeyIdentifierExtension, SubjectAlternativeNameExtension, X509Certificate } from '@peculiar/x509';
import { base64url, exportJWK, importX509 } from 'jose';
import type { PublicJwk } from './keys.ts';

/** Display data of a signer. Its trust is not evaluated: this wallet has no trust anchors and displays the signer. */
export type Signer = { readonly subject: string; readonly issuer: string; readonly notBefore: string; readonly notAfter: string };

/** @param certificate DER in standard base64, as in `x5c`. */
export function signerOf(certificate: string): Signer {
  const { subject, issuer, notBefore, notAfter } = new X509Certificate(certificate);
  return { subject, issuer, notBefore: notBefore.toISOString(), notAfter: notAfter.toISOString() };
}

export function alternativeNames(certificate: string): { sanDnsNames: string[]; sanUriNames: string[] } {
  const names = new X509Certificate(certificate).getExtension(SubjectAlternativeNameExtension)?.names;
  const of = (type: string) => (names?.items ?? []).filter((name) => name.type === type).map(({ value }) => value);
  return { sanDnsNames: of('dns'), sanUriNames: of('url') };
}

/** Key identifiers of the authorities above a chain, base64url (OpenID4VP 1.0 section 6.1.1.1). */
export function authorityKeys(chain: readonly string[]): string[] {
  return chain.flatMap((certificate) => {
    const { keyId } = new X509Certificate(certificate).getExtension(AuthorityKeyIdentifierExtension) ?? {};
    return keyId === undefined ? [] : [base64url.encode(fromHex(keyId))];
  });
}

export async function publicKeyOf(certificate: string, alg: string): Promise<PublicJwk> {
  const { crv = '', x = '', y = '' } = await exportJWK(await importX509(pem(certificate), alg, { extractable: true }));
  return { kty: 'EC', crv, x, y };
}

export function pem(certificate: string): string {
  return `-----BEGIN CERTIFICATE-----\n${certificate}\n-----END CERTIFICATE-----`;
}

function fromHex(hex: string): Uint8Array {
  return Uint8Array.from(hex.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
}
