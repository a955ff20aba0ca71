import type { Cipher } from '../../../application/ports/cipher.ts';
import type { Change, ChangePart, CommitResult } from '../../../domain/changes/change.ts';
import { DEFERRED_ENDS } from '../../../domain/issuance/deferred.ts';
import type { ConsumedValue } from '../../../domain/oauth/consumed-value.ts';
import type { Session } from '../../../domain/sessions/session.ts';
import type { SessionChange } from '../../../domain/sessions/session-change.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { SERVING } from '../../../domain/tenants/tenant.ts';
import { ERASE_REQUEST, MAX_KEPT_REQUEST } from '../erased-requests.ts';
import { AUTHORIZATIONS, authorizedTransaction, DEFERRED } from '../rows/authorization-codec.ts';
import { NO_WRITE, type Parts } from '../rows/change-columns.ts';
import type { Fields } from '../rows/columns.ts';
import { GRANTS, ISSUED_BATCHES, REPLACE_EXPIRED_RESPONSE, readRevisions, SESSIONS, STORED_RESPONSES } from '../rows/session-codec.ts';
import { IDENTIFIED, identifiedBy, REVOKED_SINCE_GRANT } from '../rows/subject-codec.ts';
import { type Following, followingOf } from '../rows/wallet-status-codec.ts';
import { listOf, namedStatement, type Statement } from '../statement.ts';
import type { SqliteChain } from './audit-chain.ts';
import { insert, isAmong, type SqliteRun, type SqliteSql } from './sql.ts';

