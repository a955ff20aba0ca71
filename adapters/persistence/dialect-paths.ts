import type { Cipher } from '../../application/ports/cipher.ts';
import type { Maintenance } from '../../application/ports/maintenance.ts';
import type { NotedSession } from '../../application/ports/store.ts';
import type { Macs } from '../../domain/audit/macs.ts';
import type { Change, CommitResult } from '../../domain/changes/change.ts';
import type { SessionTransition } from '../../domain/sessions/session.ts';
import type { SessionId, TenantId } from '../../domain/shared/ids.ts';
import { auditMacs } from './audit-keys.ts';
import { adoptOnPostgres, adoptOnSqlite, type ClientMacs, openClientMacs } from './client-macs.ts';
import { mapDatabaseErrors } from './database-faults.ts';
import { type JobSql, postgresJobs, sqliteJobs } from './job-sql.ts';
import { clusterMaintenance } from './maintenance/cluster-maintenance.ts';
import { postgresMaintenance, sqliteMaintenance } from './maintenance/maintenance.ts';
import { beginOnPostgres, beginOnSqlite } from './opening/begin-log.ts';
import type { Database } from './opening/open-driver.ts';
import { WRITE_CHECK, WriteCheck } from './opening/write-check.ts';
import { PostgresChains } from './postgres/audit-chain.ts';
import { PostgresCommit } from './postgres/commit.ts';
import { noteOnPostgres } from './postgres/notes.ts';
import { postgresSql } from './postgres/sql.ts';
import { type DocumentStatements, POSTGRES_DOCUMENTS, type RunStatement, SQLITE_DOCUMENTS } from './readers.ts';
import { type ListingStatements, POSTGRES_LISTING, SQLITE_LISTING, type TenantQuery } from './reads.ts';
import type { Parts } from './rows/change-columns.ts';
import { postgresSessionBytes, type SessionBytesSql, sqliteSessionBytes } from './session-bytes-sql.ts';
import { sqliteChain } from './sqlite/audit-chain.ts';
import { SqliteCommit } from './sqlite/commit.ts';
import { noteOnSqlite } from './sqlite/notes.ts';
import { sqliteSql } from './sqlite/sql.ts';

/** Operations that SQLite and PostgreSQL implement differently. */
export type DialectPaths = {
  readonly commit: { apply(tenantId: TenantId, change: Change, parts: Parts, now: Date): Promise<CommitResult> };
  readonly sessionBytes: SessionBytesSql;
  readonly note: (
    tenantId: TenantId,
    sessions: readonly SessionId[],
    move: SessionTransition,
    now: Date,
  ) => Promise<readonly NotedSession[]>;
  readonly query: (tenantId: TenantId) => TenantQuery;
  readonly listing: ListingStatements;
  readonly maintenance: Maintenance;
  readonly writes: WriteCheck;
  readonly exclusively: <T>(work: () => Promise<T>) => Promise<T>;
  /** Statements within `exclusively` run through this function. */
  readonly read: RunStatement;
  readonly documents: DocumentStatements;
  /** Invalidates the cached ends of these chains, or of all. */
  readonly moved: (scopes?: readonly string[]) => void;
  readonly clientMacs: ClientMacs;
  /** Runs each statement as its own transaction, over any connection. */
  readonly jobs: JobSql;
};

/** @param check runs before any other statement. @param writes false for read-only access. */
export async function onSqlite(
  database: Database,
  cipher: Cipher,
  check: (sql: JobSql) => Promise<void>,
  writes: boolean,
): Promise<DialectPaths & { readonly macs: Macs }> {
  const sql = sqliteSql(database.native, database.checkpoints);
  const jobs = sqliteJobs(sql);
  const writeCheck = checkOf(jobs);
  await check(jobs);
  const macs = await auditMacs(jobs, cipher);
  if (writes) await beginOnSqlite(sql, macs);
  const adopt = adoptOnSqlite(sql);
  const clientMacs = await openClientMacs({ jobs, cipher, adopt, hasOthers: false, writes });
  const run = await sql.single((runner) => runner);
  return {
    macs,
    clientMacs,
    commit: reportingFailures(writeCheck, new SqliteCommit(sql, cipher, (tenantId) => sqliteChain(macs, tenantId))),
    sessionBytes: sqliteSessionBytes(sql),
    note: (...parameters) => noteOnSqlite(sql, ...parameters),
    query:
      (tenantId) =>
      (statement, ...parameters) =>
        sql.single((runner) => runner.all(statement, tenantId, ...parameters)),
    listing: SQLITE_LISTING,
    maintenance: sqliteMaintenance(sql, cipher, clientMacs),
    writes: writeCheck,
    exclusively: sql.exclusively,
    read: (statement, ...parameters) => mapDatabaseErrors(async () => run.all(statement, ...parameters)),
    documents: SQLITE_DOCUMENTS,
    moved: () => {},
    jobs,
  };
}

/** @param check runs before any other statement. @param writes false for read-only access. */
export async function onPostgres(
  database: Database,
  cipher: Cipher,
  check: (sql: JobSql) => Promise<void>,
  writes: boolean,
): Promise<DialectPaths & { readonly macs: Macs }> {
  const isCluster = database.isCluster === true;
  const sql = postgresSql(database.native, isCluster);
  const jobs = postgresJobs(sql);
  const writeCheck = checkOf(jobs);
  await check(jobs);
  const macs = await auditMacs(jobs, cipher);
  if (writes) await beginOnPostgres(sql, macs);
  const adopt = adoptOnPostgres(sql);
  const clientMacs = await openClientMacs({ jobs, cipher, adopt, hasOthers: true, writes });
  const chains = new PostgresChains(sql, macs, async (tenantId) => {
    // The chain is new, or was tampered with.
    const { settleChain } = await import('./administration/audit-chain.ts');
    const orm = await database.orm();
    await mapDatabaseErrors(() => orm.em.fork({ clear: true }).transactional((em) => settleChain(em, macs, tenantId)));
  });
  return {
    macs,
    clientMacs,
    commit: reportingFailures(writeCheck, new PostgresCommit(sql, cipher, chains)),
    sessionBytes: postgresSessionBytes(sql, isCluster),
    note: (...parameters) => noteOnPostgres(sql, ...parameters),
    query:
      (tenantId) =>
      (statement, ...parameters) =>
        statement.isBrief
          ? sql.queryTogether(`reads of ${tenantId}`, statement, [tenantId, ...parameters])
          : sql.query(statement, [tenantId, ...parameters]),
    listing: POSTGRES_LISTING,
    maintenance: isCluster ? clusterMaintenance(sql, cipher, clientMacs) : postgresMaintenance(sql, cipher, clientMacs),
    writes: writeCheck,
    exclusively: (work) => work(),
    read: (statement, ...parameters) => sql.query(statement, parameters),
    documents: POSTGRES_DOCUMENTS,
    moved: (scopes) => chains.forget(scopes),
    jobs,
  };
}

function checkOf(jobs: JobSql): WriteCheck {
  return new WriteCheck(() => jobs.change(WRITE_CHECK, Date.now()));
}

/** The outcome of each change shows if the database accepts writes. */
function reportingFailures(writes: WriteCheck, commit: DialectPaths['commit']): DialectPaths['commit'] {
  return {
    apply(...parameters) {
      const applied = commit.apply(...parameters);
      applied.catch(writes.noteFailure);
      return applied;
    },
  };
}
