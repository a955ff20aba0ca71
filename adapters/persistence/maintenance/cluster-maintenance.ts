import type { Cipher } from '../../../application/ports/cipher.ts';
import type { Maintenance } from '../../../application/ports/maintenance.ts';
import { MOVES } from '../../../domain/sessions/session.ts';
import type { SessionId, TenantId } from '../../../domain/shared/ids.ts';
import type { ClientMacs } from '../client-macs.ts';
import type { PostgresSql } from '../postgres/sql.ts';
import type { Row } from '../statement.ts';
import { listOf, named } from '../statement.ts';
import { DUE_SESSIONS, postgresMaintenance } from './maintenance.ts';
import { clusterCleaningUp } from './retention.ts';

const [OPEN, EXPIRED] = [listOf(MOVES.expire.from), listOf([MOVES.expire.to])];
const DUE = named('due_sessions', DUE_SESSIONS);
const EXPIRE = named(
  'expire_sessions_of_tenant',
  `update sessions set status = ${EXPIRED}, version = version + 1, updated_at = $2
   where tenant_id = $1 and id = any($3::text[]) and status in (${OPEN}) and expires_at <= $2 returning id, version`,
);
const LOG = named(
  'log_expired_of_tenant',
  `insert into session_events (tenant_id, session_id, version, status, at)
     select $1::text, x.id, x.version, ${EXPIRED}, $2::bigint from unnest($3::text[], $4::int[]) as x(id, version)`,
);

/**
 * Jobs on a cluster that has each tenant on one of its machines: what finds rows asks all machines at once, what changes them is
 * of one tenant.
 */
export function clusterMaintenance(sql: PostgresSql, cipher: Cipher, clientMacs: ClientMacs): Maintenance {
  return {
    ...postgresMaintenance(sql, cipher, clientMacs),
    ...clusterCleaningUp(sql, cipher),
    async expireSessions(now, limit) {
      const due = Map.groupBy(await sql.query(DUE, [now.getTime(), limit]), (row) =>
        String(row['tenant_id']),
      );
      const expired: { tenantId: TenantId; id: SessionId }[] = [];
      for (const [tenantId, rows] of due) {
        const ids = await expireOf(sql, tenantId, rows, now);
        expired.push(...ids.map((id) => ({ tenantId: tenantId as TenantId, id: id as SessionId })));
      }
      return expired;
    },
    // Its machines look after the parts that they have.
    refreshStatistics: async () => ({ refreshed: [], failures: [] }),
  };
}

function expireOf(sql: PostgresSql, tenantId: string, due: readonly Row[], now: Date): Promise<string[]> {
  return sql.transaction(async (own) => {
    const ids = due.map(({ id }) => String(id));
    const rows = await own.query(EXPIRE, [tenantId, now.getTime(), ids]);
    const expired = rows.map(({ id }) => String(id));
    const versions = rows.map(({ version }) => Number(version));
    if (rows.length > 0) await own.query(LOG, [tenantId, now.getTime(), expired, versions]);
    return expired;
  });
}
