import type { Redemption } from '../../../application/ports/authorization-beats.ts';
import type { Cipher } from '../../../application/ports/cipher.ts';
import type { Beats, NewGrant, TenantHead } from '../../../application/ports/store.ts';
import { describeRevocation, describeSessionRemoval } from '../../../domain/audit/describe-change.ts';
import { OPEN_STATUSES, type Session, transition } from '../../../domain/sessions/session.ts';
import type { SessionId, TenantId } from '../../../domain/shared/ids.ts';
import type { IssuedBatch } from '../../../domain/status-lists/status-list.ts';
import { APPEND_ENTRY_IF, type PostgresChains } from './audit-chain.postgres.ts';
import { postgresAuthorizationBeats } from './authorization-beats.postgres.ts';
import { postgresDeferredBeats } from './deferred-beats.postgres.ts';
import { postgresRun, USE_VALUES, USE_VALUES_IF, valuesOf } from './postgres-run.ts';
import type { RecentSessions } from './recent-sessions.ts';
import {
  grantParameters,
  readBatch,
  readGrant,
  readHead,
  readIssued,
  readPublication,
  readRelease,
  readSession,
  readStatusList,
  readStatusListHead,
  readUse,
  sealOutcome,
} from './session-codec.ts';
import { INSERT_GRANT_IF, INSERT_SESSION, LOG_FROM, sessionParameters } from './session-parts.postgres.ts';
import type { Parameter, PostgresSql, Row, Statement } from './sql.ts';
import * as shared from './statements.ts';
import { listSessionsQuery } from './statements.ts';

const { HEAD } = shared;
const named = (name: string, text: string): Statement => ({ name, text });

const OPEN_SESSION = named(
  'open_session',
  `with s as (${INSERT_SESSION('$16')}) ${LOG_FROM('s', 'created_at')} returning version`,
);

const OPEN_SESSION_WITH_GRANT = named(
  'open_session_with_grant',
  `with s as (${INSERT_SESSION('$26')}), ${INSERT_GRANT_IF('s', 16)}
   ${LOG_FROM('s', 'created_at')} returning version`,
);

const FETCH_SESSION = named(
  'fetch_session',
  `with u as (
     update sessions s set status = 'fetched', version = s.version + 1, updated_at = $3
     from tenants t
     where t.id = $1 and t.status = 'active'
       and s.tenant_id = $1 and s.public_id = $2 and s.status = 'active' and s.expires_at > $3
     returning ${HEAD}, s.*),
   e as (${LOG_FROM('u', 'updated_at')})
   select * from u`,
);

/** An authorization code may be for a session that has completed: one offer serves more than one wallet. */
const REDEEMABLE = (grant: string) =>
  `(s.status in ('active', 'fetched') and s.expires_at > $3
    or s.status = 'completed' and ${grant}.kind = 'authorization_code')`;

const CONSUME_GRANT = named(
  'consume_grant',
  `with ${USE_VALUES(6)}
   update grants set consumed_at = $3, holder = $4, expires_at = $5
   where tenant_id = $1 and id = $2 and consumed_at is null and expires_at > $3
     and exists (select 1 from sessions s where s.tenant_id = $1 and s.id = grants.session_id
       and ${REDEEMABLE('grants')})
   returning id`,
);

/** Like `CONSUME_GRANT`, by the code itself; values are remembered only when the grant was there to consume. */
const REDEEM_GRANT = named(
  'redeem_grant',
  `with g as (
     update grants g set consumed_at = $3, holder = $4, expires_at = $5
     from tenants t, sessions s
     where t.id = $1 and t.status = 'active' and g.tenant_id = $1 and g.code_hash = $2
       and g.kind = 'pre_authorized_code' and g.tx_code_hash is null and g.consumed_at is null and g.expires_at > $3
       and s.tenant_id = $1 and s.id = g.session_id and ${REDEEMABLE('g')}
     returning ${HEAD}, g.*),
   ${USE_VALUES_IF('g', 6)}
   select * from g`,
);

const REMEMBER = named('remember', `with ${USE_VALUES(2)} select 1`);

