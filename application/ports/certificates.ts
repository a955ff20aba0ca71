import type { SignatureAlgorithm } from '../../domain/formats/der/signature-algorithm.ts';
import type { CertificatePurpose } from '../../domain/keys/certificate-purpose.ts';
import type { PublicJwk } from '../../domain/shared/jwk.ts';
import type { RefusalReason } from '../../domain/shared/refusal.ts';

/**
 * A configured trust anchor. A CA certificate vouches for paths that end at it; an end-entity certificate is a
 * pin: it vouches for exactly itself and never issues.
 */
export type TrustAnchor = {
  /** DER, standard base64. */
  readonly certificate: string;
  /** The anchor vouches for exactly itself, also if it is a CA certificate: only its validity period and its key are checked. */
  readonly pin?: boolean;
  /** Cached properties of the certificate; it is parsed unless `hash` and `authority` are present. */
  readonly hash?: string;
  readonly authority?: string | null;
};

export type ChainVerdict =
  | {
      readonly trusted: true;
      readonly key: PublicJwk;
      /** SHA-256 of the anchor's DER, base64url. */
      readonly anchor: string;
      /** RFC 4514 string of the leaf's subject. */
      readonly subject: string;
      /** SHA-256 of the leaf's DER, base64url. */
      readonly fingerprint: string;
      /** Subject alternative names of type DNS (`DNS:…`, lower case) and URI (`URI:…`). */
      readonly names: readonly string[];
      /** DER of the anchor, standard base64. */
      readonly anchorCertificate: string;
      /** Number of certificates of the chain below the anchor; 0 if the leaf itself is the anchor. */
      readonly below: number;
      /** The leaf is pinned: its key usages were not checked. */
      readonly isPin?: true;
    }
  | { readonly trusted: false; readonly reason: RefusalReason; readonly detail: string };

export type ChainProfile = {
  /** Purpose of the leaf's signature: an extended key usage for other purposes, on the leaf or an intermediate, is rejected. */
  readonly purpose: CertificatePurpose;
  /** Rejects a self-signed leaf and an anchor inside the chain. */
  readonly haip?: boolean;
  /** Rejects a key or signature of the path whose algorithm the ECCG has not agreed to (ARF 3.0 OIA_03). */
  readonly agreedOnly?: boolean;
};

/** An object that an authority signed and that is not a certificate: a CRL or an OCSP response. */
export type IssuerSigned = { readonly toBeSigned: Buffer; readonly algorithm: SignatureAlgorithm; readonly signature: Buffer };

/** Validates X.509 paths (RFC 5280 section 6.1, reduced as `domain/keys/certificate-profile.ts` documents). */
export abstract class Certificates {
  /** @param chain DER in standard base64 (RFC 7515 section 4.1.6), leaf first, each certified by the next. */
  abstract verifyChain(chain: readonly string[], anchors: readonly TrustAnchor[], now: Date, profile: ChainProfile): ChainVerdict;

  /**
   * True if the issuer itself certified the key for OCSP responses, and both certificates are valid (RFC 6960 section 4.2.2.2).
   * @param responder DER, standard base64.
   * @param issuer DER, standard base64: a certificate of a valid path.
   */
  abstract isResponder(responder: string, issuer: string, now: Date): boolean;

  /** @param issuer DER, standard base64: a certificate of a valid path. */
  abstract hasSigned(issuer: string, signed: IssuerSigned): boolean;
}
