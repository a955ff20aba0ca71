import type { Client } from '../../domain/clients/client.ts';
import { type CredentialConfiguration, effectiveCredential } from '../../domain/issuance/configuration.ts';
import {
  defaultIssuance,
  type EffectiveIssuance,
  effectiveIssuance,
  type IssuanceConfiguration,
  withDefaults,
} from '../../domain/issuance/issuance-configuration.ts';
import { type RecordedKey, withCompromisedLeaves } from '../../domain/keys/compromised-keys.ts';
import type { KeyChain } from '../../domain/keys/key-chain.ts';
import type { AuthorizationServer } from '../../domain/oauth/grant.ts';
import { issuerOf } from '../../domain/oauth/servers.ts';
import type { RegistrarConfiguration } from '../../domain/registrar/registrar-configuration.ts';
import { holdsTo, type Profile } from '../../domain/shared/finding.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { StatusList } from '../../domain/status-lists/status-list.ts';
import type { ConfiguredKind, Revisions } from '../../domain/tenants/revisions.ts';
import type { Tenant } from '../../domain/tenants/tenant.ts';
import type { PresentationConfiguration } from '../../domain/verification/configuration.ts';
import { UNTOLD, type WebhookSecret } from '../../domain/webhooks/webhook-secret.ts';
import type { Documents, Listing, TenantReader } from '../ports/repositories.ts';
import { issuerIdentifier, type ServiceSettings } from '../ports/settings.ts';
import type { Store, TenantState } from '../ports/store.ts';
import { ConfigurationMemory, revisionsOf } from './configuration-memory.ts';

/**
 * A value, and the document that it was made of. That counts where it is kept itself, and is not held here: what is made of it
 * is small beside it, and may be kept for long after the document was removed or pushed out.
 */
class MadeOf<T> {
  readonly value: T;
  readonly #document: WeakRef<object>;

  constructor(document: object, value: T) {
    this.value = value;
    this.#document = new WeakRef(document);
  }

  isOf(document: object): boolean {
    return this.#document.deref() === document;
  }
}

type Ports = { readonly store: Store; readonly settings: Pick<ServiceSettings, 'publicUrl'> };

/**
 * A tenant's configuration as one request sees it: read on demand and kept by the revision of its kind. A change is seen by the next
 * request on every instance without a message, and a decision rests on the kinds that it looked at and on nothing else.
 */
export class TenantConfiguration {
  readonly state: TenantState;
  /** Its Credential Issuer Identifier, which is also the issuer of its built-in authorization server. */
  readonly issuer: string;
  readonly #store: Store;
  readonly #memory: ConfigurationMemory;
  /** The kinds that were looked at. */
  readonly #kinds = new Set<ConfiguredKind>();
  /** The same for each computation that is under way. */
  readonly #underWay = new Set<Set<ConfiguredKind>>();

