import type { Actor, AuditAction, AuditChange, AuditEntry, AuditKind } from '../../domain/audit/audit-entry.ts';
import type { AuditHead } from '../../domain/audit/chain.ts';
import type { Client } from '../../domain/clients/client.ts';
import type { RecordedKey } from '../../domain/keys/compromised-keys.ts';
import type { KeyChain } from '../../domain/keys/key-chain.ts';
import type { DocumentKind, EditedKind, RepositoryOf, Stored } from '../../domain/resources.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { StatusList } from '../../domain/status-lists/status-list.ts';
import type { Tenant } from '../../domain/tenants/tenant.ts';
import type { ListVersion, PublishedList } from '../../domain/trust-lists/published-list.ts';

/** What a writer takes to be stored. */
export type Precondition = {
  readonly kind: EditedKind;
  readonly id: string;
  /** Whether that is what the writer goes out from; undefined when there is nothing. */
  readonly holds: (stored: object | undefined) => boolean;
};

/**
 * Who writes, for the audit log: without it a transaction only reads. A caller may bring a precondition; the store looks
 * in the same transaction whether it holds, and writes nothing otherwise.
 */
export type Writing = {
  readonly by: Actor | (Exclude<Actor, string> & { readonly precondition?: Precondition });
};

export function preconditionOf(writing: Writing | undefined): Precondition | undefined {
  const by = writing?.by;
  return typeof by === 'object' && 'precondition' in by ? by.precondition : undefined;
}

export type TenantWriting = Writing & {
  /**
   * After all others of the tenant that ask for it, for what reads one thing and writes another, such as a key chain
   * that goes only while nothing names it.
   */
  readonly alone?: boolean;
};

/** Documents of one kind as they were read, in order of their ids. */
export type Listing<T> = {
  readonly documents: readonly T[];
  /** By id: differs after each write. */
  readonly marks: ReadonlyMap<string, string>;
};

/** Documents of one kind, found by their id within the tenant. */
export type Documents<T> = {
  /** @throws Failure `not_found`. */
  get(id: string): Promise<T>;
  find(id: string): Promise<T | undefined>;
  /** In order of their ids. */
  list(): Promise<T[]>;
  /**
   * The same, where what `known` has and nobody has written since is not read again.
   * @param known what was read before, maybe long ago.
   */
  relist(known: Listing<T> | undefined): Promise<Listing<T>>;
  /** @throws Failure `conflict` when the id is taken. */
  add(document: T): Promise<void>;
  /** Creates or replaces. */
  put(document: T): Promise<void>;
  /** @throws Failure `not_found`. */
  remove(id: string): Promise<void>;
};

/** The repositories of kinds that are kept as a whole. */
export type DocumentRepositories = {
  readonly [Kind in DocumentKind as RepositoryOf<Kind>]: Documents<Stored<Kind>>;
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
    /** @throws Failure `conflict` when the id is taken, by whichever tenant. */
    add(client: Client): Promise<void>;
    /** @throws Failure `conflict` when `client.version` is not the stored one. */
    save(client: Client): Promise<Client>;
    /** The tenant remembers the id until a client is made of it anew. */
    remove(clientId: string): Promise<void>;
  };
  readonly statusLists: {
    get(id: string): Promise<StatusList>;
    list(): Promise<StatusList[]>;
    add(list: StatusList): Promise<void>;
    /**
     * Changes whose credentials a list serves and who signs it, and raises its version. One conditional statement, so
     * that nobody gets an entry of a list whose readers are about to change.
     * @param state with `unused`, only as long as no entry was handed out.
     * @returns undefined, with nothing changed, when one was.
     * @throws Failure `not_found`.
     */
    rebind(
      id: string,
      binding: Pick<StatusList, 'credentialConfigurationId' | 'keyChainId'>,
      state: { readonly unused: boolean },
    ): Promise<StatusList | undefined>;
    /**
     * One conditional statement, so that nobody gets an entry of a list that goes.
     * @returns false, with nothing changed, when entries were handed out, or there is no such list.
     */
    removeUnused(id: string): Promise<boolean>;
  };
  /** Public keys that are compromised, and certificates of removed key chains. */
  readonly recordedKeys: {
    list(): Promise<RecordedKey[]>;
    /** Creates or replaces. */
    put(key: RecordedKey): Promise<void>;
  };
  readonly trustLists: TrustListRepository;
  /** Releases of lists of others, see `noteRelease`. */
  readonly seenReleases: { removeAll(): Promise<void> };
  readonly audit: AuditLog & {
    /** Notes what is no write of these repositories, in the same transaction. */
    note(change: AuditChange): void;
  };
};

