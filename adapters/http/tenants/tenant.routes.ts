import { z } from 'zod';
import { ServiceSettings } from '../../../application/ports/settings.ts';
import {
  CreateTenant,
  DeleteTenant,
  GetTenant,
  ListTenantRemovals,
  ListTenants,
  UpdateTenant,
} from '../../../application/tenants/tenants.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { TenantCreation, TenantUpdate } from '../../../domain/tenants/tenant.ts';
import { ListQuery, pageOf } from '../output/page-of.ts';
import { resourceRoutes } from '../resource-routes.ts';
import { families, family, route } from '../route.ts';
import { TenantConfiguration, TenantRemovalView, toTenantView, WrittenTenantView } from './tenant.view.ts';

const params = z.object({
  id: z
    .string()
    .max(63)
    .transform((id) => id as TenantId)
    .describe('Tenant id'),
});
const tenant = resourceRoutes({
  kind: 'tenant',
  tag: 'Tenants',
  path: '/tenant',
  exampleId: 'acme',
  params,
  access: { service: ['tenants:manage'] },
  view: TenantConfiguration,
  get: GetTenant,
  toView: toTenantView,
  stored: (details) => details.tenant,
  findings: ({ findings = [] }) => findings,
  profile: ({ tenant }) => tenant.profile,
  key: (details) => details.tenant.id,
});

const removalRoutes = family({ listRemovals: ListTenantRemovals, settings: ServiceSettings }, ({ listRemovals, settings }) => [
  route({
    tag: 'Tenants',
    surface: 'admin',
    access: { service: ['tenants:manage'] },
    method: 'get',
    path: '/tenant-removal',
    operationId: 'listTenantRemovals',
    summary: 'List removed tenants whose data is still being removed',
    description: 'A tenant is in this list until all its data is deleted. `GET /tenant` does not list it.',
    query: ListQuery,
    responses: { 200: z.array(TenantRemovalView) },
    async handle({ query }) {
      return pageOf({
        all: await listRemovals.execute(),
        query,
        address: `${settings.publicUrl}/tenant-removal`,
        keyOf: ({ tenantId }) => tenantId,
        toView: ({ tenantId, since: removedAt, removedRows }) => ({ id: tenantId, since: removedAt.toISOString(), removedRows }),
      });
    },
  }),
]);

/** Tenants, for accounts that manage the service. */
export const tenantRoutes = families(
  tenant.list({
    operationId: 'listTenants',
    summary: 'List all tenants',
    description: 'Without removed tenants, which `GET /tenant-removal` lists until their data is deleted.',
    by: ListTenants,
  }),
  tenant.get({ operationId: 'getTenant', summary: 'Read a tenant' }),
  tenant.create({
    operationId: 'createTenant',
    summary: 'Create a tenant with its keys',
    description:
      'Creates one key chain per usage. With `roles` it also creates the client `<id>-admin`, whose secret is ' +
      'returned once here and can be fetched once within ten minutes. With `endsAt` the service removes the tenant ' +
      'automatically, like DELETE: for trials and demonstrations.',
    body: TenantCreation,
    example: {
      id: 'acme',
      name: 'Acme',
      roles: ['clients:manage', 'issuance:manage', 'issuance:offer', 'presentation:manage', 'presentation:request', 'registrar:manage'],
    },
    responses: { 201: WrittenTenantView, 409: 'The id of the tenant or of its administrator is already used' },
    by: CreateTenant,
  }),
  tenant.update({
    operationId: 'updateTenant',
    summary: 'Change a tenant',
    description:
      'Omitted properties are unchanged; null for `sessionConfig` or `statusListConfig`, or for a property of them, restores ' +
      'the global default. `roles` replaces the roles of the client `<id>-admin`. A suspended tenant ' +
      'rejects requests of clients and wallets; its status lists stay published. With `endsAt` the service removes it automatically.',
    body: TenantUpdate,
    example: { description: 'Rockets and anvils', sessionConfig: { ttlSeconds: 3600 } },
    responses: { 200: WrittenTenantView },
    by: UpdateTenant,
  }),
  tenant.delete({
    operationId: 'deleteTenant',
    summary: 'Delete a tenant and everything that is its own',
    description:
      'The tenant is no longer served. Large amounts of data are removed in batches, also after this response, ' +
      'as `GET /tenant-removal` shows; its id can be used again when most data is removed.',
    by: DeleteTenant,
  }),
  removalRoutes,
);
