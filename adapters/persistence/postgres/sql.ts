import { StoreUnavailable } from '../../../application/ports/store.ts';
import { isInTheWay, isRefusal, isUnexpected, reaching, unavailableFor } from '../database-faults.ts';
import type { Parameter, Row, Statement } from '../statement.ts';
import { type Call, CallGroups, type Outcome } from './call-groups.ts';
import { type Column, PreparedCalls } from './prepared-call.ts';

/** What we use of the driver that MikroORM brings along. */
type Pool = {
  readonly options: { readonly connectionTimeoutMillis: number };
  connect(): Promise<Client>;
};
type Client = {
  query(query: { name: string; text: string; values: unknown[] }): Promise<Answer>;
  query(calls: PreparedCalls): unknown;
  getTypeParser(type: number, format: 'text'): (text: string) => unknown;
  on(event: 'error', listener: () => void): unknown;
  removeListener(event: 'error', listener: () => void): unknown;
  /** @param error ends the connection. */
  release(error?: unknown): void;
};
type Answer = {
  readonly rows: Row[];
  readonly fields: readonly { readonly name: string; readonly dataTypeID: number }[];
};

export type OneConnection = {
  query(statement: Statement, parameters: readonly Parameter[]): Promise<readonly Row[]>;
  /**
   * Runs the calls in one transaction.
   * @returns what became of each: all of them happened, or none did but those that an unprepared connection ran by themselves.
   */
  together(calls: readonly Call[]): Promise<readonly Outcome[]>;
};

const LOCK: Statement = { name: 'take_turn', text: 'select pg_advisory_lock(hashtextextended($1, 0))' };
/** In a transaction of several calls: it waits for the one who has the turn, and that one for it. */
export const BESIDE_TURNS: Statement = {
  name: 'beside_turns',
  text: 'select pg_advisory_xact_lock_shared(hashtextextended($1, 0))',
};
const UNLOCK: Statement = { name: 'end_turn', text: 'select pg_advisory_unlock(hashtextextended($1, 0))' };

/** Wallet paths bypass the unit of work: a named prepared statement costs a seventh of an entity round trip. */
export type PostgresSql = OneConnection & {
  /** Runs `work` on one connection, as one transaction. */
  transaction<T>(work: (own: OneConnection) => Promise<T>): Promise<T>;
  /** Runs `work` on one connection while no other process does so under the same key. */
  exclusively<T>(key: string, work: (own: OneConnection) => Promise<T>): Promise<T>;
  /** How long a caller may wait for others before it asks, as it may wait for a connection. */
  readonly patienceMs: number;
  /** The same as `query`, maybe in one message and one transaction with other calls of the same `group`, which wait at the same time. */
  queryTogether(group: string, statement: Statement, parameters: readonly Parameter[]): Promise<readonly Row[]>;
};

const nothing = () => {};

/**
 * @param native the pool of the driver.
 * @param isCluster its machines commit each call by itself, whatever else comes in the same message: none shares one.
 */
export function postgresSql(native: object, isCluster = false): PostgresSql {
  const pool = native as Pool;
  const query = (statement: Statement, values: readonly Parameter[]) =>
    outOfEachOthersWay(() => onConnection(pool, (client) => run(client, { statement, values })));
  const inOne = isCluster ? oneByOne : runTogether;
  const together = (calls: readonly Call[]) => whatCame(onConnection(pool, (client) => inOne(client, calls)));
  const groups = new CallGroups(query, together);
  return {
    together,
    transaction: (work) => outOfEachOthersWay(() => onConnection(pool, (client) => wholly(client, work, inOne))),
    exclusively: (key, work) => onConnection(pool, (client) => inTurn(client, key, work, inOne)),
    patienceMs: pool.options.connectionTimeoutMillis,
    query,
    queryTogether: (group, statement, values) => (isCluster ? query(statement, values) : groups.run(group, { statement, values })),
  };
}

function whatCame(outcomes: Promise<readonly Outcome[]>): Promise<readonly Outcome[]> {
  return outcomes.catch((error: unknown) => {
    if (error instanceof LostMidway) return error.outcomes;
    throw error;
  });
}

function oneConnection(client: Client, inOne: typeof runTogether): OneConnection {
  return {
    query: (statement, values) => run(client, { statement, values }).catch(asUnavailable),
    together: (calls) => whatCame(inOne(client, calls)).catch(asUnavailable),
  };
}

const statementOf = (text: string): Call => ({ statement: { name: text, text }, values: [] });

