import type { KeyChain } from '../../domain/keys/key-chain.ts';
import { isSameHandle } from '../../domain/keys/signing-key.ts';

/**
 * Several key chains can certify one key. The key has the id of the oldest of them, so that its id does not change when
 * another certificate is added.
 */
export function keyIdOf(chain: KeyChain, chains: readonly KeyChain[]): string {
  return chains.filter((candidate) => isSameKey(chain, candidate)).sort(oldestFirst)[0]?.id ?? chain.id;
}

/** The chains that certify a key, by the id of any of them. Empty for an unknown id. */
export function chainsOfKey(keyId: string, chains: readonly KeyChain[]): KeyChain[] {
  const namedChain = chains.find((chain) => chain.id === keyId);
  return namedChain === undefined ? [] : chains.filter((chain) => isSameKey(namedChain, chain));
}

function isSameKey(chain: KeyChain, otherChain: KeyChain): boolean {
  return isSameHandle(chain.active.key.handle, otherChain.active.key.handle);
}

function oldestFirst(chain: KeyChain, otherChain: KeyChain): number {
  return chain.createdAt.getTime() - otherChain.createdAt.getTime() || (chain.id < otherChain.id ? -1 : 1);
}
