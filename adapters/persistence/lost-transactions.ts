/**
 * The query builder below MikroORM gives a connection back only after a `commit` or `rollback` that succeeded. A
 * database that ends a transaction by itself (a full disk, a lost connection) lets both fail, and the connection
 * would stay taken until the process ends. So the statement that finds nothing left to undo succeeds.
 */

type Prepared = { all(...parameters: unknown[]): unknown[] };
type SqliteDatabase = { readonly inTransaction: boolean; prepare(text: string): Prepared };

/** SQLite rolls back by itself when a `commit` finds the disk full. */
export function surviveOnSqlite(database: SqliteDatabase): void {
  const prepare = database.prepare.bind(database);
  database.prepare = (text) => (text === 'rollback' && !database.inTransaction ? prepare('select 1 where 0') : prepare(text));
}

type PostgresClient = { query(...parameters: unknown[]): unknown; end(): Promise<void> };
type PostgresPool = { on(event: 'acquire', listener: (client: PostgresClient) => void): unknown };

const NOTHING = { command: '', rowCount: 0, rows: [] };

/**
 * A connection that fails to begin or to roll back is ended: what was open on it is undone by the server, what is
 * still sent on it fails, and the pool replaces it.
 */
export function surviveOnPostgres(pool: PostgresPool): void {
  const known = new WeakSet<PostgresClient>();
  pool.on('acquire', (client) => {
    if (known.has(client)) return;
    known.add(client);
    const query = client.query.bind(client);
    client.query = (...parameters) => {
      const result = query(...parameters);
      if (parameters[0] !== 'begin' && parameters[0] !== 'rollback') return result;
      return (result as Promise<unknown>).catch(() => {
        // What cannot be ended is lost already; the pool lets go of it in either case.
        client.end().catch(() => {});
        return NOTHING;
      });
    };
  });
}
