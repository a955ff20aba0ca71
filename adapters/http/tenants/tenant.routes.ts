import { z } from 'zod';
import type { PortsOf } from '../../../application/needs.ts';
import {
  CreateTenant,
  DeleteTenant,
  GetTenant,
  ListTenants,
  UpdateTenant,
} from '../../../application/tenants/tenants.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { TenantCreation, TenantUpdate } from '../../../domain/tenants/tenant.ts';
import { family, type Route, reply, route, show } from '../route.ts';
import { DeletedView } from '../shapes/deleted.view.ts';
import { TenantConfiguration, toTenantView, WrittenTenantView } from './tenant.view.ts';

const params = z.object({
  id: z
    .string()
    .max(63)
    .transform((id) => id as TenantId)
    .describe('Tenant id'),
});
const common = { tag: 'Tenants', surface: 'admin', access: { service: ['tenants:manage'] } } as const;

const USE_CASES = {
  listTenants: ListTenants,
  getTenant: GetTenant,
  createTenant: CreateTenant,
  updateTenant: UpdateTenant,
  deleteTenant: DeleteTenant,
};
type UseCases = PortsOf<typeof USE_CASES>;

/** Tenants, for accounts that manage the service. */
export const tenantRoutes = family(USE_CASES, (useCases) => [
  ...readRoutes(useCases),
  ...writeRoutes(useCases),
]);

function shows({ getTenant }: UseCases) {
  return async ({ params: { id } }: { readonly params: { readonly id: TenantId } }) => {
    const found = await getTenant.execute(id);
    return show(200, toTenantView(found), found.tenant);
  };
}

function readRoutes(useCases: UseCases): Route[] {
  const { listTenants } = useCases;
  return [
    route({
      ...common,
      method: 'get',
      path: '/tenant',
      summary: 'List all tenants',
      responses: { 200: z.array(TenantConfiguration) },
      async handle() {
        return reply(200, (await listTenants.execute()).map(toTenantView));
      },
    }),
    route({
      ...common,
      method: 'get',
      path: '/tenant/:id',
      edits: { kind: 'tenant' },
      summary: 'Read a tenant',
      params,
      responses: { 200: TenantConfiguration },
      handle: shows(useCases),
    }),
  ];
}

function writeRoutes(useCases: UseCases): Route[] {
  const { createTenant, updateTenant, deleteTenant } = useCases;
  return [
    route({
      ...common,
      method: 'post',
      path: '/tenant',
      edits: { kind: 'tenant' },
      summary: 'Create a tenant with its keys',
      description:
        'Makes one key chain per usage. With `roles` it also makes the client `<id>-admin`, whose secret is ' +
        'returned once here and can be fetched once within ten minutes.',
      body: TenantCreation,
      example: {
        id: 'acme',
        name: 'Acme',
        roles: [
          'clients:manage',
          'issuance:manage',
          'issuance:offer',
          'presentation:manage',
          'presentation:request',
        ],
      },
      responses: { 201: WrittenTenantView, 409: 'The id, or that of its administrator, is taken' },
      async handle({ caller, body }) {
        const created = await createTenant.execute(caller, body);
        return show(201, toTenantView(created), created.tenant);
      },
    }),
    route({
      ...common,
      method: 'patch',
      path: '/tenant/:id',
      edits: { kind: 'tenant', id: ({ params }) => params.id },
      summary: 'Change a tenant',
      description:
        'What is left out stays; null for `sessionConfig` or `statusListConfig`, or for a field of them, brings ' +
        'the global default back. `roles` replaces the roles of the client `<id>-admin`. A suspended tenant ' +
        'answers neither clients nor wallets; its status lists stay published.',
      params,
      body: TenantUpdate,
      example: { description: 'Rockets and anvils', sessionConfig: { ttlSeconds: 3600 } },
      shows: shows(useCases),
      responses: { 200: WrittenTenantView },
      async handle({ caller, params: { id }, body }) {
        const updated = await updateTenant.execute(caller, id, body);
        return show(200, toTenantView(updated), updated.tenant);
      },
    }),
    route({
      ...common,
      method: 'delete',
      path: '/tenant/:id',
      edits: { kind: 'tenant', id: ({ params }) => params.id },
      summary: 'Delete a tenant and everything that is its own',
      description:
        'Nothing of it is served any more. What there may be much of is removed in portions, also after this answer; ' +
        'its id is free when little is left.',
      params,
      responses: { 200: DeletedView },
      async handle({ caller, params: { id } }) {
        await deleteTenant.execute(caller, id);
        return reply(200, { id });
      },
    }),
  ];
}
