import type { MikroORM } from '@mikro-orm/core';
import { isUnexpected, reaching, unavailableFor } from '../database-faults.ts';
import type { Parameter, Row, Statement } from '../statement.ts';

/** What we use of the driver that MikroORM brings along. */
type Pool = {
  readonly options: { readonly connectionTimeoutMillis: number };
  connect(): Promise<Client>;
};
type Client = {
  query(query: { name: string; text: string; values: unknown[] }): Promise<{ rows: Row[] }>;
  on(event: 'error', listener: () => void): unknown;
  removeListener(event: 'error', listener: () => void): unknown;
  /** @param error ends the connection. */
  release(error?: unknown): void;
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
    async query({ name, text }, values) {
      const client = await reaching(() => pool.connect());
      // The statement that is under way fails with it.
      client.on('error', nothing);
      let fault: unknown;
      try {
        const { rows } = await client.query({ name, text, values: values as Parameter[] });
        return rows;
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
