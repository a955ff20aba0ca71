import type { Change, Committed, Part } from '../../domain/changes/change.ts';
import type { Grant } from '../../domain/oauth/grant.ts';
import { OPEN_STATUSES, type Session, type SessionRequest } from '../../domain/sessions/session.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { PublicId, SessionId, TenantId } from '../../domain/shared/ids.ts';
import type { PortsOf } from '../needs.ts';
import { Clock } from '../ports/clock.ts';
import { Store, type TenantReads, type TenantState, type WithTenant } from '../ports/store.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { TenantConfigurations } from '../tenant-cache/tenant-configurations.ts';

/** What an attempt works with. */
export const WORLD = { store: Store, tenantConfigurations: TenantConfigurations, clock: Clock };
export type World = PortsOf<typeof WORLD>;

/**
 * What this process remembered is not as it is stored. Nothing has happened, so `attempt` tries again; anywhere else the
 * caller is asked to.
 */
export class Outdated extends Failure {
  constructor() {
    super('unavailable', { message: 'the tenant is being changed; try again', retryAfterSeconds: 1 });
  }
}

/** How a use case refuses when a part of its change did not find what it expects. */
export type Refusals = { readonly [part in Exclude<Part, 'uses'>]?: () => Failure } & {
  readonly uses?: (kind: Extract<Committed, { part: 'uses' }>['kind']) => Failure;
};

/** @throws Failure when the tenant is gone or suspended, as it is said to those who ask. */
export type Entry = (state: TenantState | undefined) => TenantConfiguration;

/** A tenant as one attempt knows it. */
export class Known {
  readonly configured: TenantConfiguration;
  readonly now: Date;
  /** Whether anything was committed, or may have been: then nothing may be repeated. */
  hasCommitted = false;
  /** Whether a session or a grant was taken from memory. */
  restsOnMemory = false;
  readonly #world: World;
  /** Whether it is known from the store, and not from memory: then it is not tried again. */
  readonly isStored: boolean;
  readonly #enter: Entry;

  constructor(world: World, configured: TenantConfiguration, isStored: boolean, enter: Entry) {
    this.#world = world;
    this.#enter = enter;
    this.configured = configured;
    this.isStored = isStored;
    this.now = world.clock.now();
  }

  get tenantId(): TenantId {
    return this.configured.tenantId;
  }

  get reads(): TenantReads {
    return this.#world.store.read(this.tenantId);
  }

  /**
   * What was read together with the tenant, which must be the one that the attempt rests on.
   * @throws Failure when the tenant is gone or suspended.
   */
  async confirm<T>(reading: WithTenant<T>): Promise<T & { readonly tenant: TenantState }> {
    const read = await reading;
    const isAsRemembered = read !== undefined && this.configured.isWholly(read.tenant);
    if (!this.isStored && !isAsRemembered) throw new Outdated();
    this.#enter(read?.tenant);
    if (read === undefined) throw new Outdated();
    return read;
  }

  /** The session as this process saw it last, if it did and it `fits`. */
  remembered(publicId: PublicId, fits: (session: Session) => boolean = () => true): Session | undefined {
    if (this.isStored) return undefined;
    const session = this.#world.tenantConfigurations.remembered.session(this.tenantId, publicId);
    if (session === undefined || !fits(session)) return undefined;
    this.restsOnMemory = true;
    return session;
  }

  /** What the session was made by, if this process saw it. */
  requestOf(id: SessionId): SessionRequest | undefined {
    return this.#world.tenantConfigurations.remembered.request(this.tenantId, id);
  }

  remember(session: Session): Session {
    this.#world.tenantConfigurations.remembered.keepSession(session);
    return session;
  }

  /**
   * The session as this process saw it last, if it `fits`, else as it is stored. What never changes (its request) can
   * be relied on; its status only if a commit expects it.
   */
  async session(publicId: PublicId, fits?: (session: Session) => boolean): Promise<Session | undefined> {
    const known = this.remembered(publicId, fits);
    if (known !== undefined) return known;
    const { session } = await this.confirm(this.reads.sessionByPublicId(publicId));
    return session && this.remember(session);
  }

