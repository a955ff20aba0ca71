import type { Cipher } from '../../../application/ports/cipher.ts';
import type { Change, ChangePart, CommitResult } from '../../../domain/changes/change.ts';
import type { ConsumedValue } from '../../../domain/oauth/consumed-value.ts';
import type { Session } from '../../../domain/sessions/session.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { SERVING } from '../../../domain/tenants/tenant.ts';
import { isExpectationFailure } from '../database-faults.ts';
import { MAX_KEPT_REQUEST } from '../erased-requests.ts';
import { authorizedTransaction } from '../rows/authorization-codec.ts';
import type { Parts } from '../rows/change-columns.ts';
import type { Fields } from '../rows/columns.ts';
import { REPLACE_EXPIRED_RESPONSE, STORED_RESPONSES } from '../rows/session-codec.ts';
import { IDENTIFIED, identifiedBy } from '../rows/subject-codec.ts';
import { type Following, followingOf } from '../rows/wallet-status-codec.ts';
import type { Parameter, Row, Statement } from '../statement.ts';
import type { AuditAddition } from './audit-addition.ts';
import type { PostgresChains } from './audit-chain.ts';
import type { Call } from './call-groups.ts';
import { arrayLiteral, rowLiteral } from './row-literal.ts';
import type { PostgresSql } from './sql.ts';

const CALL = `commit_change_1(${Array.from({ length: 20 }, (_, index) => `$${index + 1}`).join(', ')})`;
const COMMIT: Statement = { name: 'commit_change_1', text: `select ${CALL} as session` };

const IS_KEPT = 'kept';
/**
 * Commits a change and stores the response under its idempotency key. A concurrent request with the same key waits for the row and finds it
 * taken: then the function is not called.
 */
const COMMIT_AND_KEEP: Statement = {
  name: 'commit_change_1_and_keep',
  text: `with k as (insert into kept_answers (tenant_id, ${STORED_RESPONSES.columns.join(', ')}) values ($1, $21, $22, $23)
       ${REPLACE_EXPIRED_RESPONSE} <= $3 returning 1)
     select case when exists (select 1 from k) then ${CALL} else '${IS_KEPT}' end as session`,
};

/** Commits a change that sets the end of a session, maybe earlier than before. */
const COMMIT_AND_END: Statement = { name: 'commit_change_1_and_end', text: `${COMMIT.text}, session_ends_1($1, $21, $22)` };

/** Commits a change that begins or ends a delivery. */
const COMMIT_AND_MARK: Statement = { name: 'commit_change_1_and_mark', text: `${COMMIT.text}, mark_delivery_1($1, $21, $22, $23)` };

/** Erases the request of an ended session that no delivery needs. The id of the session is the parameter `parameterNumber`. */
const erasing = ({ name, text }: Statement, parameterNumber: number): Statement => ({
  name: `${name}_and_erase`,
  text: `${text}, erase_request_1($1, $${parameterNumber}, ${MAX_KEPT_REQUEST})`,
});
const COMMIT_AND_ERASE = erasing(COMMIT, 21);
const COMMIT_AND_MARK_AND_ERASE = erasing(COMMIT_AND_MARK, 21);

/** Commits credentials that follow the status of their wallet, now or once they are issued. */
const COMMIT_AND_FOLLOW: Statement = {
  name: 'commit_change_1_and_follow',
  text: `${COMMIT.text}, follow_wallets_1($1, $3, $21, $22, $23, $24, $25, $26, $27, $28, $29)`,
};

/** Records the person that the credentials are about. Its columns and the time of authorization are the last parameters. */
const identifying = ({ name, text }: Statement, lastParameter: number): Statement => ({
  name: `${name}_identified`,
  text: `${text}, identify_batch_1($1, ${[...IDENTIFIED, 'authorized_at'].map((_, index) => `$${lastParameter + 1 + index}`).join(', ')})`,
});
const COMMIT_IDENTIFIED = identifying(COMMIT, 20);
const COMMIT_AND_FOLLOW_IDENTIFIED = identifying(COMMIT_AND_FOLLOW, 29);

