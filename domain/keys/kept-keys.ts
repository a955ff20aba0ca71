import type { KeyChain } from './key-chain.ts';
import { leavesOf } from './key-chain.ts';
import { isSameHandle, type KeyHandle, type StoredKey } from './signing-key.ts';

/** A key at a provider that no key chain has any more. It waits until it is destroyed there. */
export type RetiredKey = {
  /** The tenant that had it, which may be gone. */
  readonly tenantId: string;
  readonly handle: KeyHandle;
};

/** Every key that a key chain still has: of its leaves, former ones too, and of its authority. */
function handlesOf(chain: KeyChain): readonly KeyHandle[] {
  const { root } = chain;
  const stored = [...leavesOf(chain).map(({ key }) => key), ...(root === undefined ? [] : [root.key])];
  // A sealed key lives in the row of its key chain, and goes with it.
  return stored.filter(({ sealedKey }) => sealedKey === undefined).map(({ handle }) => handle);
}

/** The keys at providers that a key chain had before a change and does not have afterwards. Other key chains may have them. */
export function droppedKeys(before: KeyChain | undefined, after: KeyChain | undefined): readonly RetiredKey[] {
  if (before === undefined) return [];
  const dropped = handlesOf(before).map((handle) => ({ tenantId: before.tenantId, handle }));
  return keysOutside(dropped, after === undefined ? [] : [after]);
}

/** Those of the keys that none of the key chains has. */
export function keysOutside(keys: readonly RetiredKey[], chains: readonly KeyChain[]): readonly RetiredKey[] {
  const handles = chains.flatMap(handlesOf);
  return keys.filter(({ handle }) => !handles.some((other) => isSameHandle(handle, other)));
}

/** All keys at providers that these key chains have. */
export function keysAtProviders(chains: readonly KeyChain[]): readonly RetiredKey[] {
  const all = chains.flatMap((chain) => handlesOf(chain).map((handle) => ({ tenantId: chain.tenantId, handle })));
  return all.filter((key, index) => all.findIndex(({ handle }) => isSameHandle(handle, key.handle)) === index);
}

/** The key chain with `change` applied to each of its keys. */
export function withEachKey(chain: KeyChain, change: (key: StoredKey, tenantId: string) => StoredKey): KeyChain {
  const { tenantId, active, former, root } = chain;
  const changed = <T extends { readonly key: StoredKey }>(part: T): T => ({ ...part, key: change(part.key, tenantId) });
  return {
    ...chain,
    active: changed(active),
    ...(former !== undefined && { former: former.map(changed) }),
    ...(root !== undefined && { root: changed(root) }),
  };
}
