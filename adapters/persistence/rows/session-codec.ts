import type { Cipher } from '../../../application/ports/cipher.ts';
import type { TenantState } from '../../../application/ports/store.ts';
import type { Grant, GrantedAuthorization, NewGrant, Redeemer } from '../../../domain/oauth/grant.ts';
import type {
  Session,
  SessionKind,
  SessionOutcome,
  SessionRequest,
  SessionStatus,
} from '../../../domain/sessions/session.ts';
import type { PublicId, SessionId, TenantId } from '../../../domain/shared/ids.ts';
import type { IssuedBatch, StatusList } from '../../../domain/status-lists/status-list.ts';
import type { StoredRevisions } from '../../../domain/tenants/revisions.ts';
import type { TenantStatus } from '../../../domain/tenants/tenant.ts';
import type { SeenRelease } from '../../../domain/trust-lists/freshness.ts';
import type { Row } from '../statement.ts';

const text = (value: unknown) => value as string;
const number = (value: unknown) => Number(value);
const date = (value: unknown) => new Date(Number(value));
const optional = <T>(value: unknown, read: (value: unknown) => T): T | null =>
  value === null || value === undefined ? null : read(value);

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

/** Reads `TENANT_STATE`, which every combined read carries. */
export function readTenantState(row: Row): TenantState {
  return {
    id: text(row['state_id']) as TenantId,
    status: text(row['state_status']) as TenantStatus,
    revision: number(row['state_revision']),
    revisions: readRevisions(row['state_revisions']),
  };
}

/** Text in SQLite, read already by the driver for PostgreSQL. */
export function readRevisions(value: unknown): StoredRevisions {
  return (typeof value === 'string' ? JSON.parse(value) : value) as StoredRevisions;
}

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
    tenant: readTenantState(first),
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

export function readStatusListVersion(row: Row): { id: string; version: number; keyChainId: string | null } {
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

export function readRelease(row: Row | undefined): SeenRelease | undefined {
  if (row === undefined) return undefined;
  return { sequenceNumber: Number(row['sequence_number']), contentHash: String(row['content_hash']) };
}
