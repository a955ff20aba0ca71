import { p } from '@mikro-orm/core';
import { blockRange, index, tenantTable, time } from './row-parts.ts';

/** A run from an authorization request to a code. */
export const AuthorizationRow = tenantTable('AuthorizationRow', 'authorizations', [blockRange('authorizations_by_expiry', 'expiresAt')], {
  id: p.string().primary(),
  version: p.integer(),
  /** Sealed: who asks for what, and where it stands. */
  document: p.text(),
  expiresAt: time(),
});

/** Credentials that a backend promised for later. */
// Open transactions have a partial index by expiry besides, see the migration `due_rows`.
export const DeferredRow = tenantTable('DeferredRow', 'deferred_transactions', [index('deferred_by_session', 'tenantId', 'sessionId')], {
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
  /** When the wallet was authorized; null in rows of earlier releases. */
  authorizedAt: time().nullable(),
  createdAt: time(),
  updatedAt: time(),
  expiresAt: time(),
});

/** Sessions of users whom a foreign authorization server knows. */
export const SessionSubjectRow = tenantTable(
  'SessionSubjectRow',
  'session_subjects',
  [index('session_subjects_by_session', 'tenantId', 'sessionId')],
  {
    /** Keyed hash of issuer and subject. */
    subjectHash: p.string().primary(),
    sessionId: p.string().primary(),
  },
);
