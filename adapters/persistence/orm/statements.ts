import { MAX_ISSUANCES, type SessionQuery } from '../../../application/ports/store.ts';
import type { Statement } from './sql.ts';

/** Statements that read the same in both dialects. `$1` is the tenant throughout. */
export const HEAD = 't.id as head_id, t.status as head_status, t.revision as head_revision';

export const BATCH_COLUMNS =
  'tenant_id, session_id, id, credential_configuration_id, count, status_list_id, first_counter, issued_at';

/** Whether the session `s` may still hand out what it issued of what `bit` stands for. */
export const RETRIEVABLE = (bit: string) =>
  `s.status in ('active', 'fetched', 'completed') and (s.revoked_mask & ${bit}) = 0`;

/** Whether the session `s` may issue what `bit` stands for. */
export const ISSUABLE = (bit: string) => `${RETRIEVABLE(bit)} and s.issued_count < ${MAX_ISSUANCES}`;

const COUNT_DEFERRED = `(select count(*) from deferred_transactions d
     where d.tenant_id = s.tenant_id and d.session_id = s.id)`;

/** Whether the session `s` may still put something off: a wallet must not fill the table. */
export const DEFERRABLE = (bit: string) => `${ISSUABLE(bit)} and ${COUNT_DEFERRED} < ${MAX_ISSUANCES}`;

/** Columns that `readUse` reads, besides those of the session `s`. */
export const DEFERRED_COUNT = `${COUNT_DEFERRED} as deferred_count`;

function statement(name: string, text: string): Statement {
  return { name, text };
}

/** Row locks put writers in a row, so a release never replaces a newer one. */
export const NOTE_RELEASE = statement(
  'note_release',
  `insert into seen_releases (tenant_id, id, sequence_number, content_hash, seen_at)
   select t.id, cast($2 as text), cast($3 as bigint), cast($4 as text), cast($5 as bigint) from tenants t where t.id = $1
   on conflict (tenant_id, id) do update set sequence_number = excluded.sequence_number,
     content_hash = excluded.content_hash, seen_at = excluded.seen_at
   where seen_releases.sequence_number < excluded.sequence_number`,
);
export const FIND_RELEASE = statement(
  'find_release',
  'select sequence_number, content_hash from seen_releases where tenant_id = $1 and id = $2',
);
export const HEAD_OF_TENANT = statement('head', `select ${HEAD} from tenants t where t.id = $1`);

export const FIND_SESSION = statement(
  'find_session',
  `select * from sessions where tenant_id = $1 and id = $2`,
);

export const FIND_BY_PUBLIC_ID = statement(
  'find_by_public_id',
  `select ${HEAD}, s.* from tenants t left join sessions s on s.tenant_id = t.id and s.public_id = $2 where t.id = $1`,
);

export const FIND_WITH_USE = statement(
  'find_with_use',
  `select ${HEAD}, s.*, ${DEFERRED_COUNT}
   from tenants t left join sessions s on s.tenant_id = t.id and s.public_id = $2 where t.id = $1`,
);

export const READ_SESSION = statement(
  'read_session',
  `select ${HEAD}, s.* from tenants t left join sessions s on s.tenant_id = t.id and s.id = $2 where t.id = $1`,
);

/** What belongs to a session goes before the session itself. */
export const REMOVE_SESSION_GRANTS = statement(
  'remove_session_grants',
  'delete from grants where tenant_id = $1 and session_id = $2',
);
export const REMOVE_SESSION_EVENTS = statement(
  'remove_session_events',
  'delete from session_events where tenant_id = $1 and session_id = $2',
);
export const REMOVE_SESSION_DEFERRED = statement(
  'remove_session_deferred',
  'delete from deferred_transactions where tenant_id = $1 and session_id = $2',
);
export const REMOVE_SESSION_SUBJECTS = statement(
  'remove_session_subjects',
  'delete from session_subjects where tenant_id = $1 and session_id = $2',
);
export const REMOVE_SESSION = statement(
  'remove_session',
  'delete from sessions where tenant_id = $1 and id = $2',
);

export const FIND_GRANT = statement(
  'find_grant',
  `select ${HEAD}, g.* from tenants t left join grants g on g.tenant_id = t.id and g.code_hash = $2 where t.id = $1`,
);

export const FIND_GRANT_BY_ID = statement(
  'find_grant_by_id',
  `select ${HEAD}, g.* from tenants t left join grants g on g.tenant_id = t.id and g.id = $2 where t.id = $1`,
);

export const REVOKE_GRANT = statement(
  'revoke_grant',
  'update grants set revoked_at = $3 where tenant_id = $1 and id = $2 and revoked_at is null',
);

export const FIND_AUTHORIZATION = statement(
  'find_authorization',
  `select ${HEAD}, a.* from tenants t
   left join authorizations a on a.tenant_id = t.id and a.id = $2 where t.id = $1`,
);

/** Columns that every read of a session by its user yields, the newest first. */
export const FIND_BY_SUBJECT = statement(
  'find_by_subject',
  `select s.* from session_subjects u join sessions s on s.tenant_id = u.tenant_id and s.id = u.session_id
   where u.tenant_id = $1 and u.subject_hash = $2 order by s.created_at desc, s.id limit 20`,
);