const IS_REVOKED = (grant: string) =>
  `exists (select 1 from grants g where g.tenant_id = $1 and g.id = ${grant} and g.revoked_at is not null)`;

const CLAIM_CREDENTIAL_REQUEST = named(
  'claim_credential_request',
  `with ${USE_VALUES(3)}
   select ${HEAD}, s.*, ${shared.DEFERRED_COUNT}, ${IS_REVOKED('$6')} as revoked
   from tenants t left join sessions s on s.tenant_id = t.id and s.public_id = $2 where t.id = $1`,
);

/** Sets the bit, and completes the session when all are set. `o` holds the session under lock. */
const ISSUE = (now: string, bit: string) =>
  `u as (
     update sessions s set issued_mask = s.issued_mask | ${bit}, issued_count = s.issued_count + 1, updated_at = ${now},
       status = case when o.completes then 'completed' else s.status end,
       version = s.version + case when o.completes then 1 else 0 end
     from o where s.tenant_id = $1 and s.id = $2
     returning s.tenant_id, s.id, s.version, s.status, s.updated_at, o.completes),
   b as (insert into issued_batches (${shared.BATCH_COLUMNS})
     select $1, $2, $3::text, $4::text, $5::int, $6::text, $7::int, $8::bigint from u),
   e as (${LOG_FROM('u', 'updated_at')} where completes)
   select version, status, completes as changed from u`;

const ISSUABLE = shared.ISSUABLE('$9');

// The lock comes first, since only the status under the lock tells who completed the session.
const RECORD_ISSUANCE = named(
  'record_issuance',
  `with o as (
     select s.id, s.status <> 'completed' and (s.issued_mask | $9) = $10 as completes
     from sessions s where s.tenant_id = $1 and s.id = $2 and ${ISSUABLE} for update),
   ${ISSUE('$11', '$9')}`,
);

const ISSUE_AT_ONCE = named(
  'issue_at_once',
  `with o as (
     select s.id, s.status <> 'completed' and (s.issued_mask | $9) = $10 as completes
     from sessions s, tenants t
     where t.id = $1 and t.status = 'active' and t.revision = $12
       and s.tenant_id = $1 and s.id = $2 and s.expires_at > $11 and ${ISSUABLE}
       and not ${IS_REVOKED('$16')}
     for update of s),
   ${USE_VALUES_IF('o', 13)},
   ${ISSUE('$11', '$9')}`,
);

const ANSWER_AT_ONCE = named(
  'answer_at_once',
  `with u as (
     update sessions s set status = $3, outcome = $4, version = s.version + 1, updated_at = $5, claimed_at = $5
     from tenants t
     where t.id = $1 and t.status = 'active' and t.revision = $6
       and s.tenant_id = $1 and s.id = $2 and s.status in ('active', 'fetched')
       and s.claimed_at is null and s.expires_at > $5
     returning s.tenant_id, s.id, s.version, s.status, s.updated_at)
   ${LOG_FROM('u', 'updated_at')} returning version`,
);

const RECORD_OUTCOME = named(
  'record_outcome',
  `with u as (
     update sessions set status = coalesce($4, status), outcome = $6, version = version + 1, updated_at = $7
     where tenant_id = $1 and id = $2 and version = $3 and ($4::text is null or status = any($5::text[]))
     returning tenant_id, id, version, status, updated_at),
   e as (${LOG_FROM('u', 'updated_at')} where $4::text is not null)
   select version from u`,
);

const CHANGE_STATUSES_PARTS = `m as (
     update sessions set revoked_mask = case when $7 then revoked_mask | $6 else revoked_mask & ~$6::int end
     where tenant_id = $1 and id = $5 and issued_count = $8 returning 1),
   allowed as (
     select 1 where exists (select 1 from m)
       or not exists (select 1 from sessions where tenant_id = $1 and id = $5)),
   l as (
     update status_lists set version = version + 1
     where tenant_id = $1 and exists (select 1 from allowed) and id in (select id from status_lists
       where tenant_id = $1 and id = any($2::text[]) order by id for update)
     returning id, version),
   e as (
     insert into status_entries (tenant_id, list_id, idx, status, changed_version)
     select $1, v.list_id, v.idx, v.status, l.version
     from unnest($2::text[], $3::int[], $4::int[]) as v(list_id, idx, status) join l on l.id = v.list_id
     on conflict (tenant_id, list_id, idx)
       do update set status = excluded.status, changed_version = excluded.changed_version)`;

