import type { PendingDeliveries } from '../../../application/ports/pending-deliveries.ts';
import type { SessionId, TenantId } from '../../../domain/shared/ids.ts';
import type { JobSql } from '../job-sql.ts';
import { namedStatement } from '../statement.ts';

/** Number of longest-due deliveries among which tenants share fairly. */
const MAX_CONSIDERED = 10_000;

const DUE = namedStatement(
  'due_deliveries',
  `select tenant_id, session_id, id, due_at from (
     select d.*, row_number() over (partition by tenant_id order by due_at) as place
     from (select * from pending_deliveries where due_at <= $1 order by due_at limit ${MAX_CONSIDERED}) d) r
   where place <= $3 order by due_at limit $2`,
);
const IS_UNCHANGED = 'tenant_id = $1 and session_id = $2 and id = $3 and due_at = $4';
const FORGET = namedStatement('forget_delivery', `delete from pending_deliveries where ${IS_UNCHANGED}`);
const POSTPONE = namedStatement('postpone_delivery', `update pending_deliveries set due_at = $5 where ${IS_UNCHANGED}`);

/** Condition on a session: no delivery is pending whose outcome decides its status. */
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
    async postponeDelivery({ tenantId, sessionId, id, dueAt }, nextDueAt) {
      await sql.change(POSTPONE, tenantId, sessionId, id, dueAt.getTime(), nextDueAt.getTime());
    },
  };
}
