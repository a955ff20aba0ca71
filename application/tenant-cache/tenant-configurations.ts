import { LRUCache } from 'lru-cache';
import type { Change, Committed } from '../../domain/changes/change.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { SERVING } from '../../domain/tenants/tenant.ts';
import { hasEnded, isServing } from '../../domain/tenants/tenant-end.ts';
import type { Clock } from '../ports/clock.ts';
import type { EventBus } from '../ports/event-bus.ts';
import type { ServiceSettings } from '../ports/settings.ts';
import type { Store, TenantState } from '../ports/store.ts';
import { boundedBytes } from './bounded.ts';
import { ConfigurationMemory } from './configuration-memory.ts';
import { Remembered } from './remembered.ts';
import { TenantConfiguration } from './tenant-configuration.ts';

type Ports = {
  readonly store: Store;
  readonly settings: Pick<ServiceSettings, 'publicUrl'>;
  readonly eventBus: EventBus;
  readonly clock: Clock;
};

/** Of the states of tenants that are remembered. */
const MAX_STATE_BYTES = 16 * 1024 * 1024;
/** A state has a number for each kind and nothing that a tenant writes. */
const STATE_BYTES = 1_200;
const RECENT_MS = 1_000;

/** How a tenant stood, and when the database said so; in milliseconds of this process. */
type SeenState = { readonly state: TenantState; readonly at: number };

/** All tenants as configured, and what is remembered of their sessions. */
export class TenantConfigurations {
  readonly remembered = new Remembered();
  readonly #ports: Ports;
  readonly #memory = new ConfigurationMemory();
  readonly #states = new LRUCache<TenantId, SeenState>(boundedBytes<SeenState>(MAX_STATE_BYTES, () => STATE_BYTES));

  constructor(ports: Ports) {
    this.#ports = ports;
    ports.eventBus.subscribe((wakeUp) => {
      if (wakeUp.type === 'tenant') this.#states.delete(wakeUp.tenantId);
    });
    ports.store.onRewind(() => {
      this.#states.clear();
      this.#memory.clear();
      this.remembered.clear();
    });
  }

  of(state: TenantState): TenantConfiguration {
    const seen = this.#states.get(state.id)?.state;
    // An answer may be overtaken by a later one.
    // One that was made anew under its id begins anywhere.
    const isSame = seen?.revisions.all === state.revisions.all;
    const newest = seen !== undefined && isSame && seen.revision > state.revision ? seen : state;
    this.#states.set(state.id, { state: newest, at: performance.now() });
    return new TenantConfiguration(this.#ports, state, this.#memory);
  }

  /** As it is stored, also a suspended one: what it published stays. @returns undefined where there is none. */
  async stored(tenantId: TenantId): Promise<TenantConfiguration | undefined> {
    const state = await this.#ports.store.read(tenantId).state();
    return state && this.of(state);
  }

  /** As it is stored, for wallets. @throws Failure `not_found`. */
  async serving(tenantId: TenantId): Promise<TenantConfiguration> {
    return this.ofWallet(await this.#ports.store.read(tenantId).state());
  }

  /**
   * As the database confirmed it within the last second: for answers that give nothing away and change nothing, such as a
   * nonce, which every later step checks again.
   * @throws Failure `not_found` for an unknown or suspended tenant.
   */
  async recent(tenantId: TenantId): Promise<TenantConfiguration> {
    const seen = this.#states.get(tenantId);
    const isRecent = seen?.state.status === SERVING && performance.now() - seen.at < RECENT_MS;
    return (isRecent && this.latest(tenantId)) || this.serving(tenantId);
  }

  /** Whether the database named this tenant, as far as this process remembers. Nothing is looked up. */
  isMet(tenantId: string): boolean {
    return this.#states.has(tenantId as TenantId);
  }

  /** As of the last revision seen here, if any; `attempt` finds out whether that is still the present one. */
  latest(tenantId: TenantId): TenantConfiguration | undefined {
    const seen = this.#states.get(tenantId);
    // Its time may be over since; what is stored says how it stands.
    if (seen === undefined || hasEnded(seen.state, this.#ports.clock.now())) return undefined;
    return new TenantConfiguration(this.#ports, seen.state, this.#memory);
  }

  /**
   * For wallets: a tenant that is unknown, suspended or over looks alike.
   * @throws Failure `not_found`.
   */
  ofWallet(state: TenantState | undefined): TenantConfiguration {
    if (state === undefined || !isServing(state, this.#ports.clock.now())) throw new Failure('not_found', 'unknown address');
    return this.of(state);
  }

  /**
   * For clients, who are told how their tenant stands.
   * @throws Failure `unauthenticated`, `forbidden`.
   */
  ofCaller(state: TenantState | undefined): TenantConfiguration {
    if (state === undefined) throw new Failure('unauthenticated', 'the client of this token does not exist any more');
    const configured = this.of(state);
    if (state.status !== SERVING) throw new Failure('forbidden', 'the tenant is suspended');
    if (hasEnded(state, this.#ports.clock.now())) throw new Failure('forbidden', 'the time of the tenant is over');
    return configured;
  }

  /** Remembers what a change made of sessions and grants, and wakes up the one who watches them. */
  committed(tenantId: TenantId, change: Change, { session }: Extract<Committed, { done: true }>): void {
    const { remembered } = this;
    const { eventBus } = this.#ports;
    const { opens, statuses = [] } = change;
    if (opens?.session !== undefined) remembered.keepSession(opens.session);
    if (opens?.grant !== undefined && opens.authorization === undefined) remembered.keepGrant(tenantId, opens.grant);
    if (change.session !== undefined && session !== undefined) {
      const { id, answers, outcome } = change.session;
      if (answers || outcome !== undefined) remembered.endSession(tenantId, id);
      else if (session.moved) remembered.move(tenantId, id, session.status, session.version);
      if (session.moved) eventBus.publish({ type: 'session', tenantId, sessionId: id });
    }
    if (change.removes !== undefined) {
      remembered.forgetSession(tenantId, change.removes);
      eventBus.publish({ type: 'session', tenantId, sessionId: change.removes });
    }
    for (const listId of new Set(statuses.map((entry) => entry.listId))) eventBus.publish({ type: 'status-list', tenantId, listId });
  }
}
