import { LRUCache } from 'lru-cache';
import type { Change, Committed } from '../domain/change.ts';
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
import type { Revisions } from '../domain/tenants/revisions.ts';
import { SERVING, type Tenant } from '../domain/tenants/tenant.ts';
import { type PresentationConfiguration, withLaterDefaults } from '../domain/verification/configuration.ts';
import type { EventBus } from './ports/event-bus.ts';
import type { Store, TenantReader, TenantState } from './ports/store.ts';
import { Remembered } from './remembered.ts';

/** Tenants whose configuration is held in memory; the least recently used goes first. */
const MAX_TENANTS = 500;
const RECENT_MS = 1_000;
/** Values derived from one tenant's configuration (compiled queries, metadata, validators). */
const MAX_DERIVED = 2_000;

/**
 * A tenant's configuration as of one revision, read on demand and then kept. Whoever asks has read the revision a
 * moment ago, so a change is seen by the next request on every instance without a message.
 */
export class TenantConfiguration {
  readonly state: TenantState;
  /** When the database said last that the tenant stands like this. */
  confirmedAt = performance.now();
  readonly #store: Store;
  readonly #read = new LRUCache<string, Promise<unknown>>({ max: MAX_DERIVED });
  readonly #derived = new LRUCache<string, { value: unknown }>({ max: MAX_DERIVED });

  constructor(store: Store, state: TenantState) {
    this.#store = store;
    this.state = state;
  }

  /** What a decision that rests on this configuration assumes. */
  get revisions(): Revisions {
    return this.state.revisions;
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
    return this.#once('presentations', async ({ presentationConfigurations }) =>
      (await presentationConfigurations.list()).map(withLaterDefaults),
    );
  }

  async presentationConfiguration(id: string): Promise<PresentationConfiguration | undefined> {
    return (await this.#byId('presentations', () => this.presentationConfigurations())).get(id);
  }

  registrarConfiguration(): Promise<RegistrarConfiguration | undefined> {
    return this.#once('registrar', ({ registrarConfiguration }) => registrarConfiguration.find('default'));
  }

  keyChains(): Promise<readonly KeyChain[]> {
    return this.#once('key-chains', async ({ keyChains }) => {
      const chains = await keyChains.list();
      return chains.sort((one, other) => one.createdAt.getTime() - other.createdAt.getTime());
    });
  }

  /** Newest first. `usedEntries` and tokens are those of the moment of reading. */
  statusLists(): Promise<readonly StatusList[]> {
    return this.#once('status-lists', async ({ statusLists }) => (await statusLists.list()).reverse());
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

  /** Computes a value that depends on this configuration alone once. A throw is not remembered. */
  derive<T>(key: string, compute: () => T): T {
    const known = this.#derived.get(key);
    if (known !== undefined) return known.value as T;
    const value = compute();
    this.#derived.set(key, { value });
    if (value instanceof Promise) value.catch(() => this.#derived.delete(key));
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

  #once<T>(key: string, read: (repositories: TenantReader) => Promise<T>): Promise<T> {
    const known = this.#read.get(key);
    if (known !== undefined) return known as Promise<T>;
    const value = this.#store.forTenant(this.tenantId, read);
    this.#read.set(key, value);
    value.catch(() => this.#read.delete(key));
    return value;
  }
}

/** All tenants as configured, one each, replaced when the revision moved on; and what is remembered of their sessions. */
export class TenantConfigurations {
  readonly remembered = new Remembered();
  readonly #store: Store;
  readonly #eventBus: EventBus;
  readonly #all = new LRUCache<TenantId, TenantConfiguration>({ max: MAX_TENANTS });

  constructor(ports: { readonly store: Store; readonly eventBus: EventBus }) {
    this.#store = ports.store;
    this.#eventBus = ports.eventBus;
    ports.eventBus.subscribe((wakeUp) => {
      if (wakeUp.type === 'tenant') this.#all.delete(wakeUp.tenantId);
    });
  }

  of(state: TenantState): TenantConfiguration {
    const known = this.#all.get(state.id);
    if (known?.state.revision === state.revision && known.state.status === state.status) {
      known.confirmedAt = performance.now();
      return known;
    }
    const configured = new TenantConfiguration(this.#store, state);
    this.#all.set(state.id, configured);
    return configured;
  }

  /**
   * As the database confirmed it within the last second: for answers that give nothing away and change nothing, such as a
   * nonce, which every later step checks again.
   */
  recent(tenantId: TenantId): TenantConfiguration | undefined {
    const known = this.#all.get(tenantId);
    return known !== undefined && performance.now() - known.confirmedAt < RECENT_MS ? known : undefined;
  }

  /** As of the last revision seen here, if any; `attempt` finds out whether that is still the present one. */
  latest(tenantId: TenantId): TenantConfiguration | undefined {
    return this.#all.get(tenantId);
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
