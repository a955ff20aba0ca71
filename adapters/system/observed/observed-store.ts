import { LRUCache } from 'lru-cache';
import type { Maintenance } from '../../../application/ports/maintenance.ts';
import type { ServiceRepositories, TenantRepositories, TenantWriteOptions, WriteOptions } from '../../../application/ports/repositories.ts';
import { type NotedSession, Store, type TenantLists, type TenantReads } from '../../../application/ports/store.ts';
import { boundedBytes } from '../../../application/tenant-cache/cache-memory.ts';
import type { Change, CommitResult } from '../../../domain/changes/change.ts';
import type { Session, SessionKind, SessionTransition } from '../../../domain/sessions/session.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { SessionId, TenantId } from '../../../domain/shared/ids.ts';
import type { Observer } from './observer.ts';

/** Cache of session kinds, because a change names a session by its id only. */
const MAX_KIND_BYTES = 8 * 1024 * 1024;
const KIND_BYTES = 16;

/** Store whose calls are traced and whose session changes are counted. */
export class ObservedStore extends Store {
  readonly #store: Store;
  readonly #observer: Observer;
  readonly #kinds = new LRUCache<SessionId, SessionKind>(boundedBytes<SessionKind>(MAX_KIND_BYTES, () => KIND_BYTES));
  readonly #reads = new WeakMap<TenantReads, TenantReads>();
  readonly #maintenance: Maintenance;

  constructor(store: Store, observer: Observer) {
    super();
    this.#store = store;
    this.#observer = observer;
    this.#maintenance = { ...store.maintenance, expireSessions: (...parameters) => this.#expire(...parameters) };
  }

  override get maintenance(): Maintenance {
    return this.#maintenance;
  }

  override commit(tenantId: TenantId, change: Change, now: Date): Promise<CommitResult> {
    const committed = this.#observer.run('store commit', {}, () => this.#store.commit(tenantId, change, now));
    if (this.#observer.metrics === undefined) return committed;
    return committed.then(
      (done) => {
        this.#report(tenantId, change, done);
        return done;
      },
      (error: unknown) => {
        if (error instanceof Failure && error.code === 'session_quota_exceeded') this.#observer.metrics?.sessionRefused(tenantId);
        throw error;
      },
    );
  }

  override async note(
    tenantId: TenantId,
    sessions: readonly SessionId[],
    move: SessionTransition,
    now: Date,
  ): Promise<readonly NotedSession[]> {
    const noted = await this.#observer.run('store note', {}, () => this.#store.note(tenantId, sessions, move, now));
    for (const { id } of noted) this.#moved(tenantId, id, move.to);
    return noted;
  }

  override read(tenantId: TenantId): TenantReads {
    const reads = this.#store.read(tenantId);
    const cached = this.#reads.get(reads);
    if (cached !== undefined) return cached;
    const observed = Object.fromEntries(
      Object.entries(reads).map(([name, read]) => [name, this.#observed(name, read as ReadOperation)]),
    ) as TenantReads;
    this.#reads.set(reads, observed);
    return observed;
  }

  override lists(tenantId: TenantId): TenantLists {
    return this.#store.lists(tenantId);
  }

  override forTenant<T>(
    tenantId: TenantId,
    work: (repositories: TenantRepositories) => Promise<T>,
    writing?: TenantWriteOptions,
  ): Promise<T> {
    // The overloads of `Store` give read-only callers the type of a reader.
    return this.#observer.run('store tenant', {}, () => this.#store.forTenant(tenantId, work, writing as TenantWriteOptions));
  }

  override forService<T>(work: (repositories: ServiceRepositories) => Promise<T>, writing?: WriteOptions): Promise<T> {
    return this.#observer.run('store service', {}, () => this.#store.forService(work, writing as WriteOptions));
  }

  override get fencedAt(): Date | undefined {
    return this.#store.fencedAt;
  }

  override onRewind(forget: () => void): void {
    this.#store.onRewind(forget);
  }

  override ping(): Promise<void> {
    return this.#store.ping();
  }

  #observed(name: string, read: ReadOperation): ReadOperation {
    return async (...parameters) => {
      const result = await this.#observer.run(`store ${name}`, {}, () => read(...parameters));
      const session = (result as { readonly session?: Session } | undefined)?.session;
      if (session?.kind !== undefined) this.#kinds.set(session.id, session.kind);
      return result;
    };
  }

  async #expire(...parameters: Parameters<Maintenance['expireSessions']>): ReturnType<Maintenance['expireSessions']> {
    const result = await this.#store.maintenance.expireSessions(...parameters);
    for (const { tenantId, id } of result.expired) this.#moved(tenantId, id, 'expired');
    return result;
  }

  #report(tenantId: TenantId, { opens, session }: Change, committed: CommitResult): void {
    if (!committed.done) return;
    const openedSession = opens?.session;
    if (openedSession !== undefined) {
      this.#kinds.set(openedSession.id, openedSession.kind);
      this.#moved(tenantId, openedSession.id, 'opened');
    }
    if (session !== undefined && committed.session?.moved === true)
      this.#moved(tenantId, session.id, committed.session.status, session.outcome?.failure?.code);
  }

  #moved(tenantId: TenantId, id: SessionId, ...move: Transition): void {
    const [outcome, code] = move;
    this.#observer.metrics?.session({ tenantId, kind: this.#kinds.get(id), outcome, code });
  }
}

type ReadOperation = (...parameters: readonly unknown[]) => Promise<unknown>;
type Measure = Parameters<NonNullable<Observer['metrics']>['session']>[0];
type Transition = readonly [outcome: Measure['outcome'], code?: Measure['code']];
