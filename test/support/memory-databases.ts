import { SqliteConnection } from '@mikro-orm/sqlite';
import { MasterCipher } from '../../adapters/crypto/cipher.ts';
import { OrmStore } from '../../adapters/persistence/orm-store.ts';

export type MemoryDatabase = {
  readonly store: OrmStore;
  /** Brings everything back to how it was when the database was opened. */
  readonly empty: () => void;
};

/** Of all stores in memory, so that each can go on with the database of another. */
export const TEST_CIPHER = new MasterCipher({ masterSecrets: ['a master secret of decent length'] });

/** Opening one takes as long as a hundred tests. */
const free: MemoryDatabase[] = [];

export async function openMemory(): Promise<MemoryDatabase> {
  const database = free.pop();
  if (database === undefined) return open();
  database.empty();
  return database;
}

/** Nothing may be under way in it. */
export function reuse(database: MemoryDatabase): void {
  free.push(database);
}

type Native = {
  exec(text: string): void;
  pragma(text: string): void;
  prepare(text: string): {
    all(): Readonly<Record<string, unknown>>[];
    run(...values: unknown[]): unknown;
  };
  transaction(work: () => void): () => void;
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
    return { store, empty: emptying(native) };
  } finally {
    SqliteConnection.prototype.createKyselyDialect = createKyselyDialect;
  }
}

/** What is below MikroORM prepares each statement anew. */
function keepPrepared(database: Native): void {
  const prepare = database.prepare.bind(database);
  const known = new Map<string, ReturnType<Native['prepare']>>();
  database.prepare = (text) => {
    const statement = known.get(text) ?? prepare(text);
    known.set(text, statement);
    return statement;
  };
}

function emptying(database: Native): () => void {
  const tables = database.prepare("select name from sqlite_master where type = 'table'").all();
  const steps = tables.flatMap(({ name }) => {
    const clear = database.prepare(`delete from ${name}`);
    return [
      () => clear.run(),
      ...database
        .prepare(`select * from ${name}`)
        .all()
        .map((row) => {
          const values = Object.values(row);
          const insert = database.prepare(`insert into ${name} values (${values.map(() => '?').join(', ')})`);
          return () => insert.run(...values);
        }),
    ];
  });
  const run = database.transaction(() => {
    for (const step of steps) step();
  });
  return () => {
    database.pragma('foreign_keys = off');
    run();
    database.pragma('foreign_keys = on');
  };
}
