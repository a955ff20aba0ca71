import type { Cipher } from '../../../application/ports/cipher.ts';
import type { Change, Committed, Part } from '../../../domain/changes/change.ts';
import type { UsedValue } from '../../../domain/oauth/used-value.ts';
import type { Session } from '../../../domain/sessions/session.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { SERVING } from '../../../domain/tenants/tenant.ts';
import { isUnexpected } from '../database-faults.ts';
import {
  authorizationColumns,
  type Columns,
  deferredChangeColumns,
  grantChangeColumns,
  issuedColumns,
  newDeferredColumns,
  newGrantColumns,
  newSessionColumns,
  sessionChangeColumns,
  statusColumns,
  usedValueColumns,
} from '../rows/change-columns.ts';
import type { Parameter, Row, Statement } from '../statement.ts';
import type { AuditAddition, PostgresChains } from './audit-chain.ts';
import { arrayLiteral, rowLiteral } from './row-literal.ts';
import type { PostgresSql } from './sql.ts';

const COMMIT: Statement = {
  name: 'commit_change_1',
  text: `select commit_change_1(${Array.from({ length: 20 }, (_, index) => `$${index + 1}`).join(', ')}) as session`,
};

/** Applies changes, each by one call of one function of the database. */
export class PostgresCommit {
  readonly #sql: PostgresSql;
  readonly #cipher: Cipher;
  readonly #chains: PostgresChains;

  constructor(sql: PostgresSql, cipher: Cipher, chains: PostgresChains) {
    this.#sql = sql;
    this.#cipher = cipher;
    this.#chains = chains;
  }

  async apply(tenantId: TenantId, change: Change, now: Date): Promise<Committed> {
    const parts = this.#parts(tenantId, change, now);
    try {
      if (change.audit === undefined) return readCommitted((await this.#call(parts, null))[0], change);
      const { by, change: told } = change.audit;
      const row = await this.#chains.record(
        tenantId,
        by,
        told,
        async (entry) => (await this.#call(parts, entry))[0],
      );
      return row === undefined ? { done: false, part: 'tenant' } : readCommitted(row, change);
    } catch (error) {
      return readUnexpected(error);
    }
  }

  #call(parts: readonly Parameter[], entry: AuditAddition | null): Promise<readonly Row[]> {
    return this.#sql.query(COMMIT, [...parts, entry === null ? null : rowLiteral(entry)]);
  }

  /** Parameters of the function, but for the entry of the audit log, in their order. */
  #parts(tenantId: TenantId, change: Change, now: Date): readonly Parameter[] {
    const cipher = this.#cipher;
    const { grant, session, authorization, deferred, issued, statuses, subject, opens, revisions } = change;
    const row = <T>(value: T | undefined, columns: (value: T) => Columns) =>
      value === undefined ? null : rowLiteral(columns(value));
    const rows = (all: readonly Columns[] | undefined) =>
      all === undefined || all.length === 0 ? null : arrayLiteral(all.map(rowLiteral));
    return [
      tenantId,
      partsOf(change),
      now.getTime(),
      change.serving === true ? SERVING : null,
      revisions === undefined ? null : JSON.stringify(revisions),
      rows(change.uses && usedValueColumns(change.uses)),
      change.unrevoked ?? null,
      row(grant, grantChangeColumns),
      row(session, (value) => sessionChangeColumns(cipher, tenantId, value)),
      row(authorization, (value) => authorizationColumns(cipher, tenantId, value)),
      row(deferred, (value) => deferredChangeColumns(cipher, tenantId, value)),
      row(opens?.session, (value) => newSessionColumns(cipher, value)),
      row(opens?.grant, (value) => newGrantColumns(cipher, tenantId, value)),
      row(opens?.authorization, (value) => authorizationColumns(cipher, tenantId, value)),
      row(opens?.deferred, newDeferredColumns),
      row(issued, issuedColumns),
      rows(statuses && statusColumns(statuses)),
      row(subject, ({ hash, sessionId }) => [hash, sessionId]),
      change.removes ?? null,
    ];
  }
}

/** In the order of the bits of `p_parts`. */
function partsOf(change: Change): number {
  const { opens, uses = [], statuses = [] } = change;
  const parts = [
    change.grant,
    change.session,
    change.authorization,
    change.deferred,
    change.unrevoked,
    change.removes,
    uses[0],
    opens?.session,
    opens?.grant,
    opens?.authorization,
    opens?.deferred,
    change.issued,
    change.subject,
    statuses[0],
    change.audit,
  ];
  return parts.reduce<number>((bits, part, place) => (part === undefined ? bits : bits + 2 ** place), 0);
}

/** The function answers with status, version and whether the status changed, where there is a session that was written. */
function readCommitted(row: Row | undefined, { session }: Change): Committed {
  const written = row?.['session'];
  if (session === undefined || typeof written !== 'string') return { done: true };
  const [status, version, moved] = written.split(' ');
  return {
    done: true,
    session: { status: status as Session['status'], version: Number(version), moved: moved === 'true' },
  };
}

/** @throws whatever is no word of the function about a part. */
function readUnexpected(error: unknown): Committed {
  if (!isUnexpected(error)) throw error;
  const { message, detail } = error as { message?: unknown; detail?: unknown };
  if (message === 'uses') return { done: false, part: 'uses', kind: String(detail) as UsedValue['kind'] };
  return { done: false, part: String(message) as Exclude<Part, 'uses'> };
}
