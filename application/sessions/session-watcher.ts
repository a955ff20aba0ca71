import { Failure } from '../../domain/shared/failure.ts';
import type { SessionId, TenantId } from '../../domain/shared/ids.ts';
import { needs } from '../needs.ts';
import { EventBus } from '../ports/event-bus.ts';
import { Log } from '../ports/log.ts';
import { Store } from '../ports/store.ts';

const MAX_WATCHES = 4_000;
/** Limits per tenant, client and session, so that none of them can use all streams. */
const MAX_PER_TENANT = 2_000;
const MAX_PER_CLIENT = 1_000;
const MAX_PER_SESSION = 20;
const POLL_MS = 2_000;
/** Ids per query of the poll. */
const POLL_BATCH = 500;

/** The subscription of one stream. It signals that something may have changed; the stream then reads the row. */
export class Watch {
  /** The version that the stream has read; the poll compares it with the stored one. */
  version = 0;
  #isSignalled = false;
  #closed = false;
  #wake: (() => void) | undefined;
  readonly #release: (watch: Watch) => void;

  constructor(release: (watch: Watch) => void) {
    this.#release = release;
  }

  get closed(): boolean {
    return this.#closed;
  }

  signal(): void {
    this.#isSignalled = true;
    this.#wake?.();
  }

  /** Waits for a change, at most for `milliseconds`. @returns true if there may be one. */
  async next(milliseconds: number): Promise<boolean> {
    if (!this.#isSignalled && !this.#closed) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, milliseconds);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      this.#wake = undefined;
    }
    const wasSignalled = this.#isSignalled;
    this.#isSignalled = false;
    return wasSignalled;
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#release(this);
    this.#wake?.();
  }
}

type TenantWatches = { readonly sessions: Map<SessionId, Set<Watch>>; readonly clients: Map<string, number>; count: number };

/**
 * Notifies streams when their sessions may have changed: at once by the event bus, and within two seconds by one poll
 * for all streams of this process, because a change can happen in another process and a message can be lost.
 */
export class SessionWatcher extends needs({ store: Store, eventBus: EventBus, log: Log }) {
  readonly #watches = new Map<TenantId, TenantWatches>();
  #count = 0;
  #timer: NodeJS.Timeout | undefined;
  #unsubscribe: (() => void) | undefined;
  #closed = false;

  get count(): number {
    return this.#count;
  }

  /**
   * @throws Failure `unavailable` when this process stops, or when the limit of all streams, of the tenant, of the client or of the
   *   session is reached.
   */
  open(tenantId: TenantId, clientId: string, id: SessionId): Watch {
    const tenantWatches = this.#watches.get(tenantId) ?? { sessions: new Map(), clients: new Map(), count: 0 };
    const sessionWatches = tenantWatches.sessions.get(id) ?? new Set<Watch>();
    const clientCount = tenantWatches.clients.get(clientId) ?? 0;
    const isFull =
      this.#count >= MAX_WATCHES ||
      tenantWatches.count >= MAX_PER_TENANT ||
      clientCount >= MAX_PER_CLIENT ||
      sessionWatches.size >= MAX_PER_SESSION;
    if (this.#closed || isFull) {
      const message = 'too many event streams are open; poll the session, or try again later';
      throw new Failure('unavailable', { message, retryAfterSeconds: 30 });
    }
    const watch = new Watch((closed) => this.#remove(tenantId, clientId, id, closed));
    tenantWatches.sessions.set(id, sessionWatches.add(watch));
    tenantWatches.clients.set(clientId, clientCount + 1);
    tenantWatches.count++;
    this.#watches.set(tenantId, tenantWatches);
    this.#count++;
    this.#unsubscribe ??= this.ports.eventBus.subscribe((wakeUp) => {
      if (wakeUp.type !== 'session') return;
      const { sessions } = this.#watches.get(wakeUp.tenantId) ?? {};
      for (const watched of sessions?.get(wakeUp.sessionId) ?? []) watched.signal();
    });
    this.#schedule();
    return watch;
  }

  /** Ends all streams and rejects new ones before the process stops; clients reconnect to another process. */
  close(): void {
    this.#closed = true;
    const watchSets = [...this.#watches.values()].flatMap(({ sessions }) => [...sessions.values()]);
    for (const watch of watchSets.flatMap((ofSession) => [...ofSession])) watch.close();
  }

  #remove(tenantId: TenantId, clientId: string, id: SessionId, watch: Watch): void {
    const tenantWatches = this.#watches.get(tenantId);
    const sessionWatches = tenantWatches?.sessions.get(id);
    if (tenantWatches === undefined || sessionWatches === undefined || !sessionWatches.delete(watch)) return;
    const clientCount = (tenantWatches.clients.get(clientId) ?? 1) - 1;
    if (clientCount > 0) tenantWatches.clients.set(clientId, clientCount);
    else tenantWatches.clients.delete(clientId);
    if (sessionWatches.size === 0) tenantWatches.sessions.delete(id);
    if (--tenantWatches.count === 0) this.#watches.delete(tenantId);
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
    const storedVersions = await this.ports.store.read(tenantId).sessionVersions(ids);
    const versions = new Map(storedVersions.map(({ id, version }) => [id, version]));
    for (const id of ids) {
      for (const watch of this.#watches.get(tenantId)?.sessions.get(id) ?? []) {
        // A removed session has no version, which counts as a change.
        if (watch.version !== versions.get(id)) watch.signal();
      }
    }
  }
}
