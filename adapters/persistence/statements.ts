import type { SessionQuery, SessionRange } from '../../application/ports/store.ts';
import { HIDDEN, SESSIONS } from './rows/session-codec.ts';
import { brief, namedStatement, type Statement } from './statement.ts';

/** Statements that are the same in both dialects. `$1` is always the tenant. */
const TENANT_STATE =
  't.id as state_id, t.status as state_status, t.revision as state_revision, t.revisions as state_revisions, t.profile as state_profile, ' +
  't.ends_at as state_ends_at';

/** See `domain/rewinds/term.ts`; 0 in a database that no service has served. */
export const PRESENT_TERM = 'coalesce((select max(number) from service_terms), 0)';

/** Reads the row of a table that has this value in the column, with the tenant's state, which is present in any case. */
const withTenant = (name: string, table: string, column: string) =>
  brief(name, `select ${TENANT_STATE}, f.* from tenants t left join ${table} f on f.tenant_id = t.id and f.${column} = $2 where t.id = $1`);

/** Row locks serialize writers, so a version never replaces a newer one. */
export const NOTE_RELEASE = namedStatement(
  'note_release',
  `insert into seen_releases (tenant_id, id, sequence_number, content_hash, seen_at)
   select t.id, cast($2 as text), cast($3 as bigint), cast($4 as text), cast($5 as bigint) from tenants t where t.id = $1
   on conflict (tenant_id, id) do update set sequence_number = excluded.sequence_number,
     content_hash = excluded.content_hash, seen_at = excluded.seen_at
   where seen_releases.sequence_number < excluded.sequence_number`,
);
export const FIND_RELEASE = brief(
  'find_release',
  'select sequence_number, content_hash, seen_at from seen_releases where tenant_id = $1 and id = $2',
);
export const STATE = brief('tenant_state', `select ${TENANT_STATE} from tenants t where t.id = $1`);

/** @param used SQL that lists the kinds and hashes at `$3` and `$4` as rows of `v`. */
export const issuingStatement = (used: string) =>
  brief(
    'issuing',
    `select ${TENANT_STATE}, s.*,
       (select v.kind from ${used} join used_values u on u.tenant_id = $1 and u.kind = v.kind and u.hash = v.hash
        order by v.place limit 1) as used_kind,
       exists (select 1 from grants g where g.tenant_id = $1 and g.id = $5 and g.revoked_at is not null) as revoked
     from tenants t left join sessions s on s.tenant_id = t.id and s.public_id = $2 where t.id = $1`,
  );

export const READ_SESSION = withTenant('read_session', 'sessions', 'id');
const SESSION_OF_TENANT = 'tenants t left join sessions f on f.tenant_id = t.id and f.id = $2';
/** Adds the latest authorization of a wallet: the newest redeemed code, or else the newest of the others. */
const seenSession = (name: string, columns: string) =>
  brief(
    name,
    `select ${TENANT_STATE}, ${columns}, g.id as grant_id, g.document as grant_document, g.consumed_at as grant_consumed_at,
       g.holder as grant_holder
     from ${SESSION_OF_TENANT}
       left join (select c.id, c.document, c.consumed_at, c.holder from grants c
         where c.tenant_id = $1 and c.session_id = $2
         order by coalesce(c.consumed_at, 0) desc, c.expires_at desc, c.id limit 1) g on true
     where t.id = $1`,
  );
export const SEEN_SESSION = seenSession('seen_session', 'f.*');
/** Columns of a session without its request, which is most of it, and a flag that the request is present. */
const BUT_REQUEST = ['tenant_id', ...SESSIONS.columns.filter((column) => column !== 'request')]
  .map((column) => `f.${column}`)
  .join(', ')
  .concat(', f.request is not null as has_request');
/** Statements by the kind of the session: no wallet is authorized to answer a presentation request. */
export const SEEN = {
  issuance: seenSession('seen_issuance', BUT_REQUEST),
  verification: brief('seen_verification', `select ${TENANT_STATE}, ${BUT_REQUEST} from ${SESSION_OF_TENANT} where t.id = $1`),
};
export const FIND_BY_PUBLIC_ID = withTenant('find_by_public_id', 'sessions', 'public_id');
export const SESSION_STANDING = brief(
  'session_standing',
  `select ${TENANT_STATE}, f.id, f.status, f.version, f.updated_at, f.expires_at, f.claimed_at
   from tenants t left join sessions f on f.tenant_id = t.id and f.public_id = $2 where t.id = $1`,
);
export const FIND_GRANT = withTenant('find_grant', 'grants', 'code_hash');
export const FIND_GRANT_BY_ID = withTenant('find_grant_by_id', 'grants', 'id');
export const FIND_AUTHORIZATION = withTenant('find_authorization', 'authorizations', 'id');

/** Sessions of a user, the newest first. */
export const FIND_BY_SUBJECT = namedStatement(
  'find_by_subject',
  `select s.* from session_subjects u join sessions s on s.tenant_id = u.tenant_id and s.id = u.session_id
   where u.tenant_id = $1 and u.subject_hash = $2 order by s.created_at desc, s.id limit 20`,
);

export const FIND_DEFERRED = brief('find_deferred', 'select * from deferred_transactions where tenant_id = $1 and id = $2');

export const FIND_KEPT_ANSWER = brief(
  'find_kept_answer',
  `select ${TENANT_STATE}, f.* from tenants t
   left join kept_answers f on f.tenant_id = t.id and f.id = $2 and f.expires_at > $3 where t.id = $1`,
);

