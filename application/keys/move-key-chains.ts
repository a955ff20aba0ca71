import { SYSTEM } from '../../domain/audit/audit-entry.ts';
import type { KeyChain } from '../../domain/keys/key-chain.ts';
import { isSameHandle, signingKey } from '../../domain/keys/signing-key.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { needs } from '../needs.ts';
import { StoreUnavailable } from '../ports/store.ts';
import { withNewKeys } from './new-keys.ts';
import { RENEWAL_PORTS, renewLeaf } from './renew-leaf.ts';
import { assertAlgorithm, assertProvider } from './wanted-key-chain.ts';

/** What became of one key chain. */
export type Moved = {
  readonly id: string;
  /** `there`: it was at the provider already. `stays`: it cannot move, as `reason` says. */
  readonly leaf: 'moved' | 'there' | 'stays';
  readonly authority: 'moved' | 'there' | 'stays' | 'none';
  readonly reason?: string;
};

/** Others may change a key chain at the same moment, or, in a database of one file, write to it. */
const ATTEMPTS = 10;
const PAUSE_MS = 20;
const pause = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Whether the next attempt, which reads the key chain anew, may succeed. */
function isForNow(error: unknown, { root }: KeyChain): boolean {
  if (error instanceof StoreUnavailable) return true;
  return error instanceof Failure && error.code === 'conflict' && root !== undefined;
}

/**
 * Moves the keys of a tenant to another provider, one key chain after the other, while wallets and verifiers go on. Each
 * key chain gets a new key there, under the authority that it has, and the former key counts as after every rotation. The key
 * of an authority is the anchor of others, so it is taken over as it is; where its provider does not let it go, it stays.
 * What has moved stays as it is when this is broken off; beginning again goes on.
 */
export class MoveKeyChains extends needs(RENEWAL_PORTS) {
  /**
   * @param check is asked before a key chain is touched, and throws where it must not be.
   * @returns what became of each key chain, as soon as it has.
   * @throws Failure `not_found` for an unknown tenant, `invalid_input` for an unknown provider.
   */
  async *execute(tenantId: TenantId, provider: string, check: (chain: KeyChain) => void = () => {}): AsyncGenerator<Moved> {
    const { store, kms, clock } = this.ports;
    const tenant = await store.forTenant(tenantId, (own) => own.tenant.get());
    assertProvider(kms, tenantId, provider, 'kms');
    const ids = await store.forTenant(tenantId, async ({ keyChains }) =>
      (await keyChains.list()).map(({ id, ...chain }) => {
        check({ id, ...chain });
        return id;
      }),
    );
    if (tenant.kms !== provider) {
      // The next keys first: none is made at the former provider from now on.
      const changed = { ...tenant, kms: provider, updatedAt: clock.now() };
      await store.forTenant(tenantId, (own) => own.tenant.save(changed), { by: SYSTEM });
    }
    for (const id of ids) {
      const moved = await this.#move(tenantId, id, provider);
      if (moved !== undefined) yield moved;
    }
  }

  /** @returns undefined for a key chain that is gone. */
  async #move(tenantId: TenantId, id: string, provider: string): Promise<Moved | undefined> {
    for (let attempt = 1; ; attempt++) {
      const chain = await this.ports.store.forTenant(tenantId, ({ keyChains }) => keyChains.find(id));
      if (chain === undefined) return undefined;
      const { active, root } = chain;
      const isThere = active.key.handle.kms === provider && chain.kmsProvider === provider;
      const isRooted = root === undefined || root.key.handle.kms === provider;
      const authority = root === undefined ? 'none' : 'there';
      if (isThere && isRooted) return { id, leaf: 'there', authority };
      try {
        if (!isThere) {
          assertAlgorithm(this.ports.kms, { tenantId, provider }, active.key.handle.algorithm);
          await renewLeaf(this.ports, chain, { step: 'rotation', provider, by: SYSTEM });
        }
        const taken = isRooted ? authority : await this.#moveAuthority(tenantId, chain, provider);
        return { id, leaf: isThere ? 'there' : 'moved', authority: taken };
      } catch (error) {
        if (attempt < ATTEMPTS && isForNow(error, chain)) {
          await pause(attempt * PAUSE_MS);
          continue;
        }
        if (!(error instanceof Failure) || error.code === 'unavailable') throw error;
        return { id, leaf: isThere ? 'there' : 'stays', authority: 'stays', reason: error.message };
      }
    }
  }

  /** All key chains under one authority have its key. */
  async #moveAuthority(tenantId: TenantId, { root }: KeyChain, provider: string): Promise<'moved' | 'stays'> {
    // A key that no other store has is sealed in the database.
    if (root?.key.sealedKey === undefined) return 'stays';
    await withNewKeys(this.ports, async ({ store, kms, clock }) => {
      const key = await kms.takeOver(signingKey(tenantId, root.key), provider);
      await store.forTenant(
        tenantId,
        async ({ keyChains }) => {
          let count = 0;
          for (const chain of await keyChains.list()) {
            if (chain.root === undefined || !isSameHandle(chain.root.key.handle, root.key.handle)) continue;
            await keyChains.put({ ...chain, root: { ...chain.root, key }, updatedAt: clock.now() });
            count++;
          }
          // Somebody else moved it; a second copy of it would stay at the provider, and nobody would know.
          if (count === 0) throw new Failure('conflict', 'the authority was moved or removed meanwhile');
        },
        { by: SYSTEM, alone: true },
      );
    });
    return 'moved';
  }
}
