import type { Cipher } from '../../../application/ports/cipher.ts';
import type { FollowedWallets, Follower, FollowerCursor } from '../../../application/ports/followed-wallets.ts';
import type { SessionId, TenantId } from '../../../domain/shared/ids.ts';
import type { FollowedList } from '../../../domain/status-lists/wallet-status.ts';
import type { JobSql } from '../job-sql.ts';
import { ISSUED_BATCHES } from '../rows/session-codec.ts';
import { readFollowedList } from '../rows/wallet-status-codec.ts';
import { namedStatement, type Row } from '../statement.ts';

/** A list that is unused for this long is deleted; a running transaction may be about to follow it. */
const IDLE_MS = 86_400_000;
/** Failure that `/health` and the cache statistics show for a list whose row cannot be opened. It is retried after the pause below. */
const UNREADABLE = 'its row in the database cannot be decrypted';
const UNREADABLE_REST_MS = 900_000;

/** SQL in which the dialects differ: membership in an array, and the columns of an array of objects at `$1`. */
export type FollowedSql = { readonly indices: string; readonly rows: string };
export const POSTGRES_FOLLOWED: FollowedSql = {
  indices: '= any($3::int[])',
  rows: `jsonb_to_recordset(cast($1 as jsonb))
    as v(tenant text, list text, idx int, batch text, session text, configuration text, fell bigint)`,
};
const COLUMNS = ['tenant', 'list', 'idx', 'batch', 'session', 'configuration', 'fell'];
export const SQLITE_FOLLOWED: FollowedSql = {
  indices: 'in (select value from json_each($3))',
  rows: `(select ${COLUMNS.map((name) => `json_extract(value, '$.${name}') as ${name}`).join(', ')} from json_each($1)) v`,
};

const DUE = namedStatement('due_followed_lists', 'select * from followed_lists where next_check_at <= $1 order by next_check_at limit $2');
const CHECKED = namedStatement(
  'followed_list_checked',
  `update followed_lists set next_check_at = $3, checked_at = $4, failing_since = null, failures = 0, failure = null
   where tenant_id = $1 and id = $2`,
);
const FAILED = namedStatement(
  'followed_list_failed',
  `update followed_lists set next_check_at = $3, failing_since = coalesce(failing_since, $4), failures = failures + 1,
     failure = $5 where tenant_id = $1 and id = $2`,
);
const FALLEN = namedStatement('fallen_batches', 'select * from fallen_batches where told_at is null order by fell_at, batch_id limit $1');
const FALLEN_TOLD = namedStatement(
  'fallen_batches_told',
  'select * from fallen_batches where told_at is not null order by fell_at, batch_id limit $1',
);
const TOLD_OF_FALLEN = namedStatement('told_of_fallen', 'update fallen_batches set told_at = $3 where tenant_id = $1 and batch_id = $2');
const FORGET_FALLEN = namedStatement('forget_fallen', 'delete from fallen_batches where tenant_id = $1 and batch_id = $2');
/** The last of the next `$2` rows, their number, and the number of ended ones. */
const WALK = namedStatement(
  'walk_followed',
  `with visited as materialized (
     select tenant_id, list_id, idx, batch_id, ends_at from followed_statuses
     where (tenant_id, list_id, idx, batch_id) > ($3, $4, $5, $6)
     order by tenant_id, list_id, idx, batch_id limit $2)
   select tenant_id, list_id, idx, batch_id, (select count(*) from visited) as visited,
     (select count(*) from visited where ends_at <= $1) as ended
   from visited order by tenant_id desc, list_id desc, idx desc, batch_id desc limit 1`,
);
/** Deletes between the previous position and this one. Rows that are inserted meanwhile have not ended. */
const FORGET_ENDED = namedStatement(
  'forget_ended_followed',
  `delete from followed_statuses
   where (tenant_id, list_id, idx, batch_id) > ($2, $3, $4, $5)
     and (tenant_id, list_id, idx, batch_id) <= ($6, $7, $8, $9) and ends_at <= $1`,
);
const UNUSED = `not exists (select 1 from followed_statuses s
  where s.tenant_id = followed_lists.tenant_id and s.list_id = followed_lists.id)`;
const DROP_IDLE = namedStatement(
  'drop_idle_lists',
  `delete from followed_lists where (tenant_id, id) in
     (select tenant_id, id from followed_lists where idle_since <= $1 limit $2)
   and idle_since <= $1 and ${UNUSED}`,
);
const MARK_IDLE = namedStatement('mark_idle_lists', `update followed_lists set idle_since = $1 where idle_since is null and ${UNUSED}`);
const OF_TENANT = namedStatement(
  'followed_lists_of_tenant',
  `select * from followed_lists where tenant_id = $1
   order by case when failing_since is null then 1 else 0 end, failing_since, id limit $2`,
);
const FAILING = namedStatement(
  'failing_followed_lists',
  'select count(*) as failing from followed_lists where failing_since <= $1 and idle_since is null',
);
const START: FollowerCursor = ['', '', -1, ''];

