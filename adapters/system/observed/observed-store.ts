import { LRUCache } from 'lru-cache';
import type { Maintenance } from '../../../application/ports/maintenance.ts';
import type { ServiceRepositories, TenantRepositories, TenantWriting, Writing } from '../../../application/ports/repositories.ts';
import { type ListKeeping, type NotedSession, Store, type TenantReads } from '../../../application/ports/store.ts';
import { boundedBytes } from '../../../application/tenant-cache/bounded.ts';
import type { Change, Committed } from '../../../domain/changes/change.ts';
import type { Session, SessionKind, SessionTransition } from '../../../domain/sessions/session.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { SessionId, TenantId } from '../../../domain/shared/ids.ts';
import type { Observer } from './observer.ts';

/** A change names a session by its id alone: of those that were seen last it is known what they are for. */
const MAX_KIND_BYTES = 8 * 1024 * 1024;
const KIND_BYTES = 16;

/** The store, each change of a session in which is told of. */
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
    this.#maintenance = { ...store.maintenance, expireSessions: (...asked) => this.#expire(...asked) };
  }

  override get maintenance(): Maintenance {
    return this.#maintenance;
  }

  override commit(tenantId: TenantId, change: Change, now: Date): Promise<Committed> {
    const committed = this.#observer.run('store commit', {}, () => this.#store.commit(tenantId, change, now));
    if (this.#observer.metrics === undefined) return committed;
    return committed.then(
      (done) => {
        this.#tell(tenantId, change, done);
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
    const known = this.#reads.get(reads);
    if (known !== undefined) return known;
    const observed = Object.fromEntries(
      Object.entries(reads).map(([name, read]) => [name, this.#observed(name, read as Read)]),
    ) as TenantReads;
    this.#reads.set(reads, observed);
    return observed;
  }

  override lists(tenantId: TenantId): ListKeeping {
    return this.#store.lists(tenantId);
  }

  override forTenant<T>(tenantId: TenantId, work: (own: TenantRepositories) => Promise<T>, writing?: TenantWriting): Promise<T> {
    // Who only reads was given its type by the declarations of `Store`.
    return this.#observer.run('store tenant', {}, () => this.#store.forTenant(tenantId, work, writing as TenantWriting));
  }

  override forService<T>(work: (all: ServiceRepositories) => Promise<T>, writing?: Writing): Promise<T> {
    return this.#observer.run('store service', {}, () => this.#store.forService(work, writing as Writing));
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

  #observed(name: string, read: Read): Read {
    return async (...asked) => {
      const found = await this.#observer.run(`store ${name}`, {}, () => read(...asked));
      const session = (found as { readonly session?: Session } | undefined)?.session;
      if (session?.kind !== undefined) this.#kinds.set(session.id, session.kind);
      return found;
    };
  }

  async #expire(...asked: Parameters<Maintenance['expireSessions']>): ReturnType<Maintenance['expireSessions']> {
    const found = await this.#store.maintenance.expireSessions(...asked);
    for (const { tenantId, id } of found.expired) this.#moved(tenantId, id, 'expired');
    return found;
  }

  #tell(tenantId: TenantId, { opens, session }: Change, committed: Committed): void {
    if (!committed.done) return;
    const opened = opens?.session;
    if (opened !== undefined) {
      this.#kinds.set(opened.id, opened.kind);
      this.#moved(tenantId, opened.id, 'opened');
    }
    if (session !== undefined && committed.session?.moved === true)
      this.#moved(tenantId, session.id, committed.session.status, session.outcome?.failure?.code);
  }

  #moved(tenantId: TenantId, id: SessionId, ...move: Moved): void {
    const [outcome, code] = move;
    this.#observer.metrics?.session({ tenantId, kind: this.#kinds.get(id), outcome, code });
  }
}

type Read = (...asked: readonly unknown[]) => Promise<unknown>;
type Measure = Parameters<NonNullable<Observer['metrics']>['session']>[0];
type Moved = readonly [outcome: Measure['outcome'], code?: Measure['code']];
