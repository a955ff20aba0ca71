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
import { TRANSACTION_PORTS } from '../transactions/tenant-transaction.ts';
import { FetchedSessions } from './fetched-sessions.ts';
import { SessionWatcher, type Watch } from './session-watcher.ts';
import { isVisible, readVisibleSession } from './visibility.ts';

const HEARTBEAT_MS = 15_000;
/** Maximum number of changes that are replayed; a session has only a few. */
const MAX_REPLAY = 100;

export type StatusMessage = {
  /** The session's version at this change; the client returns it as `Last-Event-ID`. */
  readonly sequence: number;
  readonly id: SessionId;
  readonly status: SessionStatus;
  readonly updatedAt: Date;
};

type Options = {
  /** Sequence of the last message that the client has received. */
  readonly lastSequence?: number | undefined;
  readonly closed: AbortSignal;
};

/** Streams the status of a session until it ends or the listener disconnects. */
export class WatchSession extends needs({
  ...TRANSACTION_PORTS,
  sessionWatcher: SessionWatcher,
  fetchedSessions: FetchedSessions,
  log: Log,
}) {
  /**
   * @returns the current status, or the changes since `lastSequence`; then every change. Ends after a
   *   terminal status, when the session is removed, when the listener disconnects, when its access token expires and when it
   *   may not see the session any more. Never throws once it has begun.
   * @throws Failure `not_found`, or `unavailable` when too many streams are open.
   */
  async execute(caller: Listener, id: SessionId, { lastSequence, closed }: Options): Promise<AsyncIterable<StatusMessage | 'heartbeat'>> {
    const { store, sessionWatcher, fetchedSessions, tenantConfigurations } = this.ports;
    await fetchedSessions.flushTenant(caller.tenantId);
    const session = await readVisibleSession(store, caller, id);
    const rights = new ListenerRights(tenantConfigurations, caller);
    const watch = sessionWatcher.open(caller.tenantId, nameOf(caller), id);
    // A listener that disconnects at once never starts the iteration, so its `finally` would not release the watch.
    if (closed.aborted) watch.close();
    closed.addEventListener('abort', () => watch.close(), { once: true });
    // A sequence beyond the version of the session was not issued by this service.
    const replayAfter = lastSequence !== undefined && lastSequence <= session.version ? lastSequence : undefined;
    return this.#follow(followedFields(session), rights, watch, replayAfter);
  }

  async *#follow(
    initialSession: FollowedSession,
    rights: ListenerRights,
    watch: Watch,
    lastSequence: number | undefined,
  ): AsyncGenerator<StatusMessage | 'heartbeat'> {
    const { clock, log } = this.ports;
    try {
      let session: FollowedSession | undefined = initialSession;
      let replayAfter = lastSequence;
      let reportedStatus: SessionStatus | undefined;
      while (session !== undefined && !watch.closed) {
        for (const message of await this.#pendingMessages(session, replayAfter, reportedStatus)) {
          yield message;
          reportedStatus = message.status;
        }
        if (reportedStatus !== undefined && isTerminal(reportedStatus)) return;
        replayAfter = session.version;
        watch.version = session.version;
        while (!(await watch.next(waitMs(session, rights, clock.now()))) && !watch.closed) {
          if (isTerminal(statusAt(session, clock.now()))) break;
          if ((await this.#read(initialSession, rights)) === undefined) return;
          yield 'heartbeat';
        }
        session = watch.closed ? undefined : await this.#read(initialSession, rights);
      }
    } catch (error) {
      log.error('an event stream ended early', {}, error);
    } finally {
      watch.close();
    }
  }

  /** The current session, if the listener may still see it. */
  async #read({ tenantId, id }: FollowedSession, rights: ListenerRights): Promise<FollowedSession | undefined> {
    const { store, clock } = this.ports;
    const now = clock.now();
    if (rights.tokenEndsAt <= now) return undefined;
    const result = await store.read(tenantId).session(id);
    if (result?.session === undefined) return undefined;
    return (await rights.covers(result.session, result.tenant, now)) ? followedFields(result.session) : undefined;
  }

  /** Messages to send: the changes after `after`, then the current status if it differs. */
  async #pendingMessages(
    session: FollowedSession,
    replayAfter: number | undefined,
    reportedStatus: SessionStatus | undefined,
  ): Promise<StatusMessage[]> {
    const { store, clock } = this.ports;
    const { id, tenantId, version } = session;
    const missedEvents =
      replayAfter === undefined || replayAfter >= version ? [] : await store.read(tenantId).sessionEvents(id, replayAfter, MAX_REPLAY);
    // Events after the version that was read are sent with the next version: otherwise the older status would follow them.
    const messages = missedEvents
      .filter(({ sequence }) => sequence <= version)
      .map(({ sequence, status, at }) => ({ sequence, id, status, updatedAt: at }));
    const status = statusAt(session, clock.now());
    if ((messages.at(-1)?.status ?? reportedStatus) === status) return messages;
    const updatedAt = status === session.status ? session.updatedAt : session.expiresAt;
    return [...messages, { sequence: version, id, status, updatedAt }];
  }
}

