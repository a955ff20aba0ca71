import { SYSTEM } from '../../domain/audit/audit-entry.ts';
import { describeFallenWallets } from '../../domain/audit/describe-change.ts';
import type { Change } from '../../domain/changes/change.ts';
import type { SessionId } from '../../domain/shared/ids.ts';
import { Refusal } from '../../domain/shared/refusal.ts';
import type { StatusChange } from '../../domain/status-lists/status-list.ts';
import { type FollowedList, revokedFrom } from '../../domain/status-lists/wallet-status.ts';
import { needs } from '../needs.ts';
import type { Follower } from '../ports/followed-wallets.ts';
import { Log } from '../ports/log.ts';
import { StoreUnavailable } from '../ports/store.ts';
import { listsOfBatches } from '../status-lists/lists-of-batches.ts';
import { StatusAllocator } from '../status-lists/status-allocator.ts';
import type { SpokenList } from '../status-lists/verify-status.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { WORLD } from '../transactions/known.ts';
import { WalletProviderTrust } from './wallet-provider-trust.ts';

/** Lists that are fetched at the same time. */
const LISTS = 8;
/** Entries that one question to the database is about. */
const ENTRIES = 20_000;
/** Batches of credentials that are revoked in one transaction. */
const BATCHES = 200;
/** TS3 1.5 section 2.4.3: at least once in 24 hours, with time for a few that fail. */
const MAX_REST_MS = 12 * 3_600_000;
const MIN_REST_MS = 30_000;
/** After a failure, doubled each time. */
const FIRST_RETRY_MS = 60_000;
const MAX_RETRY_MS = 900_000;

const REVOKED = 1;

/** A list that is being compared, and how far that has come. */
type Pass = {
  readonly list: FollowedList;
  readonly configured: TenantConfiguration;
  readonly spoken: SpokenList;
  /** The next entry to look at. */
  from: number;
  /** How many entries the next question is about: fewer where many fell, since each is asked for again until none is left. */
  width: number;
  fallen: number;
};

export type FollowedStep = {
  /** Batches of credentials that were revoked. */
  readonly fallen: number;
  readonly mayBeMore: boolean;
};

/**
 * Revokes credentials whose wallet or key store its provider revoked (TS3 1.5 section 2.4.3). A list is fetched once for all
 * that follow it, and only entries that are revoked are looked for: what a pass costs grows with these and not with
 * the credentials that are out, and what was issued while it went on is found by the next one like everything else.
 */
