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
  /** It vouches for exactly itself whatever it says of itself, also that it is a CA: only its times and its key are judged. */
  readonly pin?: boolean;
  /** What was read of the certificate before; it is parsed unless `hash` and `authority` are there. */
  readonly hash?: string;
  readonly authority?: string | null;
};

export type ChainVerdict =
  | {
      readonly trusted: true;
      /** The leaf's public key. */
      readonly key: PublicJwk;
      /** SHA-256 of the anchor's DER, base64url. */
      readonly anchor: string;
      /** RFC 4514 string of the leaf's subject. */
      readonly subject: string;
      /** SHA-256 of the leaf's DER, base64url. */
      readonly fingerprint: string;
      /** Its subject alternative names that are hosts and addresses: `DNS:…` in lower case, `URI:…`. */
      readonly names: readonly string[];
      /** That anchor's DER, standard base64. */
      readonly anchorCertificate: string;
      /** How many certificates of the chain stand below the anchor; none where the leaf itself is the anchor. */
      readonly below: number;
      /** The leaf is trusted as it is: what it says that it is for was not judged. */
      readonly isPin?: true;
    }
  | { readonly trusted: false; readonly reason: RefusalReason; readonly detail: string };

/** What a chain is validated for. */
export type ChainProfile = {
  /** What the leaf has signed: an extended key usage for other things refuses, on it and on those between. */
  readonly purpose: CertificatePurpose;
  /** A self-signed leaf or an anchor inside the chain refuses. */
  readonly haip?: boolean;
  /** A key or a signature of the path by an algorithm that the ECCG has not agreed to refuses (ARF 3.0 OIA_03). */
  readonly agreedOnly?: boolean;
};

/** What an authority signed beside certificates. */
export type IssuerSigned = { readonly toBeSigned: Buffer; readonly algorithm: SignatureAlgorithm; readonly signature: Buffer };

/** Validates X.509 paths (RFC 5280 section 6.1, reduced as `domain/keys/certificate-profile.ts` documents). */
export abstract class Certificates {
  /** @param chain DER in standard base64 (RFC 7515 section 4.1.6), leaf first, each certified by the next. */
  abstract verifyChain(chain: readonly string[], anchors: readonly TrustAnchor[], now: Date, profile: ChainProfile): ChainVerdict;

  /**
   * Whether the issuer itself certified a key for OCSP answers, and both certificates are valid (RFC 6960 section 4.2.2.2).
   * @param responder DER, standard base64.
   * @param issuer DER, standard base64: a certificate of a valid path.
   */
  abstract isResponder(responder: string, issuer: string, now: Date): boolean;

  /** @param issuer DER, standard base64: a certificate of a path that holds. */
  abstract hasSigned(issuer: string, signed: IssuerSigned): boolean;
}
