import type { TrustList } from '../../domain/trust-lists/lote.ts';

export type XmlTrustedList = {
  readonly list: TrustList;
  /** SHA-256, base64url: of the signed document, and of its content without dates. */
  readonly documentHash: string;
  readonly contentHash: string;
};

/** Trusted lists in XML (ETSI TS 119 612) with one enveloped XML signature over the whole document. It runs synchronously. */
export abstract class XmlTrustedListReader {
  /**
   * Verifies the signature before any content is read.
   * @param bytes UTF-8.
   * @param signers DER in standard base64: the certificates that may have signed it, each pinned.
   * @throws TrustListRefusal; also for a list whose parsing would exceed the cost limit.
   */
  abstract verify(bytes: Uint8Array, signers: readonly string[], now: Date): XmlTrustedList;

  /** @returns the first certificate in the signature, DER in base64. Nothing is verified. @throws TrustListRefusal */
  abstract shownSigner(bytes: Uint8Array): string | undefined;
}