/** Records the authorization time of a transaction that waits for its backend. */
const authorizing = ({ name, text }: Statement, lastParameter: number): Statement => ({
  name: `${name}_authorized`,
  text: `${text}, authorize_deferred_1($1, $${lastParameter + 1}, $${lastParameter + 2})`,
});
const COMMIT_AUTHORIZED = authorizing(COMMIT, 20);
const COMMIT_AND_FOLLOW_AUTHORIZED = authorizing(COMMIT_AND_FOLLOW, 29);

const RELEASED = 'tenant_id = $1 and fingerprint = $21 and session_id = $22 and batch_id = any($23::text[])';
/**
 * Commits the revocation of a person's credentials. A concurrent revocation waits for the rows and finds them gone: then nothing is
 * deleted, the function is not called, and there is no row.
 */
const COMMIT_AND_RELEASE: Statement = {
  name: 'commit_change_1_and_release',
  text: `with own as (select batch_id from issued_subjects
       where ${RELEASED} order by batch_id for update),
     gone as (delete from issued_subjects
       where ${RELEASED} and (select count(*) from own) = $24)
     select ${CALL} as session where (select count(*) from own) = $24`,
};

/** Statements that may share a batch: they hold no row lock while they wait. */
const BATCHABLE: ReadonlySet<Statement> = new Set([
  COMMIT,
  COMMIT_AND_FOLLOW,
  COMMIT_AND_MARK,
  COMMIT_AND_ERASE,
  COMMIT_AND_MARK_AND_ERASE,
  COMMIT_IDENTIFIED,
  COMMIT_AND_FOLLOW_IDENTIFIED,
  COMMIT_AUTHORIZED,
  COMMIT_AND_FOLLOW_AUTHORIZED,
]);

/** Applies changes, each by one call of one database function. */
export class PostgresCommit {
  readonly #sql: PostgresSql;
  readonly #cipher: Cipher;
  readonly #chains: PostgresChains;

  constructor(sql: PostgresSql, cipher: Cipher, chains: PostgresChains) {
    this.#sql = sql;
    this.#cipher = cipher;
    this.#chains = chains;
  }

  #callOf(tenantId: TenantId, change: Change, parameters: readonly Parameter[]): Call {
    const { keeps, releases, session } = change;
    const following = followingOf(this.#cipher, tenantId, change);
    const identified = identifiedBy(change);
    const followed = following === undefined ? [] : followedBy(following);
    if (identified !== undefined) {
      const statement = following === undefined ? COMMIT_IDENTIFIED : COMMIT_AND_FOLLOW_IDENTIFIED;
      return { statement, values: [...parameters, ...followed, ...identified] };
    }
    const authorized = authorizedTransaction(change);
    if (authorized !== undefined) {
      const statement = following === undefined ? COMMIT_AUTHORIZED : COMMIT_AND_FOLLOW_AUTHORIZED;
      return { statement, values: [...parameters, ...followed, ...authorized] };
    }
    if (following !== undefined) return { statement: COMMIT_AND_FOLLOW, values: [...parameters, ...followed] };
    if (keeps !== undefined) {
      const responseFields = STORED_RESPONSES.write(this.#cipher, tenantId, keeps);
      return { statement: COMMIT_AND_KEEP, values: [...parameters, ...responseFields] };
    }
    if (releases !== undefined) {
      const { fingerprint, sessionId, batchIds } = releases;
      const released = [fingerprint, sessionId, batchIds, batchIds.length] as const;
      return { statement: COMMIT_AND_RELEASE, values: [...parameters, ...released] };
    }
    if (session?.delivery !== undefined) {
      const { id, abandonedAfterMs } = session.delivery;
      const statement = session.erasesRequest === true ? COMMIT_AND_MARK_AND_ERASE : COMMIT_AND_MARK;
      return { statement, values: [...parameters, session.id, id, abandonedAfterMs] };
    }
    if (session?.erasesRequest === true) return { statement: COMMIT_AND_ERASE, values: [...parameters, session.id] };
    const endsAt = session?.endsAt?.getTime();
    if (session === undefined || endsAt === undefined) return { statement: COMMIT, values: parameters };
    return { statement: COMMIT_AND_END, values: [...parameters, session.id, endsAt] };
  }

  async apply(tenantId: TenantId, change: Change, parts: Parts, now: Date): Promise<CommitResult> {
    const callWith = (entry: AuditAddition | undefined) =>
      this.#callOf(tenantId, change, parametersOf(tenantId, change, now, parts, entry));
    try {
      if (change.audit === undefined) {
        const { statement, values } = callWith(undefined);
        // Concurrent requests with the same key wait for the row of a stored response, and would delay its batch.
        const [row] = BATCHABLE.has(statement)
          ? await this.#sql.queryTogether(tenantId, statement, values)
          : await this.#sql.query(statement, values);
        return readCommitted(row, change);
      }
      const { by, change: auditChange } = change.audit;
      const row = await this.#chains.record(tenantId, {
        by,
        change: auditChange,
        callWith,
        goesAlone: change.keeps !== undefined || change.releases !== undefined,
      });
      return row === undefined && change.releases === undefined ? { done: false, part: 'tenant' } : readCommitted(row, change);
    } catch (error) {
      return readUnexpected(error);
    }
  }
}

