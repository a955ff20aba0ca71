import { object, z } from 'zod';
import { CreateOffer } from '../../../application/issuance/create-offer.ts';
import {
  DeleteCredentialConfiguration,
  GetCredentialConfiguration,
  ListCredentialConfigurations,
  ReplaceCredentialConfiguration,
  UpdateCredentialConfiguration,
  type WrittenCredentialConfiguration,
} from '../../../application/issuance/credential-configurations.ts';
import { GetIssuanceConfiguration, ReplaceIssuanceConfiguration } from '../../../application/issuance/issuance-configurations.ts';
import { CredentialConfigurationBody, CredentialConfigurationUpdate } from '../../../domain/issuance/configuration.ts';
import { IssuanceConfigurationBody } from '../../../domain/issuance/issuance-configuration.ts';
import { OfferRequest } from '../../../domain/issuance/offer.ts';
import { Warning } from '../../../domain/shared/finding.ts';
import { answerNameOf } from '../input/idempotency.ts';
import { resourceRoutes } from '../resource-routes.ts';
import { families, family, reply, route } from '../route.ts';
import { PageUrl } from '../sessions/offer-page.routes.ts';
import {
  CredentialConfigurationView,
  IssuanceConfigurationView,
  toCredentialConfigurationView,
  toIssuanceConfigurationView,
} from './configuration.view.ts';

const tag = 'Issuer';
const manage = { anyOf: ['issuance:manage'] } as const;
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

const issuance = resourceRoutes({
  kind: 'issuance-configuration',
  tag,
  path: '/issuer/config',
  access: manage,
  writeOverrides: { access: { ...manage, unrestricted: true } },
  view: IssuanceConfigurationView,
  get: GetIssuanceConfiguration,
  toView: async (configuration, { caller: { tenant } }) =>
    toIssuanceConfigurationView(await tenant.tenant(), configuration, tenant.profile),
});

const credential = resourceRoutes({
  kind: 'credential-configuration',
  tag,
  path: '/issuer/credentials',
  exampleId: 'pid',
  params: object({ id: z.string().max(128) }),
  access: manage,
  view: CredentialConfigurationView,
  get: GetCredentialConfiguration,
  stored: ({ findings: _findings, ...configuration }: WrittenCredentialConfiguration) => configuration,
  findings: ({ findings = [] }: WrittenCredentialConfiguration) => findings,
  toView: async (configuration, { caller: { tenant } }) =>
    toCredentialConfigurationView(configuration, await tenant.tenant(), await tenant.keyChains(), tenant.profile),
});

export const issuanceRoutes = families(
  family({ createOffer: CreateOffer }, ({ createOffer }) => [
    route({
      method: 'post',
      path: '/issuer/offer',
      operationId: 'createOffer',
      rateLimit: { group: 'offer', perClient: true },
      summary: 'Offer credentials to a wallet',
      tag,
      surface: 'admin',
      access: { anyOf: ['issuance:offer', 'issuance:manage'], remembered: true },
      body: OfferRequest,
      bodyLimit: 1024 * 1024,
      example: {
        response_type: 'uri',
        flow: 'pre_authorized_code',
        credentialConfigurationIds: ['pid'],
        credentialClaims: { pid: { type: 'inline', claims: { given_name: 'Ada', family_name: 'Lovelace' } } },
      },
      responses: {
        201: object({
          uri: z.string(),
          session: z.string(),
          crossDeviceUri: z.string().optional(),
          pageUrl: PageUrl,
          dcApi: object({ protocol: z.string(), data: z.record(z.string(), z.unknown()) })
            .optional()
            .describe('Experimental: the offer for the Digital Credentials API'),
          warnings: z.array(Warning).optional().describe('Absent without warnings'),
        }).meta({ id: 'Offer' }),
        409: 'The `Idempotency-Key` was used for another request; or, with the code `session_quota_exceeded`, the open sessions of the tenant have reached the limit of bytes',
      },
      isRepeatable: true,
      async handle({ caller, body, request }) {
        const name = answerNameOf('/issuer/offer', caller, body, request);
        return reply(201, await createOffer.execute(caller, body, name));
      },
    }),
  ]),
  issuance.get({ operationId: 'getIssuanceConfiguration', summary: 'Read the issuance configuration' }),
  issuance.create({
    operationId: 'replaceIssuanceConfiguration',
    summary: 'Set how the tenant issues',
    body: IssuanceConfigurationBody,
    bodyLimit: CONFIGURATION_LIMIT,
    example: { display: [{ name: 'Ministry of Examples', locale: 'en' }], batchSize: 1, dPopRequired: true },
    replaces: true,
    by: ReplaceIssuanceConfiguration,
  }),
  credential.list({
    operationId: 'listCredentialConfigurations',
    summary: 'List credential configurations',
    by: ListCredentialConfigurations,
  }),
  credential.create({
    operationId: 'replaceCredentialConfiguration',
    summary: 'Create or replace a credential configuration',
    body: CredentialConfigurationBody,
    bodyLimit: CONFIGURATION_LIMIT,
    example: EXAMPLE_CREDENTIAL,
    replaces: true,
    by: ReplaceCredentialConfiguration,
  }),
  credential.get({ operationId: 'getCredentialConfiguration', summary: 'Read a credential configuration' }),
  credential.update({
    operationId: 'updateCredentialConfiguration',
    summary: 'Change a credential configuration',
    description: 'Properties in the body replace the stored ones; null resets an optional property.',
    body: z.record(z.string(), z.unknown()),
    members: CredentialConfigurationUpdate,
    bodyLimit: CONFIGURATION_LIMIT,
    example: { description: 'Issued to residents' },
    by: UpdateCredentialConfiguration,
  }),
  credential.delete({
    operationId: 'deleteCredentialConfiguration',
    summary: 'Delete a credential configuration',
    by: DeleteCredentialConfiguration,
  }),
);
