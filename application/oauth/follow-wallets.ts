import { SYSTEM } from '../../domain/audit/audit-entry.ts';
import { describeRevokedWallets } from '../../domain/audit/describe-change.ts';
import type { Change } from '../../domain/changes/change.ts';
import type { SessionId } from '../../domain/shared/ids.ts';
import { Refusal } from '../../domain/shared/refusal.ts';
import type { StatusChange } from '../../domain/status-lists/status-list.ts';
import { type FollowedList, revokedIndices } from '../../domain/status-lists/wallet-status.ts';
import { needs } from '../needs.ts';
import type { Follower } from '../ports/followed-wallets.ts';
import { Log } from '../ports/log.ts';
import { StoreUnavailableError } from '../ports/store.ts';
import { listsOfBatches } from '../status-lists/lists-of-batches.ts';
import { StatusAllocator } from '../status-lists/status-allocator.ts';
import type { VerifiedStatusList } from '../status-lists/verify-status.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { TRANSACTION_PORTS } from '../transactions/tenant-transaction.ts';
import { WalletProviderTrust } from './wallet-provider-trust.ts';

/** Number of lists that are fetched concurrently. */
const MAX_LISTS = 8;
/** Maximum number of entries per database query. */
const MAX_ENTRIES = 20_000;
/** Maximum number of batches that are revoked in one transaction. */
const MAX_BATCHES = 200;
/** TS3 1.5 section 2.4.3 requires a check in 24 hours; this leaves time for retries. */
const MAX_INTERVAL_MS = 12 * 3_600_000;
const MIN_INTERVAL_MS = 30_000;
/** Delay after the first failure, doubled each time. */
const FIRST_RETRY_MS = 60_000;
const MAX_RETRY_MS = 900_000;

const REVOKED = 1;

/** A comparison in progress. */
type Pass = {
  readonly list: FollowedList;
  readonly tenant: TenantConfiguration;
  readonly verifiedList: VerifiedStatusList;
  /** The next entry to compare. */
  from: number;
  /** Number of entries in the next query: fewer if many are revoked, since a range is queried until no follower is left. */
  width: number;
  revokedBatches: number;
};

export type FollowedStep = {
  /** Number of batches that were revoked. */
  readonly fallen: number;
  readonly mayBeMore: boolean;
};

/**
 * Revokes credentials whose wallet or key store was revoked by its provider (TS3 1.5 section 2.4.3). A list is fetched once for all
 * its followers, and only followers of revoked entries are queried, so the cost grows with the revoked entries and not with the issued
 * credentials. Credentials that are issued during a pass are covered by the next one.
 */
