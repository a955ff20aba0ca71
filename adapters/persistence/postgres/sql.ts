import type { MikroORM } from '@mikro-orm/core';
import { isUnexpected, reaching, unavailableFor } from '../database-faults.ts';
import type { Parameter, Row, Statement } from '../statement.ts';
import { type Column, PreparedCall } from './prepared-call.ts';

/** What we use of the driver that MikroORM brings along. */
type Pool = {
  readonly options: { readonly connectionTimeoutMillis: number };
  connect(): Promise<Client>;
};
type Client = {
  query(query: { name: string; text: string; values: unknown[] }): Promise<Answer>;
  query(call: PreparedCall): unknown;
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

/**
 * Wallet paths bypass the unit of work: a named prepared statement costs a seventh of an entity round trip.
 */
export type PostgresSql = {
  /** How long a caller may wait for others before it asks, as it may wait for a connection. */
  readonly patienceMs: number;
  query(statement: Statement, parameters: readonly Parameter[]): Promise<readonly Row[]>;
};

const nothing = () => {};

export async function postgresSql(orm: MikroORM): Promise<PostgresSql> {
  const pool = (await orm.em.getConnection().getNativeClient()) as Pool;
  return {
    patienceMs: pool.options.connectionTimeoutMillis,
    async query(statement, values) {
      const client = await reaching(() => pool.connect());
      // The statement that is under way fails with it.
      client.on('error', nothing);
      let fault: unknown;
      try {
        return await run(client, statement, values);
      } catch (error) {
        // A change that was refused says nothing against the connection; `query` of the pool would end it.
        if (!isUnexpected(error)) fault = error;
        throw unavailableFor(error);
      } finally {
        client.removeListener('error', nothing);
        client.release(fault);
      }
    },
  };
}

/** By connection: the statements that it has prepared, and what they answer. */
const prepared = new WeakMap<Client, Map<string, readonly Column[]>>();

/** The first time on a connection the driver prepares the statement and tells its columns. */
async function run(
  client: Client,
  { name, text }: Statement,
  values: readonly Parameter[],
): Promise<readonly Row[]> {
  let known = prepared.get(client);
  if (known === undefined) {
    known = new Map();
    prepared.set(client, known);
  }
  const columns = known.get(name);
  if (columns !== undefined) {
    const call = new PreparedCall(name, values, columns);
    client.query(call);
    return call.rows;
  }
  const { rows, fields } = await client.query({ name, text, values: values as Parameter[] });
  known.set(
    name,
    fields.map((field) => ({ name: field.name, read: client.getTypeParser(field.dataTypeID, 'text') })),
  );
  return rows;
}
