import { p } from '@mikro-orm/core';
import { index, tenantTable, time } from './row-parts.ts';

/** Key for a tenant's fingerprints of persons. Its only row has the id `fingerprints`. */
export const SubjectKeyRow = tenantTable('SubjectKeyRow', 'subject_keys', [], {
  id: p.string().primary(),
  /** Sealed. */
  secret: p.text(),
});

/** Links batches of credentials to persons: one row per batch of a configuration that identifies its holders. */
export const IssuedSubjectRow = tenantTable(
  'IssuedSubjectRow',
  'issued_subjects',
  [
    index('issued_subjects_by_expiry', 'expiresAt'),
    // A revocation of one person checks if a grant or a session serves another one.
    index('issued_subjects_by_session', 'tenantId', 'sessionId', 'grantId'),
  ],
  {
    /** Keyed hash of the claims that identify the person. */
    fingerprint: p.string().primary(),
    sessionId: p.string().primary(),
    batchId: p.string().primary(),
    credentialConfigurationId: p.string(),
    /** Expiry of the credentials; expired ones need not be revoked. */
    expiresAt: time().nullable(),
    /** Grant of the access token. Null for tokens of external authorization servers and in rows of earlier releases. */
    grantId: p.string().nullable(),
  },
);

/** Pending revocations of a person's credentials. */
export const SubjectRevocationRow = tenantTable(
  'SubjectRevocationRow',
  'subject_revocations',
  [index('subject_revocations_due', 'dueAt')],
  { fingerprint: p.string().primary(), sessionId: p.string().primary(), credentialConfigurationId: p.string().primary(), dueAt: time() },
);

/** Times of revocations by person: a credential that was deferred before one is not issued to the person afterwards. */
export const RevokedSubjectRow = tenantTable(
  'RevokedSubjectRow',
  'revoked_subjects',
  [index('revoked_subjects_by_number', 'tenantId', 'number')],
  {
    fingerprint: p.string().primary(),
    /** Empty for all configurations. */
    credentialConfigurationId: p.string().primary(),
    revokedAt: time(),
    /** Counts the revocations of the tenant. Null in rows of earlier releases. */
    number: p.bigint('number').nullable(),
  },
);
