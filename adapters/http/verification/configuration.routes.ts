import { z } from 'zod';
import type { TenantCaller } from '../../../application/caller.ts';
import type { PortsOf } from '../../../application/needs.ts';
import {
  DeletePresentationConfiguration,
  GetPresentationConfiguration,
  ListPresentationConfigurations,
  ReplacePresentationConfiguration,
  UpdatePresentationConfiguration,
} from '../../../application/verification/presentation-configurations.ts';
import {
  type PresentationConfiguration,
  PresentationConfigurationBody,
  PresentationConfigurationUpdate,
} from '../../../domain/verification/configuration.ts';
import { family, type Route, reply, route, show } from '../route.ts';
import { DeletedView } from '../shapes/deleted.view.ts';
import { PresentationConfigurationView, toConfigurationView } from './configuration.view.ts';

const common = { tag: 'Verifier', surface: 'admin' } as const;
const reads = { anyOf: ['presentation:manage', 'presentation:request'] } as const;
const writes = { anyOf: ['presentation:manage'] } as const;
/** A query with its attachments; certificates of anchors weigh most. */
const BODY_LIMIT = 1024 * 1024;
const params = z.object({ id: z.string().max(128) });

const USE_CASES = {
  listPresentationConfigurations: ListPresentationConfigurations,
  getPresentationConfiguration: GetPresentationConfiguration,
  replacePresentationConfiguration: ReplacePresentationConfiguration,
  updatePresentationConfiguration: UpdatePresentationConfiguration,
  deletePresentationConfiguration: DeletePresentationConfiguration,
};
type UseCases = PortsOf<typeof USE_CASES>;

const EXAMPLE = {
  id: 'name-check',
  description: 'Who is the visitor?',
  dcql_query: {
    credentials: [
      {
        id: 'pid',
        format: 'dc+sd-jwt',
        meta: { vct_values: ['urn:eudi:pid:1'] },
        claims: [{ path: ['given_name'] }],
      },
    ],
  },
  trustAnchors: [{ keyChainId: 'signing' }],
  lifeTime: 300,
  redirectUri: 'https://shop.example/done?session={sessionId}',
};

async function shown(status: number, caller: TenantCaller, configuration: PresentationConfiguration) {
  return show(status, toConfigurationView(configuration, await caller.configured.tenant()), configuration);
}

export const presentationConfigurationRoutes = family(USE_CASES, (useCases) => [
  ...readRoutes(useCases),
  ...writeRoutes(useCases),
]);

type Asked = { readonly caller: TenantCaller; readonly params: { readonly id: string } };

function shows({ getPresentationConfiguration }: UseCases) {
  return async ({ caller, params: { id } }: Asked) =>
    shown(200, caller, await getPresentationConfiguration.execute(caller, id));
}

function readRoutes(useCases: UseCases): readonly Route[] {
  const { listPresentationConfigurations } = useCases;
  return [
    route({
      ...common,
      method: 'get',
      path: '/verifier/config',
      summary: 'List the presentation configurations',
      description: 'A restricted client sees those that it may use.',
      access: reads,
      responses: { 200: z.array(PresentationConfigurationView) },
      async handle({ caller }) {
        const [configurations, tenant] = await Promise.all([
          listPresentationConfigurations.execute(caller),
          caller.configured.tenant(),
        ]);
        return reply(
          200,
          configurations.map((configuration) => toConfigurationView(configuration, tenant)),
        );
      },
    }),
    route({
      ...common,
      method: 'get',
      path: '/verifier/config/:id',
      edits: { kind: 'presentation-configuration' },
      summary: 'Read a presentation configuration',
      access: reads,
      params,
      responses: { 200: PresentationConfigurationView },
      handle: shows(useCases),
    }),
  ];
}

function writeRoutes(useCases: UseCases): readonly Route[] {
  const {
    replacePresentationConfiguration,
    updatePresentationConfiguration,
    deletePresentationConfiguration,
  } = useCases;
  return [
    route({
      ...common,
      method: 'post',
      path: '/verifier/config',
      edits: { kind: 'presentation-configuration', id: ({ body }) => body.id },
      summary: 'Create or replace a presentation configuration',
      description:
        'Credentials are accepted under `trustAnchors` only, and without one none is; `{"keyChainId":"signing"}` is ' +
        'the certificate under which this tenant issues. ' +
        'A webhook key given as `***` stays the stored one while address and header are unchanged.',
      access: writes,
      body: PresentationConfigurationBody,
      bodyLimit: BODY_LIMIT,
      example: EXAMPLE,
      responses: { 201: PresentationConfigurationView },
      async handle({ caller, body }) {
        return shown(201, caller, await replacePresentationConfiguration.execute(caller, body));
      },
    }),
    route({
      ...common,
      method: 'patch',
      path: '/verifier/config/:id',
      edits: { kind: 'presentation-configuration', id: ({ params }) => params.id },
      summary: 'Change members of a presentation configuration',
      description: 'Members are replaced whole; null resets one to its default.',
      access: writes,
      params,
      body: PresentationConfigurationUpdate,
      bodyLimit: BODY_LIMIT,
      example: { lifeTime: 600, redirectUri: null },
      shows: shows(useCases),
      responses: { 200: PresentationConfigurationView },
      async handle({ caller, params: { id }, body }) {
        return shown(200, caller, await updatePresentationConfiguration.execute(caller, id, body));
      },
    }),
    route({
      ...common,
      method: 'delete',
      path: '/verifier/config/:id',
      edits: { kind: 'presentation-configuration', id: ({ params }) => params.id },
      summary: 'Remove a presentation configuration',
      access: writes,
      params,
      responses: { 200: DeletedView, 409: 'A credential configuration asks for it' },
      async handle({ caller, params: { id } }) {
        await deletePresentationConfiguration.execute(caller, id);
        return reply(200, { id });
      },
    }),
  ];
}
