import type { AuditChange, TenantActor } from '../../../domain/audit/audit-entry.ts';
import { extendChain } from '../../../domain/audit/chain.ts';
import type { Macs } from '../../../domain/audit/macs.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { readHead } from '../rows/audit-head.ts';
import { namedStatement } from '../statement.ts';
import { insert, type SqliteRun } from './sql.ts';

const READ_HEAD = namedStatement('read_audit_head', 'select sequence, hash, seal from audit_heads where tenant_id = $1');
const LAST_ENTRY = namedStatement('last_audit_entry', 'select coalesce(max(sequence), 0) as last from audit_entries where tenant_id = $1');
const ENTRY = ['sequence', 'at', 'actor', 'action', 'kind', 'target', 'detail', 'hash'];
const INSERT_ENTRY = insert('audit_entries', ENTRY);
const PUT_HEAD = insert(
  'audit_heads',
  ['sequence', 'hash', 'seal'],
  'on conflict (tenant_id) do update set sequence = excluded.sequence, hash = excluded.hash, seal = excluded.seal',
);

/** Adds one entry to a tenant's chain within a transaction. */
export type SqliteChain = { record(run: SqliteRun, by: TenantActor, change: AuditChange): void };

export function sqliteChain(macs: Macs, tenantId: TenantId): SqliteChain {
  return {
    record(run, by, change) {
      const [headRow] = run.all(READ_HEAD, tenantId);
      const head = headRow && readHead(headRow);
      const lastSequence = Number(run.all(LAST_ENTRY, tenantId)[0]?.['last']);
      const additions = [{ by, at: new Date(), change }];
      const extension = extendChain(macs, tenantId, { head, lastSequence }, additions);
      for (const { sequence, at: recordedAt, actor, action, kind, target, detail, hash } of extension.entries) {
        run.change(INSERT_ENTRY, tenantId, sequence, recordedAt.getTime(), actor, action, kind, target, detail, hash);
      }
      const { sequence, hash, seal } = extension.head;
      run.change(PUT_HEAD, tenantId, sequence, hash, seal);
    },
  };
}
