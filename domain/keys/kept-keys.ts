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

/**
 * The keys at providers that `before` has and none of `after` has.
 * @param after a function: it is asked only where a key may have gone.
 */
export async function keysGone(
  before: KeyChain | undefined,
  changed: KeyChain | undefined,
  after: () => Promise<readonly KeyChain[]>,
): Promise<readonly RetiredKey[]> {
  if (before === undefined) return [];
  const without = (handles: readonly KeyHandle[], kept: readonly KeyHandle[]) =>
    handles.filter((handle) => !kept.some((other) => isSameHandle(handle, other)));
  const gone = without(handlesOf(before), changed === undefined ? [] : handlesOf(changed));
  if (gone.length === 0) return [];
  const kept = (await after()).flatMap(handlesOf);
  return without(gone, kept).map((handle) => ({ tenantId: before.tenantId, handle }));
}

/** All keys at providers that these key chains have. */
export function keysAtProviders(chains: readonly KeyChain[]): readonly RetiredKey[] {
  const all = chains.flatMap((chain) =>
    handlesOf(chain).map((handle) => ({ tenantId: chain.tenantId, handle })),
  );
  return all.filter(
    (key, index) => all.findIndex(({ handle }) => isSameHandle(handle, key.handle)) === index,
  );
}

/** The key chain with `change` applied to each of its keys. */
export function withEachKey(
  chain: KeyChain,
  change: (key: StoredKey, tenantId: string) => StoredKey,
): KeyChain {
  const { tenantId, active, former, root } = chain;
  const changed = <T extends { readonly key: StoredKey }>(part: T): T => ({
    ...part,
    key: change(part.key, tenantId),
  });
  return {
    ...chain,
    active: changed(active),
    ...(former !== undefined && { former: former.map(changed) }),
    ...(root !== undefined && { root: changed(root) }),
  };
}
