import { LRUCache } from 'lru-cache';
import type { Change, CommitResult } from '../../domain/changes/change.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { SERVING } from '../../domain/tenants/tenant.ts';
import { hasEnded, isServing } from '../../domain/tenants/tenant-end.ts';
import type { Clock } from '../ports/clock.ts';
import type { EventBus } from '../ports/event-bus.ts';
import type { ServiceSettings } from '../ports/settings.ts';
import type { Store, TenantState } from '../ports/store.ts';
import { boundedBytes } from './cache-memory.ts';
import { ConfigurationCache } from './configuration-cache.ts';
import { SessionCache } from './session-cache.ts';
import { TenantConfiguration } from './tenant-configuration.ts';

type Ports = {
  readonly store: Store;
  readonly settings: Pick<ServiceSettings, 'publicUrl'>;
  readonly eventBus: EventBus;
  readonly clock: Clock;
};

const MAX_STATE_BYTES = 16 * 1024 * 1024;
/** A state has a number for each kind and no text of a tenant. */
const STATE_BYTES = 1_200;
const RECENT_MS = 1_000;

/** The last state that the database returned, and when, in milliseconds of this process. */
type CachedState = { readonly state: TenantState; readonly confirmedAt: number };

/** The configurations of all tenants, and the cache of their sessions. */
export class TenantConfigurations {
  readonly sessionCache = new SessionCache();
  readonly #ports: Ports;
  readonly #memory = new ConfigurationCache();
  readonly #states = new LRUCache<TenantId, CachedState>(boundedBytes<CachedState>(MAX_STATE_BYTES, () => STATE_BYTES));

  constructor(ports: Ports) {
    this.#ports = ports;
    ports.eventBus.subscribe((wakeUp) => {
      if (wakeUp.type === 'tenant') this.#states.delete(wakeUp.tenantId);
    });
    ports.store.onRewind(() => {
      this.#states.clear();
      this.#memory.clear();
      this.sessionCache.clear();
    });
  }

  forState(state: TenantState): TenantConfiguration {
    const cachedState = this.#states.get(state.id)?.state;
    // A slower read may return an older state. Revisions of a tenant that was created again under its id are not comparable.
    const isSame = cachedState?.revisions.all === state.revisions.all;
    const newest = cachedState !== undefined && isSame && cachedState.revision > state.revision ? cachedState : state;
    this.#states.set(state.id, { state: newest, confirmedAt: performance.now() });
    return new TenantConfiguration(this.#ports, state, this.#memory);
  }

  /** The stored state, also of a suspended tenant, whose publications stay available. @returns undefined for an unknown tenant. */
  async readStored(tenantId: TenantId): Promise<TenantConfiguration | undefined> {
    const state = await this.#ports.store.read(tenantId).state();
    return state && this.forState(state);
  }

  /** The stored state, for wallets. @throws Failure `not_found`. */
  async readServing(tenantId: TenantId): Promise<TenantConfiguration> {
    return this.admitWallet(await this.#ports.store.read(tenantId).state());
  }

  /**
   * The state that the database confirmed within the last second: for answers that reveal and change nothing, such as a
   * nonce, which every later step checks again.
   * @throws Failure `not_found` for an unknown or suspended tenant.
   */
  async readRecent(tenantId: TenantId): Promise<TenantConfiguration> {
    const cached = this.#states.get(tenantId);
    const isRecent = cached?.state.status === SERVING && performance.now() - cached.confirmedAt < RECENT_MS;
    return (isRecent && this.latest(tenantId)) || this.readServing(tenantId);
  }

  /** True if the state of this tenant is cached. Makes no read. */
  isCached(tenantId: string): boolean {
    return this.#states.has(tenantId as TenantId);
  }

  /** The last state seen by this process, if any; `attempt` finds out if it is still current. */
  latest(tenantId: TenantId): TenantConfiguration | undefined {
    const cached = this.#states.get(tenantId);
    // The tenant may have reached its end date since; the stored state decides.
    if (cached === undefined || hasEnded(cached.state, this.#ports.clock.now())) return undefined;
    return new TenantConfiguration(this.#ports, cached.state, this.#memory);
  }

  /**
   * Admits wallets: unknown, suspended and ended tenants get the same answer.
   * @throws Failure `not_found`.
   */
  admitWallet(state: TenantState | undefined): TenantConfiguration {
    if (state === undefined || !isServing(state, this.#ports.clock.now())) throw new Failure('not_found', 'unknown address');
    return this.forState(state);
  }

  /**
   * Admits clients, who are told the status of their tenant.
   * @throws Failure `unauthenticated`, `forbidden`.
   */
  admitClient(state: TenantState | undefined): TenantConfiguration {
    if (state === undefined) throw new Failure('unauthenticated', 'the client of this token no longer exists');
    const tenant = this.forState(state);
    if (state.status !== SERVING) throw new Failure('forbidden', 'the tenant is suspended');
    if (hasEnded(state, this.#ports.clock.now())) throw new Failure('forbidden', 'the end date of the tenant has passed');
    return tenant;
  }

  /** Updates the session cache after a commit and wakes up watchers. */
  onCommitted(tenantId: TenantId, change: Change, { session }: Extract<CommitResult, { done: true }>): void {
    const { sessionCache } = this;
    const { eventBus } = this.#ports;
    const { opens, statuses = [] } = change;
    if (opens?.session !== undefined) sessionCache.setSession(opens.session);
    if (opens?.grant !== undefined && opens.authorization === undefined) sessionCache.setGrant(tenantId, opens.grant);
    if (change.session !== undefined && session !== undefined) {
      const { id, answers, outcome } = change.session;
      if (answers || outcome !== undefined) sessionCache.endSession(tenantId, id);
      else if (session.moved) sessionCache.updateStatus(tenantId, id, session.status, session.version);
      if (session.moved) eventBus.publish({ type: 'session', tenantId, sessionId: id });
    }
    if (change.removes !== undefined) {
      sessionCache.forgetSession(tenantId, change.removes);
      eventBus.publish({ type: 'session', tenantId, sessionId: change.removes });
    }
    for (const listId of new Set(statuses.map((entry) => entry.listId))) eventBus.publish({ type: 'status-list', tenantId, listId });
  }
}
