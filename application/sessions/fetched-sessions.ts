import { MOVES, type Session } from '../../domain/sessions/session.ts';
import { isUnfetched } from '../../domain/sessions/session-change.ts';
import type { SessionId, TenantId } from '../../domain/shared/ids.ts';
import { needs, type PortsOf } from '../needs.ts';
import { EventBus } from '../ports/event-bus.ts';
import { Log } from '../ports/log.ts';
import { TRANSACTION_PORTS } from '../transactions/tenant-transaction.ts';

/** Time for which fetches are collected before they are written. */
const COLLECTION_MS = 100;
/** Maximum number of pending fetches per tenant; the next one triggers a write. */
const MAX_WAITING = 200;
/** Maximum number of writes per session. PostgreSQL skips a session while another transaction has locked its row. */
const MAX_WRITES = 3;

const PORTS = { ...TRANSACTION_PORTS, eventBus: EventBus, log: Log };

/**
 * Records that wallets fetched offers and requests. No decision depends on that, so it is written in batches, with one statement per
 * tenant. A crash may lose the last tenth of a second, which was not visible to any reader.
 */
export class FetchedSessions extends needs(PORTS) {
  /** By tenant and session: the number of writes that skipped the session. */
  readonly #pending = new Map<TenantId, Map<SessionId, number>>();
  readonly #writes = new Map<TenantId, Promise<void>>();
  #timer: NodeJS.Timeout | undefined;

  constructor(ports: PortsOf<typeof PORTS>) {
    super(ports);
    // A session that changed meanwhile has moved beyond the fetch.
    ports.eventBus.subscribe((wakeUp) => {
      if (wakeUp.type === 'session') this.#forget(wakeUp.tenantId, wakeUp.sessionId);
    });
  }

  #forget(tenantId: TenantId, id: SessionId): void {
    const sessionIds = this.#pending.get(tenantId);
    if (sessionIds?.delete(id) && sessionIds.size === 0) this.#pending.delete(tenantId);
  }

  note(session: Session): void {
    if (!isUnfetched(session)) return;
    const { tenantId, id } = session;
    if (this.#add(tenantId, id, 0).size >= MAX_WAITING) void this.#write(tenantId);
  }

  #add(tenantId: TenantId, id: SessionId, skippedWrites: number): ReadonlyMap<SessionId, number> {
    const sessionIds = this.#pending.get(tenantId) ?? new Map();
    this.#pending.set(tenantId, sessionIds);
    sessionIds.set(id, skippedWrites);
    this.#timer ??= setTimeout(() => void this.flush(), COLLECTION_MS).unref();
    return sessionIds;
  }

  /** Resolves when earlier fetches of the tenant are written, so that readers in this process see them. */
  flushTenant(tenantId: TenantId): Promise<void> | undefined {
    return this.#pending.has(tenantId) ? this.#write(tenantId) : this.#writes.get(tenantId);
  }

  /** Writes all pending fetches, one tenant after the other. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const tenantId of [...this.#pending.keys()]) await this.#write(tenantId);
    await Promise.all(this.#writes.values());
  }

  #write(tenantId: TenantId): Promise<void> {
    const sessions = this.#pending.get(tenantId) ?? new Map<SessionId, number>();
    this.#pending.delete(tenantId);
    const previousWrite = this.#writes.get(tenantId) ?? Promise.resolve();
    const write = previousWrite.then(() => this.#writeBatch(tenantId, sessions));
    this.#writes.set(tenantId, write);
    return write.then(() => {
      if (this.#writes.get(tenantId) === write) this.#writes.delete(tenantId);
    });
  }

  async #writeBatch(tenantId: TenantId, sessions: ReadonlyMap<SessionId, number>): Promise<void> {
    const { store, clock, tenantConfigurations, eventBus, log } = this.ports;
    if (sessions.size === 0) return;
    const skipped = new Map(sessions);
    try {
      for (const { id, version } of await store.note(tenantId, [...sessions.keys()], MOVES.fetch, clock.now())) {
        skipped.delete(id);
        tenantConfigurations.sessionCache.updateStatus(tenantId, id, MOVES.fetch.to, version);
        eventBus.publish({ type: 'session', tenantId, sessionId: id });
      }
    } catch (error) {
      log.error('fetched sessions could not be recorded', { tenantId, sessions: sessions.size }, error);
      return;
    }
    // A skipped session has moved on, or its row was locked, for example by the record of a webhook delivery.
    for (const [id, skippedWrites] of skipped) {
      if (skippedWrites + 1 < MAX_WRITES) this.#add(tenantId, id, skippedWrites + 1);
    }
  }
}
