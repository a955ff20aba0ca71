import type { Cipher } from '../../../application/ports/cipher.ts';
import { renewableAfterwards } from '../../../domain/issuance/renewal.ts';
import { RENEWING_STATUSES } from '../../../domain/sessions/session.ts';
import type { JobSql } from '../job-sql.ts';
import { HIDDEN, readSession, withoutRequestOf } from '../rows/session-codec.ts';
import { listOf, named, type Row } from '../statement.ts';
import { UNSENT } from './event-log.ts';

/**
 * The day of a time, which alone is kept (ARF 3.0 ISSU_35b): to the millisecond it would lead from a credential that somebody has
 * to the session that issued it.
 */
export const dayOf = (column: string) => `(${column}) - (${column}) % 86400000`;

/** `+` keeps databases from reading all grants that have not expired. */
const LIVING_GRANT = `g.tenant_id = s.tenant_id and g.session_id = s.id and g.consumed_at is not null
  and g.revoked_at is null and +g.expires_at > $1`;

/** A wallet may renew what the session `s` issued at the time `$1`. */
export const IS_RENEWED = `s.kind <> 'verification' and s.issued_mask <> 0
  and s.status in (${listOf(RENEWING_STATUSES)}) and exists (select 1 from grants g where ${LIVING_GRANT})`;

/** The columns that a due session has here, to which come `mode` and `ttl` of its tenant. */
export const RENEWED = `s.*, (select max(g.expires_at) from grants g where ${LIVING_GRANT}) as until`;

/** How the elements of a JSON array at `$1` become rows of `v`; the dialects differ in that. */
export type Rows = string;
export const POSTGRES_ROWS: Rows = `jsonb_to_recordset(cast($1 as jsonb))
  as v(tenant_id text, id text, mask int, seen int, mode text, created bigint, document text)`;
const MEMBERS = ['tenant_id', 'id', 'mask', 'seen', 'mode', 'created', 'document'];
export const SQLITE_ROWS: Rows = `(select ${MEMBERS.map((name) => `json_extract(value, '$.${name}') as ${name}`).join(', ')}
  from json_each($1)) v`;

/** What has to go of the sessions at `$1`, by the time `$2`. */
function statementsFor(rows: Rows) {
  const these = (condition = '') => `(tenant_id, session_id) in (select v.tenant_id, v.id from ${rows} ${condition})`;
  return {
    /** Who would issue from it meanwhile changes the mask. */
    reduce: named(
      'reduce_renewed',
      `update sessions set request = null, outcome = null, version = version + 1, issued_mask = v.mask,
         expires_at = ${dayOf('case when expires_at > $2 then $2 else expires_at end')},
         updated_at = ${dayOf('updated_at')}, claimed_at = ${dayOf('claimed_at')},
         kind = case when v.mode = 'full' then '${HIDDEN}' else kind end,
         created_at = case when v.mode = 'full' then v.created else ${dayOf('created_at')} end
       from ${rows} where sessions.tenant_id = v.tenant_id and sessions.id = v.id and sessions.issued_mask = v.seen`,
    ),
    roundBatches: named('round_batches_of_renewed', `update issued_batches set issued_at = ${dayOf('issued_at')} where ${these()}`),
    roundEvents: named('round_events_of_renewed', `update session_events set at = ${dayOf('at')} where ${these(`where v.mode <> 'full'`)}`),
    dropGrants: named(
      'drop_grants_of_renewed',
      `delete from grants where ${these()} and (consumed_at is null or revoked_at is not null or expires_at <= $2)`,
    ),
    dropAllGrants: named('drop_all_grants_of_renewed', `delete from grants where ${these('where v.mask = 0')}`),
    /** Grants live on, without what the session alone was about. */
    documents: named('documents_of_renewed', `select tenant_id, id, document from grants where ${these()} and document is not null`),
    reduceGrants: named(
      'reduce_grants_of_renewed',
      `update grants set document = v.document from ${rows} where grants.tenant_id = v.tenant_id and grants.id = v.id`,
    ),
    drop: ['deferred_transactions', 'session_subjects'].map((table) =>
      named(`drop_${table}_of_renewed`, `delete from ${table} where ${these()}`),
    ),
    countUnsent: named(
      'count_unsent_of_renewed',
      `select count(*) as unsent from session_events e where ${these(`where v.mode = 'full'`)} and ${UNSENT}`,
    ),
    dropEvents: named('drop_events_of_renewed', `delete from session_events where ${these(`where v.mode = 'full'`)}`),
  };
}

/** Reduces due sessions to what a wallet needs to renew their credentials. */
export function renewals(sql: JobSql, cipher: Cipher, rows: Rows) {
  const statements = statementsFor(rows);
  /**
   * @param due sessions with the columns of `RENEWED`. One of which nothing can be renewed loses its grants, and is due
   *   like any other from then on. One whose tenant removes in full is hidden, and due again when its last grant ends.
   */
  return async (due: readonly Row[], now: Date) => {
    if (due.length === 0) return { removed: 0, anonymized: 0, unsent: 0 };
    const all = due.map((row) => {
      const session = readSession(cipher, row);
      return {
        tenant_id: session.tenantId,
        id: session.id,
        mask: renewableAfterwards(session),
        seen: session.issuedMask,
        mode: String(row['mode']),
        created: Number(row['until']) - Number(row['ttl']),
      };
    });
    const [at, kept] = [now.getTime(), all.filter(({ mask }) => mask !== 0)];
    await sql.change(statements.dropAllGrants, JSON.stringify(all));
    if (kept.length === 0) return { removed: 0, anonymized: 0, unsent: 0 };
    const these = JSON.stringify(kept);
    await sql.change(statements.dropGrants, these, at);
    const reduced = (await sql.all(statements.documents, these)).flatMap((row) => {
      const document = withoutRequestOf(cipher, row);
      return document === undefined ? [] : [{ tenant_id: row['tenant_id'], id: row['id'], document }];
    });
    if (reduced.length > 0) await sql.change(statements.reduceGrants, JSON.stringify(reduced));
    await sql.change(statements.roundBatches, these);
    await sql.change(statements.roundEvents, these);
    for (const statement of statements.drop) await sql.change(statement, these);
    const [counted] = await sql.all(statements.countUnsent, these);
    await sql.change(statements.dropEvents, these);
    // Last, since nobody comes back for a session that is reduced: what stopped before is done with the next clean-up.
    await sql.change(statements.reduce, these, at);
    const removed = kept.filter(({ mode }) => mode === 'full').length;
    return { removed, anonymized: kept.length - removed, unsent: Number(counted?.['unsent']) };
  };
}
