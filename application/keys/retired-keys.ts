import type { RetiredKey } from '../../domain/keys/kept-keys.ts';
import { needs, type PortsOf } from '../needs.ts';
import { Kms } from '../ports/kms.ts';
import { Log } from '../ports/log.ts';
import { Store } from '../ports/store.ts';

export const DESTROYING = { store: Store, kms: Kms, log: Log };

/** Keys of one provider that a run tries in vain. */
const MAX_FAILURES = 3;

/** Destroys keys at their providers that no key chain has any more. What does not answer is tried again later. */
export class DestroyRetiredKeys extends needs(DESTROYING) {
  /** @returns how many keys are gone. */
  async execute(limit: number): Promise<number> {
    return destroyRetiredKeys(this.ports, limit);
  }
}

/**
 * Never throws: the keys have no key chain any more, and stay on record until they are gone.
 * @param owner only keys of this tenant.
 * @returns how many keys are gone.
 */
export async function destroyRetiredKeys(
  { store, kms, log }: PortsOf<typeof DESTROYING>,
  limit: number,
  owner?: string,
): Promise<number> {
  const { maintenance } = store;
  const failures = new Map<string, number>();
  let gone = 0;
  try {
    for (const key of await maintenance.retiredKeys(limit, owner)) {
      const { kms: provider } = key.handle;
      const failed = failures.get(provider) ?? 0;
      // A provider that does not answer is not asked for each of its keys.
      if (failed >= MAX_FAILURES) continue;
      if (await destroyed({ kms, log }, key)) {
        await maintenance.forgetRetiredKey(key);
        gone++;
        continue;
      }
      failures.set(provider, failed + 1);
      // Others come first the next time: those of other providers, and those that this one does not refuse.
      const keys = failed + 1 >= MAX_FAILURES ? { kms: provider } : key.handle;
      await maintenance.postponeRetiredKeys(keys);
    }
  } catch (error) {
    log.error('keys that nothing needs are destroyed later', { owner: owner ?? 'all' }, error);
  }
  return gone;
}

async function destroyed(
  { kms, log }: Pick<PortsOf<typeof DESTROYING>, 'kms' | 'log'>,
  { tenantId, handle }: RetiredKey,
): Promise<boolean> {
  try {
    await kms.remove({ tenantId, handle });
    return true;
  } catch (error) {
    const reason =
      error instanceof Error && error.cause instanceof Error ? error.cause.message : String(error);
    const about = { tenantId, provider: handle.kms, keyId: handle.keyId, reason };
    log.warn('a key that nothing needs is still at its provider; it will be tried again', about);
    return false;
  }
}
