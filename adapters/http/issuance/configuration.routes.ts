import { z } from 'zod';
import type { TenantCaller } from '../../../application/caller.ts';
import { CreateOffer } from '../../../application/issuance/create-offer.ts';
import {
  DeleteCredentialConfiguration,
  GetCredentialConfiguration,
  ListCredentialConfigurations,
  ReplaceCredentialConfiguration,
  UpdateCredentialConfiguration,
} from '../../../application/issuance/credential-configurations.ts';
import {
  GetIssuanceConfiguration,
  ReplaceIssuanceConfiguration,
} from '../../../application/issuance/issuance-configurations.ts';
import type { PortsOf } from '../../../application/needs.ts';
import {
  CredentialConfigurationBody,
  CredentialConfigurationUpdate,
} from '../../../domain/issuance/configuration.ts';
import { IssuanceConfigurationBody } from '../../../domain/issuance/issuance-configuration.ts';
import { OfferRequest } from '../../../domain/issuance/offer.ts';
import { family, type Route, reply, route, show } from '../route.ts';
import { DeletedView } from '../shapes/deleted.view.ts';
import {
  CredentialConfigurationView,
  IssuanceConfigurationView,
  toCredentialConfigurationView,
  toIssuanceConfigurationView,
} from './configuration.view.ts';

const USE_CASES = {
  getIssuanceConfiguration: GetIssuanceConfiguration,
  replaceIssuanceConfiguration: ReplaceIssuanceConfiguration,
  listCredentialConfigurations: ListCredentialConfigurations,
  getCredentialConfiguration: GetCredentialConfiguration,
  replaceCredentialConfiguration: ReplaceCredentialConfiguration,
  updateCredentialConfiguration: UpdateCredentialConfiguration,
  deleteCredentialConfiguration: DeleteCredentialConfiguration,
  createOffer: CreateOffer,
};
type UseCases = PortsOf<typeof USE_CASES>;

const tag = 'Issuer';
const manage = { anyOf: ['issuance:manage'] } as const;
const Id = z.object({ id: z.string().max(128) });
/** Schemas and type metadata make configurations larger than other documents. */
const CONFIGURATION_LIMIT = 512 * 1024;

const EXAMPLE_CREDENTIAL = {
  id: 'pid',
  config: { format: 'dc+sd-jwt', display: [{ name: 'Person Identification Data', locale: 'en' }] },
  vct: 'urn:eudi:pid:1',
  claims: { given_name: 'Ada', family_name: 'Lovelace' },
  disclosureFrame: { _sd: ['given_name', 'family_name'] },
  keyBinding: true,
  statusManagement: true,
  lifeTime: 31536000,
};

/** How a tenant issues, what it issues, and offers. */
export const issuanceRoutes = family(USE_CASES, (useCases) => [
  offerRoute(useCases),
  ...issuanceConfiguration(useCases),
  ...credentialConfigurations(useCases),
]);

function offerRoute({ createOffer }: UseCases): Route {
  return route({
    method: 'post',
    path: '/issuer/offer',
    rateLimit: { group: 'offer', perClient: true },
    summary: 'Offer credentials to a wallet',
    tag,
    surface: 'admin',
    access: { anyOf: ['issuance:offer', 'issuance:manage'], remembered: true },
    body: OfferRequest,
    bodyLimit: 256 * 1024,
    example: {
      response_type: 'uri',
      flow: 'pre_authorized_code',
      credentialConfigurationIds: ['pid'],
      credentialClaims: { pid: { type: 'inline', claims: { given_name: 'Ada', family_name: 'Lovelace' } } },
    },
    responses: {
      201: z
        .object({
          uri: z.string(),
          session: z.string(),
          crossDeviceUri: z.string().optional(),
          dcApi: z
            .object({ protocol: z.string(), data: z.record(z.string(), z.unknown()) })
            .optional()
            .describe('Experimental: the offer for the Digital Credentials API'),
        })
        .meta({ id: 'Offer' }),
    },
    async handle({ caller, body }) {
      return reply(201, await createOffer.execute(caller, body));
    },
  });
}

