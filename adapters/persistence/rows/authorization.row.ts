import { p } from '@mikro-orm/core';
import { blockRange, index, tenantTable, time } from './row-parts.ts';

/** Authorization from the authorization request to the code. */
export const AuthorizationRow = tenantTable('AuthorizationRow', 'authorizations', [blockRange('authorizations_by_expiry', 'expiresAt')], {
  id: p.string().primary(),
  version: p.integer(),
  /** Sealed: the request and its progress. */
  document: p.text(),
  expiresAt: time(),
});

/** Credentials that a backend issues later. */
// A partial index by expiry covers open transactions, see the migration `due_rows`.
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
  /** JSON array, sealed; null unless they wait for the wallet. */
  credentials: p.text().nullable(),
  batchId: p.string().nullable(),
  /** Sealed: the backend's message about the person. */
  errorMessage: p.text().nullable(),
  /** JSON array, sealed: entries of wallet providers' lists that the credentials will follow. */
  walletStatuses: p.text().nullable(),
  /** Authorization time of the wallet; null in rows of earlier releases. */
  authorizedAt: time().nullable(),
  createdAt: time(),
  updatedAt: time(),
  expiresAt: time(),
});

/** Sessions of users of an external authorization server. */
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
