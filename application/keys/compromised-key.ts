import type { TenantActor } from '../../domain/audit/audit-entry.ts';
import { type CompromisedKeys, chainsOfPublicKey, compromisedKeys, withMarks } from '../../domain/keys/compromised-keys.ts';
import type { KeyChain, KeyLeaf } from '../../domain/keys/key-chain.ts';
import { replaceActiveLeaf } from '../../domain/keys/rotation.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { thumbprint } from '../../domain/shared/jwk.ts';
import type { PortsOf } from '../needs.ts';
import type { Log } from '../ports/log.ts';
import type { ReportedKey, TenantRepositories } from '../ports/repositories.ts';
import type { Store } from '../ports/store.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { withNewKeys } from './new-keys.ts';
import { createLeaf, isUnchanged, type RENEWAL_PORTS } from './renew-leaf.ts';

export type AffectedKeyChain = {
  readonly id: string;
  /**
   * `rotated`: it has another key now. `blocked`: it cannot sign any more, for the `reason`. `former`: only a
   * former key of it is compromised.
   */
  readonly outcome: 'rotated' | 'blocked' | 'former';
  readonly reason?: string | undefined;
};

export type CompromiseReport = { readonly chain: KeyChain; readonly affected: readonly AffectedKeyChain[] };

/**
 * Marks the active public key of `chain` as compromised, in every key chain of the tenant that has or had it. Those that can be rotated
 * get another key in the same transaction, the others cannot sign until an administrator replaces them.
 * @param provider of the next key of `chain`; every other key chain keeps its own.
 * @throws Failure `conflict` when `chain` was changed meanwhile; the failures of its key provider.
 */
export async function markCompromised(
  ports: PortsOf<typeof RENEWAL_PORTS>,
  chain: KeyChain,
  chains: readonly KeyChain[],
  { provider, by }: { readonly provider?: string | undefined; readonly by: TenantActor },
): Promise<CompromiseReport> {
  const { store, clock } = ports;
  const key = thumbprint(chain.active.key.publicJwk);
  const tenantId = chain.tenantId as TenantId;
  return withNewKeys(ports, async (trackedPorts) => {
    const nextLeaves = new Map<string, NextLeaf>();
    for (const sibling of chains.filter((candidate) => isActiveKey(candidate, key))) {
      const kmsProvider = sibling.id === chain.id ? (provider ?? sibling.kmsProvider) : sibling.kmsProvider;
      nextLeaves.set(sibling.id, { before: sibling, kmsProvider, ...(await nextLeaf(trackedPorts, sibling, kmsProvider, chain)) });
    }
    return store.forTenant(
      tenantId,
      async ({ keyChains, recordedKeys, statusLists }) => {
        const now = clock.now();
        const currentChains = await keyChains.list();
        const affected: AffectedKeyChain[] = [];
        const target = currentChains.find(({ id }) => id === chain.id);
        if (target === undefined || !isUnchanged(target, chain)) throw keyChainChangedError();
        const existingRecord = (await recordedKeys.list()).find((record) => record.thumbprint === key);
        const compromisedAt = existingRecord?.compromisedAt ?? now;
        // The record comes first: a key chain that takes a compromised key is rejected.
        await recordedKeys.put({ thumbprint: key, compromisedAt, certificates: existingRecord?.certificates ?? [] });
        const compromised = new Map([[key, compromisedAt]]);
        let result = target;
        for (const storedChain of chainsOfPublicKey(currentChains, key)) {
          const { after: replacedChain, ...outcome } = replaceKey(storedChain, nextLeaves.get(storedChain.id), compromised, key, now);
          await keyChains.put(replacedChain);
          if (storedChain.id === chain.id) result = replacedChain;
          affected.push({ id: storedChain.id, ...outcome });
        }
        await renewStatusLists(statusLists, currentChains, affected);
        return { chain: result, affected };
      },
      { by, exclusive: true },
    );
  });
}

/** Raises the version of affected lists: every process then drops tokens that a compromised key signed. */
async function renewStatusLists(
  statusLists: TenantRepositories['statusLists'],
  chains: readonly KeyChain[],
  affected: readonly AffectedKeyChain[],
): Promise<void> {
  const ids = new Set(affected.map(({ id }) => id));
  const isDefaultAffected = chains.some(({ id, usages }) => ids.has(id) && usages.includes('statusList'));
  for (const { id, credentialConfigurationId, keyChainId } of await statusLists.list()) {
    if (keyChainId === null ? !isDefaultAffected : !ids.has(keyChainId)) continue;
    await statusLists.rebind(id, { credentialConfigurationId, keyChainId }, { unused: false });
  }
}

type NextLeaf = { readonly before: KeyChain; readonly kmsProvider: string; readonly leaf?: KeyLeaf; readonly reason?: string };

