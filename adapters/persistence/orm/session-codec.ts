import type { Cipher } from '../../../application/ports/cipher.ts';
import type { NewGrant, SessionUse, TenantHead } from '../../../application/ports/store.ts';
import type { Grant, GrantedAuthorization, Redeemer } from '../../../domain/oauth/grant.ts';
import type {
  Session,
  SessionKind,
  SessionOutcome,
  SessionRequest,
  SessionStatus,
} from '../../../domain/sessions/session.ts';
import type { PublicId, SessionId, TenantId } from '../../../domain/shared/ids.ts';
import type { IssuedBatch, StatusList } from '../../../domain/status-lists/status-list.ts';
import type { TenantStatus } from '../../../domain/tenants/tenant.ts';
import type { SeenRelease } from '../../../domain/trust-lists/freshness.ts';
import type { Row } from './sql.ts';

const text = (value: unknown) => value as string;
const number = (value: unknown) => Number(value);
const date = (value: unknown) => new Date(Number(value));
const optional = <T>(value: unknown, read: (value: unknown) => T): T | null =>
  value === null || value === undefined ? null : read(value);

/** Columns of a session in the order of `sessionParameters`; nothing has been issued in a new one. */
export const SESSION_COLUMNS =
  'tenant_id, id, public_id, kind, status, version, created_at, updated_at, expires_at, configuration_ids, ' +
  'use_dc_api, request, outcome, issued_mask, claimed_at, issued_count, revoked_mask';

export function sealRequest(cipher: Cipher, session: Session): string | null {
  if (session.request === null) return null;
  return cipher.seal(JSON.stringify(session.request), place('request', session.tenantId, session.id));
}

export function sealOutcome(
  cipher: Cipher,
  tenantId: string,
  id: string,
  outcome: SessionOutcome | null,
): string | null {
  return outcome === null ? null : cipher.seal(JSON.stringify(outcome), place('outcome', tenantId, id));
}

function place(column: string, tenantId: string, id: string): string {
  return `sessions/${column}/${tenantId}/${id}`;
}

export function readSession(cipher: Cipher, row: Row): Session {
  const tenantId = text(row['tenant_id']) as TenantId;
  const id = text(row['id']) as SessionId;
  const open = (column: 'request' | 'outcome') =>
    optional(row[column], (sealed) =>
      JSON.parse(cipher.open(text(sealed), place(column, tenantId, id)).toString('utf8')),
    );
  return {
    tenantId,
    id,
    publicId: text(row['public_id']) as PublicId,
    kind: text(row['kind']) as SessionKind,
    status: text(row['status']) as SessionStatus,
    version: number(row['version']),
    createdAt: date(row['created_at']),
    updatedAt: date(row['updated_at']),
    expiresAt: date(row['expires_at']),
    configurationIds: JSON.parse(text(row['configuration_ids'])) as string[],
    useDcApi: Boolean(row['use_dc_api']),
    request: open('request') as SessionRequest | null,
    outcome: open('outcome') as SessionOutcome | null,
    issuedMask: number(row['issued_mask']),
    claimedAt: optional(row['claimed_at'], date),
  };
}

/** Reads `head_id, head_status, head_revision`, which every combined read carries. */
export function readHead(row: Row): TenantHead {
  return {
    id: text(row['head_id']) as TenantId,
    status: text(row['head_status']) as TenantStatus,
    revision: number(row['head_revision']),
  };
}

/** Columns of a new grant, in the order of `grantParameters`; the rest has one value in every new grant. */
export const GRANT_COLUMNS =
  'tenant_id, id, kind, session_id, public_id, code_hash, tx_code_hash, configuration_ids, expires_at, server, ' +
  'document, attempts, generation';

/** Without the tenant, which the caller puts first. */
export function grantParameters(
  cipher: Cipher,
  tenantId: TenantId,
  grant: NewGrant,
): (string | number | null)[] {
  const { authorization } = grant;
  return [
    grant.id,
    grant.kind,
    grant.sessionId,
    grant.publicId,
    grant.codeHash,
    grant.txCodeHash,
    JSON.stringify(grant.credentialConfigurationIds),
    grant.expiresAt.getTime(),
    grant.server,
    authorization === null
      ? null
      : cipher.seal(JSON.stringify(authorization), grantPlace(tenantId, grant.id)),
  ];
}