/** The fields that a stream keeps while it is open: the rest is large, and personal data. */
type FollowedSession = Pick<Session, 'tenantId' | 'id' | 'status' | 'version' | 'updatedAt' | 'expiresAt'> & {
  readonly outcome: { readonly awaiting?: object };
};

function followedFields({ tenantId, id, status, version, updatedAt, expiresAt, outcome }: Session): FollowedSession {
  const waiting = awaitsResponseCode(outcome) ? { awaiting: {} } : {};
  return { tenantId, id, status, version, updatedAt, expiresAt, outcome: waiting };
}

/** Milliseconds until the next heartbeat, or the earlier end of the session or the access token. */
function waitMs(session: FollowedSession, rights: ListenerRights, now: Date): number {
  const end = Math.min(session.expiresAt.getTime(), rights.expiresAt.getTime());
  return Math.max(1, Math.min(HEARTBEAT_MS, end - now.getTime()));
}

/**
 * The rights of a listener. A stream outlives the request that opened it: meanwhile the client can lose its roles, its restrictions can
 * change, and the client or its tenant can be removed. The same rules apply as for a new request.
 */
class ListenerRights {
  readonly #tenantConfigurations: TenantConfigurations;
  #caller: Listener;
  #tenantEndsAt: Date | undefined;

  constructor(tenantConfigurations: TenantConfigurations, caller: Listener) {
    this.#tenantConfigurations = tenantConfigurations;
    this.#caller = caller;
    this.#tenantEndsAt = caller.tenant.state.endsAt ?? undefined;
  }

  /** Time of the next check of the rights: the end of the token, or of the tenant as it was last read. */
  get expiresAt(): Date {
    const { tokenEndsAt } = this;
    const tenantEndsAt = this.#tenantEndsAt ?? tokenEndsAt;
    return tenantEndsAt < tokenEndsAt ? tenantEndsAt : tokenEndsAt;
  }

  /** Expiry of the access token. The end date of a tenant may be extended meanwhile, that of a token is fixed. */
  get tokenEndsAt(): Date {
    const { access, endsAt = access.expiresAt } = this.#caller;
    return endsAt < access.expiresAt ? endsAt : access.expiresAt;
  }

  /** @param head current state of the tenant. The client is looked up again only after a change. */
  async covers(session: Session, head: TenantState, now: Date): Promise<boolean> {
    if (!isServing(head, now)) return false;
    this.#tenantEndsAt = head.endsAt ?? undefined;
    if (head.revision !== this.#caller.tenant.state.revision) {
      const tenant = this.#tenantConfigurations.forState(head);
      const rights = await rightsOf(this.#caller.access, tenant, now);
      if (typeof rights === 'string') return false;
      const { endsAt: _endsAt, ...caller } = this.#caller;
      this.#caller = { ...caller, ...rights, tenant };
    }
    return isVisible(this.#caller, session);
  }
}
