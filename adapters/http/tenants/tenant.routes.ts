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
    description: 'A tenant is in this list until nothing of it is left. `GET /tenant` lists none of them.',
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
    description: 'Without removed tenants, which `GET /tenant-removal` lists until nothing of them is left.',
    by: ListTenants,
  }),
  tenant.get({ operationId: 'getTenant', summary: 'Read a tenant' }),
  tenant.create({
    operationId: 'createTenant',
    summary: 'Create a tenant with its keys',
    description:
      'Makes one key chain per usage. With `roles` it also makes the client `<id>-admin`, whose secret is ' +
      'returned once here and can be fetched once within ten minutes. With `endsAt` the service removes the tenant by ' +
      'itself, as DELETE does: for trials and demonstrations.',
    body: TenantCreation,
    example: {
      id: 'acme',
      name: 'Acme',
      roles: ['clients:manage', 'issuance:manage', 'issuance:offer', 'presentation:manage', 'presentation:request', 'registrar:manage'],
    },
    responses: { 201: WrittenTenantView, 409: 'The id, or that of its administrator, is taken' },
    by: CreateTenant,
  }),
  tenant.update({
    operationId: 'updateTenant',
    summary: 'Change a tenant',
    description:
      'What is left out stays; null for `sessionConfig` or `statusListConfig`, or for a field of them, brings ' +
      'the global default back. `roles` replaces the roles of the client `<id>-admin`. A suspended tenant ' +
      'answers neither clients nor wallets; its status lists stay published. With `endsAt` the service removes it by itself.',
    body: TenantUpdate,
    example: { description: 'Rockets and anvils', sessionConfig: { ttlSeconds: 3600 } },
    responses: { 200: WrittenTenantView },
    by: UpdateTenant,
  }),
  tenant.delete({
    operationId: 'deleteTenant',
    summary: 'Delete a tenant and everything that is its own',
    description:
      'Nothing of it is served any more. What there may be much of is removed in portions, also after this answer, ' +
      'as `GET /tenant-removal` shows; its id is free when little is left.',
    by: DeleteTenant,
  }),
  removalRoutes,
);
