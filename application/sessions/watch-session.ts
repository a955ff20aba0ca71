import { nameOf } from '../../domain/audit/audit-entry.ts';
import { awaitsResponseCode, isTerminal, type Session, type SessionStatus, statusAt } from '../../domain/sessions/session.ts';
import type { SessionId } from '../../domain/shared/ids.ts';
import { isServing } from '../../domain/tenants/tenant-end.ts';
import type { Listener } from '../caller.ts';
import { rightsOf } from '../clients/rights.ts';
import { needs } from '../needs.ts';
import { Log } from '../ports/log.ts';
import type { TenantState } from '../ports/store.ts';
import type { TenantConfigurations } from '../tenant-cache/tenant-configurations.ts';
import { WORLD } from '../transactions/known.ts';
import { FetchedSessions } from './fetched-sessions.ts';
import { SessionWatcher, type Watch } from './session-watcher.ts';
import { isVisible, readVisibleSession } from './visibility.ts';

const HEARTBEAT_MS = 15_000;
/** Changes that one reading replays; a session has no more than a handful. */
const MAX_REPLAY = 100;

export type StatusMessage = {
  /** The session's version at this change; `Last-Event-ID` brings it back. */
  readonly sequence: number;
  readonly id: SessionId;
  readonly status: SessionStatus;
  readonly updatedAt: Date;
};

type Options = {
  /** The sequence of the last message that the client has. */
  readonly lastSequence?: number | undefined;
  readonly closed: AbortSignal;
};

/** Follows the status of a session until it ends or the listener leaves. */
export class WatchSession extends needs({ ...WORLD, sessionWatcher: SessionWatcher, fetchedSessions: FetchedSessions, log: Log }) {
  /**
   * @returns the status of now at once, or the changes since `lastSequence`; then every change. Ends after a
   *   terminal status, when the session is removed, when the listener left, when its access token expires and when it
   *   may not know of the session any more. Never throws once it has begun.
   * @throws Failure `not_found`, or `unavailable` when too many streams are open.
   */
  async execute(caller: Listener, id: SessionId, { lastSequence, closed }: Options): Promise<AsyncIterable<StatusMessage | 'heartbeat'>> {
    const { store, sessionWatcher, fetchedSessions, tenantConfigurations } = this.ports;
    await fetchedSessions.settled(caller.tenantId);
    const session = await readVisibleSession(store, caller, id);
    const rights = new ListenerRights(tenantConfigurations, caller);
    const watch = sessionWatcher.open(caller.tenantId, nameOf(caller), id);
    // A listener that leaves at once never starts the iteration, so nothing in there could release the watch.
    if (closed.aborted) watch.close();
    closed.addEventListener('abort', () => watch.close(), { once: true });
    // A sequence that the session has not reached yet is none of this service.
    const after = lastSequence !== undefined && lastSequence <= session.version ? lastSequence : undefined;
    return this.#follow(essenceOf(session), rights, watch, after);
  }