export const LINK_SUBJECT = statement(
  'link_subject',
  `insert into session_subjects (tenant_id, subject_hash, session_id)
   select tenant_id, cast($2 as varchar), id from sessions where tenant_id = $1 and id = $3
   on conflict do nothing`,
);

export const FIND_DEFERRED = statement(
  'find_deferred',
  'select * from deferred_transactions where tenant_id = $1 and id = $2',
);

export const LIST_DEFERRED = statement(
  'list_deferred',
  `select * from deferred_transactions where tenant_id = $1 and (cast($2 as varchar) is null or session_id = $2)
   order by created_at desc, id limit $3`,
);

export const FAIL_DEFERRED = statement(
  'fail_deferred',
  `update deferred_transactions set status = 'failed', error_message = $3, updated_at = $4
   where tenant_id = $1 and id = $2 and status = 'pending' and expires_at > $4 returning id`,
);

export const TAKE_ATTEMPT = statement(
  'take_attempt',
  `update grants set attempts = attempts + 1
   where tenant_id = $1 and id = $2 and consumed_at is null and attempts < $3
   returning id`,
);

export const TAKE_STATUS_RUN = statement(
  'take_status_run',
  `update status_lists set used_entries = used_entries + $4
   where tenant_id = $1 and id = $2 and key_chain_id is not distinct from $3 and used_entries + $4 <= capacity
   returning used_entries - $4 as first`,
);

export const ISSUED_BATCHES = statement(
  'issued_batches',
  'select * from issued_batches where tenant_id = $1 and session_id = $2 order by issued_at, id',
);

export const READ_ISSUED = statement(
  'read_issued',
  `select ${HEAD}, s.configuration_ids, b.* from tenants t
   left join issued_batches b on b.tenant_id = t.id and b.session_id = $2
   left join sessions s on s.tenant_id = t.id and s.id = $2
   where t.id = $1 order by b.issued_at, b.id`,
);

export const CLAIM_RESPONSE = statement(
  'claim_response',
  `update sessions set claimed_at = $3
   where tenant_id = $1 and id = $2 and claimed_at is null and status in ('active', 'fetched') and expires_at > $3
   returning id`,
);

export const FIND_STATUS_LIST = statement(
  'find_status_list',
  `select * from status_lists where tenant_id = $1 and id = $2 and exists (select 1 from tenants where id = $1)`,
);

export const STATUS_ENTRIES = statement(
  'status_entries',
  'select idx, status from status_entries where tenant_id = $1 and list_id = $2 and changed_version > $3',
);

export const SAVE_STATUS_TOKEN = statement(
  'save_status_token',
  `update status_lists set token = $3, token_version = $4, token_issued_at = $5, token_expires_at = $6
   where tenant_id = $1 and id = $2
     and (token_version is null or token_version < $4 or (token_version = $4 and token_issued_at < $5))`,
);

export const FIND_TRUST_LIST = statement(
  'find_trust_list',
  'select jwt, next_update from trust_lists where tenant_id = $1 and id = $2',
);

export const SESSION_EVENTS = statement(
  'session_events',
  `select version, status, at from session_events
   where tenant_id = $1 and session_id = $2 and version > $3 order by version limit $4`,
);

export const INSERT_STATUS_LIST = statement(
  'insert_status_list',
  `insert into status_lists (tenant_id, id, credential_configuration_id, key_chain_id, bits, capacity, ttl_seconds,
     immediate_update, enable_aggregation, secret, used_entries, version, created_at)
   values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`,
);

/** Values of `SESSION_COLUMNS`, typed, so that they can be selected from the tenant that must be there. */
export const SESSION_VALUES = [
  ...['$1', '$2', '$3', '$4', '$5'].map((parameter) => `cast(${parameter} as varchar)`),
  'cast($6 as int), cast($7 as bigint), cast($8 as bigint), cast($9 as bigint), cast($10 as text)',
  'cast($11 as boolean), cast($12 as text), cast($13 as text), cast($14 as int), cast($15 as bigint), 0, 0',
].join(', ');

/** Keyset paging: the cost of a page does not grow with its number. */
export function listSessionsQuery(query: SessionQuery): {
  statement: Statement;
  parameters: (string | number)[];
} {
  const parameters: (string | number)[] = [];
  const bind = (value: string | number) => `$${parameters.push(value) + 1}`;
  const conditions = ['tenant_id = $1'];
  let shape = query.ascending ? 'up' : 'down';
  if (query.kinds.length === 1) {
    conditions.push(`kind = ${bind(query.kinds[0] ?? '')}`);
    shape += '_kind';
  }
  if (query.status !== undefined) {
    conditions.push(`status = ${bind(query.status)}`);
    shape += '_status';
  }
  if (query.since !== undefined) {
    conditions.push(`created_at >= ${bind(query.since.getTime())}`);
    shape += '_since';
  }
  if (query.after !== undefined) {
    const place = `(${bind(query.after.createdAt.getTime())}, ${bind(query.after.id)})`;
    conditions.push(`(created_at, id) ${query.ascending ? '>' : '<'} ${place}`);
    shape += '_after';
  }
  const order = query.ascending ? 'created_at asc, id asc' : 'created_at desc, id desc';
  const text = `select * from sessions where ${conditions.join(' and ')} order by ${order} limit ${bind(query.limit)}`;
  return { statement: statement(`list_sessions_${shape}`, text), parameters };
}