// `$1` is the tenant throughout, `$2` the time; fields of the part follow in the order of change-columns.ts.
const TENANT = namedStatement('tenant', 'select status, revisions from tenants where id = $1');
const GRANT_CHANGE = namedStatement(
  'grant_change',
  `update grants set
     consumed_at = case when $9 then $2 else consumed_at end, holder = coalesce($10, holder),
     expires_at = coalesce($11, expires_at), attempts = attempts + $12, generation = generation + $13,
     revoked_at = case when $14 then $2 else revoked_at end
   where tenant_id = $1 and id = $3 and ($4 is null or (consumed_at is not null) = $4)
     and (not $5 or expires_at > $2) and (not $6 or revoked_at is null)
     and ($7 is null or attempts < $7) and ($8 is null or generation = $8)`,
);
const FIND_SESSION = namedStatement(
  'session_change_finds',
  `select s.status as was, ${isAmong('s.status', '$19')} and (s.issued_mask | $17) = $18 as completes
   from sessions s where s.tenant_id = $1 and s.id = $3
     and (${isAmong('s.status', '$6')} or ${isAmong('s.status', '$5')} and s.expires_at > $2)
     and ($7 is null or s.version = $7) and (not $8 or s.claimed_at is null) and (s.revoked_mask & $9) = 0
     and ($10 is null or s.issued_count < $10) and ($12 is null or s.issued_count = $12)
     and ($11 is null or $11 > (select count(*) from deferred_transactions d
       where d.tenant_id = s.tenant_id and d.session_id = s.id))`,
);
const END_SESSION = namedStatement('session_ends', 'update sessions set expires_at = $3 where tenant_id = $1 and id = $2');
/** `$26`: true if the change completes the session. */
const CHANGE_SESSION = namedStatement(
  'session_change',
  `update sessions set
     status = coalesce($13, case when $26 then $20 else status end),
     version = version + ($26 or $25),
     updated_at = case when $24 then $2 else updated_at end,
     expires_at = max(expires_at, coalesce($23, expires_at)),
     claimed_at = case when $14 then $2 else claimed_at end, outcome = coalesce($15, outcome),
     issued_mask = issued_mask | $17, issued_count = issued_count + $16,
     revoked_mask = (revoked_mask | $21) & ~$22
   where tenant_id = $1 and id = $3 returning status, version`,
);
const IS_SESSION = namedStatement('is_session', 'select 1 from sessions where tenant_id = $1 and id = $2');
const AUTHORIZATION_CHANGE = namedStatement(
  'authorization_change',
  `update authorizations set version = $4, document = $5, expires_at = $6
   where tenant_id = $1 and id = $3 and version = $4 - 1`,
);
const DEFERRED_CHANGE = namedStatement(
  'deferred_change',
  `update deferred_transactions set status = $5, credentials = $6, batch_id = coalesce($7, batch_id),
     error_message = $8, updated_at = $2,
     holder_keys = case when $5 in (${listOf(DEFERRED_ENDS)}) then '[]' else holder_keys end
   where tenant_id = $1 and id = $3 and ${isAmong('status', '$4')} and expires_at > $2`,
);
const IS_REVOKED = namedStatement('is_revoked', 'select 1 from grants where tenant_id = $1 and id = $2 and revoked_at is not null');
const REMOVALS = ['grants', 'session_events', 'deferred_transactions', 'session_subjects'].map((table) =>
  namedStatement(`remove_${table}`, `delete from ${table} where tenant_id = $1 and session_id = $2`),
);
const REMOVE_SESSION = namedStatement('remove_sessions', 'delete from sessions where tenant_id = $1 and id = $2');
const USE = insert('used_values', ['kind', 'hash', 'expires_at'], 'on conflict do nothing');
export const EVENT = insert('session_events', ['session_id', 'version', 'status', 'at']);
const NEW_SESSION = insert(SESSIONS.name, [...SESSIONS.columns, 'issued_count', 'revoked_mask']);
const NEW_GRANT = namedStatement(
  'new_grant',
  `insert into grants (tenant_id, ${GRANTS.columns.join(', ')}, attempts, generation, revocations_before)
   values ($1, ${GRANTS.columns.map((_, index) => `$${index + 2}`).join(', ')}, 0, 0,
     coalesce((select max(number) from revoked_subjects where tenant_id = $1), 0))`,
);
const NEW_AUTHORIZATION = insert(AUTHORIZATIONS.name, AUTHORIZATIONS.columns);
const NEW_DEFERRED = insert(DEFERRED.name, DEFERRED.columns);
const AUTHORIZE_DEFERRED = namedStatement(
  'authorize_deferred',
  `update deferred_transactions as d set authorized_at = coalesce(
     (select g.consumed_at from grants g where g.tenant_id = $1 and g.id = d.grant_id), $3)
   where d.tenant_id = $1 and d.id = $2`,
);
/** `$8`: authorization time of the wallet, for a token whose grant is not stored. */
const NEW_IDENTIFIED = namedStatement(
  'new_identified',
  `insert into issued_subjects (tenant_id, ${IDENTIFIED.join(', ')})
   select $1, $2, $3, $4, $5, $6, $7 where not exists (
     select 1 from revoked_subjects r left join grants g on g.tenant_id = $1 and g.id = $7
     where r.tenant_id = $1 and r.fingerprint = $2 and r.credential_configuration_id in ('', $5)
       and case when g.id is null then r.revoked_at >= $8 else ${REVOKED_SINCE_GRANT} end)`,
);
const RELEASE = namedStatement(
  'release_subjects',
  `delete from issued_subjects where tenant_id = $1 and fingerprint = $2 and session_id = $3
     and batch_id in (select value from json_each($4))`,
);
const ISSUED = insert(ISSUED_BATCHES.name, ISSUED_BATCHES.columns);
const SUBJECT = insert('session_subjects', ['subject_hash', 'session_id'], 'on conflict do nothing');
const RAISE_LIST = namedStatement(
  'raise_status_list',
  'update status_lists set version = version + 1 where tenant_id = $1 and id = $2 returning version',
);
const SET_ENTRY = insert(
  'status_entries',
  ['list_id', 'idx', 'status', 'changed_version'],
  `on conflict (tenant_id, list_id, idx)
     do update set status = excluded.status, changed_version = excluded.changed_version
     where status_entries.status <> 1 or excluded.status = 1`,
);

const KEEP = insert('kept_answers', STORED_RESPONSES.columns, `${REPLACE_EXPIRED_RESPONSE} <= $5 returning 1`);

/** Rolls the transaction back. */
class ExpectationFailedError extends Error {
  readonly outcome: CommitResult;

  constructor(part: Exclude<ChangePart, 'uses'> | { readonly kind: ConsumedValue['kind'] }) {
    super('a part of a change did not find what it expects');
    this.outcome = typeof part === 'string' ? { done: false, part } : { done: false, part: 'uses', ...part };
  }
}

