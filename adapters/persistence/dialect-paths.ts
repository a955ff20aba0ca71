import type { EntityManager, MikroORM } from '@mikro-orm/core';
import type { Cipher } from '../../application/ports/cipher.ts';
import type { Maintenance } from '../../application/ports/maintenance.ts';
import type { NotedSession } from '../../application/ports/store.ts';
import type { Macs } from '../../domain/audit/macs.ts';
import type { Change, Committed } from '../../domain/changes/change.ts';
import type { SessionTransition } from '../../domain/sessions/session.ts';
import type { SessionId, TenantId } from '../../domain/shared/ids.ts';
import { settleChain } from './administration/audit-chain.ts';
import { lockTenant } from './administration/revisions.ts';
import { reaching } from './database-faults.ts';
import { postgresMaintenance, sqliteMaintenance } from './maintenance/maintenance.ts';
import { PostgresChains } from './postgres/audit-chain.ts';
import { PostgresCommit } from './postgres/commit.ts';
import { noteOnPostgres } from './postgres/notes.ts';
import { postgresSql } from './postgres/sql.ts';
import { type ListingStatements, POSTGRES_LISTING, SQLITE_LISTING, type TenantQuery } from './reads.ts';
import { sqliteChain } from './sqlite/audit-chain.ts';
import { SqliteCommit } from './sqlite/commit.ts';
import { noteOnSqlite } from './sqlite/notes.ts';
import { sqliteSql } from './sqlite/sql.ts';

/** What the dialects do in their own ways. */
export type DialectPaths = {
  readonly commit: { apply(tenantId: TenantId, change: Change, now: Date): Promise<Committed> };
  readonly note: (
    tenantId: TenantId,
    sessions: readonly SessionId[],
    move: SessionTransition,
    now: Date,
  ) => Promise<readonly NotedSession[]>;
  readonly query: (tenantId: TenantId) => TenantQuery;
  readonly listing: ListingStatements;
  readonly maintenance: Maintenance;
  readonly exclusively: <T>(work: () => Promise<T>) => Promise<T>;
  /** The first thing that a transaction does which is going to write. */
  readonly beginWriting: (em: EntityManager) => Promise<void>;
  /** Lets one transaction of the tenant on; the others that lock wait for its end. */
  readonly lock: (em: EntityManager, tenantId: TenantId) => Promise<void>;
  /** What is remembered of the end of these chains is out of date. */
  readonly moved: (scopes: readonly string[]) => void;
};

export async function onSqlite(orm: MikroORM, cipher: Cipher, macs: Macs): Promise<DialectPaths> {
  const sql = await sqliteSql(orm);
  return {
    commit: new SqliteCommit(sql, cipher, (tenantId) => sqliteChain(macs, tenantId)),
    note: (...asked) => noteOnSqlite(sql, ...asked),
    query:
      (tenantId) =>
      (statement, ...parameters) =>
        sql.single((run) => run.all(statement, tenantId, ...parameters)),
    listing: SQLITE_LISTING,
    maintenance: sqliteMaintenance(sql, cipher),
    exclusively: sql.exclusively,
    // A transaction that has read cannot go on to write after a command has, so it takes its place before.
    beginWriting: async (em) => {
      await em.getConnection().execute('delete from leases where 0', [], 'run', em.getTransactionContext());
    },
    // There is one transaction at a time anyway.
    lock: async () => {},
    moved: () => {},
  };
}

export async function onPostgres(orm: MikroORM, cipher: Cipher, macs: Macs): Promise<DialectPaths> {
  const sql = await postgresSql(orm);
  const chains = new PostgresChains(sql, macs, (tenantId) =>
    reaching(() => orm.em.fork({ clear: true }).transactional((em) => settleChain(em, macs, tenantId))),
  );
  return {
    commit: new PostgresCommit(sql, cipher, chains),
    note: (...asked) => noteOnPostgres(sql, ...asked),
    query:
      (tenantId) =>
      (statement, ...parameters) =>
        statement.isBrief
          ? sql.queryTogether(`reads of ${tenantId}`, statement, [tenantId, ...parameters])
          : sql.query(statement, [tenantId, ...parameters]),
    listing: POSTGRES_LISTING,
    maintenance: postgresMaintenance(sql, cipher),
    exclusively: (work) => work(),
    beginWriting: async () => {},
    lock: lockTenant,
    moved: (scopes) => chains.forget(scopes),
  };
}
