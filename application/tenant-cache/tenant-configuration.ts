import type { Client } from '../../domain/clients/client.ts';
import { type CredentialConfiguration, effectiveCredential } from '../../domain/issuance/configuration.ts';
import {
  defaultIssuance,
  type EffectiveIssuance,
  effectiveIssuance,
  type IssuanceConfiguration,
  withDefaults,
} from '../../domain/issuance/issuance-configuration.ts';
import { markCompromisedLeaves, type RecordedKey } from '../../domain/keys/compromised-keys.ts';
import type { KeyChain } from '../../domain/keys/key-chain.ts';
import type { AuthorizationServer } from '../../domain/oauth/grant.ts';
import { issuerOf } from '../../domain/oauth/servers.ts';
import type { RegistrarConfiguration } from '../../domain/registrar/registrar-configuration.ts';
import { includesProfile, type Profile } from '../../domain/shared/finding.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { StatusList } from '../../domain/status-lists/status-list.ts';
import type { ConfiguredKind, Revisions } from '../../domain/tenants/revisions.ts';
import type { Tenant } from '../../domain/tenants/tenant.ts';
import type { PresentationConfiguration } from '../../domain/verification/configuration.ts';
import { INITIAL_WEBHOOK_SECRET, type WebhookSecret } from '../../domain/webhooks/webhook-secret.ts';
import type { Documents, Listing, TenantReader } from '../ports/repositories.ts';
import { issuerIdentifier, type ServiceSettings } from '../ports/settings.ts';
import type { Store, TenantState } from '../ports/store.ts';
import { ConfigurationCache, revisionsOf } from './configuration-cache.ts';

/**
 * A value and a weak reference to the document that it was derived from. The document is counted where it is cached itself; the derived
 * value is small and may outlive the document's removal or eviction.
 */
class DerivedFrom<T> {
  readonly value: T;
  readonly #document: WeakRef<object>;

  constructor(document: object, value: T) {
    this.value = value;
    this.#document = new WeakRef(document);
  }

  isFrom(document: object): boolean {
    return this.#document.deref() === document;
  }
}

type Ports = { readonly store: Store; readonly settings: Pick<ServiceSettings, 'publicUrl'> };

/**
 * A tenant's configuration in one request: read on demand and cached by the revision of its kind. The next request in every process sees
 * a change without a message, and a decision depends only on the kinds that it read.
 */
export class TenantConfiguration {
  readonly state: TenantState;
  /** Credential Issuer Identifier, also the issuer of the built-in authorization server. */
  readonly issuer: string;
  readonly #store: Store;
  readonly #cache: ConfigurationCache;
  readonly #kinds = new Set<ConfiguredKind>();
  readonly #pending = new Set<Set<ConfiguredKind>>();

  constructor({ store, settings }: Ports, state: TenantState, cache = new ConfigurationCache()) {
    this.#store = store;
    this.state = state;
    this.issuer = issuerIdentifier(settings, state.id);
    this.#cache = cache;
  }

