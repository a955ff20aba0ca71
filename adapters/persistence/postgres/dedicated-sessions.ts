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

/** Thrown if the address leads to a pooler that does not keep one session per connection. */
export class SharedSessionError extends Error {}

/**
 * Checks that each connection has a PostgreSQL session to itself. A pooler in transaction mode (PgBouncer `pool_mode=transaction`) gives
 * each transaction another one: prepared statements, advisory locks and session parameters of one connection would be missing in the next
 * statement or would appear in another connection.
 * @throws SharedSessionError if a session is shared.
 */
export async function assertDedicatedSessions(pool: Pool): Promise<void> {
  const [firstClient, secondClient] = await Promise.all([pool.connect(), pool.connect()]);
  let isDedicated = false;
  try {
    isDedicated = await haveDedicatedSessions(firstClient, secondClient);
  } catch (error) {
    // PgBouncer in statement mode rejects transactions of several statements.
    if (!/statement pooling mode/.test(String(error))) throw error;
  } finally {
    // Settings on a shared session must not stay in the pool.
    firstClient.release(!isDedicated);
    secondClient.release(!isDedicated);
  }
  if (!isDedicated) throw new SharedSessionError('connections share PostgreSQL sessions');
}

async function haveDedicatedSessions(firstClient: Client, secondClient: Client): Promise<boolean> {
  for (let round = 0; round < ROUNDS; round++) {
    const mark = randomUUID();
    const initialSession = await sessionOf(firstClient, `select pg_backend_pid() as pid, set_config('${MARK}', $1, false) as mark`, [mark]);
    // A pooler that rotates its sessions (`server_round_robin`) gives the next statement another one.
    const repeatedSession = await sessionOf(firstClient, READ_SESSION, []);
    if (repeatedSession.mark !== mark || repeatedSession.pid !== initialSession.pid) return false;
    // While the second connection is within a transaction, a pooler gives the first one another session.
    await secondClient.query({ text: 'begin', values: [] });
    const secondSession = await sessionOf(secondClient, READ_SESSION, []);
    const isMixedUp = secondSession.mark === mark || secondSession.pid === initialSession.pid;
    const finalSession = isMixedUp ? undefined : await sessionOf(firstClient, READ_SESSION, []);
    await secondClient.query({ text: 'rollback', values: [] });
    if (finalSession?.mark !== mark || finalSession.pid !== initialSession.pid) return false;
  }
  return true;
}

const READ_SESSION = `select pg_backend_pid() as pid, current_setting('${MARK}', true) as mark`;

async function sessionOf(client: Client, text: string, values: readonly string[]) {
  const [row] = (await client.query({ text, values })).rows;
  return { pid: Number(row?.['pid']), mark: row?.['mark'] };
}