/** Failures of a sibling do not affect other key chains. */
async function nextLeaf(
  ports: PortsOf<typeof RENEWAL_PORTS>,
  sibling: KeyChain,
  kmsProvider: string,
  target: KeyChain,
): Promise<{ readonly leaf: KeyLeaf } | { readonly reason: string }> {
  try {
    return { leaf: await createLeaf(ports, { ...sibling, kmsProvider }, 'rotation') };
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    if (sibling.id === target.id && error.code !== 'conflict') throw error;
    return { reason: error.message };
  }
}

function replaceKey(
  storedChain: KeyChain,
  preparedLeaf: NextLeaf | undefined,
  compromised: CompromisedKeys,
  key: string,
  now: Date,
): { readonly after: KeyChain } & Omit<AffectedKeyChain, 'id'> {
  const marked = { ...withMarks(storedChain, compromised), updatedAt: now };
  if (!isActiveKey(storedChain, key)) return { after: marked, outcome: 'former' };
  if (preparedLeaf?.leaf === undefined || !isUnchanged(storedChain, preparedLeaf.before)) {
    const reason = preparedLeaf?.reason ?? 'the key chain was changed concurrently; rotate it';
    return { after: marked, outcome: 'blocked', reason };
  }
  const rotatedChain = { ...replaceActiveLeaf(marked, 'rotation', preparedLeaf.leaf, now), kmsProvider: preparedLeaf.kmsProvider };
  return { after: rotatedChain, outcome: 'rotated' };
}

function isActiveKey({ active }: KeyChain, key: string): boolean {
  return thumbprint(active.key.publicJwk) === key;
}

function keyChainChangedError(): Failure {
  return new Failure('conflict', 'the key chain was changed or rotated concurrently; try again');
}

/** @throws Failure `conflict` for a compromised key, which must not be certified or sign a request for that. */
export function assertNotCompromised(chain: KeyChain, chains: readonly KeyChain[]): void {
  if (!compromisedKeys(chains).has(thumbprint(chain.active.key.publicJwk))) return;
  throw new Failure('conflict', `the key of the key chain ${chain.id} is compromised: rotate it, or create another key chain`);
}

/** Compromised keys of a tenant, also of removed key chains. Cached per revision of its keys. */
export async function compromisedKeysOf(tenant: TenantConfiguration): Promise<CompromisedKeys> {
  const [chains, records] = [await tenant.keyChains(), await tenant.recordedKeys()];
  return tenant.derive('compromised-keys', () => compromisedKeys(chains, records));
}

export type { ReportedKey };

/** Public key of a key chain that signs. */
export type ActiveKey = { readonly keyChainId: string; readonly thumbprint: string };

/** Keys of the key chains that sign, without keys that the tenant itself marked as compromised. */
export function activeKeysOf(chains: readonly KeyChain[]): readonly ActiveKey[] {
  return chains
    .filter(({ active }) => active.revokedAt === undefined)
    .map(({ id, active }) => ({ keyChainId: id, thumbprint: thumbprint(active.key.publicJwk) }));
}

/**
 * Warns the operator about tenants that use a key that another tenant marked as compromised. Only the log has the warning, since tenants
 * must not learn about each other.
 * @param keys of one tenant.
 * @param reported keys that any tenant marked, with the tenants that did.
 */
export function warnOfSharedKeys(log: Log, tenantId: string, keys: readonly ActiveKey[], reported: readonly ReportedKey[]): number {
  const ownThumbprints = new Set(reported.filter((entry) => entry.tenantId === tenantId).map((entry) => entry.thumbprint));
  const foreignReports = reported.filter((entry) => entry.tenantId !== tenantId && !ownThumbprints.has(entry.thumbprint));
  if (foreignReports.length === 0) return 0;
  let count = 0;
  for (const { keyChainId, thumbprint: key } of keys) {
    const reporter = foreignReports.find((entry) => entry.thumbprint === key);
    if (reporter === undefined) continue;
    count++;
    log.warn(
      'a tenant signs with a public key that another tenant reported as compromised: its administrator must rotate ' +
        'the key chain with compromised: true',
      { tenantId, keyChainId, thumbprint: key, reportedBy: reporter.tenantId },
    );
  }
  return count;
}

/** Checks all tenants. Never throws: it runs concurrently with the request that reported the key. */
export async function reportSharedKeys({ store, log }: { readonly store: Store; readonly log: Log }): Promise<number> {
  try {
    const reported = await store.forService(({ recordedKeys }) => recordedKeys.compromised());
    let count = 0;
    for (const { id } of await store.forService(({ tenants }) => tenants.list())) {
      const chains = await store.forTenant(id, ({ keyChains }) => keyChains.list());
      count += warnOfSharedKeys(log, id, activeKeysOf(chains), reported);
      await new Promise((resolve) => setImmediate(resolve));
    }
    return count;
  } catch (error) {
    log.error('the next run of renew-key-chains checks whether other tenants use a compromised key', {}, error);
    return 0;
  }
}
