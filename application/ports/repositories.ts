import type { Actor, AuditAction, AuditChange, AuditEntry, AuditKind } from '../../domain/audit/audit-entry.ts';
import type { AuditHead } from '../../domain/audit/chain.ts';
import type { Client } from '../../domain/clients/client.ts';
import type { RecordedKey } from '../../domain/keys/compromised-keys.ts';
import type { KeyChain } from '../../domain/keys/key-chain.ts';
import type { DocumentKind, EditedKind, RepositoryOf, StoredResource } from '../../domain/resources.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { StatusList } from '../../domain/status-lists/status-list.ts';
import type { Tenant } from '../../domain/tenants/tenant.ts';
import type { ListVersion, PublishedList } from '../../domain/trust-lists/published-list.ts';

/** The state that a writer expects (`If-Match`). */
export type Precondition = {
  readonly kind: EditedKind;
  readonly id: string;
  /** True if the stored document is the expected one; `stored` is undefined when there is none. */
  readonly holds: (stored: object | undefined) => boolean;
};

/**
 * The actor of a write, for the audit log: a transaction without one is read-only. A precondition of the caller is checked in the same
 * transaction, and nothing is written if it fails.
 */
export type WriteOptions = { readonly by: Actor | (Exclude<Actor, string> & { readonly precondition?: Precondition }) };

export function preconditionOf(writing: WriteOptions | undefined): Precondition | undefined {
  const by = writing?.by;
  return typeof by === 'object' && 'precondition' in by ? by.precondition : undefined;
}

export type TenantWriteOptions = WriteOptions & {
  /**
   * Serializes the transaction with all others of the tenant that set this, for writes that depend on other documents: a key chain, for
   * example, may be removed only while nothing refers to it.
   */
  readonly exclusive?: boolean;
};

/** Documents of one kind, ordered by id. */
export type Listing<T> = {
  readonly documents: readonly T[];
  /** Marks by id; a mark changes with each write. */
  readonly marks: ReadonlyMap<string, string>;
};

/** Documents of one kind, by their id within the tenant. */
export type Documents<T> = {
  /** @throws Failure `not_found`. */
  get(id: string): Promise<T>;
  find(id: string): Promise<T | undefined>;
  /** Ordered by id. */
  list(): Promise<T[]>;
  /**
   * Like `list`, but documents of `known` that were not written since are not read again.
   * @param previous an earlier result of any age.
   */
  relist(previous: Listing<T> | undefined): Promise<Listing<T>>;
  /** @throws Failure `conflict` when the id is taken. */
  add(document: T): Promise<void>;
  put(document: T): Promise<void>;
  /** @throws Failure `not_found`. */
  remove(id: string): Promise<void>;
};

/** The repositories of kinds that are stored as whole documents. */
export type DocumentRepositories = {
  readonly [Kind in DocumentKind as RepositoryOf<Kind>]: Documents<StoredResource<Kind>>;
};

/** A compromised public key, with a tenant that marked it. */
export type ReportedKey = { readonly tenantId: TenantId; readonly thumbprint: string };

/** Every write through these repositories raises the tenant's revision in the same transaction. */
export type TenantRepositories = DocumentRepositories & {
  readonly tenant: {
    get(): Promise<Tenant>;
    /** @throws Failure `conflict` when `tenant.version` is not the stored one. */
    save(tenant: Tenant): Promise<Tenant>;
  };
  readonly clients: {
    get(clientId: string): Promise<Client>;
    list(): Promise<Client[]>;
    /** @throws Failure `conflict` when the id is taken, also by another tenant. */
    add(client: Client): Promise<void>;
    /** @throws Failure `conflict` when `client.version` is not the stored one. */
    save(client: Client): Promise<Client>;
    /** The tenant remembers the id until a client of the same id is created. */
    remove(clientId: string): Promise<void>;
  };
  readonly statusLists: {
    get(id: string): Promise<StatusList>;
    list(): Promise<StatusList[]>;
    add(list: StatusList): Promise<void>;
    /**
     * Changes the credential configuration and the key chain of a list, and raises its version. One conditional statement, so that no
     * entry is allocated from a list that is about to change.
     * @param state with `unused`, only while no entry is allocated.
     * @returns undefined, with nothing changed, when one is.
     * @throws Failure `not_found`.
     */
    rebind(
      id: string,
      binding: Pick<StatusList, 'credentialConfigurationId' | 'keyChainId'>,
      state: { readonly unused: boolean },
    ): Promise<StatusList | undefined>;
    /**
     * Removes a list in one conditional statement, so that no entry is allocated from a list that is being removed.
     * @returns false, with nothing changed, when entries are allocated, or there is no such list.
     */
    removeUnused(id: string): Promise<boolean>;
  };
  /** Compromised public keys, and certificates of removed key chains. */
  readonly recordedKeys: { list(): Promise<RecordedKey[]>; put(key: RecordedKey): Promise<void> };
  readonly trustLists: TrustListRepository;
  /** Newest versions of external trust lists, see `recordListVersion`. */
  readonly seenReleases: { removeAll(): Promise<void> };
  readonly audit: AuditLog & {
    /** Adds an entry for an event that is not a write of these repositories, in the same transaction. */
    note(change: AuditChange): void;
  };
};