export type ServiceAuditLog = AuditLog & {
  /** The first tenant after `after`, in an order of the store's own, that is there or has a chain. */
  nextScope(after: string): Promise<TenantId | undefined>;
};

/** One chain of the audit log. */
export type AuditLog = { list(query: AuditQuery): Promise<AuditEntry[]>; head(): Promise<AuditHead | undefined> };

export type AuditQuery = {
  readonly actor?: string;
  readonly kind?: AuditKind;
  readonly target?: string;
  readonly action?: AuditAction;
  readonly since?: Date;
  /** Only entries before this time. */
  readonly until?: Date;
  /** By sequence; the newest first otherwise. */
  readonly ascending?: boolean;
  /** The sequence of the last entry of the page before. */
  readonly after?: number;
  readonly limit: number;
};

type Reading =
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
  readonly [Name in keyof Repositories]: Pick<Repositories[Name], Extract<keyof Repositories[Name], Reading>>;
};

/** The repositories without what writes. */
export type TenantReader = ReaderOf<TenantRepositories>;

export type ServiceReader = ReaderOf<ServiceRepositories>;

/** `after`: the number of the last release of the page before. The newest first unless `ascending`. */
export type VersionPage = { readonly limit: number; readonly after?: number | undefined; readonly ascending?: boolean };

/** Trust lists that the tenant publishes. Who writes one does so `alone`. */
export type TrustListRepository = {
  /** @throws Failure `not_found`. */
  get(id: string): Promise<PublishedList>;
  find(id: string): Promise<PublishedList | undefined>;
  /** In order of their ids. */
  list(): Promise<PublishedList[]>;
  /** @throws Failure `conflict` when the id is taken. */
  add(list: PublishedList): Promise<void>;
  /**
   * Puts a release in the place of the one that `former` is, and keeps that as a version.
   * @returns false, with nothing changed, when the list has another release by now, or is gone.
   */
  replace(list: PublishedList, former: ListVersion): Promise<boolean>;
  /**
   * Takes a list away with all that it was. Only the number of its last release stays, so that a list of the same id goes on from there.
   * @returns as `replace`.
   */
  remove(former: ListVersion): Promise<boolean>;
  /** The highest number that a release of this id ever had, also before the list was removed; 0 without any. */
  lastNumber(id: string): Promise<number>;
  /** Releases that were replaced, at most `MAX_VERSIONS`. */
  versions(id: string, page?: VersionPage): Promise<ListVersion[]>;
  /** @throws Failure `not_found`. */
  version(id: string, versionId: string): Promise<ListVersion>;
};

export type TenantBelongings = { readonly keyChains: readonly KeyChain[]; readonly clients: readonly Client[] };

export type ServiceRepositories = {
  readonly tenants: {
    get(id: TenantId): Promise<Tenant>;
    find(id: TenantId): Promise<Tenant | undefined>;
    list(): Promise<Tenant[]>;
    /**
     * Adds a tenant together with what it starts with, so that none exists without its keys.
     * @throws Failure `conflict` when its id, or that of a client, is taken.
     */
    add(tenant: Tenant, belongings?: TenantBelongings): Promise<void>;
    /**
     * Removes the tenant: nothing of it can be found any more. Its keys, clients and configuration go at once, what may be
     * much goes by `removeRemains`.
     */
    remove(id: TenantId): Promise<void>;
    /** The same if its time is over, which may have been changed meanwhile. @returns whether it went by this. */
    removeEnded(id: TenantId, now: Date): Promise<boolean>;
  };
  readonly clients: {
    find(clientId: string): Promise<Client | undefined>;
    listOf(tenantId: TenantId): Promise<Client[]>;
    /**
     * Whether the tenant removed a client of this id and has not made another one since, or something else than the
     * service wrote the client.
     */
    isRemoved(tenantId: TenantId, clientId: string): Promise<boolean>;
    add(client: Client): Promise<void>;
    save(client: Client): Promise<Client>;
  };
  /** The chain of the service. */
  /** Compromised public keys of all tenants. */
  readonly recordedKeys: { compromised(): Promise<ReportedKey[]> };
  readonly audit: ServiceAuditLog & {
    /** Notes what is no write of these repositories, in the same transaction. */
    note(change: AuditChange): void;
    /**
     * Says that the entries of a tenant up to this one are kept no longer, in its own chain and in that of the service, whose
     * entry is from where the rest is verified.
     * @throws Failure `conflict` when there is no such entry any more.
     */
    prune(tenantId: TenantId, until: Pick<AuditEntry, 'sequence' | 'hash'>): Promise<void>;
  };
};
