import { SYSTEM } from '../../domain/audit/audit-entry.ts';
import type { KeyChain } from '../../domain/keys/key-chain.ts';
import { isSameHandle, signingKey } from '../../domain/keys/signing-key.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { needs } from '../needs.ts';
import { StoreUnavailableError } from '../ports/store.ts';
import { assertAlgorithm, assertProvider } from './create-requested-key-chain.ts';
import { withNewKeys } from './new-keys.ts';
import { RENEWAL_PORTS, renewLeaf } from './renew-leaf.ts';

export type MovedKeyChain = {
  readonly id: string;
  /** `there`: it was at the provider already. `stays`: it cannot be moved, for the `reason`. */
  readonly leaf: 'moved' | 'there' | 'stays';
  readonly authority: 'moved' | 'there' | 'stays' | 'none';
  readonly reason?: string;
};

/** Limit of retries after concurrent changes, or while a SQLite database is locked. */
const MAX_ATTEMPTS = 10;
const PAUSE_MS = 20;
const pause = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** True if the next attempt, which reads the key chain again, may succeed. */
function isTransient(error: unknown, { root }: KeyChain): boolean {
  if (error instanceof StoreUnavailableError) return true;
  return error instanceof Failure && error.code === 'conflict' && root !== undefined;
}

/**
 * Moves the keys of a tenant to another provider, one key chain after the other, without downtime. Each key chain gets a new key there,
 * under its current authority, and the former key stays valid as after every rotation. The key of an authority is an anchor of others,
 * so it is copied unchanged; if its provider does not export it, it stays. The operation can be interrupted and repeated.
 */
export class MoveKeyChains extends needs(RENEWAL_PORTS) {
  /**
   * @param check is called before a key chain is moved, and throws if it must not be.
   * @returns the result of each key chain, as soon as it is available.
   * @throws Failure `not_found` for an unknown tenant, `invalid_input` for an unknown provider.
   */
  async *execute(tenantId: TenantId, provider: string, check: (chain: KeyChain) => void = () => {}): AsyncGenerator<MovedKeyChain> {
    const { store, kms, clock } = this.ports;
    const tenant = await store.forTenant(tenantId, (repositories) => repositories.tenant.get());
    assertProvider(kms, tenantId, provider, 'kms');
    const ids = await store.forTenant(tenantId, async ({ keyChains }) =>
      (await keyChains.list()).map(({ id, ...chain }) => {
        check({ id, ...chain });
        return id;
      }),
    );
    if (tenant.kms !== provider) {
      // The default of the tenant comes first, so that no further key is created at the former provider.
      const updatedTenant = { ...tenant, kms: provider, updatedAt: clock.now() };
      await store.forTenant(tenantId, (repositories) => repositories.tenant.save(updatedTenant), { by: SYSTEM });
    }
    for (const id of ids) {
      const result = await this.#move(tenantId, id, provider);
      if (result !== undefined) yield result;
    }
  }

  /** @returns undefined for a removed key chain. */
  async #move(tenantId: TenantId, id: string, provider: string): Promise<MovedKeyChain | undefined> {
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
        const authorityResult = isRooted ? authority : await this.#moveAuthority(tenantId, chain, provider);
        return { id, leaf: isThere ? 'there' : 'moved', authority: authorityResult };
      } catch (error) {
        if (attempt < MAX_ATTEMPTS && isTransient(error, chain)) {
          await pause(attempt * PAUSE_MS);
          continue;
        }
        if (!(error instanceof Failure) || error.code === 'unavailable') throw error;
        return { id, leaf: isThere ? 'there' : 'stays', authority: 'stays', reason: error.message };
      }
    }
  }

  /** Moves the key of an authority, in all key chains under it. */
  async #moveAuthority(tenantId: TenantId, { root }: KeyChain, provider: string): Promise<'moved' | 'stays'> {
    // Only keys of the local store are sealed in the database and can be copied.
    if (root?.key.sealedKey === undefined) return 'stays';
    await withNewKeys(this.ports, async ({ store, kms, clock }) => {
      const key = await kms.copyToProvider(signingKey(tenantId, root.key), provider);
      await store.forTenant(
        tenantId,
        async ({ keyChains }) => {
          let count = 0;
          for (const chain of await keyChains.list()) {
            if (chain.root === undefined || !isSameHandle(chain.root.key.handle, root.key.handle)) continue;
            await keyChains.put({ ...chain, root: { ...chain.root, key }, updatedAt: clock.now() });
            count++;
          }
          // Concurrently moved: a second copy would stay at the provider unnoticed.
          if (count === 0) throw new Failure('conflict', 'the authority was migrated or removed concurrently');
        },
        { by: SYSTEM, exclusive: true },
      );
    });
    return 'moved';
  }
}
