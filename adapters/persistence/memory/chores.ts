import type { Chores, EndingTrustList } from '../../../application/ports/store.ts';
import type { Client } from '../../../domain/clients/client.ts';
import { deferredStatusAt } from '../../../domain/issuance/deferred.ts';
import { isTerminal, OPEN_STATUSES, type Session, statusAt } from '../../../domain/sessions/session.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import type { Pass } from './memory-store.ts';
import type { State } from './state.ts';
import { EVERYWHERE, type Table } from './table.ts';

export function memoryChores(state: State, pass: Pass): Chores {
  return {
    time: async () => new Date(),
    expireSessions: (now, limit) =>
      pass(() => {
        const over = (session: Session) => OPEN_STATUSES.includes(session.status) && session.expiresAt <= now;
        const rows = state.sessions
          .everywhere(over)
          .map(({ row }) => row)
          .sort((a, b) => a.expiresAt.getTime() - b.expiresAt.getTime())
          .slice(0, limit);
        for (const session of rows) {
          const expired: Session = {
            ...session,
            status: 'expired',
            version: session.version + 1,
            updatedAt: now,
          };
          state.saveSession(expired);
          state.log(expired, now);
        }
        return rows.map(({ tenantId, id }) => ({ tenantId, id }));
      }),
    forgetExpired: (now, limit) =>
      pass(() =>
        [state.usedValues, state.grants, state.authorizations].reduce(
          (gone, table) => gone + forget(table as Table<{ expiresAt: Date }>, now, limit),
          0,
        ),
      ),
    expireDeferred: (now, limit) =>
      pass(() => {
        const due = state.deferred
          .everywhere(({ status, expiresAt }) => ['pending', 'ready'].includes(status) && expiresAt <= now)
          .slice(0, limit);
        for (const { scope, id, row } of due) {
          state.deferred.put(scope, id, { ...row, status: 'expired', credentials: null, updatedAt: now });
        }
        return due.length;
      }),
    cleanUpSessions: (now, limit, defaults) => pass(() => cleanUp(state, now, limit, defaults.ttlSeconds)),
    forgetPickUps: (now, limit) =>
      pass(() => {
        const over = ({ pickUp }: Client) => pickUp !== null && pickUp.expiresAt <= now;
        const rows = state.clients.list(EVERYWHERE, over).slice(0, limit);
        for (const client of rows) {
          const forgotten = { ...client, pickUp: null, version: client.version + 1 };
          state.clients.put(EVERYWHERE, client.clientId, forgotten);
        }
        return rows.length;
      }),
    endingTrustLists: (until, limit, after) =>
      pass(() =>
        state.trustLists
          .everywhere(({ nextUpdate }) => nextUpdate <= until)
          .map(({ scope, id, row }) => ({ tenantId: scope as TenantId, id, nextUpdate: row.nextUpdate }))
          .sort(inOrderOfTheirEnds)
          .filter((list) => after === undefined || inOrderOfTheirEnds(list, after) > 0)
          .slice(0, limit),
      ),
    removeRemains: async () => 0,
    refreshStatistics: async () => [],
    tryLease: (name, holder, now, ttlSeconds) =>
      pass(() => {
        const lease = state.leases.find(EVERYWHERE, name);
        if (lease !== undefined && lease.expiresAt > now && lease.holder !== holder) return false;
        const expiresAt = new Date(now.getTime() + ttlSeconds * 1000);
        state.leases.put(EVERYWHERE, name, { holder, expiresAt });
        return true;
      }),
  };
}

function inOrderOfTheirEnds(one: EndingTrustList, other: EndingTrustList): number {
  const [a, b] = [`${one.tenantId}\0${one.id}`, `${other.tenantId}\0${other.id}`];
  return one.nextUpdate.getTime() - other.nextUpdate.getTime() || (a < b ? -1 : a > b ? 1 : 0);
}

function cleanUp(state: State, now: Date, limit: number, defaultTtlSeconds: number) {
  const configOf = ({ tenantId }: Session) => state.tenants.find(EVERYWHERE, tenantId)?.sessionConfig;
  const isKept = (session: Session) => configOf(session)?.cleanupMode === 'anonymize';
  const isAwaited = ({ tenantId, id }: Session) =>
    state.deferred.list(tenantId, (row) => {
      const status = deferredStatusAt(row, now);
      return row.sessionId === id && (status === 'pending' || status === 'ready');
    }).length > 0;
  const due = state.sessions.everywhere((session) => {
    const ttlSeconds = configOf(session)?.ttlSeconds ?? defaultTtlSeconds;
    if (session.createdAt.getTime() + ttlSeconds * 1000 > now.getTime()) return false;
    if (!isTerminal(statusAt(session, now)) || isAwaited(session)) return false;
    return !isKept(session) || session.request !== null || session.outcome !== null;
  });
  const rows = due
    .map(({ row }) => row)
    .sort((a, b) => a.createdAt.getTime() - b.createdAt.getTime())
    .slice(0, limit);
  const drop = <Row extends { readonly sessionId: string }>(table: Table<Row>, session: Session) => {
    for (const { scope, id } of table.everywhere(({ sessionId }) => sessionId === session.id))
      if (scope === session.tenantId) table.remove(scope, id);
  };
  for (const session of rows) {
    state.removeSessionData(session.tenantId, session.id);
    if (isKept(session)) {
      const expiresAt = session.expiresAt < now ? session.expiresAt : now;
      state.saveSession({
        ...session,
        request: null,
        outcome: null,
        version: session.version + 1,
        expiresAt,
      });
      continue;
    }
    drop(state.events, session);
    state.sessions.remove(session.tenantId, session.id);
  }
  const anonymized = rows.filter(isKept).length;
  return { removed: rows.length - anonymized, anonymized };
}

function forget<Row extends { readonly expiresAt: Date }>(
  table: Table<Row>,
  now: Date,
  limit: number,
): number {
  const gone = table.everywhere((row) => row.expiresAt <= now).slice(0, limit);
  for (const { scope, id } of gone) table.remove(scope, id);
  return gone.length;
}
