import { z } from 'zod';
import type { TenantCaller } from '../../../application/caller.ts';
import {
  CreateClient,
  DeleteClient,
  GetClient,
  ListClients,
  UpdateClient,
} from '../../../application/clients/clients.ts';
import { PickUpSecret } from '../../../application/clients/pick-up-secret.ts';
import { RotateSecret } from '../../../application/clients/rotate-secret.ts';
import type { PortsOf } from '../../../application/needs.ts';
import { ClientCreation, ClientUpdate } from '../../../domain/clients/client.ts';
import { family, type Route, reply, route, show } from '../route.ts';
import { DeletedView } from '../shapes/deleted.view.ts';
import { ClientView, SecretView, toClientView } from './client.view.ts';

const params = z.object({ id: z.string().max(128).describe('Client id') });
const common = { tag: 'Clients', surface: 'admin', access: { anyOf: ['clients:manage'] } } as const;
const secretAccess = { either: ['clients:manage', 'tenants:manage'] } as const;

const USE_CASES = {
  listClients: ListClients,
  getClient: GetClient,
  createClient: CreateClient,
  updateClient: UpdateClient,
  deleteClient: DeleteClient,
  pickUpSecret: PickUpSecret,
  rotateSecret: RotateSecret,
};
type UseCases = PortsOf<typeof USE_CASES>;

/** Clients of the caller's tenant. */
export const clientRoutes = family(USE_CASES, (useCases) => [
  ...readRoutes(useCases),
  ...writeRoutes(useCases),
  ...secretRoutes(useCases),
]);

type Asked = { readonly caller: TenantCaller; readonly params: { readonly id: string } };

function shows({ getClient }: UseCases) {
  return async ({ caller, params: { id } }: Asked) => {
    const client = await getClient.execute(caller, id);
    return show(200, toClientView(client, await caller.configured.tenant()), client);
  };
}

function readRoutes(useCases: UseCases): Route[] {
  const { listClients } = useCases;
  return [
    route({
      ...common,
      method: 'get',
      path: '/client',
      summary: 'List the clients of the tenant',
      responses: { 200: z.array(ClientView) },
      async handle({ caller }) {
        const [clients, tenant] = [await listClients.execute(caller), await caller.configured.tenant()];
        return reply(
          200,
          clients.map((client) => toClientView(client, tenant)),
        );
      },
    }),
    route({
      ...common,
      method: 'get',
      path: '/client/:id',
      edits: { kind: 'client' },
      summary: 'Read a client',
      params,
      responses: { 200: ClientView },
      handle: shows(useCases),
    }),
  ];
}

function writeRoutes(useCases: UseCases): Route[] {
  const { createClient, updateClient, deleteClient } = useCases;
  return [
    route({
      ...common,
      method: 'post',
      path: '/client',
      edits: { kind: 'client' },
      summary: 'Create a client',
      description:
        'The secret, given or generated, can be fetched once within ten minutes: `GET /client/{id}/secret`.',
      body: ClientCreation,
      example: { clientId: 'shop-backend', roles: ['presentation:request'], description: 'Web shop' },
      responses: { 201: ClientView, 409: 'The id is taken, by this tenant or another' },
      async handle({ caller, body }) {
        const client = await createClient.execute(caller, body);
        return show(201, toClientView(client, await caller.configured.tenant()), client);
      },
    }),
    route({
      ...common,
      method: 'patch',
      path: '/client/:id',
      edits: { kind: 'client', id: ({ params }) => params.id },
      summary: 'Change a client',
      description: 'Rights change at once, also those of tokens that are out already.',
      params,
      body: ClientUpdate,
      example: { roles: ['presentation:request', 'issuance:offer'] },
      shows: shows(useCases),
      responses: { 200: ClientView },
      async handle({ caller, params: { id }, body }) {
        const client = await updateClient.execute(caller, id, body);
        return show(200, toClientView(client, await caller.configured.tenant()), client);
      },
    }),
    route({
      ...common,
      method: 'delete',
      path: '/client/:id',
      edits: { kind: 'client', id: ({ params }) => params.id },
      summary: 'Delete a client',
      params,
      responses: { 200: DeletedView },
      async handle({ caller, params: { id } }) {
        await deleteClient.execute(caller, id);
        return reply(200, { id });
      },
    }),
  ];
}

function secretRoutes({ pickUpSecret, rotateSecret }: UseCases): Route[] {
  return [
    route({
      ...common,
      access: secretAccess,
      method: 'get',
      path: '/client/:id/secret',
      summary: 'Fetch a new secret, once',
      description:
        'Within ten minutes of the creation of the client, by the role that created it. Afterwards 410: rotate it.',
      params,
      responses: { 200: SecretView, 410: 'Fetched already, or too late' },
      async handle({ caller, params: { id } }) {
        return reply(200, { secret: await pickUpSecret.execute(caller, id) });
      },
    }),
    route({
      ...common,
      access: secretAccess,
      method: 'post',
      path: '/client/:id/rotate-secret',
      summary: 'Replace the secret',
      description: 'The new secret is returned here, once. `tenants:manage` may do this for any client.',
      params,
      responses: { 201: SecretView, 409: 'Somebody else changed the client meanwhile' },
      async handle({ caller, params: { id } }) {
        return reply(201, { secret: await rotateSecret.execute(caller, id) });
      },
    }),
  ];
}