/** Applies changes, each whole or not at all, in transactions that other changes may share. */
export class SqliteCommit {
  readonly #sql: SqliteSql;
  readonly #cipher: Cipher;
  readonly #chainOf: (tenantId: TenantId) => SqliteChain;

  constructor(sql: SqliteSql, cipher: Cipher, chainOf: (tenantId: TenantId) => SqliteChain) {
    this.#sql = sql;
    this.#cipher = cipher;
    this.#chainOf = chainOf;
  }

  async apply(tenantId: TenantId, change: Change, parts: Parts, now: Date): Promise<CommitResult> {
    try {
      return await this.#sql.grouped((run) => this.#apply(run, tenantId, change, parts, now.getTime()));
    } catch (error) {
      if (error instanceof ExpectationFailedError) return error.outcome;
      throw error;
    }
  }

  #apply(run: SqliteRun, tenantId: TenantId, change: Change, parts: Parts, now: number): CommitResult {
    const write = (statement: Statement, fields: Fields | undefined, ...more: Fields) =>
      fields && run.change(statement, tenantId, ...fields, ...more);
    const move = (part: Exclude<ChangePart, 'uses'>, statement: Statement, fields: Fields | undefined) => {
      if (fields && write(statement, [now, ...fields]) === 0) throw new ExpectationFailedError(part);
    };
    expectTenant(run, tenantId, change);
    if (change.keeps !== undefined) {
      const fields = STORED_RESPONSES.write(this.#cipher, tenantId, change.keeps);
      if (run.all(KEEP, tenantId, ...fields, now).length === 0) throw new ExpectationFailedError('keeps');
    }
    move('grant', GRANT_CHANGE, parts.grant);
    const session = changeSession(run, tenantId, parts.session, change.session, now);
    move('authorization', AUTHORIZATION_CHANGE, parts.authorization);
    move('deferred', DEFERRED_CHANGE, parts.deferred);
    if (change.unrevoked !== undefined && run.all(IS_REVOKED, tenantId, change.unrevoked).length > 0)
      throw new ExpectationFailedError('unrevoked');
    if (change.removes !== undefined) {
      for (const removal of REMOVALS) write(removal, [change.removes]);
      if (write(REMOVE_SESSION, [change.removes]) === 0) throw new ExpectationFailedError('removes');
    }
    for (const fields of parts.uses ?? []) {
      const [kind, , expiresAt] = fields;
      // An expired value may have been used and forgotten, so it counts as used.
      if (expiresAt <= run.time() || write(USE, fields) === 0) throw new ExpectationFailedError({ kind });
    }
    write(NEW_SESSION, parts.newSession, 0, 0);
    const openedSession = change.opens?.session;
    write(EVENT, openedSession && [openedSession.id, openedSession.version, openedSession.status, openedSession.createdAt.getTime()]);
    write(NEW_GRANT, parts.newGrant);
    write(NEW_AUTHORIZATION, parts.newAuthorization);
    write(NEW_DEFERRED, parts.newDeferred);
    write(AUTHORIZE_DEFERRED, authorizedTransaction(change));
    write(ISSUED, parts.issued);
    if (write(NEW_IDENTIFIED, identifiedBy(change)) === 0) throw new ExpectationFailedError('identifies');
    release(run, tenantId, change);
    follow(run, tenantId, followingOf(this.#cipher, tenantId, change), now);
    write(SUBJECT, parts.subject);
    setStatuses(run, tenantId, parts);
    if (change.audit !== undefined) this.#chainOf(tenantId).record(run, change.audit.by, change.audit.change);
    return { done: true, ...(session !== undefined && { session }) };
  }
}

function changeSession(run: SqliteRun, tenantId: TenantId, fields: Fields | undefined, change: Change['session'], now: number) {
  if (change === undefined || fields === undefined) return undefined;
  const [, writes] = fields;
  const [storedSession] = run.all(FIND_SESSION, tenantId, now, ...fields);
  if (storedSession === undefined) {
    const isGone = run.all(IS_SESSION, tenantId, change.id).length === 0;
    if (change.issuedExactly === undefined || change.bars === undefined || !isGone) throw new ExpectationFailedError('session');
    return undefined;
  }
  if (writes === NO_WRITE) return undefined;
  const completes = Number(storedSession['completes'] ?? 0);
  const [row] = run.all(CHANGE_SESSION, tenantId, now, ...fields, completes);
  const [status, version] = [String(row?.['status']) as Session['status'], Number(row?.['version'])];
  markDelivery(run, tenantId, change);
  if (change.erasesRequest === true) run.change(ERASE_REQUEST, tenantId, change.id, MAX_KEPT_REQUEST);
  if (change.endsAt !== undefined) run.change(END_SESSION, tenantId, change.id, change.endsAt.getTime());
  const moved = status !== storedSession['was'];
  if (moved) run.change(EVENT, tenantId, change.id, version, status, now);
  return { status, version, moved };
}

function release(run: SqliteRun, tenantId: TenantId, { releases }: Change): void {
  if (releases === undefined) return;
  const { fingerprint, sessionId, batchIds } = releases;
  const deletedRows = run.change(RELEASE, tenantId, fingerprint, sessionId, JSON.stringify(batchIds));
  if (deletedRows !== batchIds.length) throw new ExpectationFailedError('releases');
}

function expectTenant(run: SqliteRun, tenantId: TenantId, { serving, revisions = {} }: Change): void {
  const [row] = run.all(TENANT, tenantId);
  if (row === undefined || (serving && row['status'] !== SERVING)) throw new ExpectationFailedError('tenant');
  const storedRevisions: Readonly<Record<string, number>> = readRevisions(row['revisions']);
  for (const [kind, revision] of Object.entries(revisions)) {
    if (storedRevisions[kind] !== revision) throw new ExpectationFailedError('tenant');
  }
}

function setStatuses(run: SqliteRun, tenantId: TenantId, { statuses = [] }: Parts): void {
  const versions = new Map<string, number>();
  for (const [listId, index, status] of statuses) {
    let version = versions.get(listId);
    if (version === undefined) {
      const [row] = run.all(RAISE_LIST, tenantId, listId);
      if (row === undefined) continue;
      version = Number(row['version']);
      versions.set(listId, version);
    }
    if (run.change(SET_ENTRY, tenantId, listId, index, status, version) === 0) throw new ExpectationFailedError('statuses');
  }
}

const MARK_DELIVERY = insert(
  'pending_deliveries',
  ['session_id', 'id', 'due_at'],
  'on conflict (tenant_id, session_id, id) do update set due_at = excluded.due_at',
);
const UNMARK_DELIVERY = namedStatement(
  'unmark_delivery',
  'delete from pending_deliveries where tenant_id = $1 and session_id = $2 and id = $3',
);

/** Records that a delivery of the session began, or that its outcome is known. */
function markDelivery(run: SqliteRun, tenantId: TenantId, { id: session, delivery }: SessionChange): void {
  if (delivery === undefined) return;
  const { id, abandonedAfterMs } = delivery;
  if (abandonedAfterMs === null) run.change(UNMARK_DELIVERY, tenantId, session, id);
  else run.change(MARK_DELIVERY, tenantId, session, id, run.time() + abandonedAfterMs);
}

const HOLD = namedStatement(
  'hold_wallet_statuses',
  'update deferred_transactions set wallet_statuses = $3 where tenant_id = $1 and id = $2',
);
/** A list that was idle is followed again. */
const FOLLOW_LIST = insert('followed_lists', ['id', 'place', 'next_check_at', 'failures'], 'on conflict do update set idle_since = null');
const FOLLOW_STATUS = insert('followed_statuses', ['list_id', 'idx', 'batch_id', 'session_id', 'ends_at'], 'on conflict do nothing');

/** Counterpart of `follow_wallets_1` in PostgreSQL. */
function follow(run: SqliteRun, tenantId: string, following: Following | undefined, now: number): void {
  if (following === undefined) return;
  const [transactionId, held] = following.transaction;
  if (transactionId !== null) run.change(HOLD, tenantId, transactionId, held);
  for (const [id, place] of following.lists) run.change(FOLLOW_LIST, tenantId, id, place, now, 0);
  const [session, batch, endsAt] = following.batch;
  for (const [listId, idx] of following.statuses) run.change(FOLLOW_STATUS, tenantId, listId, idx, batch, session, endsAt);
}
