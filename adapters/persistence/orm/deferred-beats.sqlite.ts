import type { DeferredBeats } from '../../../application/ports/authorization-beats.ts';
import type { Cipher } from '../../../application/ports/cipher.ts';
import { describeDeferred } from '../../../domain/audit/describe-change.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import type { SqliteChain } from './audit-chain.sqlite.ts';
import {
  DEFERRED_COLUMNS,
  deferredParameters,
  readDeferred,
  sealCredentials,
  sealErrorMessage,
} from './authorization-codec.ts';
import { batchParameters, INSERT_BATCH } from './session-parts.sqlite.ts';
import type { SqliteSql, Statement } from './sql.ts';
import type { SqliteSteps } from './sqlite-steps.ts';
import {
  DEFERRABLE,
  FAIL_DEFERRED,
  FIND_DEFERRED,
  ISSUABLE,
  LIST_DEFERRED,
  RETRIEVABLE,
} from './statements.ts';

const named = (name: string, text: string): Statement => ({ name, text });

const PROLONG = named(
  'prolong_session',
  `update sessions as s set expires_at = max(expires_at, $3)
   where s.tenant_id = $1 and s.id = $2 and ${DEFERRABLE('$4')}`,
);
const INSERT_DEFERRED = named(
  'insert_deferred',
  `insert into deferred_transactions (${DEFERRED_COLUMNS})
   values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
);
const MAY_ISSUE = named(
  'may_issue',
  `select 1 from sessions s where s.tenant_id = $1 and s.id = $2 and ${ISSUABLE('$3')}`,
);
const COUNT_ISSUANCE = named(
  'count_issuance',
  'update sessions set issued_count = issued_count + 1 where tenant_id = $1 and id = $2',
);
const READY = named(
  'ready_deferred',
  `update deferred_transactions set status = 'ready', credentials = $3, batch_id = $5, updated_at = $4
   where tenant_id = $1 and id = $2 and status = 'pending' and expires_at > $4 and session_id = $6`,
);
const TAKE = named(
  'take_deferred',
  `select d.*, ${RETRIEVABLE('$5')} as retrievable
   from deferred_transactions d join sessions s on s.tenant_id = d.tenant_id and s.id = d.session_id
   where d.tenant_id = $1 and d.id = $2 and d.public_id = $3 and d.status = 'ready' and d.expires_at > $4`,
);
const END = named(
  'end_deferred',
  `update deferred_transactions set status = $4, error_message = $5, credentials = null, updated_at = $3
   where tenant_id = $1 and id = $2`,
);
const SET_BIT = named(
  'set_bit',
  `update sessions set issued_mask = issued_mask | $3, updated_at = $4 where tenant_id = $1 and id = $2
   returning issued_mask, status`,
);
const COMPLETE = named(
  'complete_retrieved',
  `update sessions set status = 'completed', version = version + 1
   where tenant_id = $1 and id = $2 and status in ('active', 'fetched') returning version`,
);

export function sqliteDeferredBeats(
  sql: SqliteSql,
  { first, log }: SqliteSteps,
  cipher: Cipher,
  chain: SqliteChain,
  tenantId: TenantId,
): DeferredBeats {
  return {
    openDeferred: (transaction, bit) =>
      sql.beat((run) => {
        const { sessionId, expiresAt } = transaction;
        if (run.change(PROLONG, tenantId, sessionId, expiresAt.getTime(), bit) === 0) return false;
        run.change(INSERT_DEFERRED, tenantId, ...deferredParameters(transaction));
        return true;
      }),
    findDeferred: (id) =>
      sql.single((run) => {
        const row = first(run, FIND_DEFERRED, id);
        return row === undefined ? undefined : readDeferred(cipher, row);
      }),
    listDeferred: ({ sessionId, limit }) =>
      sql.single((run) =>
        run.all(LIST_DEFERRED, tenantId, sessionId ?? null, limit).map((row) => readDeferred(cipher, row)),
      ),
    completeDeferred: (id, credentials, batch, bit, now, by) =>
      sql.beat((run) => {
        const sealed = sealCredentials(cipher, tenantId, id, credentials);
        if (first(run, MAY_ISSUE, batch.sessionId, bit) === undefined) return false;
        const parameters = [id, sealed, now.getTime(), batch.id, batch.sessionId] as const;
        if (run.change(READY, tenantId, ...parameters) === 0) return false;
        run.change(COUNT_ISSUANCE, tenantId, batch.sessionId);
        run.change(INSERT_BATCH, tenantId, batch.sessionId, ...batchParameters(batch));
        chain.record(run, by, describeDeferred(id, 'completed'));
        return true;
      }),
    failDeferred: (id, errorMessage, now, by) =>
      sql.beat((run) => {
        const sealed = sealErrorMessage(cipher, tenantId, id, errorMessage);
        if (first(run, FAIL_DEFERRED, id, sealed, now.getTime()) === undefined) return false;
        if (by !== null) chain.record(run, by, describeDeferred(id, 'failed'));
        return true;
      }),
    retrieveDeferred: (id, publicId, bit, completeMask, reason, now) =>
      sql.beat((run) => {
        const row = first(run, TAKE, id, publicId, now.getTime(), bit);
        if (row === undefined) return undefined;
        if (row['retrievable'] === 0) {
          const sealed = sealErrorMessage(cipher, tenantId, id, reason);
          run.change(END, tenantId, id, now.getTime(), 'failed', sealed);
          return 'refused';
        }
        const transaction = readDeferred(cipher, row);
        run.change(END, tenantId, id, now.getTime(), 'retrieved', null);
        const session = first(run, SET_BIT, transaction.sessionId, bit, now.getTime());
        const isWhole = Number(session?.['issued_mask']) === completeMask;
        const completed = isWhole ? first(run, COMPLETE, transaction.sessionId) : undefined;
        if (completed !== undefined) {
          log(run, transaction.sessionId, Number(completed['version']), 'completed', now);
        }
        return { transaction, completed: completed !== undefined };
      }),
  };
}
