import type { KeyChain } from './key-chain.ts';
import { leavesOf } from './key-chain.ts';
import { isSameHandle, type KeyHandle, type StoredKey } from './signing-key.ts';

/** A key at a KMS provider that no key chain uses any more and that must be destroyed. */
export type RetiredKey = {
  /** The tenant that owned it, which may be deleted. */
  readonly tenantId: string;
  readonly handle: KeyHandle;
};

/** Keys of a key chain: of its leaves, including previous ones, and of its authority. */
function keyHandlesOf(chain: KeyChain): readonly KeyHandle[] {
  const { root } = chain;
  const storedKeys = [...leavesOf(chain).map(({ key }) => key), ...(root === undefined ? [] : [root.key])];
  // A sealed key is stored in the row of its key chain and deleted with it.
  return storedKeys.filter(({ sealedKey }) => sealedKey === undefined).map(({ handle }) => handle);
}

/** Keys at providers that a change removes from a key chain. Other key chains may still use them. */
export function removedKeys(previous: KeyChain | undefined, current: KeyChain | undefined): readonly RetiredKey[] {
  if (previous === undefined) return [];
  const previousKeys = keyHandlesOf(previous).map((handle) => ({ tenantId: previous.tenantId, handle }));
  return keysOutside(previousKeys, current === undefined ? [] : [current]);
}

/** Keys that none of the key chains uses. */
export function keysOutside(keys: readonly RetiredKey[], chains: readonly KeyChain[]): readonly RetiredKey[] {
  const handles = chains.flatMap(keyHandlesOf);
  return keys.filter(({ handle }) => !handles.some((otherHandle) => isSameHandle(handle, otherHandle)));
}

export function keysAtProviders(chains: readonly KeyChain[]): readonly RetiredKey[] {
  const keys = chains.flatMap((chain) => keyHandlesOf(chain).map((handle) => ({ tenantId: chain.tenantId, handle })));
  return keys.filter((key, index) => keys.findIndex(({ handle }) => isSameHandle(handle, key.handle)) === index);
}

/** Applies `change` to each key of a key chain. */
export function mapKeys(chain: KeyChain, change: (key: StoredKey, tenantId: string) => StoredKey): KeyChain {
  const { tenantId, active, former: previousLeaves, root } = chain;
  const applyChange = <T extends { readonly key: StoredKey }>(part: T): T => ({ ...part, key: change(part.key, tenantId) });
  return {
    ...chain,
    active: applyChange(active),
    ...(previousLeaves !== undefined && { former: previousLeaves.map(applyChange) }),
    ...(root !== undefined && { root: applyChange(root) }),
  };
}