export type ServiceAuditLog = AuditLog & {
  /** The next tenant after `after`, in the order of the store, that exists or has a chain. */
  nextScope(after: string): Promise<TenantId | undefined>;
};

export type AuditLog = { list(query: AuditQuery): Promise<AuditEntry[]>; head(): Promise<AuditHead | undefined> };

export type AuditQuery = {
  readonly actor?: string;
  readonly kind?: AuditKind;
  readonly target?: string;
  readonly action?: AuditAction;
  readonly since?: Date;
  readonly until?: Date;
  /** Orders by sequence; newest first otherwise. */
  readonly ascending?: boolean;
  /** Sequence of the last entry of the previous page. */
  readonly after?: number;
  readonly limit: number;
};

type ReadMethod =
  | 'get'
  | 'find'
  | 'list'
  | 'relist'
  | 'listOf'
  | 'isRemoved'
  | 'lastNumber'
  | 'versions'
  | 'version'
  | 'head'
  | 'nextScope'
  | 'compromised';

type ReaderOf<Repositories> = {
  readonly [Name in keyof Repositories]: Pick<Repositories[Name], Extract<keyof Repositories[Name], ReadMethod>>;
};

/** The repositories without write methods. */
export type TenantReader = ReaderOf<TenantRepositories>;

export type ServiceReader = ReaderOf<ServiceRepositories>;

/** `after` is the number of the last version of the previous page. Newest first unless `ascending`. */
export type VersionPage = { readonly limit: number; readonly after?: number | undefined; readonly ascending?: boolean };

/** Trust lists that the tenant publishes. Writers run with `exclusive`. */
export type TrustListRepository = {
  /** @throws Failure `not_found`. */
  get(id: string): Promise<PublishedList>;
  find(id: string): Promise<PublishedList | undefined>;
  /** Ordered by id. */
  list(): Promise<PublishedList[]>;
  /** @throws Failure `conflict` when the id is taken. */
  add(list: PublishedList): Promise<void>;
  /**
   * Replaces the version `former` of a list, and keeps that one in the history.
   * @returns false, with nothing changed, when the list has another version by now or was removed.
   */
  replace(list: PublishedList, previousVersion: ListVersion): Promise<boolean>;
  /**
   * Removes a list with its history. The number of its last version remains, so that a list of the same id continues from there.
   * @returns as `replace`.
   */
  remove(lastVersion: ListVersion): Promise<boolean>;
  /** The highest number of any version of this id, also before the list was removed; 0 if there is none. */
  lastNumber(id: string): Promise<number>;
  /** Replaced versions, at most `MAX_VERSIONS`. */
  versions(id: string, page?: VersionPage): Promise<ListVersion[]>;
  /** @throws Failure `not_found`. */
  version(id: string, versionId: string): Promise<ListVersion>;
};

export type InitialTenantData = { readonly keyChains: readonly KeyChain[]; readonly clients: readonly Client[] };

export type ServiceRepositories = {
  readonly tenants: {
    get(id: TenantId): Promise<Tenant>;
    find(id: TenantId): Promise<Tenant | undefined>;
    list(): Promise<Tenant[]>;
    /**
     * Adds a tenant together with its initial keys and clients, so that no tenant exists without keys.
     * @throws Failure `conflict` when its id, or that of a client, is taken.
     */
    add(tenant: Tenant, initialData?: InitialTenantData): Promise<void>;
    /**
     * Removes the tenant: none of its data can be found any more. Keys, clients and configuration are removed at once, large
     * tables by `removeRemainingRows`.
     */
    remove(id: TenantId): Promise<void>;
    /** Removes the tenant if its end date has passed, since that may have been changed meanwhile. @returns true if this call removed it. */
    removeEnded(id: TenantId, now: Date): Promise<boolean>;
  };
  readonly clients: {
    find(clientId: string): Promise<Client | undefined>;
    listOf(tenantId: TenantId): Promise<Client[]>;
    /**
     * True if the tenant removed a client of this id and has not created another one since, or if the client was not
     * written by the service itself.
     */
    isRemoved(tenantId: TenantId, clientId: string): Promise<boolean>;
    add(client: Client): Promise<void>;
    save(client: Client): Promise<Client>;
  };
  readonly recordedKeys: { compromised(): Promise<ReportedKey[]> };
  readonly audit: ServiceAuditLog & {
    /** Adds an entry for an event that is not a write of these repositories, in the same transaction. */
    note(change: AuditChange): void;
    /**
     * Records in the chains of the tenant and of the service that the entries of a tenant up to this one were pruned. Verification of the
     * remaining entries starts from the entry of the service.
     * @throws Failure `conflict` when there is no such entry any more.
     */
    prune(tenantId: TenantId, until: Pick<AuditEntry, 'sequence' | 'hash'>): Promise<void>;
  };
};
