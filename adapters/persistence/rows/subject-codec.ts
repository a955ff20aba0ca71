import type { Change } from '../../../domain/changes/change.ts';
import { CODE_LIFETIME_SECONDS } from '../../../domain/oauth/grant.ts';
import { sealedBytes, table, text } from './columns.ts';

type SubjectKey = { readonly id: string; readonly secret: Buffer };

/** Id of the only key of a tenant. */
export const FINGERPRINTS = 'fingerprints';

export const SUBJECT_KEYS = table<SubjectKey, keyof SubjectKey>('subject_keys', { id: text(), secret: sealedBytes }, {});

/** Columns of `issued_subjects` besides the tenant. */
export const IDENTIFIED = ['fingerprint', 'session_id', 'batch_id', 'credential_configuration_id', 'expires_at', 'grant_id'];

/** Lifetime of an authorization code: a grant was authorized at most this long before it was redeemed. */
const CODE_LIFETIME_MS = CODE_LIFETIME_SECONDS * 1_000;

/**
 * SQL condition: the revocation `r` came after the grant `g` was authorized. Rows of earlier releases have no number; their times decide.
 */
export const REVOKED_SINCE_GRANT = `case
  when r.number is null
    then g.revocations_before is null and r.revoked_at >= coalesce(g.consumed_at, 0) - ${CODE_LIFETIME_MS}
  else r.number > coalesce(g.revocations_before, 0) end`;

/** Values of the columns `IDENTIFIED`, and the time of authorization; undefined for a change without `identifies`. */
export function identifiedBy({ identifies }: Change) {
  if (identifies === undefined) return undefined;
  const { fingerprint, batch, endsAt, grantId, authorizedAt } = identifies;
  const { sessionId, id, credentialConfigurationId } = batch;
  const columns = [fingerprint, sessionId, id, credentialConfigurationId, endsAt?.getTime() ?? null] as const;
  return [...columns, grantId ?? null, authorizedAt.getTime()] as const;
}
