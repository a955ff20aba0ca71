import { SYSTEM } from '../../domain/audit/audit-entry.ts';
import { markCompromisedLeaves } from '../../domain/keys/compromised-keys.ts';
import type { KeyChain } from '../../domain/keys/key-chain.ts';
import {
  type AutomaticStep,
  dueStep,
  isCertifiedByOldProfile,
  isExtendable,
  nextStepAt,
  withoutExpiredLeaves,
} from '../../domain/keys/rotation.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { needs } from '../needs.ts';
import { Log } from '../ports/log.ts';
import type { TenantVersion } from '../ports/maintenance.ts';
import type { OfferTask } from '../ports/work-queue.ts';
import { TenantValueCache } from '../tenant-cache/tenant-value-cache.ts';
import { type ActiveKey, activeKeysOf, type ReportedKey, warnOfSharedKeys } from './compromised-key.ts';
import { RENEWAL_PORTS, renewLeaf } from './renew-leaf.ts';

/** Limit of key chain ids in one warning. */
const MAX_NAMED = 20;
const MAX_SCHEDULE_BYTES = 32 * 1024 * 1024;

/** Cached result of the previous run for a tenant whose configuration has not changed. */
type Schedule = {
  /** Milliseconds since 1970. */
  readonly idleUntil: number;
  readonly keys: readonly ActiveKey[];
};

export type KeyChainRun = {
  readonly rotated: number;
  readonly renewed: number;
  /** Number of removed former leaves. */
  readonly forgotten: number;
  /** Key chains that need an administrator. */
  readonly stuck: readonly string[];
  /** Cursor of the next batch; undefined when this was the last one. */
  readonly last: TenantId | undefined;
};

/** Result for one tenant. */
export type RenewedChains = Pick<KeyChainRun, 'rotated' | 'renewed' | 'forgotten'>;

type RunCounts = { rotation: number; renewal: number; forgotten: number; readonly stuck: string[] };

/**
 * Rotates keys after their interval, renews certificates before they expire, and removes former leaves that are no longer needed. A key
 * chain that cannot be renewed does not affect the others.
 */
export class RenewKeyChains extends needs({ ...RENEWAL_PORTS, log: Log }) {
  #schedules: TenantValueCache<Schedule> | undefined;

  /**
   * Reads the key chains of tenants that are due, or whose configuration changed since this process read them.
   * @param limit number of tenants that are read.
   * @param offerTask offers a tenant to all processes; a tenant that none accepts is processed here.
   */
  async execute(now: Date, limit: number, afterTenant?: TenantId, offerTask?: OfferTask): Promise<KeyChainRun> {
    const schedules = this.#schedules ?? new TenantValueCache<Schedule>(this.ports.store, MAX_SCHEDULE_BYTES);
    this.#schedules = schedules;
    await schedules.refresh();
    const reported = await this.ports.store.forService(({ recordedKeys }) => recordedKeys.compromised());
    const dueTenants = this.#findDue(schedules, now, reported, afterTenant).slice(0, limit);
    const run = { rotation: 0, renewal: 0, forgotten: 0, stuck: [] as string[] };
    for (const tenant of dueTenants) {
      const { id: tenantId } = tenant;
      try {
        const chains = await this.#processTenant(tenantId, now, run, reported, offerTask);
        schedules.set(tenant, scheduleOf(chains, now));
      } catch (error) {
        schedules.delete(tenantId);
        this.ports.log.error('the key chains of a tenant cannot be read', { tenantId }, error);
      }
    }
    this.#warn(run.stuck);
    const { rotation: rotated, renewal: renewed, forgotten, stuck } = run;
    return { rotated, renewed, forgotten, stuck, last: dueTenants.length < limit ? undefined : dueTenants.at(-1)?.id };
  }

