import type { PendingDeliveries } from '../../../application/ports/pending-deliveries.ts';
import type { SessionId, TenantId } from '../../../domain/shared/ids.ts';
import type { JobSql } from '../job-sql.ts';
import { named } from '../statement.ts';

/** Among so many, those that are due longest, tenants are weighed against each other. */
const LOOKED_AT = 10_000;

const DUE = named(
  'due_deliveries',
  `select tenant_id, session_id, id, due_at from (
     select d.*, row_number() over (partition by tenant_id order by due_at) as place
     from (select * from pending_deliveries where due_at <= $1 order by due_at limit ${LOOKED_AT}) d) r
   where place <= $3 order by due_at limit $2`,
);
const AS_KNOWN = 'tenant_id = $1 and session_id = $2 and id = $3 and due_at = $4';
const FORGET = named('forget_delivery', `delete from pending_deliveries where ${AS_KNOWN}`);
const POSTPONE = named('postpone_delivery', `update pending_deliveries set due_at = $5 where ${AS_KNOWN}`);

/** Of a session: that no delivery is under way whose end decides about it. */
export const NOTHING_PENDING = `not exists (select 1 from pending_deliveries d
    where d.tenant_id = sessions.tenant_id and d.session_id = sessions.id)`;

export function pendingDeliveries(sql: JobSql): PendingDeliveries {
  return {
    async dueDeliveries(now, limit, ofEach) {
      const rows = await sql.all(DUE, now.getTime(), limit, ofEach);
      return rows.map((row) => ({
        tenantId: row['tenant_id'] as TenantId,
        sessionId: row['session_id'] as SessionId,
        id: String(row['id']),
        dueAt: new Date(Number(row['due_at'])),
      }));
    },
    async forgetDelivery({ tenantId, sessionId, id, dueAt }) {
      await sql.change(FORGET, tenantId, sessionId, id, dueAt.getTime());
    },
    async postponeDelivery({ tenantId, sessionId, id, dueAt }, until) {
      await sql.change(POSTPONE, tenantId, sessionId, id, dueAt.getTime(), until.getTime());
    },
  };
}
