import type { Cipher } from '../../../application/ports/cipher.ts';
import type { AskedSession, SessionStanding, TenantState } from '../../../application/ports/store.ts';
import { type AskedAuthorization, askedBy, withoutRequest } from '../../../domain/oauth/asked-authorization.ts';
import type { Grant, NewGrant } from '../../../domain/oauth/grant.ts';
import type { KeptAnswer } from '../../../domain/sessions/kept-answer.ts';
import type { Session, SessionRequest } from '../../../domain/sessions/session.ts';
import type { Profile } from '../../../domain/shared/finding.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import type { IssuedBatch, StatusList } from '../../../domain/status-lists/status-list.ts';
import type { StoredRevisions } from '../../../domain/tenants/revisions.ts';
import type { TenantStatus } from '../../../domain/tenants/tenant.ts';
import type { DatedRelease } from '../../../domain/trust-lists/freshness.ts';
import type { Field, Row } from '../statement.ts';
import { flag, json, named, number, optional, sealed, sealedBytes, table, text, time } from './columns.ts';

type OwnSession = Omit<Session, 'tenantId'>;

export const SESSIONS = table<OwnSession, keyof OwnSession>(
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

/** What is hidden is an issuance of a kind of its own, which no list asks for. */
export const HIDDEN = 'renewal';

export function readSession(cipher: Cipher, row: Row): Session {
  const session = { tenantId: row['tenant_id'] as TenantId, ...SESSIONS.read(cipher, row) };
  return row['kind'] === HIDDEN ? { ...session, kind: 'issuance', isHidden: true } : session;
}

/** @param row without the request, which is known. @returns undefined where it has none any more. */
export function readSeen(cipher: Cipher, row: Row, request: SessionRequest): AskedSession | undefined {
  if (!row['has_request']) return undefined;
  return { session: { ...readSession(cipher, row), request }, asked: askedIn(cipher, row) };
}

export function readStanding(row: Row): SessionStanding {
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
    credentialConfigurationIds: named('configuration_ids', json()),
    expiresAt: time,
    server: text(),
    authorization: named('document', optional(sealed(json()))),
  },
  {
    attempts: number,
    consumedAt: optional(time),
    holder: optional(json()),
    generation: number,
    revokedAt: optional(time),
  },
);

/** @param row of a session, with the columns of one of its grants; nothing is left to show of one that was anonymised. */
export function readAsked(cipher: Cipher, row: Row): AskedAuthorization | undefined {
  return row['request'] === null ? undefined : askedIn(cipher, row);
}

function askedIn(cipher: Cipher, row: Row): AskedAuthorization | undefined {
  const { grant_id: id } = row;
  if (typeof id !== 'string') return undefined;
  const place = { cipher, tenantId: row['tenant_id'] as string, id };
  return askedBy({
    authorization: GRANTS.readField('authorization', row['grant_document'], place),
    consumedAt: GRANTS.readField('consumedAt', row['grant_consumed_at'], place),
    holder: GRANTS.readField('holder', row['grant_holder'], place),
  });
}

/** The sealed authorization of a grant without what its session alone was about; undefined where there is nothing to take. */
export function withoutRequestOf(cipher: Cipher, row: Row): Field | undefined {
  const place = { cipher, tenantId: row['tenant_id'] as string, id: row['id'] as string };
  const authorization = GRANTS.readField('authorization', row['document'], place);
  const { queries, code, authorizedAtMs } = authorization ?? {};
  if (authorization === null || (queries ?? code ?? authorizedAtMs) === undefined) return undefined;
  return GRANTS.field('authorization', withoutRequest(authorization), place);
}

export const KEPT_ANSWERS = table<KeptAnswer, keyof KeptAnswer>('kept_answers', { id: text(), said: sealed(json()), expiresAt: time }, {});

/** How one that is over makes room; the time follows. */
export const KEPT_AGAIN = `on conflict (tenant_id, id) do update set said = excluded.said, expires_at = excluded.expires_at
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

type OwnStatusList = Omit<StatusList, 'token' | 'tokenExpiresAt'>;

export const STATUS_LISTS = table<OwnStatusList, keyof OwnStatusList>(
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

/** Text in SQLite, read already by the driver for PostgreSQL. */
export function readRevisions(value: unknown): StoredRevisions {
  return (typeof value === 'string' ? JSON.parse(value) : value) as StoredRevisions;
}

/** Rows with the tenant's state each; one without a batch when nothing was issued. */
export function readIssued(cipher: Cipher, rows: readonly Row[]) {
  const [first] = rows;
  if (first === undefined) return undefined;
  const ids = first['configuration_ids'] as string | null;
  return {
    tenant: readTenantState(first),
    configurationIds: ids === null ? undefined : (JSON.parse(ids) as string[]),
    batches: rows.filter((row) => row['id'] !== null).map((row) => ISSUED_BATCHES.read(cipher, row)),
  };
}

/** What `FIND_TRUST_LIST` selects. */
export function readPublication(row: Row): { readonly jwt: string; readonly nextUpdate: Date } {
  return { jwt: row['jwt'] as string, nextUpdate: new Date(Number(row['next_update'])) };
}

export function readRelease(row: Row | undefined): DatedRelease | undefined {
  if (row === undefined) return undefined;
  return {
    sequenceNumber: Number(row['sequence_number']),
    contentHash: String(row['content_hash']),
    seenAt: new Date(Number(row['seen_at'])),
  };
}