  async *#follow(
    first: Followed,
    rights: ListenerRights,
    watch: Watch,
    lastSequence: number | undefined,
  ): AsyncGenerator<StatusMessage | 'heartbeat'> {
    const { clock, log } = this.ports;
    try {
      let session: Followed | undefined = first;
      let after = lastSequence;
      let told: SessionStatus | undefined;
      while (session !== undefined && !watch.closed) {
        for (const message of await this.#news(session, after, told)) {
          yield message;
          told = message.status;
        }
        if (told !== undefined && isTerminal(told)) return;
        after = session.version;
        watch.version = session.version;
        while (!(await watch.next(patience(session, rights, clock.now()))) && !watch.closed) {
          if (isTerminal(statusAt(session, clock.now()))) break;
          if ((await this.#read(first, rights)) === undefined) return;
          yield 'heartbeat';
        }
        session = watch.closed ? undefined : await this.#read(first, rights);
      }
    } catch (error) {
      log.error('an event stream ended early', {}, error);
    } finally {
      watch.close();
    }
  }

  /** The session of now, for a listener that may still know of it. */
  async #read({ tenantId, id }: Followed, rights: ListenerRights): Promise<Followed | undefined> {
    const { store, clock } = this.ports;
    const now = clock.now();
    if (rights.ownEnd <= now) return undefined;
    const read = await store.read(tenantId).session(id);
    if (read?.session === undefined) return undefined;
    return (await rights.cover(read.session, read.tenant, now)) ? essenceOf(read.session) : undefined;
  }

  /** What to say: the changes after `after`, then the present where they do not say it already. */
  async #news(session: Followed, after: number | undefined, told: SessionStatus | undefined): Promise<StatusMessage[]> {
    const { store, clock } = this.ports;
    const { id, tenantId, version } = session;
    const missed = after === undefined || after >= version ? [] : await store.read(tenantId).sessionEvents(id, after, MAX_REPLAY);
    const news = missed.map(({ sequence, status, at }) => ({ sequence, id, status, updatedAt: at }));
    const status = statusAt(session, clock.now());
    if ((news.at(-1)?.status ?? told) === status) return news;
    const updatedAt = status === session.status ? session.updatedAt : session.expiresAt;
    return [...news, { sequence: version, id, status, updatedAt }];
  }
}

/** What a stream keeps of its session for as long as it is open: the rest is large, and personal. */
type Followed = Pick<Session, 'tenantId' | 'id' | 'status' | 'version' | 'updatedAt' | 'expiresAt'> & {
  readonly outcome: { readonly awaiting?: object };
};

function essenceOf({ tenantId, id, status, version, updatedAt, expiresAt, outcome }: Session): Followed {
  const waiting = awaitsResponseCode(outcome) ? { awaiting: {} } : {};
  return { tenantId, id, status, version, updatedAt, expiresAt, outcome: waiting };
}

/** Until the next heartbeat, or the end of the session or the access token if that comes first. In milliseconds. */
function patience(session: Followed, rights: ListenerRights, now: Date): number {
  const end = Math.min(session.expiresAt.getTime(), rights.expiresAt.getTime());
  return Math.max(1, Math.min(HEARTBEAT_MS, end - now.getTime()));
}

/**
 * What a caller may see for as long as it listens. A stream outlives the request that opened it, and the client can
 * lose its roles, its restrictions can change, and it or its tenant can go. The same counts as for a new request.
 */
class ListenerRights {
  readonly #tenantConfigurations: TenantConfigurations;
  #caller: Listener;
  #tenantEndsAt: Date | undefined;

  constructor(tenantConfigurations: TenantConfigurations, caller: Listener) {
    this.#tenantConfigurations = tenantConfigurations;
    this.#caller = caller;
    this.#tenantEndsAt = caller.configured.state.endsAt ?? undefined;
  }

  /** When a stream has to look whether it goes on: the end of what it was opened with, or of the tenant as it was last seen. */
  get expiresAt(): Date {
    const { ownEnd } = this;
    const tenantsEnd = this.#tenantEndsAt ?? ownEnd;
    return tenantsEnd < ownEnd ? tenantsEnd : ownEnd;
  }

  /** A stream gives no more than the requests that its access token is good for. The end of a tenant may be put off meanwhile. */
  get ownEnd(): Date {
    const { access, endsAt = access.expiresAt } = this.#caller;
    return endsAt < access.expiresAt ? endsAt : access.expiresAt;
  }

  /** @param head the tenant as it stands now. The client is looked up again only when something of it changed. */
  async cover(session: Session, head: TenantState, now: Date): Promise<boolean> {
    if (!isServing(head, now)) return false;
    this.#tenantEndsAt = head.endsAt ?? undefined;
    if (head.revision !== this.#caller.configured.state.revision) {
      const configured = this.#tenantConfigurations.of(head);
      const rights = await rightsOf(this.#caller.access, configured, now);
      if (typeof rights === 'string') return false;
      const { endsAt: _endsAt, ...caller } = this.#caller;
      this.#caller = { ...caller, ...rights, configured };
    }
    return isVisible(this.#caller, session);
  }
}