export class FollowWallets extends needs({
  ...WORLD,
  walletProviderTrust: WalletProviderTrust,
  statusAllocator: StatusAllocator,
  log: Log,
}) {
  /** Lists that were fetched. A run may end in the middle of a long one; the next run goes on. */
  #passes: readonly Pass[] = [];
  #isWorking = false;

  /** Does a bounded part of what is due; nothing while it is at work already. */
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
      const due = await this.ports.store.maintenance.dueFollowedLists(now, LISTS);
      // A provider that does not answer holds up nobody else's lists.
      const begun = await Promise.all(due.map((list) => this.#begin(list, now)));
      this.#passes = begun.filter((pass) => pass !== undefined);
      return { fallen: 0, mayBeMore: due.length > 0 };
    }
    const [pass, ...others] = this.#passes;
    // What fails is begun anew.
    this.#passes = others;
    return pass === undefined ? { fallen: 0, mayBeMore: false } : this.#goOn(pass, now);
  }

  async #goOn(pass: Pass, now: Date): Promise<FollowedStep> {
    const { maintenance } = this.ports.store;
    const { bytes, bits } = pass.spoken;
    const { width } = pass;
    const revoked = revokedFrom(bytes, bits, pass.from, width);
    const found = revoked.length === 0 ? [] : await maintenance.followers(pass.list, revoked, BATCHES);
    if (found.length > 0) await this.#revoke(pass, found);
    pass.fallen += found.length;
    if (found.length === BATCHES) pass.width = Math.max(Math.ceil(width / 4), BATCHES);
    else {
      pass.from = (revoked.at(-1) ?? 0) + 1;
      pass.width = Math.min(width * 2, ENTRIES);
    }
    if (revoked.length === width || found.length === BATCHES) this.#passes = [pass, ...this.#passes];
    else await this.#end(pass, now);
    return { fallen: found.length, mayBeMore: true };
  }

  /** Fetches a list. @returns undefined where it cannot be had. */
  async #begin(list: FollowedList, now: Date): Promise<Pass | undefined> {
    const { tenantConfigurations, walletProviderTrust } = this.ports;
    try {
      const configured = await tenantConfigurations.stored(list.tenantId);
      if (configured === undefined) throw new Refusal('status_unavailable', 'the tenant is gone');
      const notBefore = new Date(now.getTime() - MAX_REST_MS);
      const spoken = await walletProviderTrust.followedList(configured, list, notBefore);
      return { list, configured, spoken, from: 0, width: ENTRIES, fallen: 0 };
    } catch (error) {
      if (error instanceof StoreUnavailable) throw error;
      // One that nobody foresaw, such as a configuration that does not open, holds up nobody else's lists either.
      if (!(error instanceof Refusal)) this.ports.log.error('a list that credentials follow', { tenantId: list.tenantId }, error);
      const refusal = error instanceof Refusal ? error : new Refusal('status_unavailable', 'an unexpected failure, see the log');
      await this.#fail(list, refusal, now);
      return undefined;
    }
  }

  /** Nobody is revoked for a list that cannot be had; it is tried again, and stands in `/health` and `/cache/stats`. */
  async #fail(list: FollowedList, { message: reason }: Refusal, now: Date): Promise<void> {
    const { store, log } = this.ports;
    const failures = list.failure?.count ?? 0;
    const retryAt = new Date(now.getTime() + Math.min(FIRST_RETRY_MS * 2 ** failures, MAX_RETRY_MS));
    await store.maintenance.noteFollowedList(list, now, retryAt, reason);
    log.warn('a status list that credentials follow cannot be checked, and none of them is revoked', {
      tenantId: list.tenantId,
      list: list.uri,
      reason,
      since: (list.failure?.since ?? now).toISOString(),
    });
  }

  async #end({ list, spoken, fallen }: Pass, now: Date): Promise<void> {
    const { store, log } = this.ports;
    const rest = Math.max(spoken.freshUntil.getTime(), now.getTime() + MIN_REST_MS);
    const nextAt = new Date(Math.min(rest, now.getTime() + MAX_REST_MS));
    await store.maintenance.noteFollowedList(list, now, nextAt);
    if (list.failure !== null)
      log.info('a status list that credentials follow can be checked again', { tenantId: list.tenantId, list: list.uri });
    if (fallen > 0) log.warn('credentials were revoked with their wallets', { tenantId: list.tenantId, list: list.uri, batches: fallen });
  }

  async #revoke({ list, configured }: Pass, followers: readonly Follower[]): Promise<void> {
    const { store, tenantConfigurations, clock } = this.ports;
    const now = clock.now();
    const statuses = await this.#changesOf(configured, followers);
    if (statuses.length > 0) {
      const sessions = [...new Set(followers.map(({ sessionId }): SessionId => sessionId))];
      const told = describeFallenWallets(list.uri, statuses.length, sessions);
      const change: Change = { statuses, audit: { by: SYSTEM, change: told } };
      const committed = await store.commit(list.tenantId, change, now);
      if (!committed.done) throw new Error(`credentials could not be revoked: ${committed.part}`);
      tenantConfigurations.committed(list.tenantId, change, committed);
    }
    await store.maintenance.fall(list, followers, now);
  }

  async #changesOf(configured: TenantConfiguration, followers: readonly Follower[]): Promise<readonly StatusChange[]> {
    const batches = followers.flatMap(({ batch }) => batch ?? []);
    const lists = await listsOfBatches(this.ports.store, configured, batches);
    return followers.flatMap(({ batch }): StatusChange[] => {
      const list = lists.get(batch?.statusListId ?? '');
      if (batch === undefined || list === undefined || batch.firstCounter === null) return [];
      const { tenantId } = configured;
      const indices = this.ports.statusAllocator.indicesOf(tenantId, list, batch.firstCounter, batch.count);
      return indices.map((index) => ({ listId: list.id, index, status: REVOKED }));
    });
  }
}
