import type { Cipher } from '../../../application/ports/cipher.ts';
import {
  type Beats,
  MAX_ISSUANCES,
  type NewGrant,
  type UsedValue,
} from '../../../application/ports/store.ts';
import { type Session, transition } from '../../../domain/sessions/session.ts';
import type { SessionId, TenantId } from '../../../domain/shared/ids.ts';
import type { IssuedBatch } from '../../../domain/status-lists/status-list.ts';
import { readEvent } from './beats.postgres.ts';
import type { RecentSessions } from './recent-sessions.ts';
import {
  readBatch,
  readGrant,
  readHead,
  readIssued,
  readSession,
  readStatusList,
  SESSION_COLUMNS,
  sealOutcome,
  sealRequest,
} from './session-codec.ts';
import type { Row, SqliteRun, SqliteSql, Statement } from './sql.ts';
import * as shared from './statements.ts';

const named = (name: string, text: string): Statement => ({ name, text });

const INSERT_SESSION = named(
  'insert_session',
  `insert into sessions (${SESSION_COLUMNS}) select ${shared.SESSION_VALUES} from tenants
   where id = $1 and status = 'active' and ($16 is null or revision = $16)`,
);
const INSERT_GRANT = named(
  'insert_grant',
  `insert into grants (tenant_id, id, kind, session_id, public_id, code_hash, tx_code_hash, configuration_ids,
     expires_at, attempts) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0)`,
);
const LOG_EVENT = named(
  'log_event',
  `insert into session_events (tenant_id, session_id, version, status, at)
   values ($1, $2, $3, $4, $5) on conflict do nothing`,
);
const MARK_FETCHED = named(
  'mark_fetched',
  `update sessions set status = 'fetched', version = version + 1, updated_at = $3
   where tenant_id = $1 and public_id = $2 and status = 'active' and expires_at > $3
     and exists (select 1 from tenants where id = $1 and status = 'active')`,
);
const USE_VALUE = named(
  'use_value',
  'insert into used_values (tenant_id, kind, hash, expires_at) values ($1, $2, $3, $4) on conflict do nothing',
);
const CONSUME_GRANT = named(
  'consume_grant',
  `update grants set consumed_at = $3
   where tenant_id = $1 and id = $2 and consumed_at is null and expires_at > $3
     and exists (select 1 from sessions s where s.tenant_id = $1 and s.id = grants.session_id
       and s.status in ('active', 'fetched') and s.expires_at > $3)`,
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
const INSERT_BATCH = named(
  'insert_batch',
  `insert into issued_batches (tenant_id, session_id, id, credential_configuration_id, count, status_list_id,
     first_counter, issued_at) values ($1, $2, $3, $4, $5, $6, $7, $8)`,
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
  'select id, version from status_lists where tenant_id = $1 and id in (select value from json_each($2))',
);

/** Thrown inside a beat to roll it back; never leaves this file. */
class Replayed extends Error {
  readonly kind: UsedValue['kind'];

  constructor(kind: UsedValue['kind']) {
    super('replayed');
    this.kind = kind;
  }
}

export function sqliteBeats(
  sql: SqliteSql,
  cipher: Cipher,
  recent: RecentSessions,
  tenantId: TenantId,
): Beats {
  const first = (run: SqliteRun, statement: Statement, ...parameters: (string | number | null)[]) =>
    run.all(statement, tenantId, ...parameters)[0];
  const sessionOf = (row: Row) => (row['id'] === null ? undefined : readSession(cipher, row));
  const use = (run: SqliteRun, used: readonly UsedValue[]) => {
    for (const { kind, hash, expiresAt } of used) {
      if (run.change(USE_VALUE, tenantId, kind, hash, expiresAt.getTime()) === 0) throw new Replayed(kind);
    }
  };
  const log = (run: SqliteRun, id: string, version: number, status: string, at: Date) =>
    run.change(LOG_EVENT, tenantId, id, version, status, at.getTime());
  /** A replay rolls the whole beat back, so nothing is remembered or consumed. */
  const unlessReplayed = async <T, R>(
    beat: Promise<T>,
    otherwise: (kind: UsedValue['kind']) => R | Promise<R>,
  ) => {
    try {
      return await beat;
    } catch (error) {
      if (error instanceof Replayed) return otherwise(error.kind);
      throw error;
    }
  };

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
    head: () =>
      sql.single((run) => {
        const row = first(run, shared.HEAD_OF_TENANT);
        return row === undefined ? undefined : readHead(row);
      }),
    openSession: (session, grant, revision) =>
      sql.beat((run) => {
        const parameters = sessionParameters(cipher, session);
        if (run.change(INSERT_SESSION, tenantId, ...parameters, revision ?? null) === 0) return false;
        if (grant !== undefined) run.change(INSERT_GRANT, tenantId, ...grantParameters(session, grant));
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
    removeSession: (id) =>
      sql.beat((run) => {
        run.change(shared.REMOVE_SESSION_GRANTS, tenantId, id);
        run.change(shared.REMOVE_SESSION_EVENTS, tenantId, id);
        return run.change(shared.REMOVE_SESSION, tenantId, id) > 0;
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
        return { head: readHead(row), grant: row['id'] === null ? undefined : readGrant(row) };
      }),
    redeemGrant: (codeHash, used, now) =>
      unlessReplayed(
        sql.beat((run) => {
          const row = first(run, shared.FIND_GRANT, codeHash);
          if (row === undefined || row['head_status'] !== 'active' || row['id'] === null) return undefined;
          if (row['tx_code_hash'] !== null) return undefined;
          if (run.change(CONSUME_GRANT, tenantId, String(row['id']), now.getTime()) === 0) return undefined;
          use(run, used);
          return { head: readHead(row), grant: { ...readGrant(row), consumedAt: now } };
        }),
        () => 'replayed' as const,
      ),
    consumeGrant: (grantId, used, now) =>
      unlessReplayed(
        sql.beat((run) => {
          use(run, used);
          const won = run.change(CONSUME_GRANT, tenantId, grantId, now.getTime()) > 0;
          return won ? ('consumed' as const) : ('spent' as const);
        }),
        () => 'replayed' as const,
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
    async claimCredentialRequest(publicId, used) {
      const claim = () =>
        sql.beat((run) => {
          const row = first(run, shared.FIND_BY_PUBLIC_ID, publicId);
          // Nothing is remembered for a tenant that does not exist.
          if (row !== undefined) use(run, used);
          return row === undefined ? undefined : { head: readHead(row), session: sessionOf(row) };
        });
      return unlessReplayed(claim(), async (replayed) => {
        const found = await this.findByPublicId(publicId);
        return found === undefined ? undefined : { ...found, replayed };
      });
    },
    takeStatusRun: (listId, count) =>
      sql.single((run) => {
        const row = first(run, shared.TAKE_STATUS_RUN, listId, count);
        return row === undefined ? undefined : Number(row['first']);
      }),
    recordIssuance: (sessionId, batch, bit, completeMask, now) =>
      sql.beat((run) => issue(run, sessionId, batch, bit, completeMask, now)),
    issueAtOnce: ({ sessionId, revision, used, batch, bit, completeMask }, now) =>
      unlessReplayed(
        sql.beat((run) => {
          if (first(run, IS_CURRENT, sessionId, revision, now.getTime()) === undefined) return undefined;
          const issued = issue(run, sessionId, batch, bit, completeMask, now);
          if (issued === undefined) return undefined;
          use(run, used);
          return { status: issued.status, changed: issued.changed };
        }),
        (kind) => kind,
      ),
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
        return true;
      }),
    findStatusList: (id) =>
      sql.single((run) => {
        const row = first(run, shared.FIND_STATUS_LIST, id);
        return row === undefined ? undefined : readStatusList(cipher, row);
      }),
    statusListHeads: (ids) =>
      sql.single((run) =>
        run
          .all(STATUS_LIST_HEADS, tenantId, JSON.stringify(ids))
          .map((row) => ({ id: row['id'] as string, version: Number(row['version']) })),
      ),
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
    sessionEvents: (id, after, limit) =>
      sql.single((run) => run.all(shared.SESSION_EVENTS, tenantId, id, after, limit).map(readEvent)),
  };
}

function sessionParameters(cipher: Cipher, session: Session): (string | number | null)[] {
  return [
    session.id,
    session.publicId,
    session.kind,
    session.status,
    session.version,
    session.createdAt.getTime(),
    session.updatedAt.getTime(),
    session.expiresAt.getTime(),
    JSON.stringify(session.configurationIds),
    session.useDcApi ? 1 : 0,
    sealRequest(cipher, session),
    sealOutcome(cipher, session.tenantId, session.id, session.outcome),
    session.issuedMask,
    session.claimedAt?.getTime() ?? null,
  ];
}

function grantParameters(session: Session, grant: NewGrant): (string | number | null)[] {
  return [
    grant.id,
    grant.kind,
    session.id,
    session.publicId,
    grant.codeHash,
    grant.txCodeHash,
    JSON.stringify(grant.credentialConfigurationIds),
    grant.expiresAt.getTime(),
  ];
}

function batchParameters(batch: IssuedBatch): (string | number | null)[] {
  return [
    batch.id,
    batch.credentialConfigurationId,
    batch.count,
    batch.statusListId,
    batch.firstCounter,
    batch.issuedAt.getTime(),
  ];
}