function grantPlace(tenantId: string, id: string): string {
  return `grants/document/${tenantId}/${id}`;
}

export function readGrant(cipher: Cipher, row: Row): Grant {
  const id = text(row['id']);
  const place = grantPlace(text(row['tenant_id']), id);
  const authorization = optional(
    row['document'],
    (sealed) => JSON.parse(cipher.open(text(sealed), place).toString('utf8')) as GrantedAuthorization,
  );
  return {
    id,
    kind: text(row['kind']) as Grant['kind'],
    server: text(row['server']) as Grant['server'],
    sessionId: text(row['session_id']) as SessionId,
    publicId: text(row['public_id']) as PublicId,
    codeHash: text(row['code_hash']),
    txCodeHash: optional(row['tx_code_hash'], text),
    credentialConfigurationIds: JSON.parse(text(row['configuration_ids'])) as string[],
    expiresAt: date(row['expires_at']),
    attempts: number(row['attempts']),
    consumedAt: optional(row['consumed_at'], date),
    authorization,
    holder: optional(row['holder'], (json) => JSON.parse(text(json)) as Redeemer),
    generation: number(row['generation']),
    revokedAt: optional(row['revoked_at'], date),
  };
}

export function readBatch(row: Row): IssuedBatch {
  return {
    id: text(row['id']),
    sessionId: text(row['session_id']) as SessionId,
    credentialConfigurationId: text(row['credential_configuration_id']),
    count: number(row['count']),
    statusListId: optional(row['status_list_id'], text),
    firstCounter: optional(row['first_counter'], number),
    issuedAt: date(row['issued_at']),
  };
}

/** Rows that carry the head each; one without a batch when nothing was issued. */
export function readIssued(rows: readonly Row[]) {
  const [first] = rows;
  if (first === undefined) return undefined;
  const ids = optional(first['configuration_ids'], (json) => JSON.parse(text(json)) as string[]);
  return {
    head: readHead(first),
    configurationIds: ids ?? undefined,
    batches: rows.filter((row) => row['id'] !== null).map(readBatch),
  };
}

export function statusSecretPlace(tenantId: string, id: string): string {
  return `status_lists/secret/${tenantId}/${id}`;
}

/** What `FIND_TRUST_LIST` selects. */
export function readPublication(row: Row): { readonly jwt: string; readonly nextUpdate: Date } {
  return { jwt: text(row['jwt']), nextUpdate: new Date(number(row['next_update'])) };
}

export function readStatusListHead(row: Row): { id: string; version: number; keyChainId: string | null } {
  return {
    id: text(row['id']),
    version: number(row['version']),
    keyChainId: optional(row['key_chain_id'], text),
  };
}

export function readStatusList(cipher: Cipher, row: Row): StatusList {
  const id = text(row['id']);
  const jwt = optional(row['token'], text);
  return {
    id,
    credentialConfigurationId: optional(row['credential_configuration_id'], text),
    keyChainId: optional(row['key_chain_id'], text),
    bits: number(row['bits']) as StatusList['bits'],
    capacity: number(row['capacity']),
    ttlSeconds: number(row['ttl_seconds']),
    immediateUpdate: Boolean(row['immediate_update']),
    enableAggregation: Boolean(row['enable_aggregation']),
    secret: cipher.open(text(row['secret']), statusSecretPlace(text(row['tenant_id']), id)),
    usedEntries: number(row['used_entries']),
    version: number(row['version']),
    createdAt: date(row['created_at']),
    token:
      jwt === null
        ? null
        : {
            jwt,
            version: number(row['token_version']),
            issuedAt: date(row['token_issued_at']),
            expiresAt: date(row['token_expires_at']),
          },
  };
}

/** What a row of a session says besides the session itself; it has to have `DEFERRED_COUNT`. */
export function readUse(row: Row): SessionUse {
  return {
    issued: Number(row['issued_count']),
    deferred: Number(row['deferred_count']),
    barred: Number(row['revoked_mask']),
  };
}

export function readRelease(row: Row | undefined): SeenRelease | undefined {
  if (row === undefined) return undefined;
  return { sequenceNumber: Number(row['sequence_number']), contentHash: String(row['content_hash']) };
}
