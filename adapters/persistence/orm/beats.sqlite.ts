import type { Redemption } from '../../../application/ports/authorization-beats.ts';
import type { Cipher } from '../../../application/ports/cipher.ts';
import { type Beats, MAX_ISSUANCES } from '../../../application/ports/store.ts';
import { describeRevocation, describeSessionRemoval } from '../../../domain/audit/describe-change.ts';
import { type Session, transition } from '../../../domain/sessions/session.ts';
import type { SessionId, TenantId } from '../../../domain/shared/ids.ts';
import type { IssuedBatch } from '../../../domain/status-lists/status-list.ts';
import type { SqliteChain } from './audit-chain.sqlite.ts';
import { sqliteAuthorizationBeats } from './authorization-beats.sqlite.ts';
import { readEvent } from './beats.postgres.ts';
import { sqliteDeferredBeats } from './deferred-beats.sqlite.ts';
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
import {
  batchParameters,
  INSERT_BATCH,
  INSERT_GRANT,
  INSERT_SESSION,
  sessionParameters,
} from './session-parts.sqlite.ts';
import type { Row, SqliteRun, SqliteSql, Statement } from './sql.ts';
import { sqliteSteps, unlessReplayed } from './sqlite-steps.ts';
import * as shared from './statements.ts';

const named = (name: string, text: string): Statement => ({ name, text });

const MARK_FETCHED = named(
  'mark_fetched',
  `update sessions set status = 'fetched', version = version + 1, updated_at = $3
   where tenant_id = $1 and public_id = $2 and status = 'active' and expires_at > $3
     and exists (select 1 from tenants where id = $1 and status = 'active')`,
);
/** An authorization code may be for a session that has completed: one offer serves more than one wallet. */
const CONSUME_GRANT = named(
  'consume_grant',
  `update grants set consumed_at = $3, holder = $4, expires_at = $5
   where tenant_id = $1 and id = $2 and consumed_at is null and expires_at > $3
     and exists (select 1 from sessions s where s.tenant_id = $1 and s.id = grants.session_id
       and (s.status in ('active', 'fetched') and s.expires_at > $3
         or s.status = 'completed' and grants.kind = 'authorization_code'))`,
);
const IS_REVOKED = named(
  'is_revoked',
  'select 1 from grants where tenant_id = $1 and id = $2 and revoked_at is not null',
);
const SET_ISSUED = named(
  'set_issued',
  `update sessions set issued_mask = issued_mask | $3, issued_count = issued_count + 1, updated_at = $4
   where tenant_id = $1 and id = $2 and status in ('active', 'fetched', 'completed')
     and issued_count < ${MAX_ISSUANCES} and (revoked_mask & $3) = 0
   returning version, status, issued_mask`,
);
const IS_CURRENT = named(
  'is_current',
  `select 1 from tenants t join sessions s on s.tenant_id = t.id and s.id = $2
   where t.id = $1 and t.status = 'active' and t.revision = $3 and s.expires_at > $4`,
);
const ANSWER = named(
  'answer',
  `update sessions set status = $3, outcome = $4, version = version + 1, updated_at = $5, claimed_at = $5
   where tenant_id = $1 and id = $2 and status in ('active', 'fetched') and claimed_at is null
   returning version, status`,
);
const COMPLETE = named(
  'complete',
  `update sessions set status = 'completed', version = version + 1 where tenant_id = $1 and id = $2
   returning version, status`,
);
const SET_OUTCOME = named(
  'set_outcome',
  `update sessions set status = coalesce($4, status), outcome = $5, version = version + 1, updated_at = $6
   where tenant_id = $1 and id = $2 and version = $3 and ($4 is null or status in (select value from json_each($7)))
   returning version, status`,
);
const BAR = named(
  'bar',
  `update sessions set revoked_mask = case when $4 = 1 then revoked_mask | $3 else revoked_mask & ~$3 end
   where tenant_id = $1 and id = $2 and issued_count = $5`,
);
const RAISE_LIST = named(
  'raise_status_list',
  'update status_lists set version = version + 1 where tenant_id = $1 and id = $2 returning version',
);
const SET_ENTRY = named(
  'set_status_entry',
  `insert into status_entries (tenant_id, list_id, idx, status, changed_version) values ($1, $2, $3, $4, $5)
   on conflict (tenant_id, list_id, idx)
     do update set status = excluded.status, changed_version = excluded.changed_version`,
);
const SESSION_VERSIONS = named(
  'session_versions',
  'select id, version from sessions where tenant_id = $1 and id in (select value from json_each($2))',
);
const STATUS_LIST_HEADS = named(
  'status_list_heads',
  `select id, version, key_chain_id from status_lists
   where tenant_id = $1 and id in (select value from json_each($2))
     and exists (select 1 from tenants where id = $1)`,
);

