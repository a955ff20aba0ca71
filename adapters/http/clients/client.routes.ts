import { z } from 'zod';
import { PickUpSecret, RotateSecret } from '../../../application/clients/client-secrets.ts';
import { CreateClient, DeleteClient, GetClient, ListClients, UpdateClient } from '../../../application/clients/clients.ts';
import type { WrittenClient } from '../../../application/clients/unknown-configurations.ts';
import { ClientCreation, ClientUpdate, MAX_GRACE_SECONDS } from '../../../domain/clients/client.ts';
import { resourceRoutes } from '../resource-routes.ts';
import { families, family, reply, route } from '../route.ts';
import { ClientView, SecretView, toClientView } from './client.view.ts';

const params = z.object({ id: z.string().max(128).describe('Client id') });
const GraceSeconds = z.coerce
  .number()
  .int()
  .min(0)
  .max(MAX_GRACE_SECONDS)
  .default(0)
  .describe('Seconds for which issued access tokens remain valid');
const common = { tag: 'Clients', surface: 'admin', access: { anyOf: ['clients:manage'] } } as const;
const secretAccess = { either: ['clients:manage', 'tenants:manage'] } as const;

const client = resourceRoutes({
  ...common,
  kind: 'client',
  path: '/client',
  exampleId: 'shop-backend',
  params,
  view: ClientView,
  get: GetClient,
  key: ({ clientId }) => clientId,
  stored: ({ findings: _findings, ...storedClient }: WrittenClient) => storedClient,
  findings: ({ findings = [] }: WrittenClient) => findings,
  toView: async (resource, { caller }) => toClientView(resource, await caller.tenant.tenant()),
});

export const clientRoutes = families(
  client.list({ operationId: 'listClients', summary: 'List the clients of the tenant', by: ListClients }),
  client.get({ operationId: 'getClient', summary: 'Read a client' }),
  client.create({
    operationId: 'createClient',
    summary: 'Create a client',
    description: 'The secret, given or generated, can be fetched once within ten minutes: `GET /client/{id}/secret`.',
    body: ClientCreation,
    example: { clientId: 'shop-backend', roles: ['presentation:request'], description: 'Web shop' },
    responses: { 409: 'The id is already used, by this tenant or another' },
    by: CreateClient,
  }),
  client.update({
    operationId: 'updateClient',
    summary: 'Change a client',
    description:
      'Rights change immediately, also those of issued tokens. Only clients whose roles and configurations are ' +
      'within those of the caller are changed, and deleted.',
    body: ClientUpdate,
    example: { roles: ['presentation:request', 'issuance:offer'] },
    by: UpdateClient,
  }),
  client.delete({ operationId: 'deleteClient', summary: 'Delete a client', by: DeleteClient }),
  family({ pickUpSecret: PickUpSecret, rotateSecret: RotateSecret }, ({ pickUpSecret, rotateSecret }) => [
    route({
      ...common,
      access: secretAccess,
      method: 'get',
      path: '/client/:id/secret',
      operationId: 'getClientSecret',
      exampleParameters: { id: 'shop-backend' },
      summary: 'Fetch a new secret, once',
      description: 'Within ten minutes of the creation of the client, by the role that created it. Afterwards 410: rotate it.',
      params,
      responses: { 200: SecretView, 410: 'Already fetched or expired' },
      handle: async ({ caller, params: { id } }) => reply(200, { secret: await pickUpSecret.execute(caller, id) }),
    }),
    route({
      ...common,
      access: secretAccess,
      method: 'post',
      path: '/client/:id/rotate-secret',
      operationId: 'rotateClientSecret',
      exampleParameters: { id: 'shop-backend', graceSeconds: 300 },
      summary: 'Replace the secret',
      description:
        'The new secret is returned here, once. Access tokens of the former secret end immediately, or with ' +
        '`graceSeconds` after that time. `tenants:manage` may do this for any client.',
      params,
      query: z.object({ graceSeconds: GraceSeconds }),
      responses: { 201: SecretView, 409: 'The client was changed concurrently' },
      async handle({ caller, params: { id }, query: { graceSeconds } }) {
        return reply(201, { secret: await rotateSecret.execute(caller, id, graceSeconds) });
      },
    }),
  ]),
);