function issuanceConfiguration({
  getIssuanceConfiguration,
  replaceIssuanceConfiguration,
}: UseCases): Route[] {
  return [
    route({
      method: 'get',
      path: '/issuer/config',
      edits: { kind: 'issuance-configuration' },
      summary: 'Read how the tenant issues',
      tag,
      surface: 'admin',
      access: manage,
      responses: { 200: IssuanceConfigurationView },
      async handle({ caller }) {
        const configuration = await getIssuanceConfiguration.execute(caller);
        return show(200, toIssuanceConfigurationView(caller.tenantId, configuration), configuration);
      },
    }),
    route({
      method: 'post',
      path: '/issuer/config',
      edits: { kind: 'issuance-configuration', id: () => 'default' },
      summary: 'Set how the tenant issues',
      tag,
      surface: 'admin',
      access: { ...manage, unrestricted: true },
      body: IssuanceConfigurationBody,
      bodyLimit: CONFIGURATION_LIMIT,
      example: {
        display: [{ name: 'Ministry of Examples', locale: 'en' }],
        batchSize: 1,
        dPopRequired: true,
      },
      responses: { 201: IssuanceConfigurationView },
      async handle({ caller, body }) {
        const configuration = await replaceIssuanceConfiguration.execute(caller, body);
        return show(201, toIssuanceConfigurationView(caller.tenantId, configuration), configuration);
      },
    }),
  ];
}

type Asked = { readonly caller: TenantCaller; readonly params: { readonly id: string } };

function credentialConfigurations(useCases: UseCases): Route[] {
  const { listCredentialConfigurations, getCredentialConfiguration, replaceCredentialConfiguration } =
    useCases;
  const shows = async ({ caller, params }: Asked) => {
    const configuration = await getCredentialConfiguration.execute(caller, params.id);
    return show(200, toCredentialConfigurationView(caller.tenantId, configuration), configuration);
  };
  const { updateCredentialConfiguration, deleteCredentialConfiguration } = useCases;
  return [
    route({
      method: 'get',
      path: '/issuer/credentials',
      summary: 'List credential configurations',
      tag,
      surface: 'admin',
      access: manage,
      responses: { 200: z.array(CredentialConfigurationView) },
      async handle({ caller }) {
        const all = await listCredentialConfigurations.execute(caller);
        return reply(
          200,
          all.map((configuration) => toCredentialConfigurationView(caller.tenantId, configuration)),
        );
      },
    }),
    route({
      method: 'post',
      path: '/issuer/credentials',
      edits: { kind: 'credential-configuration', id: ({ body }) => body.id },
      summary: 'Create or replace a credential configuration',
      tag,
      surface: 'admin',
      access: manage,
      body: CredentialConfigurationBody,
      bodyLimit: CONFIGURATION_LIMIT,
      example: EXAMPLE_CREDENTIAL,
      responses: { 201: CredentialConfigurationView },
      async handle({ caller, body }) {
        const configuration = await replaceCredentialConfiguration.execute(caller, body);
        return show(201, toCredentialConfigurationView(caller.tenantId, configuration), configuration);
      },
    }),
    route({
      method: 'get',
      path: '/issuer/credentials/:id',
      edits: { kind: 'credential-configuration' },
      summary: 'Read a credential configuration',
      tag,
      surface: 'admin',
      access: manage,
      params: Id,
      responses: { 200: CredentialConfigurationView },
      handle: shows,
    }),
    route({
      method: 'patch',
      path: '/issuer/credentials/:id',
      edits: { kind: 'credential-configuration', id: ({ params }) => params.id },
      summary: 'Change a credential configuration',
      description: 'Members that are given replace the stored ones; null resets an optional one.',
      tag,
      surface: 'admin',
      access: manage,
      params: Id,
      body: z.record(z.string(), z.unknown()),
      members: CredentialConfigurationUpdate,
      bodyLimit: CONFIGURATION_LIMIT,
      example: { description: 'Issued to residents' },
      shows,
      responses: { 200: CredentialConfigurationView },
      async handle({ caller, params, body }) {
        const configuration = await updateCredentialConfiguration.execute(caller, params.id, body);
        return show(200, toCredentialConfigurationView(caller.tenantId, configuration), configuration);
      },
    }),
    route({
      method: 'delete',
      path: '/issuer/credentials/:id',
      edits: { kind: 'credential-configuration', id: ({ params }) => params.id },
      summary: 'Delete a credential configuration',
      tag,
      surface: 'admin',
      access: manage,
      params: Id,
      responses: { 200: DeletedView },
      async handle({ caller, params }) {
        await deleteCredentialConfiguration.execute(caller, params.id);
        return reply(200, { id: params.id });
      },
    }),
  ];
}