const CHANGE_STATUSES = named('change_statuses', `with ${CHANGE_STATUSES_PARTS} select 1 from allowed`);
const REVOKE = named(
  'revoke',
  `with ${CHANGE_STATUSES_PARTS}, ${APPEND_ENTRY_IF('allowed', 9)} select 1 from allowed`,
);

const REMOVE_SESSION = named(
  'remove_session_whole',
  `with g as (${shared.REMOVE_SESSION_GRANTS.text}), e as (${shared.REMOVE_SESSION_EVENTS.text}),
   d as (${shared.REMOVE_SESSION_DEFERRED.text}), u as (${shared.REMOVE_SESSION_SUBJECTS.text}),
   s as (${shared.REMOVE_SESSION.text} returning id), ${APPEND_ENTRY_IF('s', 3)}
   select id from s`,
);

const SESSION_VERSIONS = named(
  'session_versions',
  'select id, version from sessions where tenant_id = $1 and id = any($2::text[])',
);
const STATUS_LIST_HEADS = named(
  'status_list_heads',
  `select id, version, key_chain_id from status_lists
   where tenant_id = $1 and id = any($2::text[]) and exists (select 1 from tenants where id = $1)`,
);

export function postgresBeats(
  sql: PostgresSql,
  cipher: Cipher,
  recent: RecentSessions,
  chains: PostgresChains,
  tenantId: TenantId,
): Beats {
  const run = postgresRun(sql, tenantId);
  const { all, one, unlessUsed } = run;
  let asked: Promise<TenantHead | undefined> | undefined;
  const sessionOf = (row: Row) => (row['id'] === null ? undefined : readSession(cipher, row));
  return {
    ...postgresAuthorizationBeats(run, cipher, recent, tenantId),
    ...postgresDeferredBeats(run, cipher, chains, tenantId),
    head(): Promise<TenantHead | undefined> {
      // Everybody who asks in this turn of the event loop gets the answer to one question that is put after it.
      asked ??= new Promise((resolve) => setImmediate(resolve)).then(async () => {
        asked = undefined;
        const row = await one(shared.HEAD_OF_TENANT);
        return row === undefined ? undefined : readHead(row);
      });
      return asked;
    },
    async openSession(session: Session, grant?: NewGrant, revision?: number) {
      const parameters = sessionParameters(cipher, session);
      const opened =
        grant === undefined
          ? await one(OPEN_SESSION, ...parameters, revision ?? null)
          : await one(
              OPEN_SESSION_WITH_GRANT,
              ...parameters,
              ...grantParameters(cipher, tenantId, grant),
              revision ?? null,
            );
      if (opened !== undefined) recent.keep(session);
      return opened !== undefined;
    },
    async readSession(id) {
      const row = await one(shared.READ_SESSION, id);
      return row === undefined ? undefined : { head: readHead(row), session: sessionOf(row) };
    },
    recallSession: (publicId) => recent.recall(tenantId, publicId),
    async findSession(id) {
      const row = await one(shared.FIND_SESSION, id);
      return row === undefined ? undefined : readSession(cipher, row);
    },
    async listSessions(query) {
      const { statement, parameters } = listSessionsQuery(query);
      const rows = await all(statement, ...parameters);
      return rows.map((row) => readSession(cipher, row));
    },
    async sessionVersions(ids) {
      const rows = await all(SESSION_VERSIONS, ids);
      return rows.map((row) => ({ id: row['id'] as SessionId, version: Number(row['version']) }));
    },
    async removeSession(id, by) {
      const removed = await chains.record(tenantId, by, describeSessionRemoval(id), (entry) =>
        one(REMOVE_SESSION, id, ...entry),
      );
      return removed !== undefined;
    },
    async findByPublicId(publicId) {
      const row = await one(shared.FIND_BY_PUBLIC_ID, publicId);
      return row === undefined ? undefined : { head: readHead(row), session: sessionOf(row) };
    },
    async fetchSession(publicId, now) {
      const row = await one(FETCH_SESSION, publicId, now.getTime());
      if (row !== undefined) return { head: readHead(row), session: sessionOf(row), changed: true };
      const present = await this.findByPublicId(publicId);
      return present === undefined ? undefined : { ...present, changed: false };
    },
    async findGrant(codeHash) {
      const row = await one(shared.FIND_GRANT, codeHash);
      if (row === undefined) return undefined;
      return { head: readHead(row), grant: row['id'] === null ? undefined : readGrant(cipher, row) };
    },
    async redeemGrant(codeHash, redemption, used, now) {
      const rows = await unlessUsed(
        used,
        REDEEM_GRANT,
        codeHash,
        ...redemptionParameters(redemption, now),
        ...valuesOf(used),
      );
      if (typeof rows === 'string') return rows;
      const [row] = rows;
      return row === undefined ? undefined : { head: readHead(row), grant: readGrant(cipher, row) };
    },
    async consumeGrant(grantId, redemption, used, now) {
      const rows = await unlessUsed(
        used,
        CONSUME_GRANT,
        grantId,
        ...redemptionParameters(redemption, now),
        ...valuesOf(used),
      );
      if (typeof rows === 'string') return rows;
      return rows.length > 0 ? 'consumed' : 'spent';
    },
    async takeAttempt(grantId, maximum) {
      return (await one(shared.TAKE_ATTEMPT, grantId, maximum)) !== undefined;
    },
    async remember(used) {
      return typeof (await unlessUsed(used, REMEMBER, ...valuesOf(used))) !== 'string';
    },
    async claimCredentialRequest(publicId, used, grantId) {
      const rows = await unlessUsed(
        used,
        CLAIM_CREDENTIAL_REQUEST,
        publicId,
        ...valuesOf(used),
        grantId ?? null,
      );
      if (typeof rows === 'string') {
        const present = await this.findByPublicId(publicId);
        return present === undefined ? undefined : { ...present, revoked: false, replayed: rows };
      }
      const [row] = rows;
      if (row === undefined) return undefined;
      const revoked = Boolean(row['revoked']);
      const session = sessionOf(row);
      return { head: readHead(row), session, revoked, ...(session && { use: readUse(row) }) };
    },
    async noteRelease(id, { sequenceNumber, contentHash }, now) {
      await one(shared.NOTE_RELEASE, id, sequenceNumber, contentHash, now.getTime());
      return readRelease(await one(shared.FIND_RELEASE, id)) ?? { sequenceNumber, contentHash };
    },
    async takeStatusRun({ id, keyChainId }, count) {
      const row = await one(shared.TAKE_STATUS_RUN, id, keyChainId, count);
      return row === undefined ? undefined : Number(row['first']);
    },
    async recordIssuance(sessionId, batch, bit, completeMask, now) {
      const row = await one(RECORD_ISSUANCE, ...issuanceParameters(sessionId, batch, bit, completeMask, now));
      if (row === undefined) return undefined;
      const status = row['status'] as Session['status'];
      return { status, version: Number(row['version']), changed: Boolean(row['changed']) };
    },
    async issueAtOnce({ sessionId, publicId, grantId, revision, used, batch, bit, completeMask }, now) {
      const rows = await unlessUsed(
        used,
        ISSUE_AT_ONCE,
        ...issuanceParameters(sessionId, batch, bit, completeMask, now),
        revision,
        ...valuesOf(used),
        grantId ?? null,
      );
      const row = typeof rows === 'string' ? undefined : rows[0];
      if (row === undefined) recent.forget(tenantId, publicId);
      if (typeof rows === 'string') return rows;
      if (row === undefined) return undefined;
      return { status: row['status'] as Session['status'], changed: Boolean(row['changed']) };
    },
    async answerAtOnce({ sessionId, publicId, revision, event, outcome }, now) {
      const sealed = sealOutcome(cipher, tenantId, sessionId, outcome);
      const row = await one(ANSWER_AT_ONCE, sessionId, transition(event).to, sealed, now.getTime(), revision);
      // Whoever answers again is told so by the database, without the work of judging the answer.
      recent.forget(tenantId, publicId);
      return row !== undefined;
    },
    async issuedBatches(sessionId) {
      return (await all(shared.ISSUED_BATCHES, sessionId)).map(readBatch);
    },
    async readIssued(sessionId) {
      return readIssued(await all(shared.READ_ISSUED, sessionId));
    },
    async claimResponse(id, now) {
      return (await one(shared.CLAIM_RESPONSE, id, now.getTime())) !== undefined;
    },
    async recordOutcome(session, event, outcome, now) {
      const { from, to } = event === undefined ? { from: OPEN_STATUSES, to: null } : transition(event);
      const sealed = sealOutcome(cipher, tenantId, session.id, outcome);
      const row = await one(RECORD_OUTCOME, session.id, session.version, to, from, sealed, now.getTime());
      return row === undefined ? undefined : Number(row['version']);
    },
    async changeStatuses(changes, _now, revocation) {
      const last = new Map(changes.map((change) => [`${change.listId} ${change.index}`, change]));
      const rows = [...last.values()];
      if (rows.length === 0) return true;
      const parameters = [
        rows.map((change) => change.listId),
        rows.map((change) => change.index),
        rows.map((change) => change.status),
        revocation?.sessionId ?? '',
        revocation?.mask ?? 0,
        revocation?.barred ?? false,
        revocation?.issuedCount ?? 0,
      ];
      if (revocation === undefined) return (await one(CHANGE_STATUSES, ...parameters)) !== undefined;
      const told = describeRevocation(revocation, rows);
      const allowed = await chains.record(tenantId, revocation.by, told, (entry) =>
        one(REVOKE, ...parameters, ...entry),
      );
      return allowed !== undefined;
    },
    async findStatusList(id) {
      const row = await one(shared.FIND_STATUS_LIST, id);
      return row === undefined ? undefined : readStatusList(cipher, row);
    },
    async statusListHeads(ids) {
      const rows = await all(STATUS_LIST_HEADS, ids);
      return rows.map(readStatusListHead);
    },
    async statusEntries(listId, afterVersion) {
      const rows = await all(shared.STATUS_ENTRIES, listId, afterVersion);
      return rows.map((row) => ({ index: Number(row['idx']), status: Number(row['status']) }));
    },
    async saveStatusToken(listId, token, version, issuedAt, expiresAt) {
      await all(shared.SAVE_STATUS_TOKEN, listId, token, version, issuedAt.getTime(), expiresAt.getTime());
    },
    async findTrustList(id) {
      const row = await one(shared.FIND_TRUST_LIST, id);
      return row === undefined ? undefined : readPublication(row);
    },
    async sessionEvents(id, after, limit) {
      return (await all(shared.SESSION_EVENTS, id, after, limit)).map(readEvent);
    },
  };
}

export function readEvent(row: Row) {
  return {
    sequence: Number(row['version']),
    version: Number(row['version']),
    status: row['status'] as Session['status'],
    at: new Date(Number(row['at'])),
  };
}

/** `$2` to `$11` of whatever records an issuance. */
function issuanceParameters(
  sessionId: SessionId,
  batch: IssuedBatch,
  bit: number,
  completeMask: number,
  now: Date,
): Parameter[] {
  return [
    sessionId,
    batch.id,
    batch.credentialConfigurationId,
    batch.count,
    batch.statusListId,
    batch.firstCounter,
    batch.issuedAt.getTime(),
    bit,
    completeMask,
    now.getTime(),
  ];
}

/** `$3` to `$5` of whatever redeems a grant. */
function redemptionParameters({ holder, until }: Redemption, now: Date): Parameter[] {
  return [now.getTime(), JSON.stringify(holder), until.getTime()];
}
