import type { Change, CommitResult } from '../../domain/changes/change.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { SERVING } from '../../domain/tenants/tenant.ts';
import type { CachedCaller, TenantCaller } from '../caller.ts';
import { type Store, StoreUnavailableError } from '../ports/store.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { type AdmitTenant, OutdatedTenantError, TenantTransaction, type TransactionPorts } from './tenant-transaction.ts';

/**
 * Checks, before a network call on behalf of a configuration, that the configuration is current.
 * @throws Failure `unavailable` when it is not.
 */
export async function assertCurrent(store: Store, tenant: TenantConfiguration): Promise<void> {
  const currentState = await store.read(tenant.tenantId).state();
  if (currentState?.status !== SERVING || !tenant.isUpToDate(currentState)) throw new OutdatedTenantError();
}

/**
 * Runs `work` on the cached state of the tenant and, when a commit reports that it is out of date or a rule rejects, once more on the
 * stored state. Nothing is repeated after a commit.
 * @throws Failure `not_found` if no such tenant serves wallets; unknown and suspended tenants get the same answer.
 */
export function attempt<T>(world: TransactionPorts, tenantId: TenantId, work: (transaction: TenantTransaction) => Promise<T>): Promise<T> {
  const { tenantConfigurations } = world;
  const admit = tenantConfigurations.admitWallet.bind(tenantConfigurations);
  return run(world, tenantId, tenantConfigurations.latest(tenantId), admit, work);
}

/**
 * Like `attempt`, for a client, whose rights are checked again on the stored state.
 * @throws Failure `unauthenticated` for a removed tenant, `forbidden` for a suspended one.
 */
export function attemptFor<T>(
  world: TransactionPorts,
  caller: CachedCaller,
  work: (transaction: TenantTransaction, caller: TenantCaller) => Promise<T>,
): Promise<T> {
  const { cachedTenant, reauthorize, ...callerFields } = caller;
  cachedTenant.dependOn(['clients']);
  const { tenantConfigurations } = world;
  const admit = tenantConfigurations.admitClient.bind(tenantConfigurations);
  return run(world, caller.tenantId, cachedTenant, admit, async (transaction) =>
    work(
      transaction,
      transaction.tenant === cachedTenant
        ? { ...callerFields, tenant: cachedTenant }
        : { ...callerFields, ...(await reauthorize(transaction.tenant)) },
    ),
  );
}

async function run<T>(
  world: TransactionPorts,
  tenantId: TenantId,
  cachedTenant: TenantConfiguration | undefined,
  admit: AdmitTenant,
  work: (transaction: TenantTransaction) => Promise<T>,
): Promise<T> {
  let cachedFailure: { readonly error: Failure; readonly restedOnCache: boolean } | undefined;
  if (cachedTenant !== undefined) {
    const transaction = new TenantTransaction(world, cachedTenant, false, admit);
    try {
      return await work(transaction);
    } catch (error) {
      if (transaction.hasCommitted || error instanceof StoreUnavailableError) throw error;
      if (error instanceof Failure && !(error instanceof OutdatedTenantError))
        // A dependency that did not answer would not answer a moment later either.
        cachedFailure = { error, restedOnCache: transaction.usedCache && error.code !== 'unavailable' };
    }
  }
  const storedTenant = admit(await world.store.read(tenantId).state());
  // A rejection that rests on the current configuration, and on no other cached data, stands.
  if (cachedFailure !== undefined && !cachedFailure.restedOnCache && cachedTenant?.isUpToDate(storedTenant.state))
    throw cachedFailure.error;
  return work(new TenantTransaction(world, storedTenant, true, admit));
}

/** Applies a change outside an attempt: work in progress is recorded even if the tenant was suspended meanwhile. */
export async function record(world: TransactionPorts, tenantId: TenantId, change: Change): Promise<CommitResult> {
  const committed = await world.store.commit(tenantId, change, world.clock.now());
  if (committed.done) world.tenantConfigurations.onCommitted(tenantId, change, committed);
  return committed;
}
