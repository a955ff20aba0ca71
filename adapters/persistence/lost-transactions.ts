/**
 * The query builder below MikroORM returns a connection to the pool only after a `commit` or `rollback` that succeeded. If the database
 * ends a transaction itself (full disk, lost connection), both fail, and the connection would stay taken until the process ends. So a
 * rollback without a transaction succeeds.
 */

type Prepared = { all(...parameters: unknown[]): unknown[] };
type SqliteDatabase = { readonly inTransaction: boolean; prepare(text: string): Prepared };

/** SQLite rolls back by itself if a `commit` finds the disk full. */
export function tolerateLostTransactionsOnSqlite(database: SqliteDatabase): void {
  const prepare = database.prepare.bind(database);
  database.prepare = (text) => (text === 'rollback' && !database.inTransaction ? prepare('select 1 where 0') : prepare(text));
}

type PostgresClient = { query(...parameters: unknown[]): unknown; end(): Promise<void> };
type PostgresPool = { on(event: 'acquire', listener: (client: PostgresClient) => void): unknown };

const EMPTY_RESULT = { command: '', rowCount: 0, rows: [] };

/**
 * A connection that fails to begin or to roll back is closed: the server undoes what was open on it, later statements on it fail, and the
 * pool replaces it.
 */
export function tolerateLostTransactionsOnPostgres(pool: PostgresPool): void {
  const patchedClients = new WeakSet<PostgresClient>();
  pool.on('acquire', (client) => {
    if (patchedClients.has(client)) return;
    patchedClients.add(client);
    const query = client.query.bind(client);
    client.query = (...parameters) => {
      const result = query(...parameters);
      if (parameters[0] !== 'begin' && parameters[0] !== 'rollback') return result;
      return (result as Promise<unknown>).catch(() => {
        // A connection that cannot be ended is lost already; the pool drops it in either case.
        client.end().catch(() => {});
        return EMPTY_RESULT;
      });
    };
  });
}
