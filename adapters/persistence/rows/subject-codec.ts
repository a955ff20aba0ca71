import type { Change } from '../../../domain/changes/change.ts';
import { sealedBytes, table, text } from './columns.ts';

type SubjectKey = { readonly id: string; readonly secret: Buffer };

/** The id of a tenant's one key. */
export const FINGERPRINTS = 'fingerprints';

export const SUBJECT_KEYS = table<SubjectKey, keyof SubjectKey>(
  'subject_keys',
  { id: text(), secret: sealedBytes },
  {},
);

/** Columns of `issued_subjects` besides the tenant. */
export const IDENTIFIED = [
  'fingerprint',
  'session_id',
  'batch_id',
  'credential_configuration_id',
  'expires_at',
  'grant_id',
];

/** Values of these columns, and after them the time of authorization; undefined for a change without `identifies`. */
export function identifiedBy({ identifies }: Change) {
  if (identifies === undefined) return undefined;
  const { fingerprint, batch, endsAt, grantId, authorizedAt } = identifies;
  const { sessionId, id, credentialConfigurationId } = batch;
  const columns = [fingerprint, sessionId, id, credentialConfigurationId, endsAt?.getTime() ?? null] as const;
  return [...columns, grantId ?? null, authorizedAt.getTime()] as const;
}
