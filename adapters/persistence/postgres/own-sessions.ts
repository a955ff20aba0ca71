import { randomUUID } from 'node:crypto';
import type { Row } from '../statement.ts';

type Client = {
  query(query: { readonly text: string; readonly values: readonly string[] }): Promise<{ readonly rows: Row[] }>;
  release(destroy?: boolean): void;
};
type Pool = { connect(): Promise<Client> };

/** A pooler may give a connection the same session by chance. */
const ROUNDS = 3;
const MARK = 'vidimus.session_mark';

/** The address leads to a pooler that does not keep one session for one connection. */
export class SharedSessionError extends Error {}

/**
 * Checks that each connection has a session of PostgreSQL to itself. A pooler in transaction mode (PgBouncer `pool_mode=transaction`)
 * gives each transaction another one: prepared statements, advisory locks and session parameters of one connection would be missing in the
 * next statement or would appear in another connection.
 * @throws SharedSessionError when a session is shared.
 */
export async function assertOwnSessions(pool: Pool): Promise<void> {
  const [first, second] = await Promise.all([pool.connect(), pool.connect()]);
  let isOwn = false;
  try {
    isOwn = await haveOwnSessions(first, second);
  } catch (error) {
    // PgBouncer in statement mode rejects transactions of several statements.
    if (!/statement pooling mode/.test(String(error))) throw error;
  } finally {
    // What was set on a shared session does not stay in the pool.
    first.release(!isOwn);
    second.release(!isOwn);
  }
  if (!isOwn) throw new SharedSessionError('connections share sessions of PostgreSQL');
}

async function haveOwnSessions(first: Client, second: Client): Promise<boolean> {
  for (let round = 0; round < ROUNDS; round++) {
    const mark = randomUUID();
    const before = await sessionOf(first, `select pg_backend_pid() as pid, set_config('${MARK}', $1, false) as mark`, [mark]);
    // A pooler that takes its sessions in turn (`server_round_robin`) gives the next statement another one.
    const again = await sessionOf(first, LOOK, []);
    if (again.mark !== mark || again.pid !== before.pid) return false;
    // While the second connection is within a transaction, a pooler gives the first one another session.
    await second.query({ text: 'begin', values: [] });
    const other = await sessionOf(second, LOOK, []);
    const isMixedUp = other.mark === mark || other.pid === before.pid;
    const after = isMixedUp ? undefined : await sessionOf(first, LOOK, []);
    await second.query({ text: 'rollback', values: [] });
    if (after?.mark !== mark || after.pid !== before.pid) return false;
  }
  return true;
}

const LOOK = `select pg_backend_pid() as pid, current_setting('${MARK}', true) as mark`;

async function sessionOf(client: Client, text: string, values: readonly string[]) {
  const [row] = (await client.query({ text, values })).rows;
  return { pid: Number(row?.['pid']), mark: row?.['mark'] };
}
