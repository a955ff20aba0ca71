import { z } from 'zod';
import { resource } from '../shared/resource.ts';
import { TenantAddress } from './organization.ts';
import { findStatusListProblems } from './settings-findings.ts';
import { SessionStorageConfig, StatusListConfig, type Tenant, TenantCreation, TenantUpdate } from './tenant.ts';

/** Properties for creating a tenant, and its suspension. */
const TenantDocument = z.object({ ...TenantCreation.shape, status: TenantUpdate.shape.status });

export const tenantResource = resource<Tenant>()({
  kind: 'tenant',
  repository: 'tenant',
  auditedValues: [
    'name',
    'status',
    'sessionConfig',
    'statusListConfig',
    'kms',
    'profile',
    'endsAt',
    'organization',
    'organizationIdentifier',
    'country',
  ],
  editablePart: ({ revision: _revision, ...tenant }: Tenant) => tenant,
  findings: (tenant: Tenant) =>
    findStatusListProblems(tenant).map((finding) => ({ ...finding, member: `statusListConfig.${finding.member}` })),
  volatileProperties: ['clients.updatedAt', 'clients.tenant.name', 'clients.secret'],
  entries: { clients: 'clientId' },
  file: {
    path: 'tenant',
    id: 'id',
    body: TenantDocument,
    refersTo: [],
    write: ({ id, name, description, status, kms, profile, endsAt, ...tenant }: Tenant) => ({
      id,
      name,
      description,
      status,
      kms,
      profile,
      endsAt: endsAt?.toISOString() ?? null,
      organization: tenant.organization,
      organizationIdentifier: tenant.organizationIdentifier,
      country: tenant.country,
      contact: tenant.contact,
      address: TenantAddress.nullable().parse(tenant.address),
      // Databases return properties in another order.
      sessionConfig: SessionStorageConfig.nullable().parse(tenant.sessionConfig),
      statusListConfig: StatusListConfig.nullable().parse(tenant.statusListConfig),
    }),
  },
});
