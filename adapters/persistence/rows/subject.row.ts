import { p } from '@mikro-orm/core';
import { index, tenantTable, time } from './row-parts.ts';

/** The key of a tenant's fingerprints of persons. Its one row has the id `fingerprints`. */
export const SubjectKeyRow = tenantTable('SubjectKeyRow', 'subject_keys', [], {
  id: p.string().primary(),
  /** Sealed. */
  secret: p.text(),
});

/** Which batch of credentials is about whom: one row for each batch of a configuration that identifies its holders. */
export const IssuedSubjectRow = tenantTable(
  'IssuedSubjectRow',
  'issued_subjects',
  [
    index('issued_subjects_by_expiry', 'expiresAt'),
    // A revocation of one person asks whether a grant or a session serves another one.
    index('issued_subjects_by_session', 'tenantId', 'sessionId', 'grantId'),
  ],
  {
    /** Keyed hash of the claims that identify the person. */
    fingerprint: p.string().primary(),
    sessionId: p.string().primary(),
    batchId: p.string().primary(),
    credentialConfigurationId: p.string(),
    /** Of the credentials; what has ended need not be revoked. */
    expiresAt: time().nullable(),
    /** Grant of the access token. Null for tokens of external authorization servers and in rows of earlier releases. */
    grantId: p.string().nullable(),
  },
);

/** What is to be revoked since its person is not whom it says any more. */
export const SubjectRevocationRow = tenantTable(
  'SubjectRevocationRow',
  'subject_revocations',
  [index('subject_revocations_due', 'dueAt')],
  { fingerprint: p.string().primary(), sessionId: p.string().primary(), credentialConfigurationId: p.string().primary(), dueAt: time() },
);

/** When credentials of a person were revoked: what was put off before that is not issued to the person afterwards. */
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
