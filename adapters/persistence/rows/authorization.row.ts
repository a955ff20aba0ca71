import { defineEntity, p } from '@mikro-orm/core';
import { tenantFilter, time } from './row-parts.ts';

/** A run from an authorization request to a code. */
export const AuthorizationRow = defineEntity({
  name: 'AuthorizationRow',
  tableName: 'authorizations',
  properties: {
    tenantId: p.string().primary(),
    id: p.string().primary(),
    version: p.integer(),
    /** Sealed: who asks for what, and where it stands. */
    document: p.text(),
    expiresAt: time(),
  },
  indexes: [{ name: 'authorizations_by_expiry', properties: ['expiresAt'], type: 'brin' }],
  filters: tenantFilter,
});

/** Credentials that a backend promised for later. */
export const DeferredRow = defineEntity({
  name: 'DeferredRow',
  tableName: 'deferred_transactions',
  properties: {
    tenantId: p.string().primary(),
    id: p.string().primary(),
    sessionId: p.string(),
    publicId: p.string(),
    grantId: p.string().nullable(),
    credentialConfigurationId: p.string(),
    /** JSON array of public keys. */
    holderKeys: p.text(),
    status: p.string(),
    intervalSeconds: p.integer(),
    /** JSON array, sealed; null unless they wait to be fetched. */
    credentials: p.text().nullable(),
    batchId: p.string().nullable(),
    /** Sealed: what a backend says of the person it was asked about. */
    errorMessage: p.text().nullable(),
    /** JSON array, sealed: entries of wallet providers' lists that the credentials are going to follow. */
    walletStatuses: p.text().nullable(),
    createdAt: time(),
    updatedAt: time(),
    expiresAt: time(),
  },
  // Open transactions have a partial index by expiry besides, see the migration `due_rows`.
  indexes: [{ name: 'deferred_by_session', properties: ['tenantId', 'sessionId'] }],
  filters: tenantFilter,
});

/** Sessions of users whom a foreign authorization server knows. */
export const SessionSubjectRow = defineEntity({
  name: 'SessionSubjectRow',
  tableName: 'session_subjects',
  properties: {
    tenantId: p.string().primary(),
    /** Keyed hash of issuer and subject. */
    subjectHash: p.string().primary(),
    sessionId: p.string().primary(),
  },
  indexes: [{ name: 'session_subjects_by_session', properties: ['tenantId', 'sessionId'] }],
  filters: tenantFilter,
});