export class FollowWallets extends needs({
  ...TRANSACTION_PORTS,
  walletProviderTrust: WalletProviderTrust,
  statusAllocator: StatusAllocator,
  log: Log,
}) {
  /** Lists in progress. A run may end in the middle of a long list; the next run continues. */
  #passes: readonly Pass[] = [];
  #isWorking = false;

  /** Processes a bounded part of the due lists; does nothing while another call runs. */
  async execute(now: Date): Promise<FollowedStep> {
    if (this.#isWorking) return { fallen: 0, mayBeMore: false };
    this.#isWorking = true;
    try {
      return await this.#step(now);
    } finally {
      this.#isWorking = false;
    }
  }

  async #step(now: Date): Promise<FollowedStep> {
    if (this.#passes.length === 0) {
      const due = await this.ports.store.maintenance.dueFollowedLists(now, MAX_LISTS);
      // Concurrently, so that an unresponsive provider does not delay other lists.
      const startedPasses = await Promise.all(due.map((list) => this.#begin(list, now)));
      this.#passes = startedPasses.filter((pass) => pass !== undefined);
      return { fallen: 0, mayBeMore: due.length > 0 };
    }
    const [pass, ...otherPasses] = this.#passes;
    // After a failure the list is compared from its beginning.
    this.#passes = otherPasses;
    return pass === undefined ? { fallen: 0, mayBeMore: false } : this.#continue(pass, now);
  }

  async #continue(pass: Pass, now: Date): Promise<FollowedStep> {
    const { maintenance } = this.ports.store;
    const { bytes, bits } = pass.verifiedList;
    const { width } = pass;
    const revoked = revokedIndices(bytes, bits, pass.from, width);
    const followers = revoked.length === 0 ? [] : await maintenance.followers(pass.list, revoked, MAX_BATCHES);
    if (followers.length > 0) await this.#revoke(pass, followers);
    pass.revokedBatches += followers.length;
    if (followers.length === MAX_BATCHES) pass.width = Math.max(Math.ceil(width / 4), MAX_BATCHES);
    else {
      pass.from = (revoked.at(-1) ?? 0) + 1;
      pass.width = Math.min(width * 2, MAX_ENTRIES);
    }
    if (revoked.length === width || followers.length === MAX_BATCHES) this.#passes = [pass, ...this.#passes];
    else await this.#end(pass, now);
    return { fallen: followers.length, mayBeMore: true };
  }

  /** Fetches a list. @returns undefined if it cannot be fetched. */
  async #begin(list: FollowedList, now: Date): Promise<Pass | undefined> {
    const { tenantConfigurations, walletProviderTrust } = this.ports;
    try {
      const tenant = await tenantConfigurations.readStored(list.tenantId);
      if (tenant === undefined) throw new Refusal('status_unavailable', 'the tenant was removed');
      const notBefore = new Date(now.getTime() - MAX_INTERVAL_MS);
      const verifiedList = await walletProviderTrust.followedList(tenant, list, notBefore);
      return { list, tenant, verifiedList, from: 0, width: MAX_ENTRIES, revokedBatches: 0 };
    } catch (error) {
      if (error instanceof StoreUnavailableError) throw error;
      // An unexpected error, such as a configuration that cannot be decrypted, does not delay other lists either.
      if (!(error instanceof Refusal)) this.ports.log.error('a followed status list', { tenantId: list.tenantId }, error);
      const refusal = error instanceof Refusal ? error : new Refusal('status_unavailable', 'an unexpected failure, see the log');
      await this.#fail(list, refusal, now);
      return undefined;
    }
  }

  /** A list that cannot be fetched revokes nothing; it is retried, and reported in `/health` and `/cache/stats`. */
  async #fail(list: FollowedList, { message: reason }: Refusal, now: Date): Promise<void> {
    const { store, log } = this.ports;
    const failures = list.failure?.count ?? 0;
    const retryAt = new Date(now.getTime() + Math.min(FIRST_RETRY_MS * 2 ** failures, MAX_RETRY_MS));
    await store.maintenance.noteFollowedList(list, now, retryAt, reason);
    log.warn('a followed status list cannot be checked, so no credential is revoked', {
      tenantId: list.tenantId,
      list: list.uri,
      reason,
      since: (list.failure?.since ?? now).toISOString(),
    });
  }

  async #end({ list, verifiedList, revokedBatches }: Pass, now: Date): Promise<void> {
    const { store, log } = this.ports;
    const earliest = Math.max(verifiedList.freshUntil.getTime(), now.getTime() + MIN_INTERVAL_MS);
    const nextAt = new Date(Math.min(earliest, now.getTime() + MAX_INTERVAL_MS));
    await store.maintenance.noteFollowedList(list, now, nextAt);
    if (list.failure !== null) log.info('a followed status list can be checked again', { tenantId: list.tenantId, list: list.uri });
    if (revokedBatches > 0)
      log.warn('credentials were revoked with their wallets', { tenantId: list.tenantId, list: list.uri, batches: revokedBatches });
  }

  async #revoke({ list, tenant }: Pass, followers: readonly Follower[]): Promise<void> {
    const { store, tenantConfigurations, clock } = this.ports;
    const now = clock.now();
    const statuses = await this.#changesOf(tenant, followers);
    if (statuses.length > 0) {
      const sessions = [...new Set(followers.map(({ sessionId }): SessionId => sessionId))];
      const auditEntry = describeRevokedWallets(list.uri, statuses.length, sessions);
      const change: Change = { statuses, audit: { by: SYSTEM, change: auditEntry } };
      const committed = await store.commit(list.tenantId, change, now);
      if (!committed.done) throw new Error(`credentials could not be revoked: ${committed.part}`);
      tenantConfigurations.onCommitted(list.tenantId, change, committed);
    }
    await store.maintenance.revokeFollowers(list, followers, now);
  }

  async #changesOf(tenant: TenantConfiguration, followers: readonly Follower[]): Promise<readonly StatusChange[]> {
    const batches = followers.flatMap(({ batch }) => batch ?? []);
    const lists = await listsOfBatches(this.ports.store, tenant, batches);
    return followers.flatMap(({ batch }): StatusChange[] => {
      const list = lists.get(batch?.statusListId ?? '');
      if (batch === undefined || list === undefined || batch.firstCounter === null) return [];
      const { tenantId } = tenant;
      const indices = this.ports.statusAllocator.indicesOf(tenantId, list, batch.firstCounter, batch.count);
      return indices.map((index) => ({ listId: list.id, index, status: REVOKED }));
    });
  }
}
