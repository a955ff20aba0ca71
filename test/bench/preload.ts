import { dialectOf } from '../../adapters/persistence/opening/database.ts';
import { rawSql } from '../support/databases.ts';
import { revocableSession } from './world.ts';

type Run = Parameters<Parameters<typeof rawSql>[1]>[0];

/** How the copies of a row differ from it; `n` numbers them. Other columns stay as they are. */
type Copies = { readonly table: string; readonly columns: Readonly<Record<string, string>> };

const COPIES: readonly Copies[] = [
  {
    table: 'sessions',
    columns: {
      id: "'load-' || n",
      public_id: "'load-' || n",
      created_at: 'created_at - n',
      updated_at: 'updated_at - n',
      // Spread over an hour, so that nothing expires during a run and the index is not one single value.
      expires_at: 'expires_at + n * 36',
    },
  },
  {
    table: 'grants',
    columns: {
      id: "'load-' || n",
      session_id: "'load-' || n",
      public_id: "'load-' || n",
      code_hash: "'load-' || n",
      expires_at: 'expires_at + n * 36',
    },
  },
  { table: 'session_events', columns: { session_id: "'load-' || n" } },
  { table: 'issued_batches', columns: { session_id: "'load-' || n", id: "'load-' || n" } },
];

/** Puts finished issuance sessions of the tenant into the tables, with what belongs to them. */
export async function preloadSessions(url: string, count: number): Promise<void> {
  await rawSql(url, async (run) => {
    for (const copies of COPIES) await copyRow(run, url, copies, count);
  });
}

async function copyRow(run: Run, url: string, { table, columns }: Copies, count: number): Promise<void> {
  // A completed session is the common case, and the only kind with a row in each of the tables.
  const condition = table === 'sessions' ? "where status = 'completed' and kind = 'issuance'" : '';
  const [row] = await run(`select * from ${table} ${condition} limit 1`);
  if (row === undefined) throw new Error(`there is no row in ${table} to copy`);
  // The database gives an event its position.
  const names = Object.keys(row).filter((name) => table !== 'session_events' || name !== 'position');
  const values = names.map((name) => columns[name] ?? name);
  await run(
    `insert into ${table} (${names.join(', ')})
     select ${values.join(', ')} from (select * from ${table} ${condition} limit 1) s
     cross join ${numbers(url, count)}`,
  );
}

/**
 * Inserts credentials with a status directly into the database, one per session, from the first entry of a list. The list
 * must be unused.
 */
export async function preloadRevocable(url: string, listId: string, count: number): Promise<void> {
  const id = revocableSession(listId, "' || n || '");
  const copies: readonly Copies[] = [
    { table: 'sessions', columns: { id: `'${id}'`, public_id: `'${id}'` } },
    {
      table: 'issued_batches',
      columns: { session_id: `'${id}'`, id: `'${id}'`, count: '1', status_list_id: `'${listId}'`, first_counter: 'n - 1' },
    },
  ];
  await rawSql(url, async (run) => {
    for (const { table, columns } of copies) await copyRow(run, url, { table, columns }, count);
    await run(`update status_lists set used_entries = capacity where id = '${listId}'`);
  });
}

/** Revokes entries of all status lists behind the service's back, as another instance would. */
export async function preloadStatusEntries(url: string, count: number): Promise<void> {
  await rawSql(url, async (run) => {
    // 7919 is prime to every capacity in use, so the entries lie scattered over the whole list.
    await run(
      `insert into status_entries (tenant_id, list_id, idx, status, changed_version)
       select tenant_id, id, (n * 7919) % capacity, 1, version + 1 from status_lists
       cross join ${numbers(url, count)} where true on conflict do nothing`,
    );
    await run('update status_lists set version = version + 1');
  });
}

function numbers(url: string, count: number): string {
  return dialectOf(url) === 'postgres'
    ? `generate_series(1, ${count}) as numbers(n)`
    : `(with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < ${count})
        select n from numbers) as numbers`;
}

/** Runs what autovacuum does within about a minute; otherwise the query plans would be those of empty tables. */
export async function analyze(url: string): Promise<void> {
  await rawSql(url, (run) => run(dialectOf(url) === 'postgres' ? 'vacuum analyze' : 'analyze'));
}

/** Such as `PostgreSQL 17.2, fsync off`. */
export async function describeServer(url: string): Promise<string> {
  const [name, sql] =
    dialectOf(url) === 'postgres'
      ? ['PostgreSQL', "select current_setting('server_version') || ', fsync ' || current_setting('fsync') as version"]
      : ['SQLite', 'select sqlite_version() as version'];
  return rawSql(url, async (run) => `${name} ${(await run(sql))[0]?.['version']}`);
}

/** Looks at the process that serves a connection, as long as it is there; PostgreSQL only. */
export function withBackendPid<T>(url: string, callback: (pid: number) => T): Promise<T> {
  return rawSql(url, async (run) => callback(Number((await run('select pg_backend_pid() as pid'))[0]?.['pid'])));
}
