import type { Client, SecretPickUp } from '../../../domain/clients/client.ts';
import type { Role } from '../../../domain/clients/role.ts';
import type { Profile } from '../../../domain/shared/finding.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import type {
  SessionStorageConfig,
  StatusListConfig,
  Tenant,
  TenantStatus,
} from '../../../domain/tenants/tenant.ts';
import type { ClientRow, TenantRow } from './administration.row.ts';

export function tenantColumns(tenant: Tenant) {
  return { ...tenant, createdAt: tenant.createdAt.getTime(), updatedAt: tenant.updatedAt.getTime() };
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
    pickUp:
      client.pickUp === null ? null : { ...client.pickUp, expiresAt: client.pickUp.expiresAt.getTime() },
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
      row.formerSecretUntil === null || row.formerSecretUntil === undefined
        ? null
        : new Date(Number(row.formerSecretUntil)),
    pickUp:
      pickUp === null || pickUp === undefined ? null : { ...pickUp, expiresAt: new Date(pickUp.expiresAt) },
    version: row.version,
    createdAt: new Date(Number(row.createdAt)),
    updatedAt: new Date(Number(row.updatedAt)),
  };
}