  /**
   * The session as it is stored, for an answer that nothing is committed with. Of an open one that this process saw before
   * only what may have changed is read.
   */
  async presentSession(publicId: PublicId): Promise<Session | undefined> {
    const known = this.remembered(publicId);
    if (known !== undefined) {
      const { standing } = await this.confirm(this.reads.sessionStanding(publicId));
      if (standing !== undefined && OPEN_STATUSES.includes(standing.status)) return { ...known, ...standing };
    }
    const { session } = await this.confirm(this.reads.sessionByPublicId(publicId));
    return session && this.remember(session);
  }

  /** The grant as this process saw it last, else as it is stored. */
  async grant(codeHash: string): Promise<Grant | undefined> {
    const { remembered } = this.#world.tenantConfigurations;
    const known = this.isStored ? undefined : remembered.grant(this.tenantId, codeHash);
    if (known !== undefined) {
      this.restsOnMemory = true;
      return known;
    }
    return (await this.confirm(this.reads.grantByCode(codeHash))).grant;
  }

  /**
   * Like `commit`, for a part whose refusal is not the end.
   * @returns the session's part when it did not find what it expected; then nothing has happened.
   */
  async tryCommit(change: Change, refusals: Refusals): Promise<'done' | 'session'> {
    // Made when it is wanted: a failure takes longer to make than all the rest of this.
    let refusal: Failure | undefined;
    const session = () => (refusal = new Failure('conflict', 'the session is over'));
    try {
      await this.commit(change, { ...refusals, session });
      return 'done';
    } catch (error) {
      if (refusal !== undefined && error === refusal) return 'session';
      throw error;
    }
  }

  /** Like `commit`, for what goes on afterwards by this configuration: none of it may have changed, whatever was looked at so far. */
  claim(change: Change, refusals: Refusals = {}): Promise<Extract<Committed, { done: true }>> {
    const isAssumed = !this.hasCommitted && !this.isStored;
    return this.commit(isAssumed ? { revisions: this.configured.state.revisions, ...change } : change, refusals);
  }

  /**
   * Applies the change, on the condition that the tenant serves and is configured as this attempt assumes.
   * @param refusals for parts that did not find what they expect.
   * @throws Failure of `refusals`; for the tenant `not_found`, for anything else `conflict`.
   */
  async commit(change: Change, refusals: Refusals = {}): Promise<Extract<Committed, { done: true }>> {
    const { store, tenantConfigurations } = this.#world;
    const { remembered } = tenantConfigurations;
    const isFirst = !this.hasCommitted;
    const assumed = {
      ...(isFirst && { serving: true as const }),
      // Decided on what was stored after the request came in, a change is as good as one that came a moment earlier.
      ...(isFirst && !this.isStored && { revisions: this.configured.revisions }),
    };
    // An answer that does not come leaves open what happened, so nothing is repeated then.
    this.hasCommitted = true;
    const committed = await store.commit(this.tenantId, { ...assumed, ...change }, isFirst ? this.now : this.#world.clock.now());
    if (change.grant !== undefined) remembered.forgetGrant(this.tenantId, change.grant.id);
    if (!committed.done) {
      this.hasCommitted = !isFirst;
      if (change.session !== undefined) remembered.forgetSession(this.tenantId, change.session.id);
      const isOld = committed.part === 'tenant' || (committed.part !== 'uses' && this.restsOnMemory);
      if (isFirst && !this.isStored && isOld) throw new Outdated();
      throw refusalOf(committed, refusals);
    }
    tenantConfigurations.committed(this.tenantId, change, committed);
    return committed;
  }
}

function refusalOf(committed: Extract<Committed, { done: false }>, refusals: Refusals): Failure {
  if (committed.part === 'uses') return refusals.uses?.(committed.kind) ?? new Failure('conflict', 'this was used before');
  const refusal = refusals[committed.part];
  if (refusal !== undefined) return refusal();
  if (committed.part === 'tenant') return new Failure('not_found', 'unknown address');
  return new Failure('conflict', 'this was changed meanwhile; read it again and repeat the change');
}
