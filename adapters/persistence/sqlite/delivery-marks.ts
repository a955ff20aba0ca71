import type { SessionChange } from '../../../domain/sessions/session-change.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { named } from '../statement.ts';
import { insert, type SqliteRun } from './sql.ts';

const MARK_DELIVERY = insert(
  'pending_deliveries',
  ['session_id', 'id', 'due_at'],
  'on conflict (tenant_id, session_id, id) do update set due_at = excluded.due_at',
);
const UNMARK_DELIVERY = named(
  'unmark_delivery',
  'delete from pending_deliveries where tenant_id = $1 and session_id = $2 and id = $3',
);

/** Notes that a delivery of the session was begun, or what came of it is known. */
export function markDelivery(
  run: SqliteRun,
  tenantId: TenantId,
  { id: session, delivery }: SessionChange,
): void {
  if (delivery === undefined) return;
  const { id, abandonedAfterMs } = delivery;
  if (abandonedAfterMs === null) run.change(UNMARK_DELIVERY, tenantId, session, id);
  else run.change(MARK_DELIVERY, tenantId, session, id, run.time() + abandonedAfterMs);
}