  /** Also warns about keys of the other tenants, which are not read. @returns the tenants after `after` that are to be read. */
  #findDue(
    schedules: TenantValueCache<Schedule>,
    now: Date,
    reported: readonly ReportedKey[],
    afterTenant: TenantId | undefined,
  ): readonly TenantVersion[] {
    const reportedKeys = new Set(reported.map(({ thumbprint }) => thumbprint));
    return schedules.all().filter((tenant) => {
      if (afterTenant !== undefined && tenant.id <= afterTenant) return false;
      const schedule = schedules.get(tenant);
      if (schedule === undefined || schedule.idleUntil <= now.getTime()) return true;
      // Only the first batch of a run warns, since later ones start after a tenant.
      const isReported = afterTenant === undefined && schedule.keys.some((key) => reportedKeys.has(key.thumbprint));
      if (isReported) warnOfSharedKeys(this.ports.log, tenant.id, schedule.keys, reported);
      return false;
    });
  }

  async renew(tenantId: TenantId, now: Date): Promise<RenewedChains> {
    const run = { rotation: 0, renewal: 0, forgotten: 0, stuck: [] as string[] };
    await this.#processTenant(tenantId, now, run);
    this.#warn(run.stuck);
    return { rotated: run.rotation, renewed: run.renewal, forgotten: run.forgotten };
  }

  async #processTenant(
    tenantId: TenantId,
    now: Date,
    run: RunCounts,
    reported: readonly ReportedKey[] = [],
    offerTask?: OfferTask,
  ): Promise<readonly KeyChain[]> {
    const storedChains = await this.ports.store.forTenant(tenantId, ({ keyChains }) => keyChains.list());
    const chains = markCompromisedLeaves(storedChains);
    warnOfSharedKeys(this.ports.log, tenantId, activeKeysOf(chains), reported);
    const isDue = chains.some((chain) => hasExpiredFormer(chain, now) || dueStep(chain, now) !== undefined);
    if (isDue && (await offerTask?.({ type: 'key-chains', tenantId }))) return chains;
    for (const chain of chains) {
      try {
        await this.#processChain(tenantId, chain, now, run);
      } catch (error) {
        this.ports.log.error('a key chain cannot be checked', { tenantId, keyChainId: chain.id }, error);
        run.stuck.push(`${tenantId}/${chain.id}`);
      }
    }
    return chains;
  }

  async #processChain(tenantId: TenantId, chain: KeyChain, now: Date, run: RunCounts): Promise<void> {
    run.forgotten += await this.#removeFormer(tenantId, chain, now);
    if (dueStep(chain, now) === undefined) return;
    const outcome = await this.#renew(tenantId, chain.id, now);
    if (outcome === 'stuck') run.stuck.push(`${tenantId}/${chain.id}`);
    else if (outcome !== undefined) run[outcome]++;
  }

  /** @returns the executed step, or `stuck` if it is impossible here; undefined when nothing was due. */
  async #renew(tenantId: TenantId, id: string, now: Date): Promise<AutomaticStep | 'stuck' | undefined> {
    const { store, log } = this.ports;
    const readChain = () =>
      store.forTenant(tenantId, async ({ keyChains }) => markCompromisedLeaves(await keyChains.list()).find((entry) => entry.id === id));
    const chain = await readChain();
    const due = chain && dueStep(chain, now);
    if (chain === undefined || due === undefined) return undefined;
    const { root } = chain;
    const isWorthwhile =
      root !== undefined && (due === 'rotation' || isCertifiedByOldProfile(chain, now) || isExtendable(chain, root, now));
    if (!isWorthwhile) return 'stuck';
    try {
      await renewLeaf(this.ports, chain, { step: due, by: SYSTEM });
      return due;
    } catch (error) {
      const currentChain = await readChain();
      // Another process was faster, or the key chain was removed.
      if (currentChain === undefined || dueStep(currentChain, now) === undefined) return undefined;
      log.error('a key chain could not be renewed', { tenantId, keyChainId: id, due }, error);
      return 'stuck';
    }
  }

  async #removeFormer(tenantId: TenantId, storedChain: KeyChain, now: Date): Promise<number> {
    if (!hasExpiredFormer(storedChain, now)) return 0;
    const { id } = storedChain;
    return this.ports.store.forTenant(
      tenantId,
      async ({ keyChains }) => {
        const chain = await keyChains.find(id);
        const remaining = chain && withoutExpiredLeaves(chain, now);
        if (chain === undefined || remaining === undefined) return 0;
        await keyChains.put(remaining);
        return (chain.former?.length ?? 0) - (remaining.former?.length ?? 0);
      },
      { by: SYSTEM, exclusive: true },
    );
  }

  #warn(stuck: readonly string[]): void {
    if (stuck.length === 0) return;
    this.ports.log.warn(
      'key chains are due that the service cannot renew: upload another certificate (POST /key-chain/{id}/csr, ' +
        'PATCH /key-chain/{id}), or create another key chain',
      { count: stuck.length, keyChains: stuck.slice(0, MAX_NAMED).join(' ') },
    );
  }
}

function scheduleOf(chains: readonly KeyChain[], now: Date): Schedule {
  const times = chains.map((chain) => {
    try {
      return nextStepAt(chain, now);
    } catch {
      // A key chain that cannot be read is reported by each run until it is replaced.
      return now.getTime();
    }
  });
  return { idleUntil: Math.min(...times), keys: activeKeysOf(chains) };
}

const hasExpiredFormer = ({ former = [] }: Pick<KeyChain, 'former'>, now: Date): boolean =>
  former.some(({ keptUntil }) => keptUntil <= now);
