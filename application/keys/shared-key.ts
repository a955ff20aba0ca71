import type { KeyChain } from '../../domain/keys/key-chain.ts';
import { isSameHandle } from '../../domain/keys/signing-key.ts';

/**
 * Several key chains can certify one key. The key goes by the id of the chain that had it first, so that its name
 * does not change when another certificate is made for it.
 */
export function keyIdOf(chain: KeyChain, all: readonly KeyChain[]): string {
  return all.filter((other) => isSameKey(chain, other)).sort(oldestFirst)[0]?.id ?? chain.id;
}

/** The chains that certify the key which `keyId` names: the id of any of them. Empty for an unknown one. */
export function chainsOfKey(keyId: string, all: readonly KeyChain[]): KeyChain[] {
  const named = all.find((chain) => chain.id === keyId);
  return named === undefined ? [] : all.filter((chain) => isSameKey(named, chain));
}

function isSameKey(one: KeyChain, other: KeyChain): boolean {
  return isSameHandle(one.active.key.handle, other.active.key.handle);
}

function oldestFirst(one: KeyChain, other: KeyChain): number {
  return one.createdAt.getTime() - other.createdAt.getTime() || (one.id < other.id ? -1 : 1);
}
