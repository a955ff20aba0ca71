import { defineEntity, p } from '@mikro-orm/core';
import { blockRange, index, tenantTable, time, unique } from './row-parts.ts';

// The status is in no index, so that its changes rewrite none (heap-only updates in PostgreSQL). A B-tree by expiry costs an insert a few
// microseconds. A block range index costs less, but once the clean-up has freed space in the middle, new rows are on all pages, and each
// run of the job would read the table.
export const SessionRow = tenantTable(
  'SessionRow',
  'sessions',
  [
    unique('sessions_public_id', 'tenantId', 'publicId'),
    index('sessions_by_creation', 'tenantId', 'createdAt', 'id'),
    index('sessions_by_expiry', 'expiresAt'),
  ],
  {
    id: p.string().primary(),
    publicId: p.string(),
    kind: p.string(),
    status: p.string(),
    version: p.integer(),
    createdAt: time(),
    updatedAt: time(),
    expiresAt: time(),
    /** JSON array of configuration ids. */
    configurationIds: p.text(),
    useDcApi: p.boolean(),
    /** Sealed; null after anonymisation. */
    request: p.text().nullable(),
    /** Sealed. */
    outcome: p.text().nullable(),
    issuedMask: p.integer(),
    /** Bit i: the credentials of the i-th configuration were revoked, so no more of them are issued. */
    revokedMask: p.integer(),
    /** Number of issuances; bounded. */
    issuedCount: p.integer(),
    claimedAt: time().nullable(),
  },
);

// Grants live for weeks beside their sessions, and are removed with them one by one.
export const GrantRow = tenantTable(
  'GrantRow',
  'grants',
  [
    unique('grants_code', 'codeHash', 'tenantId'),
    index('grants_by_expiry', 'expiresAt'),
    index('grants_by_session', 'tenantId', 'sessionId'),
  ],
  {
    id: p.string().primary(),
    kind: p.string(),
    sessionId: p.string(),
    publicId: p.string(),
    codeHash: p.string(),
    txCodeHash: p.string().nullable(),
    configurationIds: p.text(),
    expiresAt: time(),
    attempts: p.integer(),
    consumedAt: time().nullable(),
    server: p.string().default('built-in'),
    /** Sealed: the authorization of an authorization code; null for a pre-authorized code. */
    document: p.text().nullable(),
    /** JSON: the holder that redeemed it. */
    holder: p.text().nullable(),
    /** Number of refresh tokens used. */
    generation: p.integer().default(0),
    revokedAt: time().nullable(),
    /**
     * Number of the tenant's last revocation by person when the grant was recorded. Null in rows of earlier releases: each numbered
     * revocation came later.
     */
    revocationsBefore: p.bigint('number').nullable(),
  },
);

/** Stored responses for clients that retry, by the hash of the client, the address and the `Idempotency-Key`. */
export const KeptAnswerRow = tenantTable('KeptAnswerRow', 'kept_answers', [blockRange('kept_answers_by_expiry', 'expiresAt')], {
  id: p.string().primary(),
  /** Sealed: the response, and the hash of its request. */
  said: p.text(),
  expiresAt: time(),
});

/** Running deliveries: another process retries them at `dueAt`, unless their outcome was recorded before. */
export const PendingDeliveryRow = tenantTable('PendingDeliveryRow', 'pending_deliveries', [index('pending_deliveries_due', 'dueAt')], {
  sessionId: p.string().primary(),
  id: p.string().primary(),
  dueAt: time(),
});

/** Bytes of the open sessions of a tenant by the time at which they expire, see `open-session-bytes.ts`. */
export const OpenSessionBytesRow = tenantTable(
  'OpenSessionBytesRow',
  'open_session_bytes',
  [index('open_session_bytes_by_expiry', 'expiresAt')],
  {
    expiresAt: p.bigint('number').primary().autoincrement(false),
    /** Negative for a moment if a session ended before the process that created it recorded its bytes. */
    bytes: p.bigint('number'),
  },
);

/** Single-use values (DPoP `jti`, `c_nonce`), stored until they would have expired anyway. */
export const UsedValueRow = tenantTable('UsedValueRow', 'used_values', [blockRange('used_values_by_expiry', 'expiresAt')], {
  kind: p.string().primary(),
  hash: p.string().primary(),
  expiresAt: time(),
});

/**
 * Event log: one row per change of a session's status. The database assigns `position` when a row is written: the id of the transaction in
 * PostgreSQL, the autoincremented id of the row in SQLite. An insert at the end of a B-tree costs a commit 2 µs. A block range index costs
 * less, but once the clean-up has freed space in the middle, new rows are everywhere, and every read would scan the table.
 */
export const SessionEventRow = tenantTable('SessionEventRow', 'session_events', [index('session_events_by_position', 'position')], {
  sessionId: p.string().primary(),
  version: p.integer().primary(),
  status: p.string(),
  at: time(),
  position: p.bigint('number'),
});

/** Position up to which an event log was published to other systems. */
export const EventCursorRow = defineEntity({
  name: 'EventCursorRow',
  tableName: 'event_cursors',
  properties: { name: p.string().primary(), position: p.bigint('number'), tenant: p.string(), session: p.string(), version: p.integer() },
});

/** Batch of credentials; its status indices are a run of the list's counter. */
export const IssuedBatchRow = tenantTable('IssuedBatchRow', 'issued_batches', [], {
  sessionId: p.string().primary(),
  id: p.string().primary(),
  credentialConfigurationId: p.string(),
  count: p.integer(),
  statusListId: p.string().nullable(),
  firstCounter: p.integer().nullable(),
  issuedAt: time(),
});
