import { StoreUnavailableError } from '../../../application/ports/store.ts';
import {
  isConcurrencyFailure,
  isExpectationFailure,
  isStalePlan,
  isStatementError,
  mapDatabaseErrors,
  toStoreError,
} from '../database-faults.ts';
import type { Parameter, Row, Statement } from '../statement.ts';
import { type Call, CallGroups, type Outcome } from './call-groups.ts';
import { type Column, PreparedCalls } from './prepared-call.ts';

/** Subset of the driver that MikroORM depends on. */
type Pool = { readonly options: { readonly connectionTimeoutMillis: number }; connect(): Promise<Client> };
type Client = {
  query(query: { name: string; text: string; values: unknown[] }): Promise<Answer>;
  query(calls: PreparedCalls): unknown;
  getTypeParser(type: number, format: 'text'): (text: string) => unknown;
  on(event: 'error', listener: () => void): unknown;
  removeListener(event: 'error', listener: () => void): unknown;
  /** @param error closes the connection. */
  release(error?: unknown): void;
};
type Answer = { readonly rows: Row[]; readonly fields: readonly { readonly name: string; readonly dataTypeID: number }[] };

export type OneConnection = {
  query(statement: Statement, parameters: readonly Parameter[]): Promise<readonly Row[]>;
  /**
   * Runs the calls in one transaction.
   * @returns the outcome of each: all succeeded, or none did except those that an unprepared connection ran one by one.
   */
  together(calls: readonly Call[]): Promise<readonly Outcome[]>;
};

const LOCK: Statement = { name: 'take_turn', text: 'select pg_advisory_lock(hashtextextended($1, 0))' };
/** Taken in a transaction of several calls: it waits for the holder of the exclusive lock, and the holder waits for it. */
export const SHARED_LOCK: Statement = { name: 'beside_turns', text: 'select pg_advisory_xact_lock_shared(hashtextextended($1, 0))' };
const UNLOCK: Statement = { name: 'end_turn', text: 'select pg_advisory_unlock(hashtextextended($1, 0))' };

/** Wallet paths bypass the unit of work: a named prepared statement costs a seventh of an entity round trip. */
export type PostgresSql = OneConnection & {
  /** Runs `work` on one connection, as one transaction. */
  transaction<T>(work: (connection: OneConnection) => Promise<T>): Promise<T>;
  /** Runs `work` on one connection while no other process holds the lock of the same key. */
  exclusively<T>(key: string, work: (connection: OneConnection) => Promise<T>): Promise<T>;
  /** Time that a caller may wait for other callers before its statement, which is also the time that it waits for a connection. */
  readonly patienceMs: number;
  /** Runs a statement like `query`, maybe in one message and one transaction with waiting calls of the same `group`. */
  queryTogether(group: string, statement: Statement, parameters: readonly Parameter[]): Promise<readonly Row[]>;
};

const nothing = () => {};

/**
 * @param native the pool of the driver.
 * @param isCluster its machines commit each call by itself, so no call shares a message.
 */
export function postgresSql(native: object, isCluster = false): PostgresSql {
  const pool = native as Pool;
  const query = (statement: Statement, values: readonly Parameter[]) =>
    retryOnDeadlock(() => onConnection(pool, (client) => run(client, { statement, values })));
  const inOne = isCluster ? oneByOne : runTogether;
  const together = (calls: readonly Call[]) => recoverOutcomes(onConnection(pool, (client) => inOne(client, calls)));
  const groups = new CallGroups(query, together);
  return {
    together,
    transaction: (work) => retryOnDeadlock(() => onConnection(pool, (client) => inTransaction(client, work, inOne))),
    exclusively: (key, work) => onConnection(pool, (client) => withLock(client, key, work, inOne)),
    patienceMs: pool.options.connectionTimeoutMillis,
    query,
    queryTogether: (group, statement, values) => (isCluster ? query(statement, values) : groups.run(group, { statement, values })),
  };
}

