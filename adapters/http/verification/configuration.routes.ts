import { z } from 'zod';
import {
  DeletePresentationConfiguration,
  GetPresentationConfiguration,
  ListPresentationConfigurations,
  ReplacePresentationConfiguration,
  UpdatePresentationConfiguration,
} from '../../../application/verification/presentation-configurations.ts';
import { PresentationConfigurationBody, PresentationConfigurationUpdate } from '../../../domain/verification/configuration.ts';
import { resourceRoutes } from '../resource-routes.ts';
import { families } from '../route.ts';
import { PresentationConfigurationView, toConfigurationView } from './configuration.view.ts';

/** A query with its attachments; certificates of anchors take most of the size. */
const BODY_LIMIT = 1024 * 1024;

const EXAMPLE = {
  id: 'name-check',
  description: 'Who is the visitor?',
  dcql_query: {
    credentials: [{ id: 'pid', format: 'dc+sd-jwt', meta: { vct_values: ['urn:eudi:pid:1'] }, claims: [{ path: ['given_name'] }] }],
  },
  trustAnchors: [{ keyChainId: 'signing' }],
  lifeTime: 300,
  redirectUri: 'https://shop.example/done?session={sessionId}',
  expectedOrigins: ['https://shop.example'],
};

const configuration = resourceRoutes({
  kind: 'presentation-configuration',
  tag: 'Verifier',
  path: '/verifier/config',
  exampleId: 'name-check',
  params: z.object({ id: z.string().max(128) }),
  access: { anyOf: ['presentation:manage', 'presentation:request'] },
  writeOverrides: { access: { anyOf: ['presentation:manage'] } },
  view: PresentationConfigurationView,
  get: GetPresentationConfiguration,
  toView: async (resource, { caller }) => toConfigurationView(resource, await caller.tenant.tenant()),
});

export const presentationConfigurationRoutes = families(
  configuration.list({
    operationId: 'listPresentationConfigurations',
    summary: 'List the presentation configurations',
    description: 'A restricted client sees the configurations that it may use.',
    by: ListPresentationConfigurations,
  }),
  configuration.get({ operationId: 'getPresentationConfiguration', summary: 'Read a presentation configuration' }),
  configuration.create({
    operationId: 'replacePresentationConfiguration',
    summary: 'Create or replace a presentation configuration',
    description:
      'Credentials are only accepted under `trustAnchors`; without an anchor none is; `{"keyChainId":"signing"}` is the certificate under ' +
      'which this tenant issues. Trust lists among them are fetched: `warnings` lists each unusable one with the reason, and an ' +
      'address of another document is rejected with 400. An API key `***` of a webhook keeps the stored key while address and header are unchanged.',
    body: PresentationConfigurationBody,
    bodyLimit: BODY_LIMIT,
    example: EXAMPLE,
    replaces: true,
    by: { reporting: ReplacePresentationConfiguration },
  }),
  configuration.update({
    operationId: 'updatePresentationConfiguration',
    summary: 'Change a presentation configuration',
    description: 'Properties are replaced as a whole; null resets a property to its default.',
    body: PresentationConfigurationUpdate,
    bodyLimit: BODY_LIMIT,
    example: { lifeTime: 600, redirectUri: null },
    by: { reporting: UpdatePresentationConfiguration },
  }),
  configuration.delete({
    operationId: 'deletePresentationConfiguration',
    summary: 'Remove a presentation configuration',
    responses: { 409: 'A credential configuration refers to it' },
    by: DeletePresentationConfiguration,
  }),
);
