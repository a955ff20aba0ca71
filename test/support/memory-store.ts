import { MasterCipher } from '../../adapters/crypto/cipher.ts';
import { OrmStore } from '../../adapters/persistence/orm/orm-store.ts';
import type { Cipher } from '../../application/ports/cipher.ts';
import {
  type Chores,
  type ListKeeping,
  type ServiceReader,
  type ServiceRepositories,
  Store,
  type TenantReader,
  type TenantReads,
  type TenantRepositories,
  type TenantWriting,
  type Writing,
} from '../../application/ports/store.ts';
import type { Change, Committed } from '../../domain/changes/change.ts';
import type { TenantId } from '../../domain/shared/ids.ts';

/** The store on `sqlite::memory:`, opened at its first use, so that a world of ports can be made in one expression. */
export class MemoryStore extends Store {
  readonly #cipher: Cipher;
  #opening: Promise<OrmStore> | undefined;

  constructor(cipher: Cipher = new MasterCipher({ masterSecrets: ['a master secret of decent length'] })) {
    super();
    this.#cipher = cipher;
  }

  #opened(): Promise<OrmStore> {
    this.#opening ??= OrmStore.open({ url: 'sqlite::memory:', poolSize: 2 }, this.#cipher);
    return this.#opening;
  }

  override forTenant<T>(tenantId: TenantId, work: (own: TenantReader) => Promise<T>): Promise<T>;
  override forTenant<T>(
    tenantId: TenantId,
    work: (own: TenantRepositories) => Promise<T>,
    writing: TenantWriting,
  ): Promise<T>;
  override async forTenant<T>(
    tenantId: TenantId,
    work: (own: TenantRepositories) => Promise<T>,
    writing?: TenantWriting,
  ): Promise<T> {
    const store = await this.#opened();
    return writing === undefined
      ? store.forTenant(tenantId, work as (own: TenantReader) => Promise<T>)
      : store.forTenant(tenantId, work, writing);
  }

  override forService<T>(work: (all: ServiceReader) => Promise<T>): Promise<T>;
  override forService<T>(work: (all: ServiceRepositories) => Promise<T>, writing: Writing): Promise<T>;
  override async forService<T>(
    work: (all: ServiceRepositories) => Promise<T>,
    writing?: Writing,
  ): Promise<T> {
    const store = await this.#opened();
    return writing === undefined
      ? store.forService(work as (all: ServiceReader) => Promise<T>)
      : store.forService(work, writing);
  }

  override async commit(tenantId: TenantId, change: Change, now: Date): Promise<Committed> {
    return (await this.#opened()).commit(tenantId, change, now);
  }

  override read(tenantId: TenantId): TenantReads {
    return this.#later(READS, (store) => store.read(tenantId));
  }

  override lists(tenantId: TenantId): ListKeeping {
    return this.#later(LISTS, (store) => store.lists(tenantId));
  }

  override readonly chores: Chores = this.#later(CHORES, (store) => store.chores);

  override async ping(): Promise<void> {
    await (await this.#opened()).ping();
  }

  /** Methods that wait for the store to be open. */
  #later<T extends object>(names: readonly (keyof T & string)[], choose: (store: OrmStore) => T): T {
    const call =
      (name: keyof T) =>
      async (...parameters: unknown[]) => {
        const target = choose(await this.#opened());
        return (target[name] as (...all: unknown[]) => unknown)(...parameters);
      };
    return Object.fromEntries(names.map((name) => [name, call(name)])) as T;
  }
}

const namesOf = <T>(names: Record<keyof T & string, true>) => Object.keys(names) as (keyof T & string)[];

const READS = namesOf<TenantReads>({
  state: true,
  session: true,
  sessionByPublicId: true,
  issuing: true,
  sessions: true,
  sessionsOfSubject: true,
  sessionVersions: true,
  sessionEvents: true,
  grantByCode: true,
  grant: true,
  authorization: true,
  deferred: true,
  deferredTransactions: true,
  issued: true,
  statusList: true,
  statusListVersions: true,
  statusEntries: true,
  trustList: true,
});
const LISTS = namesOf<ListKeeping>({ takeStatusRun: true, saveStatusToken: true, noteRelease: true });
const CHORES = namesOf<Chores>({
  time: true,
  expireSessions: true,
  forgetExpired: true,
  cleanUpSessions: true,
  expireDeferred: true,
  removeRemains: true,
  forgetPickUps: true,
  endingTrustLists: true,
  refreshStatistics: true,
  tryLease: true,
});