async function wholly<T>(client: Client, work: (own: OneConnection) => Promise<T>, inOne: typeof runTogether): Promise<T> {
  await run(client, statementOf('begin'));
  try {
    const done = await work(oneConnection(client, inOne));
    await run(client, statementOf('commit'));
    return done;
  } catch (error) {
    await run(client, statementOf('rollback'));
    throw error;
  }
}

function asUnavailable(error: unknown): never {
  throw unavailableFor(error);
}

/** The lock is the connection's: it goes with it, also when the process dies. */
async function inTurn<T>(client: Client, key: string, work: (own: OneConnection) => Promise<T>, inOne: typeof runTogether): Promise<T> {
  await run(client, { statement: LOCK, values: [key] });
  try {
    return await work(oneConnection(client, inOne));
  } finally {
    await run(client, { statement: UNLOCK, values: [key] });
  }
}

/** Others that wait for this one, or it for them. */
const ATTEMPTS = 3;

/** Repeats a statement that was undone for the sake of another one: nothing of it has happened. */
async function outOfEachOthersWay<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (!isInTheWay(error)) throw error;
      if (attempt === ATTEMPTS) throw new StoreUnavailable('changes wait for each other in the database', { cause: error });
    }
  }
}

async function onConnection<T>(pool: Pool, work: (client: Client) => Promise<T>): Promise<T> {
  const client = await reaching(() => pool.connect());
  // The statement that is under way fails with it.
  client.on('error', nothing);
  let fault: unknown;
  try {
    return await work(client);
  } catch (error) {
    // A change that was refused says nothing against the connection; `query` of the pool would end it.
    if (!isUnexpected(error) && !isInTheWay(error)) fault = error;
    throw unavailableFor(error);
  } finally {
    client.removeListener('error', nothing);
    client.release(fault);
  }
}

/** By connection: the statements that it has prepared, and what they answer. */
const prepared = new WeakMap<Client, Map<string, readonly Column[]>>();

function preparedOn(client: Client): Map<string, readonly Column[]> {
  let known = prepared.get(client);
  if (known === undefined) {
    known = new Map();
    prepared.set(client, known);
  }
  return known;
}

/** The first time on a connection the driver prepares the statement and tells its columns. */
async function run(client: Client, { statement, values }: Call): Promise<readonly Row[]> {
  const { name, text } = statement;
  const known = preparedOn(client);
  const columns = known.get(name);
  if (columns !== undefined) {
    const calls = new PreparedCalls([{ statement: name, values, columns }]);
    client.query(calls);
    return (await calls.answers)[0] ?? [];
  }
  const { rows, fields } = await client.query({ name, text, values: values as Parameter[] });
  known.set(
    name,
    fields.map((field) => ({ name: field.name, read: client.getTypeParser(field.dataTypeID, 'text') })),
  );
  return rows;
}

/**
 * In one transaction, when the connection knows the statements; else each by itself, which prepares them.
 * @returns what became of each; `undone` when one of the others failed, so that nothing of it happened.
 * @throws what ends all of them, with an outcome that is not known.
 */
async function runTogether(client: Client, calls: readonly Call[]): Promise<readonly Outcome[]> {
  const known = preparedOn(client);
  const ready = calls.flatMap(({ statement: { name }, values }) => {
    const columns = known.get(name);
    return columns === undefined ? [] : [{ statement: name, values, columns }];
  });
  if (ready.length < calls.length) return oneByOne(client, calls);
  const together = new PreparedCalls(ready);
  client.query(together);
  try {
    return (await together.answers).map((rows) => ({ rows }));
  } catch (error) {
    if (!isRefusal(error) || together.answered === calls.length) throw error;
    // One that expected something else may have met a neighbour that is undone now; so it is tried again, too.
    const isFinal = !isUnexpected(error) && !isInTheWay(error);
    return calls.map((_, index) => (isFinal && index === together.answered ? { error } : { undone: true }));
  }
}

/** Ends the connection, and tells what became of each call all the same. */
class LostMidway extends Error {
  readonly outcomes: readonly Outcome[];
  constructor(outcomes: readonly Outcome[]) {
    super('the connection was lost');
    this.outcomes = outcomes;
  }
}

/** What was answered stays answered when the connection is lost at a later one; it then fails with all behind it. */
async function oneByOne(client: Client, calls: readonly Call[]): Promise<readonly Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const call of calls) {
    try {
      outcomes.push({ rows: await run(client, call) });
    } catch (error) {
      if (!isRefusal(error)) throw new LostMidway([...outcomes, ...calls.slice(outcomes.length).map(() => ({ error }))]);
      outcomes.push(isInTheWay(error) ? { undone: true } : { error });
    }
  }
  return outcomes;
}
