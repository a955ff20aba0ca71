import type { FenceStep, Fencing } from '../../../application/ports/fencing.ts';
import { DEFERRED_MOVES } from '../../../domain/issuance/deferred.ts';
import { OPEN_STATUSES } from '../../../domain/sessions/session.ts';
import type { JobSql } from '../job-sql.ts';
import { listOf, named } from '../statement.ts';

/** Rows of one table, of whose key the tenant and the id are all. `$1` is the time. */
type Ending = { readonly name: string; readonly table: string; readonly set: string; readonly where: string };

/** So long a session with a response is left to who can read it; it is to expire at once. */
const UNDECIDED_MS = 3_600_001;
/** A list that ended would not be served until it is signed anew. */
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
  {
    name: 'authorizations ended',
    table: 'authorizations',
    set: `expires_at = ${NOW}`,
    where: `expires_at > ${NOW}`,
  },
  {
    name: 'kept answers forgotten',
    table: 'kept_answers',
    set: `expires_at = ${NOW}`,
    where: `expires_at > ${NOW}`,
  },
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
    name: 'trust lists to be signed anew',
    table: 'trust_lists',
    set: `next_update = ${NOW} + ${RENEWED_WITHIN_MS}`,
    where: `next_update > ${NOW} + ${RENEWED_WITHIN_MS}`,
  },
];

const PICK_UPS = named('fence_pick_ups', 'update clients set pick_up = null where pick_up is not null and cast($1 as bigint) > 0');
const DELIVERIES = named('fence_deliveries', `delete from pending_deliveries where ${NOW} > 0`);
/** The sessions that they count have ended or belong to a future that no longer exists. */
const SESSION_BYTES = named('fence_open_session_bytes', `delete from open_session_bytes where ${NOW} > 0`);
const LAST_RELEASE = named(
  'last_list_release',
  `select max(number) as number, max(at) as at from (
     select max(sequence_number) as number, max(updated_at) as at from trust_lists
     union all select max(sequence_number), max(created_at) from trust_list_versions) r`,
);

export function fencing(sql: JobSql): Fencing {
  return {
    steps: [
      // Sessions that wait for one do not end.
      {
        name: 'deliveries that nobody finished given up',
        run: async (now) => ({ done: await sql.change(DELIVERIES, now.getTime()), place: undefined }),
      },
      ...ENDINGS.map((ending) => stepOf(sql, ending)),
      {
        name: 'secrets of clients that nobody fetched erased',
        run: async (now) => ({ done: await sql.change(PICK_UPS, now.getTime()), place: undefined }),
      },
      {
        name: 'sums of open session bytes deleted',
        run: async (now) => ({ done: await sql.change(SESSION_BYTES, now.getTime()), place: undefined }),
      },
    ],
    async lastListRelease() {
      const [row] = await sql.all(LAST_RELEASE);
      const at = row?.['at'] ?? undefined;
      return { number: Number(row?.['number'] ?? 0), at: at === undefined ? undefined : new Date(Number(at)) };
    },
  };
}

/** By the key of the table, so that each row is passed once however many there are. */
function stepOf(sql: JobSql, { name, table, set, where }: Ending): FenceStep {
  const page = named(
    `fence_page_${table}`,
    `select tenant_id, id from ${table} where (tenant_id, id) > ($1, $2) order by tenant_id, id limit $3`,
  );
  const end = named(
    `fence_${table}`,
    `update ${table} set ${set}
     where (tenant_id, id) > ($2, $3) and (tenant_id, id) <= ($4, $5) and (${where})`,
  );
  return {
    name,
    async run(now, limit, place = ['', '']) {
      const rows = await sql.all(page, ...place, limit);
      const last = rows.at(-1);
      if (last === undefined) return { done: 0, place: undefined };
      const until = [String(last['tenant_id']), String(last['id'])] as const;
      const done = await sql.change(end, now.getTime(), ...place, ...until);
      return { done, place: rows.length < limit ? undefined : until };
    },
  };
}
