import { p } from '@mikro-orm/core';
import { index, tenantTable, time } from './row-parts.ts';

/** Keys with which tenants compute the fingerprints of persons. A tenant has at most one row, with the id `fingerprints`. */
export const SubjectKeyRow = tenantTable('SubjectKeyRow', 'subject_keys', [], {
  id: p.string().primary(),
  /** The key, sealed by `Cipher`. */
  secret: p.text(),
});

/** Links batches of credentials to persons: one row per batch of a configuration that identifies its holders. */
export const IssuedSubjectRow = tenantTable(
  'IssuedSubjectRow',
  'issued_subjects',
  [
    index('issued_subjects_by_expiry', 'expiresAt'),
    // A revocation for one person checks if the grant or the session also serves another person.
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

/** Times of revocations by person: a credential that was deferred before a revocation is not issued to the person after it. */
export const RevokedSubjectRow = tenantTable(
  'RevokedSubjectRow',
  'revoked_subjects',
  [index('revoked_subjects_by_number', 'tenantId', 'number')],
  {
    fingerprint: p.string().primary(),
    /** Empty if the revocation concerns all configurations. */
    credentialConfigurationId: p.string().primary(),
    revokedAt: time(),
    /** Sequence number among the revocations of the tenant. Null in rows of earlier releases. */
    number: p.bigint('number').nullable(),
  },
);
