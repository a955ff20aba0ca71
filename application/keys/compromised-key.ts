import type { TenantActor } from '../../domain/audit/audit-entry.ts';
import { type CompromisedKeys, chainsOfPublicKey, compromisedKeys, withMarks } from '../../domain/keys/compromised-keys.ts';
import type { KeyChain, KeyLeaf } from '../../domain/keys/key-chain.ts';
import { replaceLeaf } from '../../domain/keys/rotation.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { thumbprint } from '../../domain/shared/jwk.ts';
import type { PortsOf } from '../needs.ts';
import type { Log } from '../ports/log.ts';
import type { ReportedKey, TenantRepositories } from '../ports/repositories.ts';
import type { Store } from '../ports/store.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { withNewKeys } from './new-keys.ts';
import { isUnchanged, makeLeaf, type RENEWAL_PORTS } from './renew-leaf.ts';

/** What became of one key chain that has, or had, a compromised key. */
export type AffectedKeyChain = {
  readonly id: string;
  /**
   * `rotated`: it signs with another key now. `blocked`: it signs nothing any more, as `reason` says. `former`: only a
   * former key of it is concerned.
   */
  readonly outcome: 'rotated' | 'blocked' | 'former';
  readonly reason?: string | undefined;
};

export type CompromiseReport = { readonly chain: KeyChain; readonly affected: readonly AffectedKeyChain[] };

/**
 * Marks the active public key of `chain` as compromised, in every key chain of the tenant that has or had it. Those that
 * can be rotated get another key in the same transaction, the others sign nothing until an administrator replaces them.
 * @param provider of the next key of `chain`; every other key chain keeps its own.
 * @throws Failure `conflict` when `chain` was changed meanwhile; what its key provider throws.
 */
export async function markCompromised(
  ports: PortsOf<typeof RENEWAL_PORTS>,
  chain: KeyChain,
  all: readonly KeyChain[],
  { provider, by }: { readonly provider?: string | undefined; readonly by: TenantActor },
): Promise<CompromiseReport> {
  const { store, clock } = ports;
  const key = thumbprint(chain.active.key.publicJwk);
  const tenantId = chain.tenantId as TenantId;
  return withNewKeys(ports, async (remembering) => {
    const next = new Map<string, NextLeaf>();
    for (const one of all.filter((candidate) => isActiveKey(candidate, key))) {
      const kmsProvider = one.id === chain.id ? (provider ?? one.kmsProvider) : one.kmsProvider;
      next.set(one.id, { before: one, kmsProvider, ...(await nextLeaf(remembering, one, kmsProvider, chain)) });
    }
    return store.forTenant(
      tenantId,
      async ({ keyChains, recordedKeys, statusLists }) => {
        const now = clock.now();
        const present = await keyChains.list();
        const affected: AffectedKeyChain[] = [];
        const target = present.find(({ id }) => id === chain.id);
        if (target === undefined || !isUnchanged(target, chain)) throw changedMeanwhile();
        const known = (await recordedKeys.list()).find((record) => record.thumbprint === key);
        const compromisedAt = known?.compromisedAt ?? now;
        // The record comes first: a key chain that takes a compromised key is rejected.
        await recordedKeys.put({ thumbprint: key, compromisedAt, certificates: known?.certificates ?? [] });
        const compromised = new Map([[key, compromisedAt]]);
        let result = target;
        for (const stored of chainsOfPublicKey(present, key)) {
          const { after, ...outcome } = replaced(stored, next.get(stored.id), compromised, key, now);
          await keyChains.put(after);
          if (stored.id === chain.id) result = after;
          affected.push({ id: stored.id, ...outcome });
        }
        await renewStatusLists(statusLists, present, affected);
        return { chain: result, affected };
      },
      { by, alone: true },
    );
  });
}

/** A list with a new version is looked at by every process, which then drops a token that a compromised key signed. */
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

