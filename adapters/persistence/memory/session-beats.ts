import type { Beats, NewGrant, SessionQuery } from '../../../application/ports/store.ts';
import { describeSessionRemoval } from '../../../domain/audit/describe-change.ts';
import type { Grant } from '../../../domain/oauth/grant.ts';
import { OPEN_STATUSES, type Session, transition } from '../../../domain/sessions/session.ts';
import type { PublicId, TenantId } from '../../../domain/shared/ids.ts';
import type { AuditChains } from './audit-chains.ts';
import type { Pass } from './memory-store.ts';
import type { State } from './state.ts';

type SessionBeats = Pick<
  Beats,
  | 'head'
  | 'openSession'
  | 'findSession'
  | 'readSession'
  | 'recallSession'
  | 'answerAtOnce'
  | 'listSessions'
  | 'sessionVersions'
  | 'removeSession'
  | 'findByPublicId'
  | 'fetchSession'
  | 'claimResponse'
  | 'recordOutcome'
  | 'sessionEvents'
>;

export function sessionBeats(
  state: State,
  pass: Pass,
  chains: AuditChains,
  tenantId: TenantId,
): SessionBeats {
  const { sessions, grants, events } = state;
  const isOpen = (session: Session, now: Date) =>
    OPEN_STATUSES.includes(session.status) && session.expiresAt > now;

  return {
    head: () => pass(() => state.head(tenantId)),
    openSession: (session, grant, revision) =>
      pass(() => {
        const head = state.head(tenantId);
        if (head?.status !== 'active' || (revision !== undefined && head.revision !== revision)) return false;
        assertNew(state, tenantId, session);
        sessions.put(tenantId, session.id, { ...session, tenantId });
        if (grant !== undefined) {
          grants.put(tenantId, grant.id, newGrant(grant));
        }
        state.log({ ...session, tenantId }, session.createdAt);
        return true;
      }),
    readSession: (id) =>
      pass(() => {
        const head = state.head(tenantId);
        return head === undefined ? undefined : { head, session: sessions.find(tenantId, id) };
      }),
    recallSession: () => undefined,
    findSession: (id) => pass(() => sessions.find(tenantId, id)),
    listSessions: (query) =>
      pass(() => {
        const direction = query.ascending ? 1 : -1;
        return sessions
          .list(tenantId, (session) => isWanted(query, session))
          .sort((a, b) => direction * compare(a, b))
          .slice(0, query.limit);
      }),
    sessionVersions: (ids) =>
      pass(() =>
        sessions.list(tenantId, ({ id }) => ids.includes(id)).map(({ id, version }) => ({ id, version })),
      ),
    removeSession: (id, by) =>
      pass(() => {
        state.removeSessionData(tenantId, id);
        for (const { version } of events.list(tenantId, ({ sessionId }) => sessionId === id)) {
          events.remove(tenantId, `${id} ${version}`);
        }
        const removed = sessions.remove(tenantId, id);
        if (removed) chains.note(tenantId, by, describeSessionRemoval(id));
        return removed;
      }),
    findByPublicId: (publicId) => pass(() => withHead(state, tenantId, publicId)),
    fetchSession: (publicId, now) =>
      pass(() => {
        const found = withHead(state, tenantId, publicId);
        if (found?.session === undefined) return found && { ...found, changed: false };
        const { head, session } = found;
        const changed = head.status === 'active' && session.status === 'active' && isOpen(session, now);
        if (!changed) return { head, session, changed };
        const fetched: Session = {
          ...session,
          status: 'fetched',
          version: session.version + 1,
          updatedAt: now,
        };
        state.saveSession(fetched);
        state.log(fetched, now);
        return { head, session: fetched, changed };
      }),
    answerAtOnce: ({ sessionId, revision, event, outcome }, now) =>
      pass(() => {
        const head = state.head(tenantId);
        const session = sessions.find(tenantId, sessionId);
        if (head?.status !== 'active' || head.revision !== revision) return false;
        if (session === undefined || session.claimedAt !== null || !isOpen(session, now)) return false;
        const { to: status } = transition(event);
        const next = {
          ...session,
          status,
          outcome,
          version: session.version + 1,
          updatedAt: now,
          claimedAt: now,
        };
        state.saveSession(next);
        state.log(next, now);
        return true;
      }),
    claimResponse: (id, now) =>
      pass(() => {
        const session = sessions.find(tenantId, id);
        if (session === undefined || session.claimedAt !== null || !isOpen(session, now)) return false;
        state.saveSession({ ...session, claimedAt: now });
        return true;
      }),
    recordOutcome: ({ id, version }, event, outcome, now) =>
      pass(() => {
        const session = sessions.find(tenantId, id);
        const change = event === undefined ? undefined : transition(event);
        if (session === undefined || session.version !== version) return undefined;
        if (change !== undefined && !change.from.includes(session.status)) return undefined;
        const status = change?.to ?? session.status;
        const next = { ...session, status, outcome, version: version + 1, updatedAt: now };
        state.saveSession(next);
        if (change !== undefined) state.log(next, now);
        return next.version;
      }),
    sessionEvents: (id, after, limit) =>
      pass(() =>
        events
          .list(tenantId, (event) => event.sessionId === id && event.version > after)
          .sort((a, b) => a.version - b.version)
          .slice(0, limit)
          .map(({ sessionId: _sessionId, ...entry }) => entry),
      ),
  };
}

export function withHead(state: State, tenantId: TenantId, publicId: PublicId) {
  const head = state.head(tenantId);
  if (head === undefined) return undefined;
  const [session] = state.sessions.list(tenantId, (candidate) => candidate.publicId === publicId);
  return { head, session };
}

function assertNew({ sessions }: State, tenantId: TenantId, { id, publicId }: Session): void {
  const same = sessions.list(tenantId, (other) => other.id === id || other.publicId === publicId);
  if (same.length > 0) throw new Error('A session of this id exists already.');
}

function isWanted(query: SessionQuery, session: Session): boolean {
  const { kinds, status, since, after, ascending } = query;
  if (kinds.length > 0 && !kinds.includes(session.kind)) return false;
  if (status !== undefined && session.status !== status) return false;
  if (since !== undefined && session.createdAt < since) return false;
  return after === undefined || (ascending ? compare(session, after) > 0 : compare(session, after) < 0);
}

function compare(a: { createdAt: Date; id: string }, b: { createdAt: Date; id: string }): number {
  const apart = a.createdAt.getTime() - b.createdAt.getTime();
  if (apart !== 0) return apart;
  return a.id === b.id ? 0 : a.id < b.id ? -1 : 1;
}

export function newGrant(grant: NewGrant): Grant {
  return { ...grant, attempts: 0, consumedAt: null, holder: null, generation: 0, revokedAt: null };
}