export function sqliteBeats(
  sql: SqliteSql,
  cipher: Cipher,
  recent: RecentSessions,
  chain: SqliteChain,
  tenantId: TenantId,
): Beats {
  const steps = sqliteSteps(tenantId);
  const { first, use, log } = steps;
  const isRevoked = (run: SqliteRun, grantId: string | undefined) =>
    grantId !== undefined && first(run, IS_REVOKED, grantId) !== undefined;
  const sessionOf = (row: Row) => (row['id'] === null ? undefined : readSession(cipher, row));
  const issue = (
    run: SqliteRun,
    sessionId: SessionId,
    batch: IssuedBatch,
    bit: number,
    completeMask: number,
    now: Date,
  ) => {
    const issued = first(run, SET_ISSUED, sessionId, bit, now.getTime());
    if (issued === undefined) return undefined;
    run.change(INSERT_BATCH, tenantId, sessionId, ...batchParameters(batch));
    const changed = issued['status'] !== 'completed' && Number(issued['issued_mask']) === completeMask;
    const row = (changed ? first(run, COMPLETE, sessionId) : undefined) ?? issued;
    const status = row['status'] as Session['status'];
    const version = Number(row['version']);
    if (changed) log(run, sessionId, version, status, now);
    return { status, version, changed };
  };

  return {
    ...sqliteAuthorizationBeats(sql, steps, cipher, recent, tenantId),
    ...sqliteDeferredBeats(sql, steps, cipher, chain, tenantId),
    head: () =>
      sql.single((run) => {
        const row = first(run, shared.HEAD_OF_TENANT);
        return row === undefined ? undefined : readHead(row);
      }),
    openSession: (session, grant, revision) =>
      sql.beat((run) => {
        const parameters = sessionParameters(cipher, session);
        if (run.change(INSERT_SESSION, tenantId, ...parameters, revision ?? null) === 0) return false;
        if (grant !== undefined)
          run.change(INSERT_GRANT, tenantId, ...grantParameters(cipher, tenantId, grant));
        log(run, session.id, session.version, session.status, session.createdAt);
        recent.keep(session);
        return true;
      }),
    readSession: (id) =>
      sql.single((run) => {
        const row = first(run, shared.READ_SESSION, id);
        return row === undefined ? undefined : { head: readHead(row), session: sessionOf(row) };
      }),
    recallSession: (publicId) => recent.recall(tenantId, publicId),
    findSession: (id) =>
      sql.single((run) => {
        const row = first(run, shared.FIND_SESSION, id);
        return row === undefined ? undefined : readSession(cipher, row);
      }),
    listSessions: (query) =>
      sql.single((run) => {
        const { statement, parameters } = shared.listSessionsQuery(query);
        return run.all(statement, tenantId, ...parameters).map((row) => readSession(cipher, row));
      }),
    sessionVersions: (ids) =>
      sql.single((run) =>
        run
          .all(SESSION_VERSIONS, tenantId, JSON.stringify(ids))
          .map((row) => ({ id: row['id'] as SessionId, version: Number(row['version']) })),
      ),
    removeSession: (id, by) =>
      sql.beat((run) => {
        run.change(shared.REMOVE_SESSION_GRANTS, tenantId, id);
        run.change(shared.REMOVE_SESSION_EVENTS, tenantId, id);
        run.change(shared.REMOVE_SESSION_DEFERRED, tenantId, id);
        run.change(shared.REMOVE_SESSION_SUBJECTS, tenantId, id);
        if (run.change(shared.REMOVE_SESSION, tenantId, id) === 0) return false;
        chain.record(run, by, describeSessionRemoval(id));
        return true;
      }),
    findByPublicId: (publicId) =>
      sql.single((run) => {
        const row = first(run, shared.FIND_BY_PUBLIC_ID, publicId);
        return row === undefined ? undefined : { head: readHead(row), session: sessionOf(row) };
      }),
    fetchSession: (publicId, now) =>
      sql.beat((run) => {
        const changed = run.change(MARK_FETCHED, tenantId, publicId, now.getTime()) > 0;
        const row = first(run, shared.FIND_BY_PUBLIC_ID, publicId);
        if (row === undefined) return undefined;
        const session = sessionOf(row);
        if (changed && session !== undefined) log(run, session.id, session.version, session.status, now);
        return { head: readHead(row), session, changed };
      }),
    findGrant: (codeHash) =>
      sql.single((run) => {
        const row = first(run, shared.FIND_GRANT, codeHash);
        if (row === undefined) return undefined;
        return { head: readHead(row), grant: row['id'] === null ? undefined : readGrant(cipher, row) };
      }),
    redeemGrant: (codeHash, redemption, used, now) =>
      unlessReplayed(
        sql.beat((run) => {
          const row = first(run, shared.FIND_GRANT, codeHash);
          if (row === undefined || row['head_status'] !== 'active' || row['id'] === null) return undefined;
          if (row['tx_code_hash'] !== null || row['kind'] !== 'pre_authorized_code') return undefined;
          const id = String(row['id']);
          const parameters = redemptionParameters(redemption, now);
          if (run.change(CONSUME_GRANT, tenantId, id, ...parameters) === 0) return undefined;
          use(run, used);
          const { holder, until: expiresAt } = redemption;
          const grant = { ...readGrant(cipher, row), consumedAt: now, holder, expiresAt };
          return { head: readHead(row), grant };
        }),
        (kind) => kind,
      ),
    consumeGrant: (grantId, redemption, used, now) =>
      unlessReplayed(
        sql.beat((run) => {
          use(run, used);
          const parameters = redemptionParameters(redemption, now);
          const won = run.change(CONSUME_GRANT, tenantId, grantId, ...parameters) > 0;
          return won ? ('consumed' as const) : ('spent' as const);
        }),
        (kind) => kind,
      ),
    takeAttempt: (grantId, maximum) =>
      sql.beat((run) => first(run, shared.TAKE_ATTEMPT, grantId, maximum) !== undefined),
    remember: (used) =>
      unlessReplayed(
        sql.beat((run) => {
          use(run, used);
          return true;
        }),
        () => false,
      ),
    async claimCredentialRequest(publicId, used, grantId) {
      const claim = () =>
        sql.beat((run) => {
          const row = first(run, shared.FIND_WITH_USE, publicId);
          // Nothing is remembered for a tenant that does not exist.
          if (row !== undefined) use(run, used);
          if (row === undefined) return undefined;
          const session = sessionOf(row);
          const revoked = isRevoked(run, grantId);
          return { head: readHead(row), session, revoked, ...(session && { use: readUse(row) }) };
        });
      return unlessReplayed(claim(), async (replayed) => {
        const found = await this.findByPublicId(publicId);
        return found === undefined ? undefined : { ...found, revoked: false, replayed };
      });
    },
    noteRelease: (id, { sequenceNumber, contentHash }, now) =>
      sql.beat((run) => {
        run.change(shared.NOTE_RELEASE, tenantId, id, sequenceNumber, contentHash, now.getTime());
        return readRelease(first(run, shared.FIND_RELEASE, id)) ?? { sequenceNumber, contentHash };
      }),
    takeStatusRun: ({ id, keyChainId }, count) =>
      sql.single((run) => {
        const row = first(run, shared.TAKE_STATUS_RUN, id, keyChainId, count);
        return row === undefined ? undefined : Number(row['first']);
      }),
    recordIssuance: (sessionId, batch, bit, completeMask, now) =>
      sql.beat((run) => issue(run, sessionId, batch, bit, completeMask, now)),
    async issueAtOnce({ sessionId, publicId, grantId, revision, used, batch, bit, completeMask }, now) {
      const recorded = await unlessReplayed(
        sql.beat((run) => {
          if (first(run, IS_CURRENT, sessionId, revision, now.getTime()) === undefined) return undefined;
          if (isRevoked(run, grantId)) return undefined;
          const issued = issue(run, sessionId, batch, bit, completeMask, now);
          if (issued === undefined) return undefined;
          use(run, used);
          return { status: issued.status, changed: issued.changed };
        }),
        (kind) => kind,
      );
      if (recorded === undefined || typeof recorded === 'string') recent.forget(tenantId, publicId);
      return recorded;
    },
    answerAtOnce: ({ sessionId, publicId, revision, event, outcome }, now) =>
      sql.beat((run) => {
        recent.forget(tenantId, publicId);
        if (first(run, IS_CURRENT, sessionId, revision, now.getTime()) === undefined) return false;
        const sealed = sealOutcome(cipher, tenantId, sessionId, outcome);
        const row = first(run, ANSWER, sessionId, transition(event).to, sealed, now.getTime());
        if (row === undefined) return false;
        log(run, sessionId, Number(row['version']), String(row['status']), now);
        return true;
      }),
    issuedBatches: (sessionId) =>
      sql.single((run) => run.all(shared.ISSUED_BATCHES, tenantId, sessionId).map(readBatch)),
    readIssued: (sessionId) =>
      sql.single((run) => readIssued(run.all(shared.READ_ISSUED, tenantId, sessionId))),
    claimResponse: (id, now) =>
      sql.single((run) => first(run, shared.CLAIM_RESPONSE, id, now.getTime()) !== undefined),
    recordOutcome: (session, event, outcome, now) =>
      sql.beat((run) => {
        const { from, to } = event === undefined ? { from: [], to: null } : transition(event);
        const sealed = sealOutcome(cipher, tenantId, session.id, outcome);
        const row = first(
          run,
          SET_OUTCOME,
          session.id,
          session.version,
          to,
          sealed,
          now.getTime(),
          JSON.stringify(from),
        );
        if (row === undefined) return undefined;
        const version = Number(row['version']);
        if (to !== null) log(run, session.id, version, to, now);
        return version;
      }),
    changeStatuses: (changes, _now, revocation) =>
      sql.beat((run) => {
        if (revocation !== undefined) {
          const { sessionId, mask, barred, issuedCount } = revocation;
          const marked = run.change(BAR, tenantId, sessionId, mask, barred ? 1 : 0, issuedCount) > 0;
          if (!marked && first(run, shared.FIND_SESSION, sessionId) !== undefined) return false;
        }
        const versions = new Map<string, number>();
        for (const { listId, index, status } of changes) {
          let version = versions.get(listId);
          if (version === undefined) {
            const row = first(run, RAISE_LIST, listId);
            if (row === undefined) continue;
            version = Number(row['version']);
            versions.set(listId, version);
          }
          run.change(SET_ENTRY, tenantId, listId, index, status, version);
        }
        if (revocation !== undefined)
          chain.record(run, revocation.by, describeRevocation(revocation, changes));
        return true;
      }),
    findStatusList: (id) =>
      sql.single((run) => {
        const row = first(run, shared.FIND_STATUS_LIST, id);
        return row === undefined ? undefined : readStatusList(cipher, row);
      }),
    statusListHeads: (ids) =>
      sql.single((run) => run.all(STATUS_LIST_HEADS, tenantId, JSON.stringify(ids)).map(readStatusListHead)),
    statusEntries: (listId, afterVersion) =>
      sql.single((run) =>
        run
          .all(shared.STATUS_ENTRIES, tenantId, listId, afterVersion)
          .map((row) => ({ index: Number(row['idx']), status: Number(row['status']) })),
      ),
    saveStatusToken: (listId, token, version, issuedAt, expiresAt) =>
      sql.single((run) => {
        run.change(
          shared.SAVE_STATUS_TOKEN,
          tenantId,
          listId,
          token,
          version,
          issuedAt.getTime(),
          expiresAt.getTime(),
        );
      }),
    findTrustList: (id) =>
      sql.single((run) => {
        const row = first(run, shared.FIND_TRUST_LIST, id);
        return row === undefined ? undefined : readPublication(row);
      }),
    sessionEvents: (id, after, limit) =>
      sql.single((run) => run.all(shared.SESSION_EVENTS, tenantId, id, after, limit).map(readEvent)),
  };
}

/** `$3` to `$5` of what redeems a grant. */
function redemptionParameters({ holder, until }: Redemption, now: Date): [number, string, number] {
  return [now.getTime(), JSON.stringify(holder), until.getTime()];
}
