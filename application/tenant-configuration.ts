import { LRUCache } from 'lru-cache';
import type { Change, Committed } from '../domain/changes/change.ts';
import type { Client } from '../domain/clients/client.ts';
import type { CredentialConfiguration } from '../domain/issuance/configuration.ts';
import {
  defaultIssuance,
  type IssuanceConfiguration,
  type IssuanceConfigurationBody,
  withDefaults,
} from '../domain/issuance/issuance-configuration.ts';
import type { KeyChain } from '../domain/keys/key-chain.ts';
import type { RegistrarConfiguration } from '../domain/registrar/registrar-configuration.ts';
import { Failure } from '../domain/shared/failure.ts';
import type { TenantId } from '../domain/shared/ids.ts';
import type { StatusList } from '../domain/status-lists/status-list.ts';
import type { ConfiguredKind, Revisions } from '../domain/tenants/revisions.ts';
import { SERVING, type Tenant } from '../domain/tenants/tenant.ts';
import type { PresentationConfiguration } from '../domain/verification/configuration.ts';
import { bounded } from './bounded.ts';
import { ConfigurationMemory, revisionsOf } from './configuration-memory.ts';
import type { EventBus } from './ports/event-bus.ts';
import type { Store, TenantReader, TenantState } from './ports/store.ts';
import { Remembered } from './remembered.ts';

/** Tenants whose state is remembered. */
const MAX_TENANTS = 10_000;
const RECENT_MS = 1_000;

/**
 * A tenant's configuration as one request sees it: read on demand and kept by the revision of its kind. A change is seen
 * by the next request on every instance without a message, and a decision rests on the kinds that it looked at and on
 * nothing else.
 */
export class TenantConfiguration {
  readonly state: TenantState;
  readonly #store: Store;
  readonly #memory: ConfigurationMemory;
  /** The kinds that were looked at. */
  readonly #kinds = new Set<ConfiguredKind>();
  /** The same for each computation that is under way. */
  readonly #underWay = new Set<Set<ConfiguredKind>>();

  constructor(store: Store, state: TenantState, memory = new ConfigurationMemory()) {
    this.#store = store;
    this.state = state;
    this.#memory = memory;
  }

  /** What a decision that rests on this configuration assumes. */
  get revisions(): Revisions {
    return revisionsOf(this.state, this.#kinds);
  }

  /** Whether nothing of it has changed, looked at or not. */
  isWholly({ revision, revisions, status }: TenantState): boolean {
    const { state } = this;
    return state.revision === revision && state.revisions.all === revisions.all && state.status === status;
  }

  get tenantId(): TenantId {
    return this.state.id;
  }

  tenant(): Promise<Tenant> {
    return this.#once('tenant', ({ tenant }) => tenant.get());
  }

  issuanceConfiguration(): Promise<IssuanceConfiguration | undefined> {
    return this.#once('issuance', ({ issuanceConfiguration }) => issuanceConfiguration.find('default'));
  }

  /** How the tenant issues: as configured, or by the defaults. */
  issuance(): Promise<IssuanceConfigurationBody> {
    return this.derive('issuance/effective', async () => {
      const known = await this.issuanceConfiguration();
      return known === undefined ? defaultIssuance((await this.tenant()).name) : withDefaults(known);
    });
  }

  credentialConfigurations(): Promise<readonly CredentialConfiguration[]> {
    return this.#once('credentials', ({ credentialConfigurations }) => credentialConfigurations.list());
  }

  async credentialConfiguration(id: string): Promise<CredentialConfiguration | undefined> {
    return (await this.#byId('credentials', () => this.credentialConfigurations())).get(id);
  }

  presentationConfigurations(): Promise<readonly PresentationConfiguration[]> {
    return this.#once('presentations', ({ presentationConfigurations }) => presentationConfigurations.list());
  }

  async presentationConfiguration(id: string): Promise<PresentationConfiguration | undefined> {
    return (await this.#byId('presentations', () => this.presentationConfigurations())).get(id);
  }

  registrarConfiguration(): Promise<RegistrarConfiguration | undefined> {
    return this.#once('registrar', ({ registrarConfiguration }) => registrarConfiguration.find('default'));
  }

  keyChains(): Promise<readonly KeyChain[]> {
    return this.#once('keyChains', async ({ keyChains }) => {
      const chains = await keyChains.list();
      return chains.sort((one, other) => one.createdAt.getTime() - other.createdAt.getTime());
    });
  }

  /** Newest first. `usedEntries` and tokens are those of the moment of reading. */
  statusLists(): Promise<readonly StatusList[]> {
    return this.#once('statusLists', async ({ statusLists }) => (await statusLists.list()).reverse());
  }

  async client(clientId: string): Promise<Client | undefined> {
    const clients = await this.#once('clients', async (repositories) => {
      const list = await repositories.clients.list();
      return new Map(list.map((client) => [client.clientId, client]));
    });
    return clients.get(clientId);
  }

  /** Whether the tenant removed a client of this id, and made none anew. */
  isRemovedClient(clientId: string): Promise<boolean> {
    return this.derive(`removed-client/${clientId}`, () =>
      this.#store.forService(({ clients }) => clients.isRemoved(this.tenantId, clientId)),
    );
  }

  /**
   * Computes a value that depends on this configuration alone once. A throw is not remembered. What was looked at before
   * may have gone into it, so the value is good for as long as all of that is.
   */
  derive<T>(name: string, compute: () => T): T {
    const known = this.#find<T>(`derived ${name}`);
    if (known !== undefined) return known.value;
    const kinds = new Set(this.#kinds);
    this.#underWay.add(kinds);
    let value: T | undefined;
    try {
      value = compute();
    } finally {
      if (!(value instanceof Promise)) this.#underWay.delete(kinds);
    }
    if (value instanceof Promise) {
      const made = value.finally(() => this.#underWay.delete(kinds));
      this.#memory.keep(this.state, `derived ${name}`, made, kinds);
      return made as T;
    }
    this.#memory.keep(this.state, `derived ${name}`, value, kinds);
    return value;
  }

  #byId<T extends { readonly id: string }>(
    kind: string,
    list: () => Promise<readonly T[]>,
  ): Promise<Map<string, T>> {
    return this.derive(
      `${kind}/by-id`,
      async () => new Map((await list()).map((entry) => [entry.id, entry])),
    );
  }

  #once<T>(kind: ConfiguredKind, read: (repositories: TenantReader) => Promise<T>): Promise<T> {
    this.look([kind]);
    const known = this.#find<Promise<T>>(kind);
    if (known !== undefined) return known.value;
    const value = this.#store.forTenant(this.tenantId, read);
    this.#memory.keep(this.state, kind, value, new Set([kind]));
    return value;
  }

  /** Whoever takes a value rests on all that it rests on. */
  #find<T>(name: string): { readonly value: T } | undefined {
    const kept = this.#memory.find(this.state, name);
    if (kept === undefined) return undefined;
    this.look(kept.kinds);
    if (!kept.isUnderWay || !(kept.value instanceof Promise)) return { value: kept.value as T };
    const later = kept.value.then((value: unknown) => {
      this.look(kept.kinds);
      return value;
    });
    return { value: later as T };
  }

  /** What follows rests on these kinds. */
  look(kinds: Iterable<ConfiguredKind>): void {
    for (const kind of kinds) {
      this.#kinds.add(kind);
      for (const underWay of this.#underWay) underWay.add(kind);
    }
  }
}

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
    const newest = seen !== undefined && seen.revision > state.revision ? seen : state;
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

  /** Remembers what a change made of sessions and grants, and wakes up whoever watches them. */
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
