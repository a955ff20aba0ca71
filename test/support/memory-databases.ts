import { SqliteConnection } from '@mikro-orm/sqlite';
import { MasterCipher } from '../../adapters/crypto/cipher.ts';
import { OrmStore } from '../../adapters/persistence/orm-store.ts';

/** All rows of a database, by their tables. */
export type Rows = ReadonlyMap<string, readonly Row[]>;
type Row = readonly unknown[];

export type MemoryDatabase = {
  readonly store: OrmStore;
  readonly rows: () => Rows;
  /** Brings everything back to how it was when these were its rows, or, without them, when the database was opened. */
  readonly restore: (rows?: Rows) => void;
};

/** Of all stores in memory, so that each can go on with the database of another. */
export const TEST_CIPHER = new MasterCipher({ masterSecrets: ['a master secret of decent length'] });

/** Opening one takes as long as a hundred tests. */
const FREE: MemoryDatabase[] = [];

/** @param rows of another one. */
export async function openMemory(rows?: Rows): Promise<MemoryDatabase> {
  const free = FREE.pop();
  const database = free ?? (await open());
  if (free !== undefined || rows !== undefined) database.restore(rows);
  return database;
}

/** Nothing may be under way in it. */
export function reuse(database: MemoryDatabase): void {
  FREE.push(database);
}

type Statement = {
  all(): unknown[];
  raw(): Statement;
  run(...values: unknown[]): unknown;
};
type Native = {
  exec(text: string): void;
  prepare(text: string): Statement;
  transaction<T>(work: (parameter: T) => void): (parameter: T) => void;
};

let before: Promise<unknown> = Promise.resolve();

/** One after the other, so that each finds its own connection. */
function open(): Promise<MemoryDatabase> {
  const opening = before.then(openNext);
  before = opening.catch(() => {});
  return opening;
}

async function openNext(): Promise<MemoryDatabase> {
  const opened: Native[] = [];
  const { createKyselyDialect } = SqliteConnection.prototype;
  // The store does not show its connection.
  SqliteConnection.prototype.createKyselyDialect = function (options) {
    const dialect = createKyselyDialect.call(this, options);
    const { database } = this as unknown as { database: Native };
    keepPrepared(database);
    opened.push(database);
    return dialect;
  };
  try {
    const store = await OrmStore.open({ url: 'sqlite::memory:', poolSize: 2 }, TEST_CIPHER);
    const [native] = opened;
    if (native === undefined) throw new Error('the store opened no connection');
    return { store, ...rowsOf(native) };
  } finally {
    SqliteConnection.prototype.createKyselyDialect = createKyselyDialect;
  }
}

/** Most statements hold values, so that they are asked for once only. */
const MAX_PREPARED = 300;

/** What is below MikroORM prepares each statement anew. */
function keepPrepared(database: Native): void {
  const prepare = database.prepare.bind(database);
  const known = new Map<string, Statement>();
  database.prepare = (text) => {
    const statement = known.get(text) ?? prepare(text);
    known.delete(text);
    known.set(text, statement);
    if (known.size > MAX_PREPARED) {
      const [oldest = ''] = known.keys();
      known.delete(oldest);
    }
    return statement;
  };
}

/** No table refers to another one, so they may be written in any order. */
function rowsOf(database: Native): Pick<MemoryDatabase, 'rows' | 'restore'> {
  const names = database
    .prepare("select name from sqlite_master where type = 'table'")
    .raw()
    .all() as string[][];
  const tables = names.map(([name = '']) => {
    const width = database.prepare(`pragma table_info(${name})`).all().length;
    const read = database.prepare(`select * from ${name}`).raw();
    const clear = database.prepare(`delete from ${name}`);
    const insert = database.prepare(`insert into ${name} values (${Array(width).fill('?').join(', ')})`);
    return { name, read, clear, insert };
  });
  const rows = (): Rows => new Map(tables.map(({ name, read }) => [name, read.all() as Row[]]));
  const first = rows();
  const write = database.transaction((wanted: Rows) => {
    for (const { name, clear, insert } of tables) {
      clear.run();
      for (const row of wanted.get(name) ?? []) insert.run(...row);
    }
  });
  return { rows, restore: (wanted = first) => write(wanted) };
}
