import { mapDatabaseErrorsSync } from '../database-faults.ts';
import { namedStatement, type Parameter, type Row, type Statement } from '../statement.ts';
import { ChangeGroups, type GroupSteps } from './change-groups.ts';
import type { Checkpoints } from './checkpoints.ts';
import { SteadyTime } from './steady-time.ts';
import { TransactionQueue } from './transaction-queue.ts';

/** Subset of the driver that MikroORM depends on. */
type Prepared = {
  /** True if the statement yields rows. */
  readonly reader: boolean;
  all(...parameters: unknown[]): unknown[];
  run(...parameters: unknown[]): { changes: number };
};
type Database = {
  /** True if the database is in memory. */
  readonly memory: boolean;
  readonly inTransaction: boolean;
  prepare(text: string): Prepared;
  transaction<T>(work: () => T): { immediate(): T };
};

/**
 * SQLite answers synchronously on one connection. While a unit of work holds a transaction open on it, other statements wait for its end
 * and then run without yielding the thread.
 */
export type SqliteSql = {
  /** Runs `work` synchronously in a transaction that it may share with other changes, see `ChangeGroups`. */
  grouped<T>(work: (run: SqliteRun) => T): Promise<T>;
  /**
   * Runs `work` synchronously in one immediate transaction of its own.
   * @param measure runs all of it, the commit included.
   */
  transaction<T>(work: (run: SqliteRun) => T, measure?: Measure): Promise<T>;
  /** Runs `work` with a single statement, which needs no explicit transaction. */
  single<T>(work: (run: SqliteRun) => T): Promise<T>;
  /** Runs `work`, which may yield the thread, while nothing else runs. */
  exclusively<T>(work: () => Promise<T>): Promise<T>;
  /** See `SteadyTime`. */
  isCatchingUp(): boolean;
};

/** Runs a step that blocks the thread, and records its duration. */
export type Measure = <T>(step: () => T) => T;

/** Booleans are 1 and 0, and an array is JSON, which `json_each` reads. */
export type SqliteRun = {
  all(statement: Statement, ...parameters: readonly Parameter[]): readonly Row[];
  /** @returns how many rows changed. */
  change(statement: Statement, ...parameters: readonly Parameter[]): number;
  /** The time by which expiry is decided, see `SteadyTime`. */
  time(): number;
};

/** Row among the leases, because jobs write it for themselves. */
const STORED_TIME = 'clock';
const READ_TIME: Statement = { name: 'read_time', text: `select expires_at as now from leases where name = '${STORED_TIME}'` };
/** Values that were deleted by this time must stay rejected by the next process, too. */
export const STORE_TIME: Statement = {
  name: 'store_time',
  text: `insert into leases (name, holder, expires_at) values ('${STORED_TIME}', '', $1)
   on conflict (name) do update set expires_at = excluded.expires_at`,
};

/** @param native the connection of the driver. @param checkpoints read the size of the log after steps that may have written. */
export function sqliteSql(native: object, checkpoints?: Checkpoints): SqliteSql {
  const database = native as Database;
  const gate = new TransactionQueue();
  let boundCharacters = 0;
  const statements = new Map<string, { prepared: Prepared; order: readonly number[] }>();
  const bind = ({ name, text }: Statement, parameters: readonly Parameter[]) => {
    let statement = statements.get(name);
    if (statement === undefined) {
      statement = { prepared: database.prepare(text.replaceAll(PARAMETER, '?')), order: parameterNumbers(text) };
      statements.set(name, statement);
    }
    return {
      prepared: statement.prepared,
      values: statement.order.map((place) => {
        const value = sqliteValue(parameters[place - 1]);
        if (typeof value === 'string') boundCharacters += value.length;
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
      const result = measure(() => mapDatabaseErrorsSync(() => database.transaction(() => work(run)).immediate()));
      afterWrite();
      return result;
    });
  const time = timeOf(database, run);
  const groups = new ChangeGroups({ ...groupSteps(database, afterWrite), boundCharacters: () => boundCharacters }, gate);
  return {
    grouped: (work) => groups.join(() => work(run)),
    transaction,
    async single(work) {
      const group = groups.groupToWaitFor();
      if (group !== undefined) {
        gate.assertNotNested();
        await group;
      }
      return gate.pass(() => {
        const result = mapDatabaseErrorsSync(() => work(run));
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

function groupSteps(database: Database, afterWrite: () => void): Omit<GroupSteps, 'boundCharacters'> {
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
    savepoint: step('savepoint member'),
    releaseSavepoint: release,
    rollbackToSavepoint: () => {
      rollbackTo();
      release();
    },
  };
}

function timeOf({ memory }: Database, run: SqliteRun): Pick<SteadyTime, 'now' | 'isCatchingUp'> {
  // Tests and dry runs set the clock themselves.
  if (memory) return { now: () => Date.now(), isCatchingUp: false };
  const [timeRow] = run.all(READ_TIME);
  return new SteadyTime(timeRow === undefined ? undefined : Number(timeRow['now']));
}

const PARAMETER = /\$(\d+)/g;

/** The driver treats numbered parameters as named ones, so they are bound by position, repeated as they occur. */
function parameterNumbers(text: string): number[] {
  return Array.from(text.matchAll(PARAMETER), ([, place]) => Number(place));
}

function sqliteValue(value: Parameter | undefined): string | number | null | undefined {
  if (typeof value === 'boolean') return value ? 1 : 0;
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : value;
}

/** Condition that a column has one of the words, none of which contains quotes. It costs half as much as listing them by `json_each`. */
export const isAmong = (column: string, words: string) => `instr(${words}, '"' || ${column} || '"') > 0`;

/** Insert statement of a table, whose tenant comes first. */
export const insert = (table: string, columns: readonly string[], otherwise = '') => {
  const parameters = Array.from({ length: columns.length + 1 }, (_, index) => `$${index + 1}`);
  return namedStatement(
    `new_${table}`,
    `insert into ${table} (tenant_id, ${columns.join(', ')}) values (${parameters.join(', ')}) ${otherwise}`,
  );
};
