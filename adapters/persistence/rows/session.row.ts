import { defineEntity, p } from '@mikro-orm/core';
import { blockRange, index, tenantTable, time, unique } from './row-parts.ts';

// The status is in no index, so that its changes rewrite none (heap-only updates in PostgreSQL). A tree by expiry costs an insert
// a few microseconds. A block range index costs less, but once the clean-up has made room in the middle, new rows are on
// all pages, and each run of the job would read the table.
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
    /** Bit i stands for the i-th configuration: its credentials were revoked, so no more of them are issued. */
    revokedMask: p.integer(),
    /** How often something was issued; bounded. */
    issuedCount: p.integer(),
    claimedAt: time().nullable(),
  },
);

// Grants live for weeks beside their sessions, and go with them one by one.
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
    /** What an authorization code was handed out for. Sealed; null for a pre-authorized code. */
    document: p.text().nullable(),
    /** JSON: who redeemed it. */
    holder: p.text().nullable(),
    /** Refresh tokens used. */
    generation: p.integer().default(0),
    revokedAt: time().nullable(),
    /**
     * Number of the tenant's last revocation by person when the grant was recorded. Null in rows of earlier releases: each numbered
     * revocation came later.
     */
    revocationsBefore: p.bigint('number').nullable(),
  },
);

/** What a client was answered that may ask again, by the hash of its name, the address and its `Idempotency-Key`. */
export const KeptAnswerRow = tenantTable('KeptAnswerRow', 'kept_answers', [blockRange('kept_answers_by_expiry', 'expiresAt')], {
  id: p.string().primary(),
  /** Sealed: the answer, and the hash of what it answered. */
  said: p.text(),
  expiresAt: time(),
});

/** Deliveries that are under way: when somebody else makes them, unless it is said before what came of them. */
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
    /** Below zero for a moment where a session ended before the process that created it recorded its bytes. */
    bytes: p.bigint('number'),
  },
);

/** What may be used once (DPoP `jti`, `c_nonce`), remembered until it would have expired anyway. */
export const UsedValueRow = tenantTable('UsedValueRow', 'used_values', [blockRange('used_values_by_expiry', 'expiresAt')], {
  kind: p.string().primary(),
  hash: p.string().primary(),
  expiresAt: time(),
});

/**
 * The event log: one row per change of a session's status. `position` is given by the database when a row is written: the
 * id of the transaction in PostgreSQL, a number that never comes again in SQLite, where it is the row's own id.
 * One more entry at the end of a tree costs a commit 2 µs. A block range index costs less, but once the clean-up has
 * made room in the middle, new rows stand everywhere and every look would walk the table.
 */
export const SessionEventRow = tenantTable('SessionEventRow', 'session_events', [index('session_events_by_position', 'position')], {
  sessionId: p.string().primary(),
  version: p.integer().primary(),
  status: p.string(),
  at: time(),
  position: p.bigint('number'),
});

/** Up to where an event log was handed on to other systems. */
export const EventCursorRow = defineEntity({
  name: 'EventCursorRow',
  tableName: 'event_cursors',
  properties: {
    name: p.string().primary(),
    position: p.bigint('number'),
    tenant: p.string(),
    session: p.string(),
    version: p.integer(),
  },
});

/** One row per batch of credentials, its status indices as a run of the list's counter. */
export const IssuedBatchRow = tenantTable('IssuedBatchRow', 'issued_batches', [], {
  sessionId: p.string().primary(),
  id: p.string().primary(),
  credentialConfigurationId: p.string(),
  count: p.integer(),
  statusListId: p.string().nullable(),
  firstCounter: p.integer().nullable(),
  issuedAt: time(),
});
