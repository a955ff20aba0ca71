import type { Change, ChangePart, CommitResult } from '../../domain/changes/change.ts';
import type { Grant } from '../../domain/oauth/grant.ts';
import { OPEN_STATUSES, type Session, type SessionRequest } from '../../domain/sessions/session.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { PublicId, SessionId, TenantId } from '../../domain/shared/ids.ts';
import type { PortsOf } from '../needs.ts';
import { Clock } from '../ports/clock.ts';
import { Store, type TenantReads, type TenantState, type WithTenant } from '../ports/store.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { TenantConfigurations } from '../tenant-cache/tenant-configurations.ts';

export const TRANSACTION_PORTS = { store: Store, tenantConfigurations: TenantConfigurations, clock: Clock };
export type TransactionPorts = PortsOf<typeof TRANSACTION_PORTS>;

/**
 * The cached state of the tenant differs from the stored one. Nothing has been committed, so `attempt` tries again; outside of an
 * attempt the caller is asked to retry.
 */
export class OutdatedTenantError extends Failure {
  constructor() {
    super('unavailable', { message: 'the tenant is being changed; try again', retryAfterSeconds: 1 });
  }
}

/** Creates the failure for each part of a change whose expectation may fail. */
export type CommitFailures = { readonly [part in Exclude<ChangePart, 'uses'>]?: () => Failure } & {
  readonly uses?: (kind: Extract<CommitResult, { part: 'uses' }>['kind']) => Failure;
};

/** Admits requests for a tenant by its state. @throws Failure when it was removed or suspended, with a message for the kind of caller. */
export type AdmitTenant = (state: TenantState | undefined) => TenantConfiguration;

/** The state of a tenant and its sessions in one attempt. */
export class TenantTransaction {
  readonly tenant: TenantConfiguration;
  readonly now: Date;
  /** True after a commit that succeeded or may have succeeded: nothing may be repeated then. */
  hasCommitted = false;
  /** True if a session or a grant was taken from the cache. */
  usedCache = false;
  readonly #transactionPorts: TransactionPorts;
  /** True if the state was read from the store and not from the cache: there is no second attempt then. */
  readonly isStored: boolean;
  readonly #admit: AdmitTenant;

  constructor(ports: TransactionPorts, tenant: TenantConfiguration, isStored: boolean, admit: AdmitTenant) {
    this.#transactionPorts = ports;
    this.#admit = admit;
    this.tenant = tenant;
    this.isStored = isStored;
    this.now = ports.clock.now();
  }

  get tenantId(): TenantId {
    return this.tenant.tenantId;
  }

  get reads(): TenantReads {
    return this.#transactionPorts.store.read(this.tenantId);
  }

  /**
   * Awaits a value that was read together with the state of the tenant, and compares this state with that of the attempt.
   * @throws OutdatedTenantError if the states differ; Failure if the tenant was removed or suspended.
   */
  async confirm<T>(reading: WithTenant<T>): Promise<T & { readonly tenant: TenantState }> {
    const result = await reading;
    const isUpToDate = result !== undefined && this.tenant.isUpToDate(result.tenant);
    if (!this.isStored && !isUpToDate) throw new OutdatedTenantError();
    this.#admit(result?.tenant);
    if (result === undefined) throw new OutdatedTenantError();
    return result;
  }

  /** Returns the session from the cache of this process, if it is cached and `matches` returns true. */
  cachedSession(publicId: PublicId, matches: (session: Session) => boolean = () => true): Session | undefined {
    if (this.isStored) return undefined;
    const session = this.#transactionPorts.tenantConfigurations.sessionCache.session(this.tenantId, publicId);
    if (session === undefined || !matches(session)) return undefined;
    this.usedCache = true;
    return session;
  }

  cachedRequest(id: SessionId): SessionRequest | undefined {
    return this.#transactionPorts.tenantConfigurations.sessionCache.request(this.tenantId, id);
  }

  cacheSession(session: Session): Session {
    this.#transactionPorts.tenantConfigurations.sessionCache.setSession(session);
    return session;
  }

  /**
   * Returns the cached session if `matches` returns true for it, otherwise the stored one. Its request never changes and can be relied on;
   * its status only if a commit expects it.
   */
  async session(publicId: PublicId, matches?: (session: Session) => boolean): Promise<Session | undefined> {
    const cached = this.cachedSession(publicId, matches);
    if (cached !== undefined) return cached;
    const { session } = await this.confirm(this.reads.sessionByPublicId(publicId));
    return session && this.cacheSession(session);
  }

