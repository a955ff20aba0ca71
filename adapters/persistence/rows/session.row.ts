import { defineEntity, p } from '@mikro-orm/core';
import { tenantFilter, time } from './row-parts.ts';

export const SessionRow = defineEntity({
  name: 'SessionRow',
  tableName: 'sessions',
  properties: {
    tenantId: p.string().primary(),
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
  uniques: [{ name: 'sessions_public_id', properties: ['tenantId', 'publicId'] }],
  // The status is in no index, so that its changes rewrite none (heap-only updates in PostgreSQL). A tree by expiry costs an insert
  // a few microseconds. A block range index costs less, but once the clean-up has made room in the middle, new rows are on
  // all pages, and each run of the job would read the table.
  indexes: [
    { name: 'sessions_by_creation', properties: ['tenantId', 'createdAt', 'id'] },
    { name: 'sessions_by_expiry', properties: ['expiresAt'] },
  ],
  filters: tenantFilter,
});

export const GrantRow = defineEntity({
  name: 'GrantRow',
  tableName: 'grants',
  properties: {
    tenantId: p.string().primary(),
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
  },
  uniques: [{ name: 'grants_code', properties: ['codeHash', 'tenantId'] }],
  // Grants live for weeks beside their sessions, and go with them one by one.
  indexes: [
    { name: 'grants_by_expiry', properties: ['expiresAt'] },
    { name: 'grants_by_session', properties: ['tenantId', 'sessionId'] },
  ],
  filters: tenantFilter,
});

/** What a client was answered that may ask again, by the hash of its name, the address and its `Idempotency-Key`. */
export const KeptAnswerRow = defineEntity({
  name: 'KeptAnswerRow',
  tableName: 'kept_answers',
  properties: {
    tenantId: p.string().primary(),
    id: p.string().primary(),
    /** Sealed: the answer, and the hash of what it answered. */
    said: p.text(),
    expiresAt: time(),
  },
  indexes: [{ name: 'kept_answers_by_expiry', properties: ['expiresAt'], type: 'brin' }],
  filters: tenantFilter,
});

/** Deliveries that are under way: when somebody else makes them, unless it is said before what came of them. */
export const PendingDeliveryRow = defineEntity({
  name: 'PendingDeliveryRow',
  tableName: 'pending_deliveries',
  properties: {
    tenantId: p.string().primary(),
    sessionId: p.string().primary(),
    id: p.string().primary(),
    dueAt: time(),
  },
  indexes: [{ name: 'pending_deliveries_due', properties: ['dueAt'] }],
  filters: tenantFilter,
});

/** Bytes of the open sessions of a tenant by the time at which they expire, see `open-session-bytes.ts`. */
export const OpenSessionBytesRow = defineEntity({
  name: 'OpenSessionBytesRow',
  tableName: 'open_session_bytes',
  properties: {
    tenantId: p.string().primary(),
    expiresAt: p.bigint('number').primary().autoincrement(false),
    /** Below zero for a moment where a session ended before the process that created it recorded its bytes. */
    bytes: p.bigint('number'),
  },
  indexes: [{ name: 'open_session_bytes_by_expiry', properties: ['expiresAt'] }],
  filters: tenantFilter,
});

/** What may be used once (DPoP `jti`, `c_nonce`), remembered until it would have expired anyway. */
export const UsedValueRow = defineEntity({
  name: 'UsedValueRow',
  tableName: 'used_values',
  properties: {
    tenantId: p.string().primary(),
    kind: p.string().primary(),
    hash: p.string().primary(),
    expiresAt: time(),
  },
  indexes: [{ name: 'used_values_by_expiry', properties: ['expiresAt'], type: 'brin' }],
  filters: tenantFilter,
});

/**
 * The event log: one row per change of a session's status. `position` is given by the database when a row is written: the
 * id of the transaction in PostgreSQL, a number that never comes again in SQLite, where it is the row's own id.
 */
export const SessionEventRow = defineEntity({
  name: 'SessionEventRow',
  tableName: 'session_events',
  properties: {
    tenantId: p.string().primary(),
    sessionId: p.string().primary(),
    version: p.integer().primary(),
    status: p.string(),
    at: time(),
    position: p.bigint('number'),
  },
  // One more entry at the end of a tree costs a commit 2 µs. A block range index costs less, but once the clean-up has
  // made room in the middle, new rows stand everywhere and every look would walk the table.
  indexes: [{ name: 'session_events_by_position', properties: ['position'] }],
  filters: tenantFilter,
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
export const IssuedBatchRow = defineEntity({
  name: 'IssuedBatchRow',
  tableName: 'issued_batches',
  properties: {
    tenantId: p.string().primary(),
    sessionId: p.string().primary(),
    id: p.string().primary(),
    credentialConfigurationId: p.string(),
    count: p.integer(),
    statusListId: p.string().nullable(),
    firstCounter: p.integer().nullable(),
    issuedAt: time(),
  },
  filters: tenantFilter,
});