const row = (fields: Fields | undefined) => (fields === undefined ? null : rowLiteral(fields));
const rows = (parts: readonly Fields[] | undefined) => (parts === undefined ? null : arrayLiteral(parts.map(rowLiteral)));

function followedBy({ transaction, batch, lists, statuses }: Following): readonly Parameter[] {
  return [
    ...transaction,
    ...batch,
    lists.map(([id]) => id),
    lists.map(([, place]) => String(place)),
    statuses.map(([listId]) => listId),
    statuses.map(([, idx]) => idx),
  ];
}

/** Parameters in the order of the function. */
function parametersOf(
  tenantId: TenantId,
  { serving, revisions }: Change,
  now: Date,
  parts: Parts,
  entry: AuditAddition | undefined,
): readonly Parameter[] {
  const bits = Object.values(parts).reduce<number>((sum, part, index) => (part === undefined ? sum : sum + 2 ** index), 0);
  return [
    tenantId,
    bits,
    now.getTime(),
    serving === true ? SERVING : null,
    revisions === undefined ? null : JSON.stringify(revisions),
    rows(parts.uses),
    parts.unrevoked ?? null,
    row(parts.grant),
    row(parts.session),
    row(parts.authorization),
    row(parts.deferred),
    row(parts.newSession),
    row(parts.newGrant),
    row(parts.newAuthorization),
    row(parts.newDeferred),
    row(parts.issued),
    rows(parts.statuses),
    row(parts.subject),
    parts.removes ?? null,
    row(entry),
  ];
}

/** The function returns the status, the version and a flag for a changed status if it wrote a session. */
function readCommitted(row: Row | undefined, { session, releases }: Change): CommitResult {
  if (row === undefined && releases !== undefined) return { done: false, part: 'releases' };
  const result = row?.['session'];
  if (result === IS_KEPT) return { done: false, part: 'keeps' };
  if (session === undefined || typeof result !== 'string') return { done: true };
  const [status, version, moved] = result.split(' ');
  return { done: true, session: { status: status as Session['status'], version: Number(version), moved: moved === 'true' } };
}

/** @throws the error, unless it reports an expectation that failed. */
function readUnexpected(error: unknown): CommitResult {
  if (!isExpectationFailure(error)) throw error;
  const { message, detail } = error as { message?: unknown; detail?: unknown };
  if (message === 'uses') return { done: false, part: 'uses', kind: String(detail) as ConsumedValue['kind'] };
  return { done: false, part: String(message) as Exclude<ChangePart, 'uses'> };
}