function recoverOutcomes(outcomes: Promise<readonly Outcome[]>): Promise<readonly Outcome[]> {
  return outcomes.catch((error: unknown) => {
    if (error instanceof ConnectionLostError) return error.outcomes;
    throw error;
  });
}

function oneConnection(client: Client, inOne: typeof runTogether, runOne = run): OneConnection {
  return {
    query: (statement, values) => runOne(client, { statement, values }).catch(throwStoreError),
    together: (calls) => recoverOutcomes(inOne(client, calls)).catch(throwStoreError),
  };
}

const statementOf = (text: string): Call => ({ statement: { name: text, text }, values: [] });

async function inTransaction<T>(client: Client, work: (connection: OneConnection) => Promise<T>, inOne: typeof runTogether): Promise<T> {
  await run(client, statementOf('begin'));
  try {
    const done = await work(oneConnection(client, inOne, runOnce));
    await run(client, statementOf('commit'));
    return done;
  } catch (error) {
    await run(client, statementOf('rollback'));
    throw error;
  }
}

function throwStoreError(error: unknown): never {
  throw toStoreError(error);
}

/** The lock belongs to the connection: it is released with it, also when the process dies. */
async function withLock<T>(
  client: Client,
  key: string,
  work: (connection: OneConnection) => Promise<T>,
  inOne: typeof runTogether,
): Promise<T> {
  await run(client, { statement: LOCK, values: [key] });
  try {
    return await work(oneConnection(client, inOne));
  } finally {
    await run(client, { statement: UNLOCK, values: [key] });
  }
}

/** Attempts of a statement that conflicts with concurrent ones. */
const MAX_DEADLOCK_ATTEMPTS = 3;
/** Attempts of a transaction with stale plans: each attempt replaces the plan of one statement on one connection. */
const MAX_STALE_PLAN_ATTEMPTS = 1_000;

/** Repeats work that was rolled back because of a concurrent change: nothing of it was applied. */
async function retryOnDeadlock<T>(work: () => Promise<T>): Promise<T> {
  let conflicts = 0;
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (!isConcurrencyFailure(error)) throw error;
      if (!isStalePlan(error)) conflicts++;
      if (conflicts === MAX_DEADLOCK_ATTEMPTS || attempt === MAX_STALE_PLAN_ATTEMPTS)
        throw new StoreUnavailableError('changes block each other in the database', { cause: error });
    }
  }
}

async function onConnection<T>(pool: Pool, work: (client: Client) => Promise<T>): Promise<T> {
  const client = await mapDatabaseErrors(() => pool.connect());
  // The running statement fails with the connection, so the event needs no handling.
  client.on('error', nothing);
  let fault: unknown;
  try {
    return await work(client);
  } catch (error) {
    // A rejected change does not affect the connection; `query` of the pool would close it.
    if (!isExpectationFailure(error) && !isConcurrencyFailure(error)) fault = error;
    throw toStoreError(error);
  } finally {
    client.removeListener('error', nothing);
    client.release(fault);
  }
}

/** A statement of one connection. `name` is its name in PostgreSQL, `columns` describes its result. */
type PreparedStatement = { readonly name: string; readonly columns: readonly Column[] };

/** Statements that a connection has prepared, by the name of the statement. */
class PreparedStatements {
  readonly #byName = new Map<string, PreparedStatement>();
  #stalePlans = 0;

  get(name: string): PreparedStatement | undefined {
    return this.#byName.get(name);
  }

  /** @returns the name under which PostgreSQL prepares the statement next. The name of a statement with a stale plan stays in use. */
  nextName(name: string): string {
    return this.#stalePlans === 0 ? name : `${name}/${this.#stalePlans}`;
  }

  set(name: string, statement: PreparedStatement): void {
    this.#byName.set(name, statement);
  }

  removeStale(names: readonly string[]): void {
    this.#stalePlans++;
    for (const name of names) this.#byName.delete(name);
  }
}

const prepared = new WeakMap<Client, PreparedStatements>();