  constructor({ store, settings }: Ports, state: TenantState, memory = new ConfigurationMemory()) {
    this.#store = store;
    this.state = state;
    this.issuer = issuerIdentifier(settings, state.id);
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

  /** Rules that the tenant bound itself to. */
  get profile(): Profile | null {
    this.look(['tenant']);
    return this.state.profile;
  }

  issuerOf(server: AuthorizationServer): string {
    return issuerOf(server, this.issuer);
  }

  tenant(): Promise<Tenant> {
    return this.#once('tenant', ({ tenant }) => tenant.get());
  }

  issuanceConfiguration(): Promise<IssuanceConfiguration | undefined> {
    return this.#once('issuance', ({ issuanceConfiguration }) => issuanceConfiguration.find('default'));
  }

  /** How the tenant issues: as configured, by the defaults, and as its profile demands. */
  issuance(): Promise<EffectiveIssuance> {
    return this.derive('issuance/effective', async () => {
      const known = await this.issuanceConfiguration();
      const own = known === undefined ? defaultIssuance((await this.tenant()).name) : withDefaults(known);
      return effectiveIssuance(own, this.profile);
    });
  }

  /** As they were written. */
  async writtenCredentialConfigurations(): Promise<readonly CredentialConfiguration[]> {
    return (await this.credentialListing()).documents;
  }

  /** The same, for `relist` in a transaction that needs all of them: it then reads those alone that changed meanwhile. */
  credentialListing(): Promise<Listing<CredentialConfiguration>> {
    return this.#listing('credentials', ({ credentialConfigurations }) => credentialConfigurations);
  }

  /** What the tenant issues: as configured, and as its profile demands. */
  async credentialConfigurations(): Promise<readonly CredentialConfiguration[]> {
    const { profile } = this;
    const written = await this.writtenCredentialConfigurations();
    return holdsTo(profile, 'eu') ? effectiveUnderEu(written) : written;
  }

  async credentialConfiguration(id: string): Promise<CredentialConfiguration | undefined> {
    return byId(await this.credentialConfigurations()).get(id);
  }

  async presentationConfigurations(): Promise<readonly PresentationConfiguration[]> {
    return (await this.presentationListing()).documents;
  }

  /** The same, for `relist` in a transaction that needs all of them. */
  presentationListing(): Promise<Listing<PresentationConfiguration>> {
    return this.#listing('presentations', ({ presentationConfigurations }) => presentationConfigurations);
  }

  /** Alone: a request needs one of them, and a tenant may have thousands. */
  presentationConfiguration(id: string): Promise<PresentationConfiguration | undefined> {
    return this.derive(`presentation/${id}`, () => {
      this.look(['presentations']);
      return this.#store.forTenant(this.tenantId, ({ presentationConfigurations }) => presentationConfigurations.find(id));
    });
  }

  registrarConfiguration(): Promise<RegistrarConfiguration | undefined> {
    return this.#once('registrar', ({ registrarConfiguration }) => registrarConfiguration.find('default'));
  }

  /** What calls of its backends are signed with. */
  async webhookSecret(): Promise<WebhookSecret> {
    const stored = await this.#once('webhookSecret', ({ webhookSecret }) => webhookSecret.find('default'));
    return stored ?? UNTOLD;
  }

  /** The oldest first. */
  async keyChains(): Promise<readonly KeyChain[]> {
    const { documents: chains } = await this.#listing('keyChains', ({ keyChains }) => keyChains);
    return this.derive('keyChains/by-age', () =>
      withCompromisedLeaves(chains).toSorted((one, other) => one.createdAt.getTime() - other.createdAt.getTime()),
    );
  }

  /** Public keys that the tenant remembers beyond the life of their key chains. */
  recordedKeys(): Promise<readonly RecordedKey[]> {
    return this.derive('recorded-keys', () => {
      this.look(['keyChains']);
      return this.#store.forTenant(this.tenantId, ({ recordedKeys }) => recordedKeys.list());
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
    return known === undefined ? this.#make(name, compute) : known.value;
  }

  #make<T>(name: string, compute: () => T): T {
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

  /**
   * Like `derive`, of one document of this configuration. Who reads while it changes may see the next version of a document
   * already: what was made of one is never taken for that of another, and the last one is kept.
   */
  deriveOf<T>(document: object, name: string, compute: () => T): T {
    const make = () => new MadeOf(document, compute());
    const kept = this.derive(name, make);
    return (kept.isOf(document) ? kept : this.#make(name, make)).value;
  }

  /** After a change of one of them, that one is read and the others stay. */
  #listing<T>(kind: ConfiguredKind, of: (repositories: TenantReader) => Pick<Documents<T>, 'relist'>): Promise<Listing<T>> {
    const former = this.#memory.former(this.tenantId, kind) as Promise<Listing<T>> | undefined;
    return this.#once(kind, async (repositories) => of(repositories).relist(await former));
  }

  #once<T>(kind: ConfiguredKind, read: (repositories: TenantReader) => Promise<T>): Promise<T> {
    this.look([kind]);
    const known = this.#find<Promise<T>>(kind);
    if (known !== undefined) return known.value;
    const value = this.#store.forTenant(this.tenantId, read);
    this.#memory.keep(this.state, kind, value, new Set([kind]));
    return value;
  }

  /** The one who takes a value rests on all that it rests on. */
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

// What follows from a list is kept beside it. In the memory of configurations it would count the same documents again, and with
// some hundred of them one would displace the other.
const BY_ID = new WeakMap<object, ReadonlyMap<string, unknown>>();
const UNDER_EU = new WeakMap<object, readonly CredentialConfiguration[]>();

function effectiveUnderEu(written: readonly CredentialConfiguration[]): readonly CredentialConfiguration[] {
  const effective = UNDER_EU.get(written) ?? written.map((one) => effectiveCredential(one, 'eu'));
  UNDER_EU.set(written, effective);
  return effective;
}

function byId<T extends { readonly id: string }>(list: readonly T[]): ReadonlyMap<string, T> {
  const known = BY_ID.get(list) as ReadonlyMap<string, T> | undefined;
  const found = known ?? new Map(list.map((entry) => [entry.id, entry]));
  BY_ID.set(list, found);
  return found;
}
