import type { Change, Committed } from '../../domain/changes/change.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { SERVING } from '../../domain/tenants/tenant.ts';
import type { RememberedCaller, TenantCaller } from '../caller.ts';
import { type Store, StoreUnavailable } from '../ports/store.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { type Entry, Known, Outdated, type World } from './known.ts';

/**
 * For what reaches the network on behalf of a configuration, which must be the present one.
 * @throws Failure `unavailable` when it is not.
 */
export async function assertCurrent(store: Store, configured: TenantConfiguration): Promise<void> {
  const present = await store.read(configured.tenantId).state();
  if (present?.status !== SERVING || !configured.isWholly(present)) throw new Outdated();
}

/**
 * Runs `work` on what this process remembers of the tenant and, when a commit says that it is out of date or a rule
 * refuses, once more on what is stored. Nothing is repeated after a commit.
 * @throws Failure `not_found` where no such tenant serves wallets: an unknown and a suspended one look alike.
 */
export function attempt<T>(world: World, tenantId: TenantId, work: (known: Known) => Promise<T>): Promise<T> {
  const { tenantConfigurations } = world;
  const enter = tenantConfigurations.ofWallet.bind(tenantConfigurations);
  return run(world, tenantId, tenantConfigurations.latest(tenantId), enter, work);
}

/**
 * The same for a client, whose rights are judged anew with what is stored.
 * @throws Failure `unauthenticated` for a tenant that is gone, `forbidden` for one that is suspended.
 */
export function attemptFor<T>(
  world: World,
  caller: RememberedCaller,
  work: (known: Known, caller: TenantCaller) => Promise<T>,
): Promise<T> {
  const { remembered, again, ...rest } = caller;
  remembered.look(['clients']);
  const { tenantConfigurations } = world;
  const enter = tenantConfigurations.ofCaller.bind(tenantConfigurations);
  return run(world, caller.tenantId, remembered, enter, async (known) =>
    work(known, known.configured === remembered ? { ...rest, configured: remembered } : { ...rest, ...(await again(known.configured)) }),
  );
}

async function run<T>(
  world: World,
  tenantId: TenantId,
  remembered: TenantConfiguration | undefined,
  enter: Entry,
  work: (known: Known) => Promise<T>,
): Promise<T> {
  let first: { readonly error: Failure; readonly rested: boolean } | undefined;
  if (remembered !== undefined) {
    const known = new Known(world, remembered, false, enter);
    try {
      return await work(known);
    } catch (error) {
      if (known.hasCommitted || error instanceof StoreUnavailable) throw error;
      if (error instanceof Failure && !(error instanceof Outdated))
        // What does not answer would not answer a moment later either.
        first = { error, rested: known.restsOnMemory && error.code !== 'unavailable' };
    }
  }
  const configured = enter(await world.store.read(tenantId).state());
  // What was refused by the present configuration, and by nothing else that was remembered, stays refused.
  if (first !== undefined && !first.rested && remembered?.isWholly(configured.state)) throw first.error;
  return work(new Known(world, configured, true, enter));
}

/** Applies a change outside an attempt: what is under way is recorded even of a tenant that was suspended meanwhile. */
export async function record(world: World, tenantId: TenantId, change: Change): Promise<Committed> {
  const committed = await world.store.commit(tenantId, change, world.clock.now());
  if (committed.done) world.tenantConfigurations.committed(tenantId, change, committed);
  return committed;
}
