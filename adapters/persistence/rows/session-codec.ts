import type { Cipher } from '../../../application/ports/cipher.ts';
import type { SessionState, SessionWithAuthorization, TenantState } from '../../../application/ports/store.ts';
import { type AuthorizationSummary, authorizationSummary, withoutRequestData } from '../../../domain/oauth/authorization-summary.ts';
import type { Grant, NewGrant } from '../../../domain/oauth/grant.ts';
import type { IdempotentResponse } from '../../../domain/sessions/idempotent-response.ts';
import type { Session, SessionRequest } from '../../../domain/sessions/session.ts';
import type { Profile } from '../../../domain/shared/finding.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import type { IssuedBatch, StatusList } from '../../../domain/status-lists/status-list.ts';
import type { StoredRevisions } from '../../../domain/tenants/revisions.ts';
import type { TenantStatus } from '../../../domain/tenants/tenant.ts';
import type { DatedListVersion } from '../../../domain/trust-lists/freshness.ts';
import type { Field, Row } from '../statement.ts';
import { flag, json, namedColumn, number, optional, sealed, sealedBytes, table, text, time } from './columns.ts';

type StoredSession = Omit<Session, 'tenantId'>;

export const SESSIONS = table<StoredSession, keyof StoredSession>(
  'sessions',
  {
    id: text(),
    publicId: text(),
    kind: text(),
    status: text(),
    version: number,
    createdAt: time,
    updatedAt: time,
    expiresAt: time,
    configurationIds: json(),
    useDcApi: flag,
    request: optional(sealed(json())),
    outcome: optional(sealed(json())),
    issuedMask: number,
    claimedAt: optional(time),
  },
  {},
);

/** Kind of a hidden issuance session, which no list selects. */
export const HIDDEN = 'renewal';

export function readSession(cipher: Cipher, row: Row): Session {
  const session = { tenantId: row['tenant_id'] as TenantId, ...SESSIONS.read(cipher, row) };
  return row['kind'] === HIDDEN ? { ...session, kind: 'issuance', isHidden: true } : session;
}

/** @param row without the request, which is known. @returns undefined if the session has no request any more. */
export function readSeen(cipher: Cipher, row: Row, request: SessionRequest): SessionWithAuthorization | undefined {
  if (!row['has_request']) return undefined;
  return { session: { ...readSession(cipher, row), request }, authorization: askedIn(cipher, row) };
}

export function readStanding(row: Row): SessionState {
  return {
    status: row['status'] as Session['status'],
    version: Number(row['version']),
    updatedAt: new Date(Number(row['updated_at'])),
    expiresAt: new Date(Number(row['expires_at'])),
    claimedAt: row['claimed_at'] === null ? null : new Date(Number(row['claimed_at'])),
  };
}

export const GRANTS = table<Grant, keyof NewGrant>(
  'grants',
  {
    id: text(),
    kind: text(),
    sessionId: text(),
    publicId: text(),
    codeHash: text(),
    txCodeHash: optional(text()),
    credentialConfigurationIds: namedColumn('configuration_ids', json()),
    expiresAt: time,
    server: text(),
    authorization: namedColumn('document', optional(sealed(json()))),
  },
  { attempts: number, consumedAt: optional(time), holder: optional(json()), generation: number, revokedAt: optional(time) },
);

/** @param row session with the columns of one of its grants; an anonymized session has nothing to show. */
export function readAsked(cipher: Cipher, row: Row): AuthorizationSummary | undefined {
  return row['request'] === null ? undefined : askedIn(cipher, row);
}

function askedIn(cipher: Cipher, row: Row): AuthorizationSummary | undefined {
  const { grant_id: id } = row;
  if (typeof id !== 'string') return undefined;
  const location = { cipher, tenantId: row['tenant_id'] as string, id };
  return authorizationSummary({
    authorization: GRANTS.readField('authorization', row['grant_document'], location),
    consumedAt: GRANTS.readField('consumedAt', row['grant_consumed_at'], location),
    holder: GRANTS.readField('holder', row['grant_holder'], location),
  });
}

