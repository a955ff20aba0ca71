import { SYSTEM } from '../../domain/audit/audit-entry.ts';
import { withCompromisedLeaves } from '../../domain/keys/compromised-keys.ts';
import type { KeyChain } from '../../domain/keys/key-chain.ts';
import { type DueStep, dueStep, idleUntil, isCertifiedByOldProfile, isExtendable, withoutEnded } from '../../domain/keys/rotation.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { needs } from '../needs.ts';
import { Log } from '../ports/log.ts';
import type { TenantVersion } from '../ports/maintenance.ts';
import type { HandOver } from '../ports/work-queue.ts';
import { ValuesOfTenants } from '../tenant-cache/values-of-tenants.ts';
import { type ActiveKey, activeKeysOf, type ReportedKey, warnOfSharedKeys } from './compromised-key.ts';
import { RENEWAL_PORTS, renewLeaf } from './renew-leaf.ts';

/** Key chains that one warning names. */
const MAX_NAMED = 20;
const MAX_SCHEDULE_BYTES = 32 * 1024 * 1024;

/** What a run has to know of a tenant whose configuration did not change since the run before. */
type Schedule = {
  /** In milliseconds since 1970. */
  readonly idleUntil: number;
  readonly keys: readonly ActiveKey[];
};

export type KeyChainRun = {
  readonly rotated: number;
  readonly renewed: number;
  /** Former leaves that have gone. */
  readonly forgotten: number;
  /** Key chains that somebody has to see to. */
  readonly stuck: readonly string[];
  /** Where the next batch begins; undefined when this was the last one. */
  readonly last: TenantId | undefined;
};

/** What was done for one tenant. */
export type RenewedChains = Pick<KeyChainRun, 'rotated' | 'renewed' | 'forgotten'>;

type Tally = { rotation: number; renewal: number; forgotten: number; readonly stuck: string[] };

/**
 * Rotates keys whose interval is over, renews certificates before they end, and forgets leaves on which nothing rests
 * any more. One key chain that cannot be renewed keeps no other from it.
 */
export class RenewKeyChains extends needs({ ...RENEWAL_PORTS, log: Log }) {
  #schedules: ValuesOfTenants<Schedule> | undefined;

  /**
   * Reads the key chains of tenants of which something is due, or whose configuration changed since this process read them.
   * @param limit of tenants that are read.
   * @param handOver gives a tenant with something to do to any process; those that it does not take are seen to here.
   */
  async execute(now: Date, limit: number, after?: TenantId, handOver?: HandOver): Promise<KeyChainRun> {
    const schedules = this.#schedules ?? new ValuesOfTenants<Schedule>(this.ports.store, MAX_SCHEDULE_BYTES);
    this.#schedules = schedules;
    await schedules.refresh();
    const reported = await this.ports.store.forService(({ recordedKeys }) => recordedKeys.compromised());
    const toRead = this.#toRead(schedules, now, reported, after).slice(0, limit);
    const run = { rotation: 0, renewal: 0, forgotten: 0, stuck: [] as string[] };
    for (const tenant of toRead) {
      const { id: tenantId } = tenant;
      try {
        const chains = await this.#look(tenantId, now, run, reported, handOver);
        schedules.set(tenant, scheduleOf(chains, now));
      } catch (error) {
        schedules.delete(tenantId);
        this.ports.log.error('the key chains of a tenant cannot be read', { tenantId }, error);
      }
    }
    this.#warn(run.stuck);
    const { rotation: rotated, renewal: renewed, forgotten, stuck } = run;
    return {
      rotated,
      renewed,
      forgotten,
      stuck,
      last: toRead.length < limit ? undefined : toRead.at(-1)?.id,
    };
  }

