import type { Cipher } from '../../../application/ports/cipher.ts';
import type { FollowedPlace, FollowedWallets, Follower } from '../../../application/ports/followed-wallets.ts';
import type { SessionId, TenantId } from '../../../domain/shared/ids.ts';
import type { FollowedList } from '../../../domain/status-lists/wallet-status.ts';
import type { JobSql } from '../job-sql.ts';
import { ISSUED_BATCHES } from '../rows/session-codec.ts';
import { readFollowedList } from '../rows/wallet-status-codec.ts';
import { named, type Row } from '../statement.ts';

/** A list that nothing followed for so long goes; a transaction that is under way may be about to follow it. */
const IDLE_MS = 86_400_000;
/** Of a list whose row does not open, as `/health` and the cache statistics tell it, and until it is tried again. */
const UNREADABLE = 'its row in the database does not open';
const UNREADABLE_REST_MS = 900_000;

/** In which the dialects differ: how the elements of an array are listed, and the members of an array of objects at `$1`. */
export type FollowedWords = { readonly indices: string; readonly rows: string };
export const POSTGRES_FOLLOWED: FollowedWords = {
  indices: '= any($3::int[])',
  rows: `jsonb_to_recordset(cast($1 as jsonb))
    as v(tenant text, list text, idx int, batch text, session text, configuration text, fell bigint)`,
};
const MEMBERS = ['tenant', 'list', 'idx', 'batch', 'session', 'configuration', 'fell'];
export const SQLITE_FOLLOWED: FollowedWords = {
  indices: 'in (select value from json_each($3))',
  rows: `(select ${MEMBERS.map((name) => `json_extract(value, '$.${name}') as ${name}`).join(', ')} from json_each($1)) v`,
};

const DUE = named('due_followed_lists', 'select * from followed_lists where next_check_at <= $1 order by next_check_at limit $2');
const CHECKED = named(
  'followed_list_checked',
  `update followed_lists set next_check_at = $3, checked_at = $4, failing_since = null, failures = 0, failure = null
   where tenant_id = $1 and id = $2`,
);
const FAILED = named(
  'followed_list_failed',
  `update followed_lists set next_check_at = $3, failing_since = coalesce(failing_since, $4), failures = failures + 1,
     failure = $5 where tenant_id = $1 and id = $2`,
);
const FALLEN = named('fallen_batches', 'select * from fallen_batches where told_at is null order by fell_at, batch_id limit $1');
const FALLEN_TOLD = named(
  'fallen_batches_told',
  'select * from fallen_batches where told_at is not null order by fell_at, batch_id limit $1',
);
const TOLD_OF_FALLEN = named('told_of_fallen', 'update fallen_batches set told_at = $3 where tenant_id = $1 and batch_id = $2');
const FORGET_FALLEN = named('forget_fallen', 'delete from fallen_batches where tenant_id = $1 and batch_id = $2');
/** The last of the next `$2` rows, how many they are, and how many of them have ended. */
const WALK = named(
  'walk_followed',
  `with visited as materialized (
     select tenant_id, list_id, idx, batch_id, ends_at from followed_statuses
     where (tenant_id, list_id, idx, batch_id) > ($3, $4, $5, $6)
     order by tenant_id, list_id, idx, batch_id limit $2)
   select tenant_id, list_id, idx, batch_id, (select count(*) from visited) as visited,
     (select count(*) from visited where ends_at <= $1) as ended
   from visited order by tenant_id desc, list_id desc, idx desc, batch_id desc limit 1`,
);
/** Between the last place and this one; what is inserted meanwhile has not ended. */
const FORGET_ENDED = named(
  'forget_ended_followed',
  `delete from followed_statuses
   where (tenant_id, list_id, idx, batch_id) > ($2, $3, $4, $5)
     and (tenant_id, list_id, idx, batch_id) <= ($6, $7, $8, $9) and ends_at <= $1`,
);
const UNUSED = `not exists (select 1 from followed_statuses s
  where s.tenant_id = followed_lists.tenant_id and s.list_id = followed_lists.id)`;