export const LIST_DEFERRED = namedStatement(
  'list_deferred',
  `select * from deferred_transactions where tenant_id = $1 and (cast($2 as varchar) is null or session_id = $2)
   order by created_at desc, id limit $3`,
);

export const TAKE_STATUS_RUN = namedStatement(
  'take_status_run',
  `update status_lists set used_entries = case when used_entries < $5 then $5 else used_entries end + cast($4 as bigint)
   where tenant_id = $1 and id = $2 and key_chain_id is not distinct from $3
     and used_entries + cast($4 as bigint) <= capacity and $5 + cast($4 as bigint) <= capacity
   returning used_entries - cast($4 as bigint) as first`,
);

export const READ_ISSUED = brief(
  'read_issued',
  `select ${TENANT_STATE}, s.configuration_ids, b.* from tenants t
   left join issued_batches b on b.tenant_id = t.id and b.session_id = $2
   left join sessions s on s.tenant_id = t.id and s.id = $2
   where t.id = $1 order by b.issued_at, b.id`,
);

export const FIND_STATUS_LIST = brief(
  'find_status_list',
  `select * from status_lists where tenant_id = $1 and id = $2 and exists (select 1 from tenants where id = $1)`,
);

export const STATUS_ENTRIES = namedStatement(
  'status_entries',
  'select idx, status from status_entries where tenant_id = $1 and list_id = $2 and changed_version > $3',
);

export const SAVE_STATUS_TOKEN = namedStatement(
  'save_status_token',
  `update status_lists set token = $3, token_version = $4, token_issued_at = $5, token_expires_at = $6
   where tenant_id = $1 and id = $2
     and (token_version is null or token_version < $4 or (token_version = $4 and token_issued_at < $5))
     and version >= $4 and ${PRESENT_TERM} = $7`,
);

export const FIND_TRUST_LIST = namedStatement(
  'find_trust_list',
  'select jwt, next_update from trust_lists where tenant_id = $1 and id = $2',
);

export const SESSION_EVENTS = brief(
  'session_events',
  `select version, status, at from session_events
   where tenant_id = $1 and session_id = $2 and version > $3 order by version limit $4`,
);

/** Keyset pagination: the cost of a page does not grow with its number. */
export function listSessionsQuery(query: SessionQuery): { statement: Statement; parameters: (string | number)[] } {
  const parameters: (string | number)[] = [];
  const bind = (value: string | number) => `$${parameters.push(value) + 1}`;
  const conditions = ['tenant_id = $1'];
  let shape = query.ascending ? 'up' : 'down';
  if (query.kinds.length === 1) {
    conditions.push(`kind = ${bind(query.kinds[0] ?? '')}`);
    shape += '_kind';
  } else conditions.push(`kind <> '${HIDDEN}'`);
  if (query.status !== undefined) {
    conditions.push(`status = ${bind(query.status)}`);
    shape += '_status';
  }
  if (query.named !== undefined) {
    const { id, publicIds, codeHash, referenceHash } = query.named;
    // Each condition uses an index of its own, whatever else is in the table.
    conditions.push(`id in (
      select id from sessions where tenant_id = $1 and id = ${bind(id)}
      union select id from sessions where tenant_id = $1 and public_id in (${publicIds.map(bind).join(', ')})
      union select session_id from grants where tenant_id = $1 and code_hash = ${bind(codeHash)}
      union select session_id from session_subjects where tenant_id = $1 and subject_hash = ${bind(referenceHash)})`);
    shape += '_named';
  }
  const range = rangeOf(query, bind);
  conditions.push(...range.conditions);
  shape += range.shape;
  if (query.through !== undefined) {
    const cursorValues = `(${bind(query.through.createdAt.getTime())}, ${bind(query.through.id)})`;
    conditions.push(`(created_at, id) ${query.ascending ? '<=' : '>='} ${cursorValues}`);
    shape += '_through';
  }
  const text = `select * from sessions where ${conditions.join(' and ')} order by ${range.order} limit ${bind(query.limit)}`;
  return { statement: namedStatement(`list_sessions_${shape}`, text), parameters };
}

/** The index by creation answers the query: no session is read. */
export function sessionPlaceQuery(range: SessionRange, count: number): ReturnType<typeof listSessionsQuery> {
  const parameters: (string | number)[] = [];
  const bind = (value: string | number) => `$${parameters.push(value) + 1}`;
  const { conditions, order, shape } = rangeOf(range, bind);
  const where = ['tenant_id = $1', ...conditions].join(' and ');
  const text = `select created_at, id from sessions where ${where} order by ${order} limit 1 offset ${bind(count - 1)}`;
  const direction = range.ascending ? 'up' : 'down';
  return { statement: namedStatement(`session_place_${direction}${shape}`, text), parameters };
}

/** Conditions that the index by creation answers. */
function rangeOf(
  { since: startTime, until: endTime, after: cursor, ascending }: SessionRange,
  bind: (value: string | number) => string,
): { readonly conditions: readonly string[]; readonly order: string; readonly shape: string } {
  const conditions: string[] = [];
  let shape = '';
  if (startTime !== undefined) {
    conditions.push(`created_at >= ${bind(startTime.getTime())}`);
    shape += '_since';
  }
  if (endTime !== undefined) {
    conditions.push(`created_at <= ${bind(endTime.getTime())}`);
    shape += '_until';
  }
  if (cursor !== undefined) {
    const cursorValues = `(${bind(cursor.createdAt.getTime())}, ${bind(cursor.id)})`;
    conditions.push(`(created_at, id) ${ascending ? '>' : '<'} ${cursorValues}`);
    shape += '_after';
  }
  return { conditions, order: ascending ? 'created_at asc, id asc' : 'created_at desc, id desc', shape };
}
