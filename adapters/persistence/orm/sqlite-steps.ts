import type { UsedValue } from '../../../application/ports/store.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import type { Row, SqliteRun, Statement } from './sql.ts';

type Parameter = string | number | null;

const USE_VALUE: Statement = {
  name: 'use_value',
  text: 'insert into used_values (tenant_id, kind, hash, expires_at) values ($1, $2, $3, $4) on conflict do nothing',
};
const LOG_EVENT: Statement = {
  name: 'log_event',
  text: `insert into session_events (tenant_id, session_id, version, status, at)
   values ($1, $2, $3, $4, $5) on conflict do nothing`,
};

/** Thrown inside a beat to roll it back; `unlessReplayed` catches it. */
class Replayed extends Error {
  readonly kind: UsedValue['kind'];

  constructor(kind: UsedValue['kind']) {
    super('replayed');
    this.kind = kind;
  }
}

/** What the steps of SQLite have in common; each statement gets the tenant first. */
export type SqliteSteps = {
  first(run: SqliteRun, statement: Statement, ...parameters: Parameter[]): Row | undefined;
  /** A value that is known, or over by the time of the database, rolls the whole beat back. */
  use(run: SqliteRun, used: readonly UsedValue[]): void;
  log(run: SqliteRun, id: string, version: number, status: string, at: Date): void;
};

export function sqliteSteps(tenantId: TenantId): SqliteSteps {
  return {
    first: (run, statement, ...parameters) => run.all(statement, tenantId, ...parameters)[0],
    use(run, used) {
      for (const { kind, hash, expiresAt } of used) {
        if (expiresAt.getTime() <= run.time()) throw new Replayed(kind);
        if (run.change(USE_VALUE, tenantId, kind, hash, expiresAt.getTime()) === 0) throw new Replayed(kind);
      }
    },
    log: (run, id, version, status, at) =>
      void run.change(LOG_EVENT, tenantId, id, version, status, at.getTime()),
  };
}

/** A replay rolls the whole beat back, so nothing is remembered or consumed. */
export async function unlessReplayed<T, R>(
  beat: Promise<T>,
  otherwise: (kind: UsedValue['kind']) => R | Promise<R>,
): Promise<T | R> {
  try {
    return await beat;
  } catch (error) {
    if (error instanceof Replayed) return otherwise(error.kind);
    throw error;
  }
}
