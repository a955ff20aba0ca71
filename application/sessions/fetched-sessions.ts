import { MOVES, type Session } from '../../domain/sessions/session.ts';
import { isUnfetched } from '../../domain/sessions/session-change.ts';
import type { SessionId, TenantId } from '../../domain/shared/ids.ts';
import { needs, type PortsOf } from '../needs.ts';
import { EventBus } from '../ports/event-bus.ts';
import { Log } from '../ports/log.ts';
import { WORLD } from '../transactions/known.ts';

/** How long notes are gathered. */
const GATHER_MS = 100;
/** Notes of one tenant that wait; the next has them written at once. */
const MAX_WAITING = 200;

const PORTS = { ...WORLD, eventBus: EventBus, log: Log };

/**
 * That a wallet fetched an offer or a request decides nothing, so such notes are gathered and written many at once, by one
 * statement for each tenant. A crash may lose the last tenth of a second of them; nobody was told of those.
 */
export class FetchedSessions extends needs(PORTS) {
  readonly #waiting = new Map<TenantId, Set<SessionId>>();
  readonly #underWay = new Map<TenantId, Promise<void>>();
  #timer: NodeJS.Timeout | undefined;

  constructor(ports: PortsOf<typeof PORTS>) {
    super(ports);
    // One that moved meanwhile is not waiting for a wallet any more, and there is nothing to note.
    ports.eventBus.subscribe((wakeUp) => {
      if (wakeUp.type === 'session') this.#forget(wakeUp.tenantId, wakeUp.sessionId);
    });
  }

  #forget(tenantId: TenantId, id: SessionId): void {
    const ofTenant = this.#waiting.get(tenantId);
    if (ofTenant?.delete(id) && ofTenant.size === 0) this.#waiting.delete(tenantId);
  }

  /** Later fetches note nothing. */
  note(session: Session): void {
    if (!isUnfetched(session)) return;
    const { tenantId, id } = session;
    const ofTenant = this.#waiting.get(tenantId) ?? new Set();
    this.#waiting.set(tenantId, ofTenant);
    ofTenant.add(id);
    if (ofTenant.size >= MAX_WAITING) void this.#write(tenantId);
    this.#timer ??= setTimeout(() => void this.flush(), GATHER_MS).unref();
  }

  /** Whoever reads sessions of the tenant in this process sees what was noted here before. */
  settled(tenantId: TenantId): Promise<void> | undefined {
    return this.#waiting.has(tenantId) ? this.#write(tenantId) : this.#underWay.get(tenantId);
  }

  /** Writes all there is, one tenant after the other. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const tenantId of [...this.#waiting.keys()]) await this.#write(tenantId);
    await Promise.all(this.#underWay.values());
  }

  #write(tenantId: TenantId): Promise<void> {
    const ids = [...(this.#waiting.get(tenantId) ?? [])];
    this.#waiting.delete(tenantId);
    const before = this.#underWay.get(tenantId) ?? Promise.resolve();
    const writing = before.then(() => this.#writeThese(tenantId, ids));
    this.#underWay.set(tenantId, writing);
    return writing.then(() => {
      if (this.#underWay.get(tenantId) === writing) this.#underWay.delete(tenantId);
    });
  }

  async #writeThese(tenantId: TenantId, ids: readonly SessionId[]): Promise<void> {
    const { store, clock, tenantConfigurations, eventBus, log } = this.ports;
    if (ids.length === 0) return;
    try {
      for (const { id, version } of await store.note(tenantId, ids, MOVES.fetch, clock.now())) {
        tenantConfigurations.remembered.move(tenantId, id, MOVES.fetch.to, version);
        eventBus.publish({ type: 'session', tenantId, sessionId: id });
      }
    } catch (error) {
      log.error('that wallets fetched sessions is not on record', { tenantId, sessions: ids.length }, error);
    }
  }
}
