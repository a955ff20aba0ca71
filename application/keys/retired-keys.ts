import type { RetiredKey } from '../../domain/keys/retired-keys.ts';
import { needs, type PortsOf } from '../needs.ts';
import { Kms } from '../ports/kms.ts';
import { Log } from '../ports/log.ts';
import { Store } from '../ports/store.ts';

export const KEY_DESTRUCTION_PORTS = { store: Store, kms: Kms, log: Log };

/** Destroys keys at their providers that no key chain uses any more. Failures are retried later. */
export class DestroyRetiredKeys extends needs(KEY_DESTRUCTION_PORTS) {
  /** @returns the number of destroyed keys. */
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
 * Never throws: the keys belong to no key chain any more, and stay recorded until they are destroyed.
 * @param owner only keys of this tenant.
 * @param answers true if a provider that failed for one key may still work for others.
 * @returns the number of destroyed keys.
 */
export async function destroyRetiredKeys(
  { store, kms, log }: PortsOf<typeof KEY_DESTRUCTION_PORTS>,
  limit: number,
  owner?: string,
  answers: (provider: string) => Promise<boolean> = () => Promise.resolve(false),
): Promise<number> {
  const unreachable = new Set<string>();
  const failedKeys: RetiredKey[] = [];
  let destroyedKeys = 0;
  try {
    for (const key of await store.maintenance.retiredKeys(limit, owner)) {
      const { kms: provider } = key.handle;
      // A provider that does not answer is not called for each of its keys.
      if (!unreachable.has(provider) && (await tryDestroy({ kms, log }, key))) {
        await store.maintenance.forgetRetiredKey(key);
        destroyedKeys++;
        continue;
      }
      failedKeys.push(key);
      if (!unreachable.has(provider) && !(await answers(provider))) unreachable.add(provider);
    }
    // Failed keys are postponed, so that they do not block the others.
    for (const key of failedKeys) await store.maintenance.postponeRetiredKey(key);
  } catch (error) {
    log.error('unused keys are destroyed later', { owner: owner ?? 'all' }, error);
  }
  return destroyedKeys;
}

async function tryDestroy(
  { kms, log }: Pick<PortsOf<typeof KEY_DESTRUCTION_PORTS>, 'kms' | 'log'>,
  { tenantId, handle }: RetiredKey,
): Promise<boolean> {
  try {
    await kms.remove({ tenantId, handle });
    return true;
  } catch (error) {
    const reason = error instanceof Error && error.cause instanceof Error ? error.cause.message : String(error);
    const logFields = { tenantId, provider: handle.kms, keyId: handle.keyId, reason };
    log.warn('an unused key is still at its provider; its removal is retried', logFields);
    return false;
  }
}
