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

const PORTS = { ...TRANSACTION_PORTS, eventBus: EventBus, log: Log };

/**
 * Records that wallets fetched offers and requests. No decision depends on that, so it is written in batches, with one statement per
 * tenant. A crash may lose the last tenth of a second, which was not visible to any reader.
 */
export class FetchedSessions extends needs(PORTS) {
  readonly #pending = new Map<TenantId, Set<SessionId>>();
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
    const sessionIds = this.#pending.get(tenantId) ?? new Set();
    this.#pending.set(tenantId, sessionIds);
    sessionIds.add(id);
    if (sessionIds.size >= MAX_WAITING) void this.#write(tenantId);
    this.#timer ??= setTimeout(() => void this.flush(), COLLECTION_MS).unref();
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
    const ids = [...(this.#pending.get(tenantId) ?? [])];
    this.#pending.delete(tenantId);
    const previousWrite = this.#writes.get(tenantId) ?? Promise.resolve();
    const write = previousWrite.then(() => this.#writeBatch(tenantId, ids));
    this.#writes.set(tenantId, write);
    return write.then(() => {
      if (this.#writes.get(tenantId) === write) this.#writes.delete(tenantId);
    });
  }

  async #writeBatch(tenantId: TenantId, ids: readonly SessionId[]): Promise<void> {
    const { store, clock, tenantConfigurations, eventBus, log } = this.ports;
    if (ids.length === 0) return;
    try {
      for (const { id, version } of await store.note(tenantId, ids, MOVES.fetch, clock.now())) {
        tenantConfigurations.sessionCache.updateStatus(tenantId, id, MOVES.fetch.to, version);
        eventBus.publish({ type: 'session', tenantId, sessionId: id });
      }
    } catch (error) {
      log.error('fetched sessions could not be recorded', { tenantId, sessions: ids.length }, error);
    }
  }
}
