/** A key chain, as far as others are concerned. */
export type KeyChain = {
  readonly id: string;
  readonly usages?: readonly string[];
  /** PEM; none for a key chain that came from outside. */
  readonly rootCertificate?: string | null;
};

/** Those that others can trust for what they issue. */
export function issuing(chains: readonly KeyChain[]): readonly (KeyChain & { readonly rootCertificate: string })[] {
  return chains.flatMap((chain) =>
    typeof chain.rootCertificate === 'string' && chain.usages?.includes('signing') === true
      ? [{ ...chain, rootCertificate: chain.rootCertificate }]
      : [],
  );
}