  /** Also warns of keys of the other tenants, which are not read. @returns the tenants behind `after` that are to be read. */
  #toRead(
    schedules: ValuesOfTenants<Schedule>,
    now: Date,
    reported: readonly ReportedKey[],
    after: TenantId | undefined,
  ): readonly TenantVersion[] {
    const reportedKeys = new Set(reported.map(({ thumbprint }) => thumbprint));
    return schedules.all().filter((tenant) => {
      if (after !== undefined && tenant.id <= after) return false;
      const schedule = schedules.get(tenant);
      if (schedule === undefined || schedule.idleUntil <= now.getTime()) return true;
      // The first batch of a run warns of them; later ones begin behind a tenant.
      const isReported = after === undefined && schedule.keys.some((key) => reportedKeys.has(key.thumbprint));
      if (isReported) warnOfSharedKeys(this.ports.log, tenant.id, schedule.keys, reported);
      return false;
    });
  }

  /** Sees to one tenant. */
  async renew(tenantId: TenantId, now: Date): Promise<RenewedChains> {
    const run = { rotation: 0, renewal: 0, forgotten: 0, stuck: [] as string[] };
    await this.#look(tenantId, now, run);
    this.#warn(run.stuck);
    return { rotated: run.rotation, renewed: run.renewal, forgotten: run.forgotten };
  }

  async #look(
    tenantId: TenantId,
    now: Date,
    run: Tally,
    reported: readonly ReportedKey[] = [],
    handOver?: HandOver,
  ): Promise<readonly KeyChain[]> {
    const stored = await this.ports.store.forTenant(tenantId, ({ keyChains }) => keyChains.list());
    const chains = withCompromisedLeaves(stored);
    warnOfSharedKeys(this.ports.log, tenantId, activeKeysOf(chains), reported);
    const isDue = chains.some((chain) => isAnyFormerOver(chain, now) || dueStep(chain, now) !== undefined);
    if (isDue && (await handOver?.({ type: 'key-chains', tenantId }))) return chains;
    for (const chain of chains) {
      try {
        await this.#lookAt(tenantId, chain, now, run);
      } catch (error) {
        this.ports.log.error('a key chain cannot be looked at', { tenantId, keyChainId: chain.id }, error);
        run.stuck.push(`${tenantId}/${chain.id}`);
      }
    }
    return chains;
  }

  async #lookAt(tenantId: TenantId, chain: KeyChain, now: Date, run: Tally): Promise<void> {
    run.forgotten += await this.#forget(tenantId, chain, now);
    if (dueStep(chain, now) === undefined) return;
    const outcome = await this.#renew(tenantId, chain.id, now);
    if (outcome === 'stuck') run.stuck.push(`${tenantId}/${chain.id}`);
    else if (outcome !== undefined) run[outcome]++;
  }

  /** @returns what was done, or that it cannot be done here; undefined when there was nothing to do. */
  async #renew(tenantId: TenantId, id: string, now: Date): Promise<DueStep | 'stuck' | undefined> {
    const { store, log } = this.ports;
    const read = () =>
      store.forTenant(tenantId, async ({ keyChains }) => withCompromisedLeaves(await keyChains.list()).find((one) => one.id === id));
    const chain = await read();
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
      const present = await read();
      // Another process was faster, or somebody removed it.
      if (present === undefined || dueStep(present, now) === undefined) return undefined;
      log.error('a key chain could not be renewed', { tenantId, keyChainId: id, due }, error);
      return 'stuck';
    }
  }

  async #forget(tenantId: TenantId, known: KeyChain, now: Date): Promise<number> {
    if (!isAnyFormerOver(known, now)) return 0;
    const { id } = known;
    return this.ports.store.forTenant(
      tenantId,
      async ({ keyChains }) => {
        const chain = await keyChains.find(id);
        const rest = chain && withoutEnded(chain, now);
        if (chain === undefined || rest === undefined) return 0;
        await keyChains.put(rest);
        return (chain.former?.length ?? 0) - (rest.former?.length ?? 0);
      },
      { by: SYSTEM, alone: true },
    );
  }

  #warn(stuck: readonly string[]): void {
    if (stuck.length === 0) return;
    this.ports.log.warn(
      'key chains are due that cannot be renewed here: upload another certificate (POST /key-chain/{id}/csr, ' +
        'PATCH /key-chain/{id}), or make another key chain',
      { count: stuck.length, keyChains: stuck.slice(0, MAX_NAMED).join(' ') },
    );
  }
}

function scheduleOf(chains: readonly KeyChain[], now: Date): Schedule {
  const times = chains.map((chain) => {
    try {
      return idleUntil(chain, now);
    } catch {
      // Each run reports a key chain that cannot be read until it is replaced.
      return now.getTime();
    }
  });
  return { idleUntil: Math.min(...times), keys: activeKeysOf(chains) };
}

const isAnyFormerOver = ({ former = [] }: Pick<KeyChain, 'former'>, now: Date): boolean => former.some(({ keptUntil }) => keptUntil <= now);