  /**
   * Returns the stored session, for an answer without a commit. If an open session is cached, only its mutable properties are read.
   */
  async currentSession(publicId: PublicId): Promise<Session | undefined> {
    const cached = this.cachedSession(publicId);
    if (cached !== undefined) {
      const { sessionState } = await this.confirm(this.reads.sessionState(publicId));
      if (sessionState !== undefined && OPEN_STATUSES.includes(sessionState.status)) return { ...cached, ...sessionState };
    }
    const { session } = await this.confirm(this.reads.sessionByPublicId(publicId));
    return session && this.cacheSession(session);
  }

  async grant(codeHash: string): Promise<Grant | undefined> {
    const { sessionCache } = this.#transactionPorts.tenantConfigurations;
    const cached = this.isStored ? undefined : sessionCache.grant(this.tenantId, codeHash);
    if (cached !== undefined) {
      this.usedCache = true;
      return cached;
    }
    return (await this.confirm(this.reads.grantByCode(codeHash))).grant;
  }

  /**
   * Like `commit`, for a change that may fail on its session without an error.
   * @returns 'session' if the session was not as expected; nothing was committed then.
   */
  async tryCommit(change: Change, failures: CommitFailures): Promise<'done' | 'session'> {
    // Created on demand: the error with its stack costs more than everything else here.
    let sessionFailure: Failure | undefined;
    const createSessionFailure = () => (sessionFailure = new Failure('conflict', 'the session has ended'));
    try {
      await this.commit(change, { ...failures, session: createSessionFailure });
      return 'done';
    } catch (error) {
      if (sessionFailure !== undefined && error === sessionFailure) return 'session';
      throw error;
    }
  }

  /**
   * Like `commit`, for a change that precedes work with this configuration. It expects that no part of the configuration has changed,
   * whether that part was read or not.
   */
  claim(change: Change, failures: CommitFailures = {}): Promise<Extract<CommitResult, { done: true }>> {
    const isAssumed = !this.hasCommitted && !this.isStored;
    return this.commit(isAssumed ? { revisions: this.tenant.state.revisions, ...change } : change, failures);
  }

  /**
   * Applies the change, on the condition that the tenant serves and is configured as this attempt assumes.
   * @param failures by the part of the change whose expectation failed.
   * @throws Failure of `failures` for the part that failed. Without one, `not_found` for the tenant and `conflict` for any other part.
   */
  async commit(change: Change, failures: CommitFailures = {}): Promise<Extract<CommitResult, { done: true }>> {
    const { store, tenantConfigurations } = this.#transactionPorts;
    const { sessionCache } = tenantConfigurations;
    const isFirst = !this.hasCommitted;
    const conditions = {
      ...(isFirst && { serving: true as const }),
      // A change that was decided on a state stored after the request arrived needs no condition on the revisions.
      ...(isFirst && !this.isStored && { revisions: this.tenant.revisions }),
    };
    // If no answer arrives, the outcome is unknown, so nothing is repeated.
    this.hasCommitted = true;
    const committed = await store.commit(
      this.tenantId,
      { ...conditions, ...change },
      isFirst ? this.now : this.#transactionPorts.clock.now(),
    );
    if (change.grant !== undefined) sessionCache.forgetGrant(this.tenantId, change.grant.id);
    if (!committed.done) {
      this.hasCommitted = !isFirst;
      if (change.session !== undefined) sessionCache.forgetSession(this.tenantId, change.session.id);
      const isOutdated = committed.part === 'tenant' || (committed.part !== 'uses' && this.usedCache);
      if (isFirst && !this.isStored && isOutdated) throw new OutdatedTenantError();
      throw failureOf(committed, failures);
    }
    tenantConfigurations.onCommitted(this.tenantId, change, committed);
    return committed;
  }
}

function failureOf(committed: Extract<CommitResult, { done: false }>, failures: CommitFailures): Failure {
  if (committed.part === 'uses') return failures.uses?.(committed.kind) ?? new Failure('conflict', 'this value was already used');
  const createFailure = failures[committed.part];
  if (createFailure !== undefined) return createFailure();
  if (committed.part === 'tenant') return new Failure('not_found', 'unknown address');
  return new Failure('conflict', 'this object was changed concurrently; read it again and repeat the change');
}
