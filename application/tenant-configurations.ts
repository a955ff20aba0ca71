import { LRUCache } from 'lru-cache';
import type { Change, Committed } from '../domain/changes/change.ts';
import { Failure } from '../domain/shared/failure.ts';
import type { TenantId } from '../domain/shared/ids.ts';
import { SERVING } from '../domain/tenants/tenant.ts';
import { bounded } from './bounded.ts';
import { ConfigurationMemory } from './configuration-memory.ts';
import type { EventBus } from './ports/event-bus.ts';
import type { Store, TenantState } from './ports/store.ts';
import { Remembered } from './remembered.ts';
import { TenantConfiguration } from './tenant-configuration.ts';

/** Tenants whose state is remembered. */
const MAX_TENANTS = 10_000;
const RECENT_MS = 1_000;

/** How a tenant stood, and when the database said so; in milliseconds of this process. */
type SeenState = { readonly state: TenantState; readonly at: number };

/** All tenants as configured, and what is remembered of their sessions. */
export class TenantConfigurations {
  readonly remembered = new Remembered();
  readonly #store: Store;
  readonly #eventBus: EventBus;
  readonly #memory = new ConfigurationMemory();
  readonly #states = new LRUCache<TenantId, SeenState>({ ...bounded(MAX_TENANTS) });

  constructor(ports: { readonly store: Store; readonly eventBus: EventBus }) {
    this.#store = ports.store;
    this.#eventBus = ports.eventBus;
    ports.eventBus.subscribe((wakeUp) => {
      if (wakeUp.type === 'tenant') this.#states.delete(wakeUp.tenantId);
    });
  }

  of(state: TenantState): TenantConfiguration {
    const seen = this.#states.get(state.id)?.state;
    // An answer may be overtaken by a later one.
    // One that was made anew under its id begins anywhere.
    const isSame = seen?.revisions.all === state.revisions.all;
    const newest = seen !== undefined && isSame && seen.revision > state.revision ? seen : state;
    this.#states.set(state.id, { state: newest, at: performance.now() });
    return new TenantConfiguration(this.#store, state, this.#memory);
  }

  /**
   * As the database confirmed it within the last second: for answers that give nothing away and change nothing, such as a
   * nonce, which every later step checks again.
   */
  recent(tenantId: TenantId): TenantConfiguration | undefined {
    const seen = this.#states.get(tenantId);
    return seen !== undefined && performance.now() - seen.at < RECENT_MS ? this.latest(tenantId) : undefined;
  }

  /** As of the last revision seen here, if any; `attempt` finds out whether that is still the present one. */
  latest(tenantId: TenantId): TenantConfiguration | undefined {
    const seen = this.#states.get(tenantId);
    return seen && new TenantConfiguration(this.#store, seen.state, this.#memory);
  }

  /**
   * For wallets: an unknown and a suspended tenant look alike.
   * @throws Failure `not_found`.
   */
  ofWallet(state: TenantState | undefined): TenantConfiguration {
    if (state === undefined || state.status !== SERVING) throw new Failure('not_found', 'unknown address');
    return this.of(state);
  }

  /**
   * For clients, who are told how their tenant stands.
   * @throws Failure `unauthenticated`, `forbidden`.
   */
  ofCaller(state: TenantState | undefined): TenantConfiguration {
    if (state === undefined)
      throw new Failure('unauthenticated', 'the client of this token does not exist any more');
    const configured = this.of(state);
    if (state.status !== SERVING) throw new Failure('forbidden', 'the tenant is suspended');
    return configured;
  }

  /** Remembers what a change made of sessions and grants, and wakes up the one who watches them. */
  committed(tenantId: TenantId, change: Change, { session }: Extract<Committed, { done: true }>): void {
    const { remembered } = this;
    const { opens, statuses = [] } = change;
    if (opens?.session !== undefined) remembered.keepSession(opens.session);
    if (opens?.grant !== undefined && opens.authorization === undefined)
      remembered.keepGrant(tenantId, opens.grant);
    if (change.session !== undefined && session !== undefined) {
      const { id, answers, outcome } = change.session;
      if (answers || outcome !== undefined) remembered.forgetSession(tenantId, id);
      else if (session.moved) remembered.move(tenantId, id, session.status, session.version);
      if (session.moved) this.#eventBus.publish({ type: 'session', tenantId, sessionId: id });
    }
    if (change.removes !== undefined) {
      remembered.forgetSession(tenantId, change.removes);
      this.#eventBus.publish({ type: 'session', tenantId, sessionId: change.removes });
    }
    for (const listId of new Set(statuses.map((entry) => entry.listId))) {
      this.#eventBus.publish({ type: 'status-list', tenantId, listId });
    }
  }
}
