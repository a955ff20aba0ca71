import type { PublicJwk } from '../../domain/shared/jwk.ts';
import type { SigningKey } from './kms.ts';

export type CertificateRequest = {
  readonly subject: {
    readonly commonName: string;
    readonly organization?: string;
    readonly country?: string;
    /** X.520 `organizationIdentifier` (ETSI EN 319 412-1 section 5.1.4). */
    readonly organizationIdentifier?: string;
  };
  readonly publicJwk: PublicJwk;
  readonly notBefore: Date;
  readonly notAfter: Date;
  /** `ca`: CA:TRUE, keyCertSign and cRLSign, pathLen 0. `leaf`: CA:FALSE, digitalSignature. */
  readonly kind: 'ca' | 'leaf';
  readonly dnsNames?: readonly string[];
  readonly uris?: readonly string[];
  /** Dotted object identifiers: the certificate is valid for these purposes only (RFC 5280 section 4.2.1.12). */
  readonly extendedKeyUsages?: readonly string[];
  /** Issuer alternative name: a web, mail or telephone address. */
  readonly issuerContact?: string;
  /** Contact address of the subject, one of its alternative names. */
  readonly contact?: string;
  readonly revocationList?: string;
  readonly issuerCertificate?: string;
  /** Dotted object identifiers of the policies under which it is issued. */
  readonly policies?: readonly string[];
};

/** Content of a certificate revocation list (RFC 5280 section 5). */
export type RevocationListRequest = {
  readonly thisUpdate: Date;
  readonly nextUpdate: Date;
  /** CRL number: never decreases. */
  readonly number: number;
  /** Serial numbers in hexadecimal. */
  readonly revoked: readonly { readonly serialNumber: string; readonly revokedAt: Date }[];
};

export type SigningRequestContent = Pick<CertificateRequest, 'subject' | 'publicJwk' | 'dnsNames'>;

/** Issues X.509 certificates and certificate signing requests with keys in the KMS. */
export abstract class CertificateAuthority {
  /** @param issuer absent for a self-signed certificate. @returns DER in standard base64. */
  abstract issue(request: CertificateRequest, signer: { readonly key: SigningKey; readonly certificate?: string }): Promise<string>;
  /** @param signer key and certificate of the authority. @returns a CRL, DER. */
  abstract revocationList(
    request: RevocationListRequest,
    signer: { readonly key: SigningKey; readonly certificate: string },
  ): Promise<Buffer>;
  /** @param key whose public half is to be certified. @returns a PKCS#10 request (RFC 2986), DER in standard base64. */
  abstract request(content: SigningRequestContent, key: SigningKey): Promise<string>;
}