/** A sibling that cannot be rotated keeps no other key chain from it. */
async function nextLeaf(
  ports: PortsOf<typeof RENEWAL_PORTS>,
  one: KeyChain,
  kmsProvider: string,
  target: KeyChain,
): Promise<{ readonly leaf: KeyLeaf } | { readonly reason: string }> {
  try {
    return { leaf: await makeLeaf(ports, { ...one, kmsProvider }, 'rotation') };
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    if (one.id === target.id && error.code !== 'conflict') throw error;
    return { reason: error.message };
  }
}

function replaced(
  stored: KeyChain,
  next: NextLeaf | undefined,
  compromised: CompromisedKeys,
  key: string,
  now: Date,
): { readonly after: KeyChain } & Omit<AffectedKeyChain, 'id'> {
  const marked = { ...withMarks(stored, compromised), updatedAt: now };
  if (!isActiveKey(stored, key)) return { after: marked, outcome: 'former' };
  if (next?.leaf === undefined || !isUnchanged(stored, next.before)) {
    const reason = next?.reason ?? 'the key chain was changed meanwhile; rotate it';
    return { after: marked, outcome: 'blocked', reason };
  }
  const after = { ...replaceLeaf(marked, 'rotation', next.leaf, now), kmsProvider: next.kmsProvider };
  return { after, outcome: 'rotated' };
}

function isActiveKey({ active }: KeyChain, key: string): boolean {
  return thumbprint(active.key.publicJwk) === key;
}

function changedMeanwhile(): Failure {
  return new Failure('conflict', 'the key chain was changed or rotated meanwhile; try again');
}

/** @throws Failure `conflict` for a compromised key, which nobody may certify, and which signs no request for that. */
export function assertNotCompromised(chain: KeyChain, all: readonly KeyChain[]): void {
  if (!compromisedKeys(all).has(thumbprint(chain.active.key.publicJwk))) return;
  throw new Failure('conflict', `the key of the key chain ${chain.id} is compromised: rotate it, or create another key chain`);
}

/** Compromised keys of a tenant, also of key chains that it removed. They are read once for each state of its keys. */
export async function compromisedKeysOf(configured: TenantConfiguration): Promise<CompromisedKeys> {
  const [chains, records] = [await configured.keyChains(), await configured.recordedKeys()];
  return configured.derive('compromised-keys', () => compromisedKeys(chains, records));
}

export type { ReportedKey };

/** A public key with which a key chain signs. */
export type ActiveKey = { readonly keyChainId: string; readonly thumbprint: string };

/** Keys of the key chains that sign: none that the tenant itself marked as compromised. */
export function activeKeysOf(chains: readonly KeyChain[]): readonly ActiveKey[] {
  return chains
    .filter(({ active }) => active.revokedAt === undefined)
    .map(({ id, active }) => ({ keyChainId: id, thumbprint: thumbprint(active.key.publicJwk) }));
}

/**
 * Warns the operator of other tenants that sign with a compromised key. The log is the operator's: no tenant hears of another one.
 * @param keys with which one tenant signs.
 * @param reported keys that any tenant marked, with the tenants that did.
 */
export function warnOfSharedKeys(log: Log, tenantId: string, keys: readonly ActiveKey[], reported: readonly ReportedKey[]): number {
  const own = new Set(reported.filter((one) => one.tenantId === tenantId).map((one) => one.thumbprint));
  const foreign = reported.filter((one) => one.tenantId !== tenantId && !own.has(one.thumbprint));
  if (foreign.length === 0) return 0;
  let count = 0;
  for (const { keyChainId, thumbprint: key } of keys) {
    const reporter = foreign.find((one) => one.thumbprint === key);
    if (reporter === undefined) continue;
    count++;
    log.warn(
      'a tenant signs with a public key that another tenant reported as compromised: have its administrator rotate ' +
        'the key chain with compromised: true',
      { tenantId, keyChainId, thumbprint: key, reportedBy: reporter.tenantId },
    );
  }
  return count;
}

/** Looks through all tenants. Never throws: it runs beside the request that reported the key. */
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
    log.error('whether other tenants have a compromised key is looked at by the next run of renew-key-chains', {}, error);
    return 0;
  }
}
