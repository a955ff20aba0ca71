import type { DeferredBeats } from '../../../application/ports/authorization-beats.ts';
import type { Cipher } from '../../../application/ports/cipher.ts';
import { describeDeferred } from '../../../domain/audit/describe-change.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { APPEND_ENTRY_IF, type PostgresChains } from './audit-chain.postgres.ts';
import {
  DEFERRED_COLUMNS,
  deferredParameters,
  readDeferred,
  sealCredentials,
  sealErrorMessage,
} from './authorization-codec.ts';
import type { PostgresRun } from './postgres-run.ts';
import { LOG_FROM } from './session-parts.postgres.ts';
import type { Statement } from './sql.ts';
import {
  BATCH_COLUMNS,
  DEFERRABLE,
  FAIL_DEFERRED,
  FIND_DEFERRED,
  ISSUABLE,
  LIST_DEFERRED,
  RETRIEVABLE,
} from './statements.ts';

const named = (name: string, text: string): Statement => ({ name, text });

const OPEN_DEFERRED = named(
  'open_deferred',
  `with s as (
     update sessions s set expires_at = greatest(s.expires_at, $12::bigint)
     where s.tenant_id = $1 and s.id = $3::varchar and ${DEFERRABLE('$13')}
     returning s.id)
   insert into deferred_transactions (${DEFERRED_COLUMNS})
   select $1::varchar, $2::varchar, $3::varchar, $4::varchar, $5::varchar, $6::varchar, $7::text, $8::varchar, $9::int,
     $10::bigint, $11::bigint, $12::bigint from s
   returning id`,
);

const COMPLETE_DEFERRED = named(
  'complete_deferred',
  `with o as (
     select s.id from sessions s where s.tenant_id = $1 and s.id = $6 and ${ISSUABLE('$12')} for update),
   d as (
     update deferred_transactions set status = 'ready', credentials = $3, batch_id = $5, updated_at = $4
     from o
     where tenant_id = $1 and deferred_transactions.id = $2 and status = 'pending' and expires_at > $4
       and session_id = $6
     returning deferred_transactions.id),
   u as (update sessions set issued_count = issued_count + 1 from d where tenant_id = $1 and sessions.id = $6),
   b as (insert into issued_batches (${BATCH_COLUMNS})
     select $1, $6, $5, $7::text, $8::int, $9::text, $10::int, $11::bigint from d),
   ${APPEND_ENTRY_IF('d', 13)}
   select id from d`,
);

const DECIDE_FAILED = named(
  'decide_failed',
  `with d as (${FAIL_DEFERRED.text}), ${APPEND_ENTRY_IF('d', 5)} select id from d`,
);

/**
 * What was stored before comes back, since the update erases the credentials. The session is locked with the
 * transaction, so that a revocation at the same time comes either before or after.
 */
const RETRIEVE_DEFERRED = named(
  'retrieve_deferred',
  `with o as (
     select d.*, ${RETRIEVABLE('$4')} as retrievable,
       s.status in ('active', 'fetched') and (s.issued_mask | $4) = $5 as completes
     from deferred_transactions d join sessions s on s.tenant_id = d.tenant_id and s.id = d.session_id
     where d.tenant_id = $1 and d.id = $2 and d.public_id = $3 and d.status = 'ready' and d.expires_at > $7
     for update),
   d as (
     update deferred_transactions d set status = case when o.retrievable then 'retrieved' else 'failed' end,
       error_message = case when o.retrievable then null else $6::text end, credentials = null, updated_at = $7
     from o where d.tenant_id = $1 and d.id = o.id),
   u as (
     update sessions s set issued_mask = s.issued_mask | $4, updated_at = $7,
       status = case when o.completes then 'completed' else s.status end,
       version = s.version + case when o.completes then 1 else 0 end
     from o where s.tenant_id = $1 and s.id = o.session_id and o.retrievable
     returning s.tenant_id, s.id, s.version, s.status, s.updated_at, o.completes),
   e as (${LOG_FROM('u', 'updated_at')} where completes)
   select * from o`,
);

export function postgresDeferredBeats(
  { all, one }: PostgresRun,
  cipher: Cipher,
  chains: PostgresChains,
  tenantId: TenantId,
): DeferredBeats {
  return {
    async openDeferred(transaction, bit) {
      return (await one(OPEN_DEFERRED, ...deferredParameters(transaction), bit)) !== undefined;
    },
    async findDeferred(id) {
      const row = await one(FIND_DEFERRED, id);
      return row === undefined ? undefined : readDeferred(cipher, row);
    },
    async listDeferred({ sessionId, limit }) {
      return (await all(LIST_DEFERRED, sessionId ?? null, limit)).map((row) => readDeferred(cipher, row));
    },
    async completeDeferred(id, credentials, batch, bit, now, by) {
      const parameters = [
        id,
        sealCredentials(cipher, tenantId, id, credentials),
        now.getTime(),
        batch.id,
        batch.sessionId,
        batch.credentialConfigurationId,
        batch.count,
        batch.statusListId,
        batch.firstCounter,
        batch.issuedAt.getTime(),
        bit,
      ];
      const told = describeDeferred(id, 'completed');
      const row = await chains.record(tenantId, by, told, (entry) =>
        one(COMPLETE_DEFERRED, ...parameters, ...entry),
      );
      return row !== undefined;
    },
    async failDeferred(id, errorMessage, now, by) {
      const parameters = [id, sealErrorMessage(cipher, tenantId, id, errorMessage), now.getTime()];
      if (by === null) return (await one(FAIL_DEFERRED, ...parameters)) !== undefined;
      const row = await chains.record(tenantId, by, describeDeferred(id, 'failed'), (entry) =>
        one(DECIDE_FAILED, ...parameters, ...entry),
      );
      return row !== undefined;
    },
    async retrieveDeferred(id, publicId, bit, completeMask, reason, now) {
      const sealed = sealErrorMessage(cipher, tenantId, id, reason);
      const row = await one(RETRIEVE_DEFERRED, id, publicId, bit, completeMask, sealed, now.getTime());
      if (row === undefined) return undefined;
      if (row['retrievable'] !== true) return 'refused';
      return { transaction: readDeferred(cipher, row), completed: row['completes'] === true };
    },
  };
}