/** Sealed authorization of a grant without the data of its session; undefined if there is nothing to remove. */
export function withoutRequestOf(cipher: Cipher, row: Row): Field | undefined {
  const location = { cipher, tenantId: row['tenant_id'] as string, id: row['id'] as string };
  const authorization = GRANTS.readField('authorization', row['document'], location);
  const { queries, code, authorizedAtMs } = authorization ?? {};
  if (authorization === null || (queries ?? code ?? authorizedAtMs) === undefined) return undefined;
  return GRANTS.field('authorization', withoutRequestData(authorization), location);
}

export const STORED_RESPONSES = table<IdempotentResponse, keyof IdempotentResponse>(
  'kept_answers',
  { id: text(), said: sealed(json()), expiresAt: time },
  {},
);

/** Replaces an expired response; the time follows. */
export const REPLACE_EXPIRED_RESPONSE = `on conflict (tenant_id, id) do update set said = excluded.said, expires_at = excluded.expires_at
  where kept_answers.expires_at`;

export const ISSUED_BATCHES = table<IssuedBatch, keyof IssuedBatch>(
  'issued_batches',
  {
    sessionId: text(),
    id: text(),
    credentialConfigurationId: text(),
    count: number,
    statusListId: optional(text()),
    firstCounter: optional(number),
    issuedAt: time,
  },
  {},
);

type StoredStatusList = Omit<StatusList, 'token' | 'tokenExpiresAt'>;

export const STATUS_LISTS = table<StoredStatusList, keyof StoredStatusList>(
  'status_lists',
  {
    id: text(),
    credentialConfigurationId: optional(text()),
    keyChainId: optional(text()),
    bits: number as never,
    capacity: number,
    ttlSeconds: number,
    immediateUpdate: flag,
    enableAggregation: flag,
    secret: sealedBytes,
    usedEntries: number,
    version: number,
    createdAt: time,
  },
  {},
);

export function readStatusList(cipher: Cipher, row: Row): StatusList {
  const [jwt, expiresAt] = [row['token'], row['token_expires_at']];
  return {
    ...STATUS_LISTS.read(cipher, row),
    token:
      typeof jwt !== 'string'
        ? null
        : {
            jwt,
            version: Number(row['token_version']),
            issuedAt: new Date(Number(row['token_issued_at'])),
            expiresAt: new Date(Number(expiresAt)),
          },
    tokenExpiresAt: expiresAt === null ? null : new Date(Number(expiresAt)),
  };
}

export function readStatusListVersion(row: Row) {
  const { id, version, key_chain_id } = row as { id: string; version: unknown; key_chain_id: string | null };
  return { id, version: Number(version), term: Number(row['term']), keyChainId: key_chain_id };
}

/** Reads `TENANT_STATE`, which every combined read carries. */
export function readTenantState(row: Row): TenantState {
  return {
    id: row['state_id'] as TenantId,
    status: row['state_status'] as TenantStatus,
    revision: Number(row['state_revision']),
    revisions: readRevisions(row['state_revisions']),
    ...(row['state_ends_at'] !== null && { endsAt: new Date(Number(row['state_ends_at'])) }),
    profile: row['state_profile'] as Profile | null,
  };
}

/** SQLite returns text; the driver for PostgreSQL has parsed it already. */
export function readRevisions(value: unknown): StoredRevisions {
  return (typeof value === 'string' ? JSON.parse(value) : value) as StoredRevisions;
}

/** @param rows each with the tenant's state; one row without a batch if nothing was issued. */
export function readIssued(cipher: Cipher, rows: readonly Row[]) {
  const [firstRow] = rows;
  if (firstRow === undefined) return undefined;
  const ids = firstRow['configuration_ids'] as string | null;
  return {
    tenant: readTenantState(firstRow),
    configurationIds: ids === null ? undefined : (JSON.parse(ids) as string[]),
    batches: rows.filter((row) => row['id'] !== null).map((row) => ISSUED_BATCHES.read(cipher, row)),
  };
}

/** Reads a row of `FIND_TRUST_LIST`. */
export function readPublication(row: Row): { readonly jwt: string; readonly nextUpdate: Date } {
  return { jwt: row['jwt'] as string, nextUpdate: new Date(Number(row['next_update'])) };
}

export function readRelease(row: Row | undefined): DatedListVersion | undefined {
  if (row === undefined) return undefined;
  return {
    sequenceNumber: Number(row['sequence_number']),
    contentHash: String(row['content_hash']),
    seenAt: new Date(Number(row['seen_at'])),
  };
}
