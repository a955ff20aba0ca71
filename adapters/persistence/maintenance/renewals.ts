import type { Cipher } from '../../../application/ports/cipher.ts';
import { renewableMask } from '../../../domain/issuance/renewal.ts';
import { RENEWING_STATUSES } from '../../../domain/sessions/session.ts';
import type { JobSql } from '../job-sql.ts';
import { HIDDEN, readSession, withoutRequestOf } from '../rows/session-codec.ts';
import { listOf, namedStatement, type Row } from '../statement.ts';
import { UNPUBLISHED } from './event-log.ts';

/** Only the day of a time is kept (ARF 3.0 ISSU_35b): a time in milliseconds would link a credential to the session that issued it. */
export const dayOf = (column: string) => `(${column}) - (${column}) % 86400000`;

/** The unary `+` keeps databases from using the index by expiry, with which they would read all grants that have not expired. */
const LIVING_GRANT = `g.tenant_id = s.tenant_id and g.session_id = s.id and g.consumed_at is not null
  and g.revoked_at is null and +g.expires_at > $1`;

/** Condition at the time `$1` that a wallet may renew credentials that the session `s` issued. */
export const IS_RENEWABLE = `s.kind <> 'verification' and s.issued_mask <> 0
  and s.status in (${listOf(RENEWING_STATUSES)}) and exists (select 1 from grants g where ${LIVING_GRANT})`;

/** Columns of a renewable session `s`; the caller adds `mode` and `ttl` of its tenant. */
export const RENEWABLE_COLUMNS = `s.*, (select max(g.expires_at) from grants g where ${LIVING_GRANT}) as until`;

/** SQL expression that turns the elements of a JSON array at `$1` into rows of `v`. */
export type RowsExpression = string;
export const POSTGRES_ROWS: RowsExpression = `jsonb_to_recordset(cast($1 as jsonb))
  as v(tenant_id text, id text, mask int, previous_mask int, mode text, created bigint, document text)`;
const JSON_COLUMNS = ['tenant_id', 'id', 'mask', 'previous_mask', 'mode', 'created', 'document'];
export const SQLITE_ROWS: RowsExpression = `(select ${JSON_COLUMNS.map((name) => `json_extract(value, '$.${name}') as ${name}`).join(', ')}
  from json_each($1)) v`;

/** Statements that reduce the sessions at `$1` at the time `$2`. */
function statementsFor(rows: RowsExpression) {
  const inSessions = (condition = '') => `(tenant_id, session_id) in (select v.tenant_id, v.id from ${rows} ${condition})`;
  return {
    /** A session whose mask was changed by a concurrent issuance is not reduced. */
    reduce: namedStatement(
      'reduce_renewed',
      `update sessions set request = null, outcome = null, version = version + 1, issued_mask = v.mask,
         expires_at = ${dayOf('case when expires_at > $2 then $2 else expires_at end')},
         updated_at = ${dayOf('updated_at')}, claimed_at = ${dayOf('claimed_at')},
         kind = case when v.mode = 'full' then '${HIDDEN}' else kind end,
         created_at = case when v.mode = 'full' then v.created else ${dayOf('created_at')} end
       from ${rows} where sessions.tenant_id = v.tenant_id and sessions.id = v.id and sessions.issued_mask = v.previous_mask`,
    ),
    roundBatches: namedStatement(
      'round_batches_of_renewed',
      `update issued_batches set issued_at = ${dayOf('issued_at')} where ${inSessions()}`,
    ),
    roundEvents: namedStatement(
      'round_events_of_renewed',
      `update session_events set at = ${dayOf('at')} where ${inSessions(`where v.mode <> 'full'`)}`,
    ),
    dropGrants: namedStatement(
      'drop_grants_of_renewed',
      `delete from grants where ${inSessions()} and (consumed_at is null or revoked_at is not null or expires_at <= $2)`,
    ),
    dropAllGrants: namedStatement('drop_all_grants_of_renewed', `delete from grants where ${inSessions('where v.mask = 0')}`),
    /** The data of grants that concerns only their session is removed; the grants stay. */
    documents: namedStatement(
      'documents_of_renewed',
      `select tenant_id, id, document from grants where ${inSessions()} and document is not null`,
    ),
    reduceGrants: namedStatement(
      'reduce_grants_of_renewed',
      `update grants set document = v.document from ${rows} where grants.tenant_id = v.tenant_id and grants.id = v.id`,
    ),
    drop: ['deferred_transactions', 'session_subjects'].map((table) =>
      namedStatement(`drop_${table}_of_renewed`, `delete from ${table} where ${inSessions()}`),
    ),
    countUnsent: namedStatement(
      'count_unsent_of_renewed',
      `select count(*) as unsent from session_events e where ${inSessions(`where v.mode = 'full'`)} and ${UNPUBLISHED}`,
    ),
    dropEvents: namedStatement('drop_events_of_renewed', `delete from session_events where ${inSessions(`where v.mode = 'full'`)}`),
  };
}

/** Reduces due sessions to what a wallet needs to renew their credentials. */
export function renewals(sql: JobSql, cipher: Cipher, rows: RowsExpression) {
  const statements = statementsFor(rows);
  /**
   * @param due sessions with the columns of `RENEWABLE_COLUMNS`. A session without renewable credentials loses its grants, and is due like
   * any other from then on. A session whose tenant removes in full is hidden, and due again when its last grant ends.
   */
  return async (due: readonly Row[], now: Date) => {
    if (due.length === 0) return { removed: 0, anonymized: 0, unsent: 0 };
    const reductions = due.map((row) => {
      const session = readSession(cipher, row);
      return {
        tenant_id: session.tenantId,
        id: session.id,
        mask: renewableMask(session),
        previous_mask: session.issuedMask,
        mode: String(row['mode']),
        created: Number(row['until']) - Number(row['ttl']),
      };
    });
    const [timestamp, renewable] = [now.getTime(), reductions.filter(({ mask }) => mask !== 0)];
    await sql.change(statements.dropAllGrants, JSON.stringify(reductions));
    if (renewable.length === 0) return { removed: 0, anonymized: 0, unsent: 0 };
    const renewableJson = JSON.stringify(renewable);
    await sql.change(statements.dropGrants, renewableJson, timestamp);
    const reducedGrants = (await sql.all(statements.documents, renewableJson)).flatMap((row) => {
      const document = withoutRequestOf(cipher, row);
      return document === undefined ? [] : [{ tenant_id: row['tenant_id'], id: row['id'], document }];
    });
    if (reducedGrants.length > 0) await sql.change(statements.reduceGrants, JSON.stringify(reducedGrants));
    await sql.change(statements.roundBatches, renewableJson);
    await sql.change(statements.roundEvents, renewableJson);
    for (const statement of statements.drop) await sql.change(statement, renewableJson);
    const [counted] = await sql.all(statements.countUnsent, renewableJson);
    await sql.change(statements.dropEvents, renewableJson);
    // Last, because a reduced session is not due again: after an interruption the next clean-up repeats the other steps.
    await sql.change(statements.reduce, renewableJson, timestamp);
    const removed = renewable.filter(({ mode }) => mode === 'full').length;
    return { removed, anonymized: renewable.length - removed, unsent: Number(counted?.['unsent']) };
  };
}
