import { reachingAtOnce } from '../database-faults.ts';
import { named, type Parameter, type Row, type Statement } from '../statement.ts';
import { ChangeGroups, type GroupSteps } from './change-groups.ts';
import type { Checkpoints } from './checkpoints.ts';
import { OneAtATime } from './one-at-a-time.ts';
import { SteadyTime } from './steady-time.ts';

/** What we use of the driver that MikroORM brings along. */
type Prepared = {
  /** Whether it yields rows. */
  readonly reader: boolean;
  all(...parameters: unknown[]): unknown[];
  run(...parameters: unknown[]): { changes: number };
};
type Database = {
  /** Whether it is in memory. */
  readonly memory: boolean;
  readonly inTransaction: boolean;
  prepare(text: string): Prepared;
  transaction<T>(work: () => T): { immediate(): T };
};

/**
 * SQLite answers synchronously on one connection. While a unit of work holds a transaction open on it, nobody
 * else may slip a statement in, so these wait for its end and then run without giving up the thread.
 */
export type SqliteSql = {
  /** Runs `work` synchronously in a transaction that it may share with others, see `ChangeGroups`. */
  grouped<T>(work: (run: SqliteRun) => T): Promise<T>;
  /**
   * Runs `work` synchronously in one immediate transaction of its own.
   * @param measure runs all of it, the commit included.
   */
  transaction<T>(work: (run: SqliteRun) => T, measure?: Measure): Promise<T>;
  /** Runs `work` that consists of one statement, which is a transaction by itself and spares the ceremony. */
  single<T>(work: (run: SqliteRun) => T): Promise<T>;
  /** Runs `work`, which may give up the thread, while nothing else runs. */
  exclusively<T>(work: () => Promise<T>): Promise<T>;
  /** See `SteadyTime`. */
  isCatchingUp(): boolean;
};

/** Runs a step that holds the thread, and notes how long it does. */
export type Measure = <T>(step: () => T) => T;

/** Truth values are 1 and 0 here, and an array is JSON, which `json_each` reads. */
export type SqliteRun = {
  all(statement: Statement, ...parameters: readonly Parameter[]): readonly Row[];
  /** @returns how many rows changed. */
  change(statement: Statement, ...parameters: readonly Parameter[]): number;
  /** The time by which it is judged what is over, see `SteadyTime`. */
  time(): number;
};

/** Beside the leases, since it is one of the things that jobs write for themselves. */
const STORED_TIME = 'clock';
const READ_TIME: Statement = {
  name: 'read_time',
  text: `select expires_at as now from leases where name = '${STORED_TIME}'`,
};
/** What is forgotten by this time must stay refused by the next process, too. */
export const STORE_TIME: Statement = {
  name: 'store_time',
  text: `insert into leases (name, holder, expires_at) values ('${STORED_TIME}', '', $1)
   on conflict (name) do update set expires_at = excluded.expires_at`,
};

/** @param native the connection of the driver. @param checkpoints look at the log after what may have written. */
export function sqliteSql(native: object, checkpoints?: Checkpoints): SqliteSql {
  const database = native as Database;
  const gate = new OneAtATime();
  let bound = 0;
  const known = new Map<string, { prepared: Prepared; order: readonly number[] }>();
  const bind = ({ name, text }: Statement, parameters: readonly Parameter[]) => {
    let statement = known.get(name);
    if (statement === undefined) {
      statement = { prepared: database.prepare(text.replaceAll(PLACE, '?')), order: placesOf(text) };
      known.set(name, statement);
    }
    return {
      prepared: statement.prepared,
      values: statement.order.map((place) => {
        const value = sqliteValue(parameters[place - 1]);
        if (typeof value === 'string') bound += value.length;
        return value;
      }),
    };
  };
  const run: SqliteRun = {
    all(statement, ...parameters) {
      const { prepared, values } = bind(statement, parameters);
      if (prepared.reader) return prepared.all(...values) as Row[];
      prepared.run(...values);
      return [];
    },
    change(statement, ...parameters) {
      const { prepared, values } = bind(statement, parameters);
      return prepared.run(...values).changes;
    },
    time: () => time.now(),
  };
  const exclusively: SqliteSql['exclusively'] = (work) => gate.exclusively(work);
  const afterWrite = () => checkpoints?.afterWrite(exclusively);
  const transaction: SqliteSql['transaction'] = (work, measure = unmeasured) =>
    gate.pass(() => {
      const result = measure(() => reachingAtOnce(() => database.transaction(() => work(run)).immediate()));
      afterWrite();
      return result;
    });
  const time = timeOf(database, run);
  const groups = new ChangeGroups({ ...groupSteps(database, afterWrite), bound: () => bound }, gate);
  return {
    grouped: (work) => groups.join(() => work(run)),
    transaction,
    async single(work) {
      const group = groups.passing();
      if (group !== undefined) {
        gate.assertNotNested();
        await group;
      }
      return gate.pass(() => {
        const result = reachingAtOnce(() => work(run));
        afterWrite();
        return result;
      });
    },
    async exclusively(work) {
      const result = await exclusively(work);
      afterWrite();
      return result;
    },
    isCatchingUp: () => time.isCatchingUp,
  };
}

const unmeasured: Measure = (step) => step();

function groupSteps(database: Database, afterWrite: () => void): Omit<GroupSteps, 'bound'> {
  const step = (text: string) => {
    const prepared = database.prepare(text);
    return () => void prepared.run();
  };
  const commit = step('commit');
  const [release, rollbackTo] = [step('release member'), step('rollback to member')];
  return {
    isOpen: () => database.inTransaction,
    begin: step('begin immediate'),
    commit: () => {
      commit();
      afterWrite();
    },
    rollback: step('rollback transaction'),
    mark: step('savepoint member'),
    keep: release,
    undo: () => {
      rollbackTo();
      release();
    },
  };
}

function timeOf({ memory }: Database, run: SqliteRun): Pick<SteadyTime, 'now' | 'isCatchingUp'> {
  // Tests and dry runs, whose clock is what they say.
  if (memory) return { now: () => Date.now(), isCatchingUp: false };
  const [stored] = run.all(READ_TIME);
  return new SteadyTime(stored === undefined ? undefined : Number(stored['now']));
}

const PLACE = /\$(\d+)/g;

/** The driver takes numbered parameters for named ones, so they are bound by position, repeated as they occur. */
function placesOf(text: string): number[] {
  return Array.from(text.matchAll(PLACE), ([, place]) => Number(place));
}

function sqliteValue(value: Parameter | undefined): string | number | null | undefined {
  if (typeof value === 'boolean') return value ? 1 : 0;
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : value;
}

/** Whether a column has one of the words, none of which has quotes in it. Half the price of listing them by `json_each`. */
export const isAmong = (column: string, words: string) => `instr(${words}, '"' || ${column} || '"') > 0`;

/** Makes a row of a table, whose tenant comes first. */
export const insert = (table: string, columns: readonly string[], otherwise = '') => {
  const places = Array.from({ length: columns.length + 1 }, (_, index) => `$${index + 1}`);
  return named(`new_${table}`, `insert into ${table} (tenant_id, ${columns.join(', ')}) values (${places.join(', ')}) ${otherwise}`);
};