function preparedStatements(client: Client): PreparedStatements {
  let statements = prepared.get(client);
  if (statements === undefined) {
    statements = new PreparedStatements();
    prepared.set(client, statements);
  }
  return statements;
}

/** Runs a statement outside a transaction. If its plan is stale, the statement is prepared again. */
async function run(client: Client, call: Call): Promise<readonly Row[]> {
  try {
    return await runOnce(client, call);
  } catch (error) {
    if (!isStalePlan(error)) throw error;
    return runOnce(client, call);
  }
}

/**
 * On first use on a connection, the driver prepares the statement and returns its columns. The driver keeps a statement whose first call
 * failed, so the plan of a statement without columns can be stale, too.
 */
async function runOnce(client: Client, { statement, values }: Call): Promise<readonly Row[]> {
  const statements = preparedStatements(client);
  try {
    const preparedStatement = statements.get(statement.name);
    return preparedStatement === undefined
      ? await prepareAndRun(client, statements, { statement, values })
      : await runPrepared(client, preparedStatement, values);
  } catch (error) {
    if (isStalePlan(error)) statements.removeStale([statement.name]);
    throw error;
  }
}

async function runPrepared(client: Client, { name, columns }: PreparedStatement, values: readonly Parameter[]): Promise<readonly Row[]> {
  const calls = new PreparedCalls([{ statement: name, values, columns }]);
  client.query(calls);
  return (await calls.answers)[0] ?? [];
}

async function prepareAndRun(client: Client, statements: PreparedStatements, { statement: { name, text }, values }: Call) {
  const newName = statements.nextName(name);
  const { rows, fields } = await client.query({ name: newName, text, values: values as Parameter[] });
  const columns = fields.map((field) => ({ name: field.name, read: client.getTypeParser(field.dataTypeID, 'text') }));
  statements.set(name, { name: newName, columns });
  return rows;
}

/**
 * Runs the calls in one transaction if the connection has prepared their statements; otherwise one by one, which prepares them.
 * @returns the outcome of each; `undone` if another call failed, so that nothing of it happened.
 * @throws an error that ends all of them, with an unknown outcome.
 */
async function runTogether(client: Client, calls: readonly Call[]): Promise<readonly Outcome[]> {
  const statements = preparedStatements(client);
  const ready = calls.flatMap(({ statement: { name }, values }) => {
    const statement = statements.get(name);
    return statement === undefined ? [] : [{ statement: statement.name, values, columns: statement.columns }];
  });
  if (ready.length < calls.length) return oneByOne(client, calls);
  const together = new PreparedCalls(ready);
  client.query(together);
  try {
    return (await together.answers).map((rows) => ({ rows }));
  } catch (error) {
    if (!isStatementError(error) || together.answered === calls.length) throw error;
    if (isStalePlan(error)) statements.removeStale(calls.map(({ statement: { name } }) => name));
    // A failed expectation may come from another call of the batch that is undone now, so the call is repeated, too.
    const isFinal = !isExpectationFailure(error) && !isConcurrencyFailure(error);
    return calls.map((_, index) => (isFinal && index === together.answered ? { error } : { undone: true }));
  }
}

/** Closes the connection, but carries the outcome of each call. */
class ConnectionLostError extends Error {
  readonly outcomes: readonly Outcome[];
  constructor(outcomes: readonly Outcome[]) {
    super('the connection was lost');
    this.outcomes = outcomes;
  }
}

/** Answered calls stay answered if the connection is lost at a later one, which then fails with all behind it. */
async function oneByOne(client: Client, calls: readonly Call[]): Promise<readonly Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const call of calls) {
    try {
      outcomes.push({ rows: await run(client, call) });
    } catch (error) {
      if (!isStatementError(error)) throw new ConnectionLostError([...outcomes, ...calls.slice(outcomes.length).map(() => ({ error }))]);
      outcomes.push(isConcurrencyFailure(error) ? { undone: true } : { error });
    }
  }
  return outcomes;
}
