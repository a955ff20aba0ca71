import type { Maintenance } from '../../../application/ports/maintenance.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { named } from '../statement.ts';
import type { JobSql } from './job-sql.ts';

/** A look at an index for each chain. The chain of the service is no tenant's. */
const OLD = named(
  'old_audit_logs',
  `select h.tenant_id from audit_heads h where h.tenant_id > $3 and h.tenant_id <> ''
     and (select e.at from audit_entries e where e.tenant_id = h.tenant_id order by e.sequence limit 1) < $1
   order by h.tenant_id limit $2`,
);
const REMOVE = named(
  'remove_audit_entries',
  'delete from audit_entries where tenant_id = $1 and sequence <= $2 and at < $3',
);

export function auditLogJobs(sql: JobSql): Pick<Maintenance, 'oldAuditLogs' | 'removeAuditEntries'> {
  return {
    async oldAuditLogs(before, limit, after) {
      const rows = await sql.all(OLD, before.getTime(), limit, after ?? '');
      return rows.map((row) => row['tenant_id'] as TenantId);
    },
    removeAuditEntries: (tenantId, upTo, before) => sql.change(REMOVE, tenantId, upTo, before.getTime()),
  };
}
