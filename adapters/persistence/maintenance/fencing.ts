import type { FenceStep, Fencing } from '../../../application/ports/fencing.ts';
import { DEFERRED_MOVES } from '../../../domain/issuance/deferred.ts';
import { OPEN_STATUSES } from '../../../domain/sessions/session.ts';
import type { JobSql } from '../job-sql.ts';
import { listOf, namedStatement } from '../statement.ts';

/** Update of the rows of one table whose key is the tenant and the id. `$1` is the time. */
type Ending = { readonly name: string; readonly table: string; readonly set: string; readonly where: string };

/** A session with a response stays open for its client for an hour after its expiry; one millisecond more makes it expire at once. */
const UNDECIDED_MS = 3_600_001;
/** An expired list would not be served until it is signed again. */
const RENEWED_WITHIN_MS = 3_600_000;

const NOW = 'cast($1 as bigint)';

const ENDINGS: readonly Ending[] = [
  {
    name: 'status lists filled up',
    table: 'status_lists',
    set: 'used_entries = capacity',
    where: `used_entries < capacity and ${NOW} > 0`,
  },
  {
    name: 'codes and refresh tokens ended',
    table: 'grants',
    set: `revoked_at = coalesce(revoked_at, ${NOW}), consumed_at = coalesce(consumed_at, ${NOW})`,
    where: 'revoked_at is null or consumed_at is null',
  },
  { name: 'authorizations ended', table: 'authorizations', set: `expires_at = ${NOW}`, where: `expires_at > ${NOW}` },
  { name: 'stored responses deleted', table: 'kept_answers', set: `expires_at = ${NOW}`, where: `expires_at > ${NOW}` },
  {
    name: 'deferred transactions ended',
    table: 'deferred_transactions',
    set: `status = ${listOf([DEFERRED_MOVES.expire.to])}, credentials = null, holder_keys = '[]',
      wallet_statuses = null, updated_at = ${NOW}`,
    where: `status in (${listOf(DEFERRED_MOVES.expire.from)})`,
  },
  {
    name: 'open sessions ended',
    table: 'sessions',
    set: `expires_at = ${NOW} - ${UNDECIDED_MS}`,
    where: `status in (${listOf(OPEN_STATUSES)}) and expires_at > ${NOW} - ${UNDECIDED_MS}`,
  },
  {
    name: 'trust lists to be signed again',
    table: 'trust_lists',
    set: `next_update = ${NOW} + ${RENEWED_WITHIN_MS}`,
    where: `next_update > ${NOW} + ${RENEWED_WITHIN_MS}`,
  },
];

const PICK_UPS = namedStatement('fence_pick_ups', 'update clients set pick_up = null where pick_up is not null and cast($1 as bigint) > 0');
const DELIVERIES = namedStatement('fence_deliveries', `delete from pending_deliveries where ${NOW} > 0`);
/** The counted sessions have ended, or belong to a timeline that no longer exists. */
const SESSION_BYTES = namedStatement('fence_open_session_bytes', `delete from open_session_bytes where ${NOW} > 0`);
const LAST_RELEASE = namedStatement(
  'last_list_release',
  `select max(number) as number, max(at) as at from (
     select max(sequence_number) as number, max(updated_at) as at from trust_lists
     union all select max(sequence_number), max(created_at) from trust_list_versions) r`,
);

export function fencing(sql: JobSql): Fencing {
  return {
    steps: [
      // Sessions with a pending delivery do not expire.
      {
        name: 'unfinished deliveries abandoned',
        run: async (now) => ({ done: await sql.change(DELIVERIES, now.getTime()), nextCursor: undefined }),
      },
      ...ENDINGS.map((ending) => stepOf(sql, ending)),
      {
        name: 'secrets of clients that were not fetched erased',
        run: async (now) => ({ done: await sql.change(PICK_UPS, now.getTime()), nextCursor: undefined }),
      },
      {
        name: 'sums of open session bytes deleted',
        run: async (now) => ({ done: await sql.change(SESSION_BYTES, now.getTime()), nextCursor: undefined }),
      },
    ],
    async lastListRelease() {
      const [row] = await sql.all(LAST_RELEASE);
      const releasedAt = row?.['at'] ?? undefined;
      return { number: Number(row?.['number'] ?? 0), at: releasedAt === undefined ? undefined : new Date(Number(releasedAt)) };
    },
  };
}

/** Pages through the table by its key, so each row is visited once however many there are. */
function stepOf(sql: JobSql, { name, table, set, where }: Ending): FenceStep {
  const page = namedStatement(
    `fence_page_${table}`,
    `select tenant_id, id from ${table} where (tenant_id, id) > ($1, $2) order by tenant_id, id limit $3`,
  );
  const end = namedStatement(
    `fence_${table}`,
    `update ${table} set ${set}
     where (tenant_id, id) > ($2, $3) and (tenant_id, id) <= ($4, $5) and (${where})`,
  );
  return {
    name,
    async run(now, limit, position = ['', '']) {
      const rows = await sql.all(page, ...position, limit);
      const lastRow = rows.at(-1);
      if (lastRow === undefined) return { done: 0, nextCursor: undefined };
      const lastKey = [String(lastRow['tenant_id']), String(lastRow['id'])] as const;
      const done = await sql.change(end, now.getTime(), ...position, ...lastKey);
      return { done, nextCursor: rows.length < limit ? undefined : lastKey };
    },
  };
}
