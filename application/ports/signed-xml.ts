import type { TrustList } from '../../domain/trust-lists/lote.ts';

/** A list that was verified. */
export type OpenedXmlList = {
  readonly list: TrustList;
  /** Of what was signed, and of what that says without its dates; SHA-256, base64url. */
  readonly documentHash: string;
  readonly contentHash: string;
};

/** XML Signature, as far as lists of others need it: one enveloped signature over the whole document. */
export abstract class SignedXmlDocuments {
  /**
   * A trusted list (ETSI TS 119 612), verified before anything that it says is believed. A large one is read by another thread.
   * @param text UTF-8.
   * @param signers DER in standard base64: whoever may have signed it, each named by its own certificate.
   * @param owner for whom: a tenant that has many read keeps no other waiting for all of them.
   * @throws TrustListRefusal also for a list that costs more to read than a list may.
   */
  abstract trustedList(
    text: Buffer,
    signers: readonly string[],
    now: Date,
    owner: string,
  ): Promise<OpenedXmlList>;
}
