import type { Following } from '../rows/wallet-status-codec.ts';
import { named } from '../statement.ts';
import { insert, type SqliteRun } from './sql.ts';

const HOLD = named(
  'hold_wallet_statuses',
  'update deferred_transactions set wallet_statuses = $3 where tenant_id = $1 and id = $2',
);
/** A list that nothing followed for a while is followed again. */
const FOLLOW_LIST = insert(
  'followed_lists',
  ['id', 'place', 'next_check_at', 'failures'],
  'on conflict do update set idle_since = null',
);
const FOLLOW_STATUS = insert(
  'followed_statuses',
  ['list_id', 'idx', 'batch_id', 'session_id', 'ends_at'],
  'on conflict do nothing',
);

/** What `follow_wallets_1` does in PostgreSQL. */
export function follow(
  run: SqliteRun,
  tenantId: string,
  following: Following | undefined,
  now: number,
): void {
  if (following === undefined) return;
  const [transactionId, held] = following.transaction;
  if (transactionId !== null) run.change(HOLD, tenantId, transactionId, held);
  for (const [id, place] of following.lists) run.change(FOLLOW_LIST, tenantId, id, place, now, 0);
  const [session, batch, endsAt] = following.batch;
  for (const [listId, idx] of following.statuses)
    run.change(FOLLOW_STATUS, tenantId, listId, idx, batch, session, endsAt);
}