export function followedWallets(sql: JobSql, cipher: Cipher, { indices, rows }: FollowedSql): FollowedWallets {
  const FOLLOWERS = namedStatement(
    'followers',
    `select s.idx, s.batch_id as follows_batch, s.session_id as follows_session, b.* from followed_statuses s
     left join issued_batches b on b.tenant_id = s.tenant_id and b.session_id = s.session_id and b.id = s.batch_id
     where s.tenant_id = $1 and s.list_id = $2 and s.idx ${indices} limit $4`,
  );
  const ADD_FALLEN = namedStatement(
    'add_fallen',
    `insert into fallen_batches (tenant_id, batch_id, session_id, credential_configuration_id, fell_at)
     select distinct v.tenant, v.batch, v.session, v.configuration, v.fell from ${rows} where v.configuration is not null
     order by v.tenant, v.batch on conflict do nothing`,
  );
  const LET_GO = namedStatement(
    'let_followers_go',
    `delete from followed_statuses where (tenant_id, list_id, idx, batch_id) in
       (select v.tenant, v.list, v.idx, v.batch from ${rows})`,
  );
  const readFollower = (row: Row): Follower => ({
    idx: Number(row['idx']),
    batchId: String(row['follows_batch']),
    sessionId: row['follows_session'] as SessionId,
    batch: row['id'] === null ? undefined : ISSUED_BATCHES.read(cipher, row),
  });
  return {
    async dueFollowedLists(now, limit) {
      const lists: FollowedList[] = [];
      for (const row of await sql.all(DUE, now.getTime(), limit)) {
        try {
          lists.push(readFollowedList(cipher, row));
        } catch {
          // Without this, the list would be the first of each run, and no other list would be checked.
          const retryAt = now.getTime() + UNREADABLE_REST_MS;
          await sql.change(FAILED, row['tenant_id'] as TenantId, String(row['id']), retryAt, now.getTime(), UNREADABLE);
        }
      }
      return lists;
    },
    async noteFollowedList({ tenantId, id }, now, nextAt, reason) {
      const times = [nextAt.getTime(), now.getTime()] as const;
      if (reason === undefined) await sql.change(CHECKED, tenantId, id, ...times);
      else await sql.change(FAILED, tenantId, id, ...times, reason);
    },
    followers: async ({ tenantId, id }, statusIndices, limit) =>
      (await sql.all(FOLLOWERS, tenantId, id, statusIndices, limit)).map(readFollower),
    async revokeFollowers({ tenantId, id }, followers, now) {
      const fallenRows = JSON.stringify(
        followers.map(({ idx, batchId, sessionId, batch }) => ({
          tenant: tenantId,
          list: id,
          idx,
          batch: batchId,
          session: sessionId,
          fell: now.getTime(),
          configuration: batch?.credentialConfigurationId ?? null,
        })),
      );
      // Added first, so that an interrupted run is repeated and no batch is lost.
      await sql.change(ADD_FALLEN, fallenRows);
      await sql.change(LET_GO, fallenRows);
    },
    async walletRevokedBatches(limit, isTold = false) {
      return (await sql.all(isTold ? FALLEN_TOLD : FALLEN, limit)).map((row) => ({
        tenantId: row['tenant_id'] as TenantId,
        batchId: String(row['batch_id']),
        sessionId: row['session_id'] as SessionId,
        credentialConfigurationId: String(row['credential_configuration_id']),
        fellAt: new Date(Number(row['fell_at'])),
      }));
    },
    async markWalletRevocationNotified({ tenantId, batchId }, now) {
      await sql.change(TOLD_OF_FALLEN, tenantId, batchId, now.getTime());
    },
    async forgetWalletRevoked({ tenantId, batchId }) {
      await sql.change(FORGET_FALLEN, tenantId, batchId);
    },
    async forgetEndedFollowers(now, limit, position = START) {
      const [lastRow] = await sql.all(WALK, now.getTime(), limit, ...position);
      if (lastRow === undefined) return { removed: 0, nextCursor: undefined };
      const nextPosition = positionOf(lastRow);
      const hasEnded = Number(lastRow['ended']) > 0;
      const removed = hasEnded ? await sql.change(FORGET_ENDED, now.getTime(), ...position, ...nextPosition) : 0;
      return { removed, nextCursor: Number(lastRow['visited']) < limit ? undefined : nextPosition };
    },
    async forgetIdleLists(now, limit) {
      await sql.change(DROP_IDLE, now.getTime() - IDLE_MS, limit);
      await sql.change(MARK_IDLE, now.getTime());
    },
    followedLists: async (tenantId, limit) => (await sql.all(OF_TENANT, tenantId, limit)).map((row) => readFollowedList(cipher, row)),
    failingLists: async (failingSince) => Number((await sql.all(FAILING, failingSince.getTime()))[0]?.['failing']),
  };
}

function positionOf(row: Row): FollowerCursor {
  return [String(row['tenant_id']), String(row['list_id']), Number(row['idx']), String(row['batch_id'])];
}
