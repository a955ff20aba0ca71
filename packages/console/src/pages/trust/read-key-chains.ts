import { askPage, type Caller } from '../../api/call.ts';
import type { KeyChain } from './key-chain.ts';

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
