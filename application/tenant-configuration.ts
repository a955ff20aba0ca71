import { LRUCache } from 'lru-cache';
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
import type { Tenant } from '../domain/tenants/tenant.ts';
import type { PresentationConfiguration } from '../domain/verification/configuration.ts';
import type { EventBus } from './ports/event-bus.ts';
import type { Store, TenantHead, TenantReader } from './ports/store.ts';

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
  readonly head: TenantHead;
  /** When the database said last that this is how the tenant stands. */
  confirmedAt = performance.now();
  readonly #store: Store;
  readonly #read = new LRUCache<string, Promise<unknown>>({ max: MAX_DERIVED });
  readonly #derived = new LRUCache<string, { value: unknown }>({ max: MAX_DERIVED });

  constructor(store: Store, head: TenantHead) {
    this.#store = store;
    this.head = head;
  }

  get tenantId(): TenantId {
    return this.head.id;
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

/** The views of all tenants, one per tenant, replaced when the revision moved on. */
export class TenantConfigurations {
  readonly #store: Store;
  readonly #views = new LRUCache<TenantId, TenantConfiguration>({ max: MAX_TENANTS });

  constructor(ports: { readonly store: Store; readonly eventBus: EventBus }) {
    this.#store = ports.store;
    ports.eventBus.subscribe((wakeUp) => {
      if (wakeUp.type === 'tenant') this.#views.delete(wakeUp.tenantId);
    });
  }

  of(head: TenantHead): TenantConfiguration {
    const known = this.#views.get(head.id);
    if (known?.head.revision === head.revision && known.head.status === head.status) {
      known.confirmedAt = performance.now();
      return known;
    }
    const configured = new TenantConfiguration(this.#store, head);
    this.#views.set(head.id, configured);
    return configured;
  }

  /**
   * A view that the database confirmed within the last second: for answers that give nothing away and change nothing,
   * such as a nonce, which every later step checks again.
   */
  recent(tenantId: TenantId): TenantConfiguration | undefined {
    const configured = this.#views.get(tenantId);
    return configured !== undefined && performance.now() - configured.confirmedAt < RECENT_MS
      ? configured
      : undefined;
  }

  /** The view as of the last revision seen here, if any; whoever uses it checks the revision afterwards. */
  latest(tenantId: TenantId): TenantConfiguration | undefined {
    return this.#views.get(tenantId);
  }

  /**
   * For wallets: an unknown and a suspended tenant look alike.
   * @throws Failure `not_found`.
   */
  ofWallet(head: TenantHead | undefined): TenantConfiguration {
    if (head === undefined || head.status !== 'active') throw new Failure('not_found', 'unknown address');
    return this.of(head);
  }
}
