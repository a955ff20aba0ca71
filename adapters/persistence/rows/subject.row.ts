import { defineEntity, p } from '@mikro-orm/core';
import { tenantFilter, time } from './row-parts.ts';

/** The key of a tenant's fingerprints of persons. Its one row has the id `fingerprints`. */
export const SubjectKeyRow = defineEntity({
  name: 'SubjectKeyRow',
  tableName: 'subject_keys',
  properties: {
    tenantId: p.string().primary(),
    id: p.string().primary(),
    /** Sealed. */
    secret: p.text(),
  },
  filters: tenantFilter,
});

/** Which batch of credentials is about whom: one row for each batch of a configuration that identifies its holders. */
export const IssuedSubjectRow = defineEntity({
  name: 'IssuedSubjectRow',
  tableName: 'issued_subjects',
  properties: {
    tenantId: p.string().primary(),
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
  indexes: [{ name: 'issued_subjects_by_expiry', properties: ['expiresAt'] }],
  filters: tenantFilter,
});

/** What is to be revoked since its person is not whom it says any more. */
export const SubjectRevocationRow = defineEntity({
  name: 'SubjectRevocationRow',
  tableName: 'subject_revocations',
  properties: {
    tenantId: p.string().primary(),
    fingerprint: p.string().primary(),
    sessionId: p.string().primary(),
    credentialConfigurationId: p.string().primary(),
    dueAt: time(),
  },
  indexes: [{ name: 'subject_revocations_due', properties: ['dueAt'] }],
  filters: tenantFilter,
});

/** When credentials of a person were revoked: what was put off before that is not issued to the person afterwards. */
export const RevokedSubjectRow = defineEntity({
  name: 'RevokedSubjectRow',
  tableName: 'revoked_subjects',
  properties: {
    tenantId: p.string().primary(),
    fingerprint: p.string().primary(),
    /** Empty for all configurations. */
    credentialConfigurationId: p.string().primary(),
    revokedAt: time(),
  },
  filters: tenantFilter,
});
