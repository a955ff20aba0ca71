import type { Cipher } from '../../../application/ports/cipher.ts';
import type { Session } from '../../../domain/sessions/session.ts';
import type { IssuedBatch } from '../../../domain/status-lists/status-list.ts';
import { GRANT_COLUMNS, SESSION_COLUMNS, sealOutcome, sealRequest } from './session-codec.ts';
import type { Statement } from './sql.ts';
import { BATCH_COLUMNS, SESSION_VALUES } from './statements.ts';

export const INSERT_SESSION: Statement = {
  name: 'insert_session',
  text: `insert into sessions (${SESSION_COLUMNS}) select ${SESSION_VALUES} from tenants
   where id = $1 and status = 'active' and ($16 is null or revision = $16)`,
};

export const INSERT_GRANT: Statement = {
  name: 'insert_grant',
  text: `insert into grants (${GRANT_COLUMNS}) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 0, 0)`,
};

/** Without the tenant, which the caller puts first. */
export function sessionParameters(cipher: Cipher, session: Session): (string | number | null)[] {
  return [
    session.id,
    session.publicId,
    session.kind,
    session.status,
    session.version,
    session.createdAt.getTime(),
    session.updatedAt.getTime(),
    session.expiresAt.getTime(),
    JSON.stringify(session.configurationIds),
    session.useDcApi ? 1 : 0,
    sealRequest(cipher, session),
    sealOutcome(cipher, session.tenantId, session.id, session.outcome),
    session.issuedMask,
    session.claimedAt?.getTime() ?? null,
  ];
}

export const INSERT_BATCH: Statement = {
  name: 'insert_batch',
  text: `insert into issued_batches (${BATCH_COLUMNS}) values ($1, $2, $3, $4, $5, $6, $7, $8)`,
};

/** Without tenant and session, which the caller puts first. */
export function batchParameters(batch: IssuedBatch): (string | number | null)[] {
  return [
    batch.id,
    batch.credentialConfigurationId,
    batch.count,
    batch.statusListId,
    batch.firstCounter,
    batch.issuedAt.getTime(),
  ];
}
