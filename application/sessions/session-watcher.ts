import { Failure } from '../../domain/shared/failure.ts';
import type { SessionId, TenantId } from '../../domain/shared/ids.ts';
import { needs } from '../needs.ts';
import { EventBus } from '../ports/event-bus.ts';
import { Log } from '../ports/log.ts';
import { Store } from '../ports/store.ts';

const MAX_WATCHES = 4_000;
/** Shares of it, so that nobody can take all of them. */
const MAX_OF_TENANT = 2_000;
const MAX_OF_CLIENT = 1_000;
const MAX_OF_SESSION = 20;
const POLL_MS = 2_000;
/** Ids per query of the poll. */
const POLL_BATCH = 500;

/** One stream's ear. It hears that something may have changed; the row tells what. */
export class Watch {
  /** The version that the stream has read; the poll looks for another one. */
  version = 0;
  #rung = false;
  #closed = false;
  #wake: (() => void) | undefined;
  readonly #release: (watch: Watch) => void;

  constructor(release: (watch: Watch) => void) {
    this.#release = release;
  }

  get closed(): boolean {
    return this.#closed;
  }

  ring(): void {
    this.#rung = true;
    this.#wake?.();
  }

  /** Waits for a change, but not longer than `milliseconds`. @returns whether there may be one. */
  async next(milliseconds: number): Promise<boolean> {
    if (!this.#rung && !this.#closed) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, milliseconds);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      this.#wake = undefined;
    }
    const rung = this.#rung;
    this.#rung = false;
    return rung;
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#release(this);
    this.#wake?.();
  }
}

/** The streams of one tenant. */
type TenantWatches = {
  readonly sessions: Map<SessionId, Set<Watch>>;
  /** How many streams each client has. */
  readonly clients: Map<string, number>;
  count: number;
};

/**
 * Tells streams when their sessions may have changed: at once by the event bus, and within two seconds by one poll
 * for all streams of this process, because a change can happen at another instance and a message can be lost.
 */
export class SessionWatcher extends needs({ store: Store, eventBus: EventBus, log: Log }) {
  readonly #watches = new Map<TenantId, TenantWatches>();
  #count = 0;
  #timer: NodeJS.Timeout | undefined;
  #unsubscribe: (() => void) | undefined;
  #closed = false;

  /** Streams that are open now. */
  get count(): number {
    return this.#count;
  }

  /**
   * @throws Failure `unavailable` when this process stops, or has all the streams that it can bear: of all, of the
   *   tenant, of the client or of the session.
   */
  open(tenantId: TenantId, clientId: string, id: SessionId): Watch {
    const ofTenant = this.#watches.get(tenantId) ?? { sessions: new Map(), clients: new Map(), count: 0 };
    const ofSession = ofTenant.sessions.get(id) ?? new Set<Watch>();
    const ofClient = ofTenant.clients.get(clientId) ?? 0;
    const isFull =
      this.#count >= MAX_WATCHES || ofTenant.count >= MAX_OF_TENANT || ofClient >= MAX_OF_CLIENT || ofSession.size >= MAX_OF_SESSION;
    if (this.#closed || isFull) {
      const message = 'too many event streams are open; poll the session, or try again later';
      throw new Failure('unavailable', { message, retryAfterSeconds: 30 });
    }
    const watch = new Watch((closed) => this.#remove(tenantId, clientId, id, closed));
    ofTenant.sessions.set(id, ofSession.add(watch));
    ofTenant.clients.set(clientId, ofClient + 1);
    ofTenant.count++;
    this.#watches.set(tenantId, ofTenant);
    this.#count++;
    this.#unsubscribe ??= this.ports.eventBus.subscribe((wakeUp) => {
      if (wakeUp.type !== 'session') return;
      const { sessions } = this.#watches.get(wakeUp.tenantId) ?? {};
      for (const rung of sessions?.get(wakeUp.sessionId) ?? []) rung.ring();
    });
    this.#schedule();
    return watch;
  }

  /** Ends all streams and refuses new ones: the process is about to stop, and listeners come back elsewhere. */
  close(): void {
    this.#closed = true;
    const ofSessions = [...this.#watches.values()].flatMap(({ sessions }) => [...sessions.values()]);
    for (const watch of ofSessions.flatMap((ofSession) => [...ofSession])) watch.close();
  }

  #remove(tenantId: TenantId, clientId: string, id: SessionId, watch: Watch): void {
    const ofTenant = this.#watches.get(tenantId);
    const ofSession = ofTenant?.sessions.get(id);
    if (ofTenant === undefined || ofSession === undefined || !ofSession.delete(watch)) return;
    const ofClient = (ofTenant.clients.get(clientId) ?? 1) - 1;
    if (ofClient > 0) ofTenant.clients.set(clientId, ofClient);
    else ofTenant.clients.delete(clientId);
    if (ofSession.size === 0) ofTenant.sessions.delete(id);
    if (--ofTenant.count === 0) this.#watches.delete(tenantId);
    this.#count--;
    if (this.#count > 0) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#unsubscribe?.();
    this.#unsubscribe = undefined;
  }

  #schedule(): void {
    if (this.#timer !== undefined || this.#count === 0) return;
    this.#timer = setTimeout(() => void this.#poll(), POLL_MS);
    this.#timer.unref();
  }

  async #poll(): Promise<void> {
    try {
      for (const [tenantId, { sessions }] of [...this.#watches]) {
        const ids = [...sessions.keys()];
        for (let from = 0; from < ids.length; from += POLL_BATCH) await this.#compare(tenantId, ids.slice(from, from + POLL_BATCH));
      }
    } catch (error) {
      this.ports.log.error('watched sessions could not be read', {}, error);
    }
    this.#timer = undefined;
    this.#schedule();
  }

  async #compare(tenantId: TenantId, ids: readonly SessionId[]): Promise<void> {
    const stored = await this.ports.store.read(tenantId).sessionVersions(ids);
    const versions = new Map(stored.map(({ id, version }) => [id, version]));
    for (const id of ids) {
      for (const watch of this.#watches.get(tenantId)?.sessions.get(id) ?? []) {
        // A session that is gone has no version, which is a change too.
        if (watch.version !== versions.get(id)) watch.ring();
      }
    }
  }
}
