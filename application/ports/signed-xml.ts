/** A piece of a document without anything that means nothing: comments, instructions, prefixes. */
export type XmlElement = {
  readonly namespace: string;
  /** Without a prefix. */
  readonly name: string;
  /** By name; those of other namespaces are left out. */
  readonly attributes: ReadonlyMap<string, string>;
  readonly children: readonly XmlElement[];
  /** Text directly inside, trimmed. */
  readonly text: string;
};

/** Opens XML documents that carry their signature (XML Signature, XAdES baseline B-B). */
export abstract class SignedXmlDocuments {
  /**
   * @param text UTF-8, as it came.
   * @param root how the document has to begin, and all of it be signed.
   * @param signers certificates of which one has to have signed, DER in standard base64; none of them certifies another.
   * @returns what was signed, read from the signed bytes alone, and the SHA-256 of those, base64url.
   * @throws TrustListRefusal `malformed`, `algorithm`, `untrusted_signer`, `signature`.
   */
  abstract open(
    text: Buffer,
    root: { readonly namespace: string; readonly name: string },
    signers: readonly string[],
    now: Date,
  ): Promise<{ readonly document: XmlElement; readonly contentHash: string }>;
}
