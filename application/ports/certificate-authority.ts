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
  /** Subject alternative names. */
  readonly dnsNames?: readonly string[];
  readonly uris?: readonly string[];
  /** Dotted object identifiers: the certificate is good for these purposes alone (RFC 5280 section 4.2.1.12). */
  readonly extendedKeyUsages?: readonly string[];
  /** Where the issuer is reached: a web, mail or telephone address; its alternative name. */
  readonly issuerContact?: string;
  /** Where the subject is reached, among its alternative names. */
  readonly contact?: string;
  /** Address of the list in which the issuer revokes it. */
  readonly revocationList?: string;
  /** Address of the issuer's certificate. */
  readonly issuerCertificate?: string;
  /** Dotted object identifiers of the policies under which it is issued. */
  readonly policies?: readonly string[];
};

/** What an authority says that it has revoked (RFC 5280 section 5). */
export type RevocationListRequest = {
  readonly thisUpdate: Date;
  readonly nextUpdate: Date;
  /** Never falls. */
  readonly number: number;
  /** Serial numbers in hexadecimal. */
  readonly revoked: readonly { readonly serialNumber: string; readonly revokedAt: Date }[];
};

/** What somebody else shall certify. */
export type CertificateWish = Pick<CertificateRequest, 'subject' | 'publicJwk' | 'dnsNames'>;

/** Makes X.509 certificates, and requests for them, signed by a key that lives in the KMS. */
export abstract class CertificateAuthority {
  /** @param issuer absent for a self-signed certificate. @returns DER in standard base64. */
  abstract issue(request: CertificateRequest, signer: { readonly key: SigningKey; readonly certificate?: string }): Promise<string>;
  /** @param signer key and certificate of the authority. @returns a CRL, DER. */
  abstract revocationList(
    request: RevocationListRequest,
    signer: { readonly key: SigningKey; readonly certificate: string },
  ): Promise<Buffer>;
  /** @param key whose public half is to be certified. @returns a PKCS#10 request (RFC 2986), DER in standard base64. */
  abstract request(wish: CertificateWish, key: SigningKey): Promise<string>;
}
