import type { RetiredKey } from '../../domain/keys/kept-keys.ts';
import { needs, type PortsOf } from '../needs.ts';
import { Kms } from '../ports/kms.ts';
import { Log } from '../ports/log.ts';
import { Store } from '../ports/store.ts';

export const DESTROYING = { store: Store, kms: Kms, log: Log };

/** Destroys keys at their providers that no key chain has any more. What does not answer is tried again later. */
export class DestroyRetiredKeys extends needs(DESTROYING) {
  /** @returns how many keys are gone. */
  async execute(limit: number): Promise<number> {
    const { kms } = this.ports;
    const answers = (provider: string) =>
      kms.assertReachable(provider).then(
        () => true,
        () => false,
      );
    return destroyRetiredKeys(this.ports, limit, undefined, answers);
  }
}

/**
 * Never throws: the keys have no key chain any more, and stay on record until they are gone.
 * @param owner only keys of this tenant.
 * @param answers whether a provider that did not destroy one key is worth asking for others.
 * @returns how many keys are gone.
 */
export async function destroyRetiredKeys(
  { store, kms, log }: PortsOf<typeof DESTROYING>,
  limit: number,
  owner?: string,
  answers: (provider: string) => Promise<boolean> = () => Promise.resolve(false),
): Promise<number> {
  const silent = new Set<string>();
  const left: RetiredKey[] = [];
  let gone = 0;
  try {
    for (const key of await store.maintenance.retiredKeys(limit, owner)) {
      const { kms: provider } = key.handle;
      // A provider that does not answer is not asked for each of its keys.
      if (!silent.has(provider) && (await destroyed({ kms, log }, key))) {
        await store.maintenance.forgetRetiredKey(key);
        gone++;
        continue;
      }
      left.push(key);
      if (!silent.has(provider) && !(await answers(provider))) silent.add(provider);
    }
    // Those that cannot be destroyed must not be all that is ever looked at.
    for (const key of left) await store.maintenance.postponeRetiredKey(key);
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
    const reason = error instanceof Error && error.cause instanceof Error ? error.cause.message : String(error);
    const about = { tenantId, provider: handle.kms, keyId: handle.keyId, reason };
    log.warn('a key that nothing needs is still at its provider; it will be tried again', about);
    return false;
  }
}
