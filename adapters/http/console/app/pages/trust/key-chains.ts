import { askPage, type Caller } from '../../api/call.ts';

export type KeyChain = {
  readonly id: string;
  readonly usages?: readonly string[];
  /** PEM; none for a key chain that came from outside. */
  readonly rootCertificate?: string | null;
};

/** A tenant has at most 500 unless its operator says otherwise. */
const MOST = 1_000;

/** @returns all of a tenant, at most 1,000. */
export async function readKeyChains(caller: Caller, signal?: AbortSignal): Promise<readonly KeyChain[]> {
  const chains: KeyChain[] = [];
  let cursor: string | undefined;
  do {
    const page = await askPage<KeyChain>(caller, '/key-chain', { limit: 100, cursor }, signal);
    chains.push(...page.rows);
    cursor = page.next;
  } while (cursor !== undefined && chains.length < MOST);
  return chains;
}

/** Those that others can trust for what they issue. */
export function issuing(
  chains: readonly KeyChain[],
): readonly (KeyChain & { readonly rootCertificate: string })[] {
  return chains.flatMap((chain) =>
    typeof chain.rootCertificate === 'string' && chain.usages?.includes('signing') === true
      ? [{ ...chain, rootCertificate: chain.rootCertificate }]
      : [],
  );
}
