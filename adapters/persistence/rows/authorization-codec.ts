import type { Cipher } from '../../../application/ports/cipher.ts';
import type { DeferredStatus, DeferredTransaction } from '../../../domain/issuance/deferred.ts';
import type { Authorization } from '../../../domain/oauth/authorization.ts';
import type { PublicId, SessionId, TenantId } from '../../../domain/shared/ids.ts';
import type { PublicJwk } from '../../../domain/shared/jwk.ts';
import type { Row } from '../statement.ts';
import { decodeDocument, encodeDocument } from './document-codec.ts';

const text = (value: unknown) => String(value);
const date = (value: unknown) => new Date(Number(value));
const nullable = (value: unknown) => (value === null || value === undefined ? null : String(value));

/** Without the tenant, which the caller puts first: `id, version, document, expires_at`. */
export function authorizationParameters(
  cipher: Cipher,
  tenantId: TenantId,
  authorization: Authorization,
): [string, number, string, number] {
  const { id, version, expiresAt, ...rest } = authorization;
  return [
    id,
    version,
    cipher.seal(encodeDocument(rest), authorizationPlace(tenantId, id)),
    expiresAt.getTime(),
  ];
}

export function readAuthorization(cipher: Cipher, row: Row): Authorization {
  const id = text(row['id']);
  const document = cipher.open(text(row['document']), authorizationPlace(text(row['tenant_id']), id));
  return {
    ...decodeDocument<Omit<Authorization, 'id' | 'version' | 'expiresAt'>>(document.toString('utf8')),
    id,
    version: Number(row['version']),
    expiresAt: date(row['expires_at']),
  };
}

/** Without the tenant, which the caller puts first. */
export function deferredParameters(transaction: DeferredTransaction): (string | number | null)[] {
  return [
    transaction.id,
    transaction.sessionId,
    transaction.publicId,
    transaction.grantId,
    transaction.credentialConfigurationId,
    JSON.stringify(transaction.holderKeys),
    transaction.status,
    transaction.intervalSeconds,
    transaction.createdAt.getTime(),
    transaction.updatedAt.getTime(),
    transaction.expiresAt.getTime(),
  ];
}

export function sealCredentials(
  cipher: Cipher,
  tenantId: TenantId,
  id: string,
  credentials: readonly string[],
): string {
  return cipher.seal(JSON.stringify(credentials), deferredPlace('credentials', tenantId, id));
}

/** Backends write into it whom they did not find. */
export function sealErrorMessage(
  cipher: Cipher,
  tenantId: TenantId,
  id: string,
  errorMessage: string,
): string {
  return cipher.seal(errorMessage, deferredPlace('error_message', tenantId, id));
}

export function readDeferred(cipher: Cipher, row: Row): DeferredTransaction {
  const id = text(row['id']);
  const opened = (column: SealedColumn) => {
    const sealed = nullable(row[column]);
    if (sealed === null) return null;
    return cipher.open(sealed, deferredPlace(column, text(row['tenant_id']), id)).toString('utf8');
  };
  const credentials = opened('credentials');
  return {
    id,
    sessionId: text(row['session_id']) as SessionId,
    publicId: text(row['public_id']) as PublicId,
    grantId: nullable(row['grant_id']),
    credentialConfigurationId: text(row['credential_configuration_id']),
    holderKeys: JSON.parse(text(row['holder_keys'])) as PublicJwk[],
    status: text(row['status']) as DeferredStatus,
    intervalSeconds: Number(row['interval_seconds']),
    credentials: credentials === null ? null : (JSON.parse(credentials) as string[]),
    batchId: nullable(row['batch_id']),
    errorMessage: opened('error_message'),
    createdAt: date(row['created_at']),
    updatedAt: date(row['updated_at']),
    expiresAt: date(row['expires_at']),
  };
}

function authorizationPlace(tenantId: string, id: string): string {
  return `authorizations/document/${tenantId}/${id}`;
}

type SealedColumn = 'credentials' | 'error_message';

function deferredPlace(column: SealedColumn, tenantId: string, id: string): string {
  return `deferred_transactions/${column}/${tenantId}/${id}`;
}
