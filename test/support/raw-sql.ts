import { connect } from '../../adapters/persistence/database.ts';

type Run = (text: string) => Promise<Record<string, unknown>[]>;

/** Raw statements beside the store, the way somebody with access to the database would run them. */
export async function rawSql<T>(url: string, work: (run: Run) => Promise<T>): Promise<T> {
  const { run, close } = await openRaw(url);
  try {
    return await work(run);
  } finally {
    await close();
  }
}

/** The same for longer. */
export async function openRaw(url: string): Promise<{ readonly run: Run; close(): Promise<void> }> {
  const orm = await connect({ url, poolSize: 2 }, 'serve');
  const connection = orm.em.getConnection();
  const run = async (text: string) => {
    const method = /^\s*(select|with)/i.test(text) ? 'all' : 'run';
    const rows: unknown = await connection.execute(text, [], method);
    return Array.isArray(rows) ? rows : [];
  };
  return { run, close: () => orm.close() };
}
