import type { Client, SecretPickUp } from '../../../domain/clients/client.ts';
import type { Role } from '../../../domain/clients/role.ts';
import type { IssuedCertificate, RecordedKey } from '../../../domain/keys/compromised-keys.ts';
import type { Profile } from '../../../domain/shared/finding.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { NO_ORGANIZATION, type Organization } from '../../../domain/tenants/organization.ts';
import type { SessionStorageConfig, StatusListConfig, Tenant, TenantStatus } from '../../../domain/tenants/tenant.ts';
import type { Row } from '../statement.ts';
import type { ClientRow, TenantRow } from './administration.row.ts';

export const TENANT_COLUMNS =
  'id, name, description, status, session_config, status_list_config, kms, profile, organization, ends_at, revision, version, created_at, updated_at';
export const CLIENT_COLUMNS =
  'client_id, tenant_id, roles, description, allowed_presentation_configs, allowed_issuance_configs, secret_hash, ' +
  'secret_revision, former_secret_until, pick_up, mac, version, created_at, updated_at';

/** SQLite returns text; the driver for PostgreSQL has parsed it already. */
const json = (value: unknown): unknown => (typeof value === 'string' ? JSON.parse(value) : value);

export function tenantOf(row: Row): Tenant {
  return readTenant({
    ...row,
    sessionConfig: json(row['session_config']),
    statusListConfig: json(row['status_list_config']),
    organization: json(row['organization']),
    endsAt: row['ends_at'],
    createdAt: row['created_at'],
    updatedAt: row['updated_at'],
  } as unknown as TenantRow);
}

export function clientOf(row: Row): Client {
  return readClient({
    ...row,
    clientId: row['client_id'],
    tenantId: row['tenant_id'],
    roles: json(row['roles']),
    allowedPresentationConfigs: json(row['allowed_presentation_configs']),
    allowedIssuanceConfigs: json(row['allowed_issuance_configs']),
    secretHash: row['secret_hash'],
    secretRevision: row['secret_revision'],
    formerSecretUntil: row['former_secret_until'],
    pickUp: json(row['pick_up']),
    createdAt: row['created_at'],
    updatedAt: row['updated_at'],
  } as unknown as ClientRow);
}

export function recordedKeyOf(row: Row): RecordedKey {
  const compromisedAt = row['compromised_at'];
  return {
    thumbprint: String(row['thumbprint']),
    compromisedAt: compromisedAt === null ? null : new Date(Number(compromisedAt)),
    certificates: json(row['certificates']) as readonly IssuedCertificate[],
  };
}

export function tenantColumns(tenant: Tenant) {
  const { organization, organizationIdentifier, country, contact, address, ...columns } = tenant;
  const details = { organization, organizationIdentifier, country, contact, address };
  return {
    ...columns,
    endsAt: tenant.endsAt?.getTime() ?? null,
    organization: Object.values(details).every((value) => value === null) ? null : details,
    createdAt: tenant.createdAt.getTime(),
    updatedAt: tenant.updatedAt.getTime(),
  };
}

export function readTenant(row: TenantRow): Tenant {
  return {
    id: row.id as TenantId,
    name: row.name,
    description: row.description ?? null,
    status: row.status as TenantStatus,
    sessionConfig: (row.sessionConfig ?? null) as SessionStorageConfig | null,
    statusListConfig: (row.statusListConfig ?? null) as StatusListConfig | null,
    kms: row.kms ?? null,
    profile: (row.profile ?? null) as Profile | null,
    endsAt: row.endsAt === null || row.endsAt === undefined ? null : new Date(Number(row.endsAt)),
    ...NO_ORGANIZATION,
    ...(row.organization as Organization | null),
    revision: row.revision,
    version: row.version,
    createdAt: new Date(Number(row.createdAt)),
    updatedAt: new Date(Number(row.updatedAt)),
  };
}

export function clientColumns(client: Client) {
  return {
    ...client,
    formerSecretUntil: client.formerSecretUntil?.getTime() ?? null,
    pickUp: client.pickUp === null ? null : { ...client.pickUp, expiresAt: client.pickUp.expiresAt.getTime() },
    createdAt: client.createdAt.getTime(),
    updatedAt: client.updatedAt.getTime(),
  };
}

export function readClient(row: ClientRow): Client {
  const pickUp = row.pickUp as (Omit<SecretPickUp, 'expiresAt'> & { expiresAt: number }) | null | undefined;
  return {
    clientId: row.clientId,
    tenantId: (row.tenantId ?? null) as TenantId | null,
    roles: row.roles as Role[],
    description: row.description ?? null,
    allowedPresentationConfigs: row.allowedPresentationConfigs ?? null,
    allowedIssuanceConfigs: row.allowedIssuanceConfigs ?? null,
    secretHash: row.secretHash,
    secretRevision: row.secretRevision ?? 0,
    formerSecretUntil:
      row.formerSecretUntil === null || row.formerSecretUntil === undefined ? null : new Date(Number(row.formerSecretUntil)),
    pickUp: pickUp === null || pickUp === undefined ? null : { ...pickUp, expiresAt: new Date(pickUp.expiresAt) },
    version: row.version,
    createdAt: new Date(Number(row.createdAt)),
    updatedAt: new Date(Number(row.updatedAt)),
  };
}