const DROP_IDLE = named(
  'drop_idle_lists',
  `delete from followed_lists where (tenant_id, id) in
     (select tenant_id, id from followed_lists where idle_since <= $1 limit $2)
   and idle_since <= $1 and ${UNUSED}`,
);
const MARK_IDLE = named('mark_idle_lists', `update followed_lists set idle_since = $1 where idle_since is null and ${UNUSED}`);
const OF_TENANT = named(
  'followed_lists_of_tenant',
  `select * from followed_lists where tenant_id = $1
   order by case when failing_since is null then 1 else 0 end, failing_since, id limit $2`,
);
const FAILING = named(
  'failing_followed_lists',
  'select count(*) as failing from followed_lists where failing_since <= $1 and idle_since is null',
);
const START: FollowedPlace = ['', '', -1, ''];

export function followedWallets(sql: JobSql, cipher: Cipher, { indices, rows }: FollowedWords): FollowedWallets {
  const FOLLOWERS = named(
    'followers',
    `select s.idx, s.batch_id as follows_batch, s.session_id as follows_session, b.* from followed_statuses s
     left join issued_batches b on b.tenant_id = s.tenant_id and b.session_id = s.session_id and b.id = s.batch_id
     where s.tenant_id = $1 and s.list_id = $2 and s.idx ${indices} limit $4`,
  );
  const ADD_FALLEN = named(
    'add_fallen',
    `insert into fallen_batches (tenant_id, batch_id, session_id, credential_configuration_id, fell_at)
     select distinct v.tenant, v.batch, v.session, v.configuration, v.fell from ${rows} where v.configuration is not null
     order by v.tenant, v.batch on conflict do nothing`,
  );
  const LET_GO = named(
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
          // Else it would be the first of the next run, too, and nobody's list would be looked at any more.
          const again = now.getTime() + UNREADABLE_REST_MS;
          await sql.change(FAILED, row['tenant_id'] as TenantId, String(row['id']), again, now.getTime(), UNREADABLE);
        }
      }
      return lists;
    },
    async noteFollowedList({ tenantId, id }, now, nextAt, reason) {
      const times = [nextAt.getTime(), now.getTime()] as const;
      if (reason === undefined) await sql.change(CHECKED, tenantId, id, ...times);
      else await sql.change(FAILED, tenantId, id, ...times, reason);
    },
    followers: async ({ tenantId, id }, wanted, limit) => (await sql.all(FOLLOWERS, tenantId, id, wanted, limit)).map(readFollower),
    async fall({ tenantId, id }, followers, now) {
      const these = JSON.stringify(
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
      // First, so that what stops in between is done again, and nobody is forgotten.
      await sql.change(ADD_FALLEN, these);
      await sql.change(LET_GO, these);
    },
    async fallenBatches(limit, isTold = false) {
      return (await sql.all(isTold ? FALLEN_TOLD : FALLEN, limit)).map((row) => ({
        tenantId: row['tenant_id'] as TenantId,
        batchId: String(row['batch_id']),
        sessionId: row['session_id'] as SessionId,
        credentialConfigurationId: String(row['credential_configuration_id']),
        fellAt: new Date(Number(row['fell_at'])),
      }));
    },
    async toldOfFallen({ tenantId, batchId }, now) {
      await sql.change(TOLD_OF_FALLEN, tenantId, batchId, now.getTime());
    },
    async forgetFallen({ tenantId, batchId }) {
      await sql.change(FORGET_FALLEN, tenantId, batchId);
    },
    async forgetEnded(now, limit, place = START) {
      const [last] = await sql.all(WALK, now.getTime(), limit, ...place);
      if (last === undefined) return { gone: 0, place: undefined };
      const next = placeOf(last);
      const hasEnded = Number(last['ended']) > 0;
      const gone = hasEnded ? await sql.change(FORGET_ENDED, now.getTime(), ...place, ...next) : 0;
      return { gone, place: Number(last['visited']) < limit ? undefined : next };
    },
    async forgetIdleLists(now, limit) {
      await sql.change(DROP_IDLE, now.getTime() - IDLE_MS, limit);
      await sql.change(MARK_IDLE, now.getTime());
    },
    followedLists: async (tenantId, limit) => (await sql.all(OF_TENANT, tenantId, limit)).map((row) => readFollowedList(cipher, row)),
    failingLists: async (since) => Number((await sql.all(FAILING, since.getTime()))[0]?.['failing']),
  };
}

function placeOf(row: Row): FollowedPlace {
  return [String(row['tenant_id']), String(row['list_id']), Number(row['idx']), String(row['batch_id'])];
}
