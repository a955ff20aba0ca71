import type { Chores } from '../../../application/ports/store.ts';
import { OPEN_STATUSES, type Session } from '../../../domain/sessions/session.ts';
import type { Pass } from './memory-store.ts';
import type { State } from './state.ts';
import { EVERYWHERE, type Table } from './table.ts';

export function memoryChores(state: State, pass: Pass): Chores {
  return {
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
      pass(() => forget(state.usedValues, now, limit) + forget(state.grants, now, limit)),
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

function forget<Row extends { readonly expiresAt: Date }>(
  table: Table<Row>,
  now: Date,
  limit: number,
): number {
  const gone = table.everywhere((row) => row.expiresAt <= now).slice(0, limit);
  for (const { scope, id } of gone) table.remove(scope, id);
  return gone.length;
}
