import type { PublicJwk } from '../../domain/shared/jwk.ts';
import type { SigningKey } from './kms.ts';

export type CertificateRequest = {
  readonly subject: {
    readonly commonName: string;
    readonly organization?: string;
    readonly country?: string;
  };
  readonly publicJwk: PublicJwk;
  readonly notBefore: Date;
  readonly notAfter: Date;
  /** `ca`: CA:TRUE, keyCertSign and cRLSign, pathLen 0. `leaf`: CA:FALSE, digitalSignature. */
  readonly kind: 'ca' | 'leaf';
  /** Subject alternative names. */
  readonly dnsNames?: readonly string[];
  readonly uris?: readonly string[];
  /** Dotted object identifiers: the certificate is good for these purposes alone (RFC 5280 section 4.2.1.12). */
  readonly extendedKeyUsages?: readonly string[];
};

/** What somebody else shall certify. */
export type CertificateWish = Pick<CertificateRequest, 'subject' | 'publicJwk' | 'dnsNames'>;

/** Makes X.509 certificates, and requests for them, signed by a key that lives in the KMS. */
export abstract class CertificateAuthority {
  /** @param issuer absent for a self-signed certificate. @returns DER in standard base64. */
  abstract issue(
    request: CertificateRequest,
    signer: { readonly key: SigningKey; readonly certificate?: string },
  ): Promise<string>;
  /** @param key whose public half is to be certified. @returns a PKCS#10 request (RFC 2986), DER in standard base64. */
  abstract request(wish: CertificateWish, key: SigningKey): Promise<string>;
}