  /** The revisions of the kinds that were read; a commit expects them unchanged. */
  get revisions(): Revisions {
    return revisionsOf(this.state, this.#kinds);
  }

  /** True if nothing of the configuration has changed, read or not. */
  isUpToDate({ revision, revisions, status }: TenantState): boolean {
    const { state } = this;
    return state.revision === revision && state.revisions.all === revisions.all && state.status === status;
  }

  get tenantId(): TenantId {
    return this.state.id;
  }

  /** Rules that the tenant committed itself to. */
  get profile(): Profile | null {
    this.dependOn(['tenant']);
    return this.state.profile;
  }

  issuerOf(server: AuthorizationServer): string {
    return issuerOf(server, this.issuer);
  }

  tenant(): Promise<Tenant> {
    return this.#readOnce('tenant', ({ tenant }) => tenant.get());
  }

  issuanceConfiguration(): Promise<IssuanceConfiguration | undefined> {
    return this.#readOnce('issuance', ({ issuanceConfiguration }) => issuanceConfiguration.find('default'));
  }

  /** Effective issuance configuration: stored values, defaults and requirements of the profile. */
  issuance(): Promise<EffectiveIssuance> {
    return this.derive('issuance/effective', async () => {
      const storedConfiguration = await this.issuanceConfiguration();
      const configuration =
        storedConfiguration === undefined ? defaultIssuance((await this.tenant()).name) : withDefaults(storedConfiguration);
      return effectiveIssuance(configuration, this.profile);
    });
  }

  /** @returns the configurations as written, before the profile adds its requirements. */
  async writtenCredentialConfigurations(): Promise<readonly CredentialConfiguration[]> {
    return (await this.credentialListing()).documents;
  }

  /** Serves `relist` in a transaction that needs all documents: only documents that changed meanwhile are read. */
  credentialListing(): Promise<Listing<CredentialConfiguration>> {
    return this.#listing('credentials', ({ credentialConfigurations }) => credentialConfigurations);
  }

  /** Effective credential configurations, with the requirements of the profile. */
  async credentialConfigurations(): Promise<readonly CredentialConfiguration[]> {
    const { profile } = this;
    const writtenConfigurations = await this.writtenCredentialConfigurations();
    return includesProfile(profile, 'eu') ? effectiveUnderEu(writtenConfigurations) : writtenConfigurations;
  }

  async credentialConfiguration(id: string): Promise<CredentialConfiguration | undefined> {
    return byId(await this.credentialConfigurations()).get(id);
  }

  async presentationConfigurations(): Promise<readonly PresentationConfiguration[]> {
    return (await this.presentationListing()).documents;
  }

  /** Serves `relist` in a transaction that needs all documents. */
  presentationListing(): Promise<Listing<PresentationConfiguration>> {
    return this.#listing('presentations', ({ presentationConfigurations }) => presentationConfigurations);
  }

  /** Reads one document: a request needs one of them, and a tenant may have thousands. */
  presentationConfiguration(id: string): Promise<PresentationConfiguration | undefined> {
    return this.derive(`presentation/${id}`, () => {
      this.dependOn(['presentations']);
      return this.#store.forTenant(this.tenantId, ({ presentationConfigurations }) => presentationConfigurations.find(id));
    });
  }

  registrarConfiguration(): Promise<RegistrarConfiguration | undefined> {
    return this.#readOnce('registrar', ({ registrarConfiguration }) => registrarConfiguration.find('default'));
  }

  /** Secret that signs calls of the tenant's backends. */
  async webhookSecret(): Promise<WebhookSecret> {
    const storedSecret = await this.#readOnce('webhookSecret', ({ webhookSecret }) => webhookSecret.find('default'));
    return storedSecret ?? INITIAL_WEBHOOK_SECRET;
  }

  /** Oldest first. */
  async keyChains(): Promise<readonly KeyChain[]> {
    const { documents: chains } = await this.#listing('keyChains', ({ keyChains }) => keyChains);
    return this.derive('keyChains/by-age', () =>
      markCompromisedLeaves(chains).toSorted((chain, otherChain) => chain.createdAt.getTime() - otherChain.createdAt.getTime()),
    );
  }

  /** Public keys that are recorded beyond the life of their key chains. */
  recordedKeys(): Promise<readonly RecordedKey[]> {
    return this.derive('recorded-keys', () => {
      this.dependOn(['keyChains']);
      return this.#store.forTenant(this.tenantId, ({ recordedKeys }) => recordedKeys.list());
    });
  }

  /** Newest first. `usedEntries` and tokens are those of the moment of reading. */
  statusLists(): Promise<readonly StatusList[]> {
    return this.#readOnce('statusLists', async ({ statusLists }) => (await statusLists.list()).reverse());
  }

  async client(clientId: string): Promise<Client | undefined> {
    const clients = await this.#readOnce('clients', async (repositories) => {
      const list = await repositories.clients.list();
      return new Map(list.map((client) => [client.clientId, client]));
    });
    return clients.get(clientId);
  }

  /** True if the tenant removed a client of this id, and created none since. */
  isRemovedClient(clientId: string): Promise<boolean> {
    return this.derive(`removed-client/${clientId}`, () =>
      this.#store.forService(({ clients }) => clients.isRemoved(this.tenantId, clientId)),
    );
  }

  /**
   * Computes a value that depends on this configuration alone, and caches it. A throw is not cached. Kinds that were read before
   * may have influenced the value, so it is valid only while all of them are unchanged.
   */
  derive<T>(name: string, compute: () => T): T {
    const cached = this.#find<T>(`derived ${name}`);
    return cached === undefined ? this.#compute(name, compute) : cached.value;
  }

  #compute<T>(name: string, compute: () => T): T {
    const kinds = new Set(this.#kinds);
    this.#pending.add(kinds);
    let value: T | undefined;
    try {
      value = compute();
    } finally {
      if (!(value instanceof Promise)) this.#pending.delete(kinds);
    }
    if (value instanceof Promise) {
      const pendingValue = value.finally(() => this.#pending.delete(kinds));
      this.#cache.set(this.state, `derived ${name}`, pendingValue, kinds);
      return pendingValue as T;
    }
    this.#cache.set(this.state, `derived ${name}`, value, kinds);
    return value;
  }

  /**
   * Like `derive`, for one document of this configuration. During a change a reader may already see the next version of the document:
   * a value is never used for another version, and the last one is cached.
   */
  deriveOf<T>(document: object, name: string, compute: () => T): T {
    const computeDerived = () => new DerivedFrom(document, compute());
    const cached = this.derive(name, computeDerived);
    return (cached.isFrom(document) ? cached : this.#compute(name, computeDerived)).value;
  }

  /** After a change of one document, only that one is read again. */
  #listing<T>(kind: ConfiguredKind, repositoryOf: (repositories: TenantReader) => Pick<Documents<T>, 'relist'>): Promise<Listing<T>> {
    const previousListing = this.#cache.latestValue(this.tenantId, kind) as Promise<Listing<T>> | undefined;
    return this.#readOnce(kind, async (repositories) => repositoryOf(repositories).relist(await previousListing));
  }

  #readOnce<T>(kind: ConfiguredKind, read: (repositories: TenantReader) => Promise<T>): Promise<T> {
    this.dependOn([kind]);
    const cached = this.#find<Promise<T>>(kind);
    if (cached !== undefined) return cached.value;
    const value = this.#store.forTenant(this.tenantId, read);
    this.#cache.set(this.state, kind, value, new Set([kind]));
    return value;
  }

  /** A cached value adds the kinds that it depends on to those of this request. */
  #find<T>(name: string): { readonly value: T } | undefined {
    const cached = this.#cache.find(this.state, name);
    if (cached === undefined) return undefined;
    this.dependOn(cached.kinds);
    if (!cached.isPending || !(cached.value instanceof Promise)) return { value: cached.value as T };
    const trackedValue = cached.value.then((value: unknown) => {
      this.dependOn(cached.kinds);
      return value;
    });
    return { value: trackedValue as T };
  }

  /** Adds kinds that later results depend on. */
  dependOn(kinds: Iterable<ConfiguredKind>): void {
    for (const kind of kinds) {
      this.#kinds.add(kind);
      for (const pendingKinds of this.#pending) pendingKinds.add(kind);
    }
  }
}

// Values derived from a list are cached beside it. The configuration cache would count the same documents again, and a few hundred
// of them would evict each other.
const BY_ID = new WeakMap<object, ReadonlyMap<string, unknown>>();
const UNDER_EU = new WeakMap<object, readonly CredentialConfiguration[]>();

function effectiveUnderEu(writtenConfigurations: readonly CredentialConfiguration[]): readonly CredentialConfiguration[] {
  const effective =
    UNDER_EU.get(writtenConfigurations) ?? writtenConfigurations.map((configuration) => effectiveCredential(configuration, 'eu'));
  UNDER_EU.set(writtenConfigurations, effective);
  return effective;
}

function byId<T extends { readonly id: string }>(list: readonly T[]): ReadonlyMap<string, T> {
  const cached = BY_ID.get(list) as ReadonlyMap<string, T> | undefined;
  const entries = cached ?? new Map(list.map((entry) => [entry.id, entry]));
  BY_ID.set(list, entries);
  return entries;
}
