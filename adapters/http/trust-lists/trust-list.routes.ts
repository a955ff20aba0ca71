import { z } from 'zod';
import { ServiceSettings } from '../../../application/ports/settings.ts';
import {
  CreateTrustList,
  DeleteTrustList,
  GetTrustList,
  GetTrustListVersion,
  ListTrustLists,
  ListTrustListVersions,
  ReplaceTrustList,
  UpdateTrustList,
  VersionListQuery,
} from '../../../application/trust-lists/trust-lists.ts';
import { TrustListReplacement, TrustListUpdate } from '../../../domain/trust-lists/list-configuration.ts';
import { nextPage } from '../output/next-page.ts';
import { resourceRoutes } from '../resource-routes.ts';
import { families, family, reply, route } from '../route.ts';
import {
  TrustListExportView,
  TrustListVersionView,
  TrustListView,
  toExportView,
  toTrustListView,
  toVersionView,
} from './trust-list.view.ts';

const common = { tag: 'Trust lists', surface: 'admin', access: { anyOf: ['issuance:manage', 'presentation:manage'] } } as const;
/** Certificates take most of the size. */
const BODY_LIMIT = 512 * 1024;
/** All configurations depend on the lists, and readers trust the listed entities under the issuing keys of the tenant. */
const writeOverrides = { bodyLimit: BODY_LIMIT, access: { anyOf: ['issuance:manage'], unrestricted: true } } as const;
const params = z.object({ id: z.string().max(128) });

const ENTITIES = [
  {
    type: 'internal',
    issuerKeyChainId: 'signing',
    revocationKeyChainId: 'status-list',
    info: { name: 'Acme University', country: 'DE', streetAddress: 'Main Street 1', uri: 'https://university.example' },
  },
];
const EXAMPLE = {
  id: 'universities',
  description: 'Who issues student cards',
  entities: ENTITIES,
  data: { LoTE: { ListAndSchemeInformation: { SchemeName: [{ lang: 'en', value: 'DE:Universities' }] } } },
};

const VERSIONS = { listTrustListVersions: ListTrustListVersions, getTrustListVersion: GetTrustListVersion, settings: ServiceSettings };

const list = resourceRoutes({
  ...common,
  kind: 'trust-list',
  path: '/trust-list',
  exampleId: 'universities',
  params,
  writeOverrides,
  view: TrustListView,
  get: GetTrustList,
  toView: async (list, { caller: { tenant } }) => toTrustListView(list, await tenant.tenant(), await tenant.keyChains()),
});

export const trustListRoutes = families(
  list.list({ operationId: 'listTrustLists', summary: 'List the trust lists', by: ListTrustLists }),
  list.get({ operationId: 'getTrustList', summary: 'Read a trust list' }),
  family({ getTrustList: GetTrustList }, ({ getTrustList }) => [
    route({
      ...common,
      method: 'get',
      path: '/trust-list/:id/export',
      operationId: 'exportTrustList',
      exampleParameters: { id: 'universities' },
      summary: 'Read a trust list in the format of a write',
      params,
      responses: { 200: TrustListExportView },
      handle: async ({ caller, params: { id } }) => reply(200, toExportView(await getTrustList.execute(caller, id))),
    }),
  ]),
  family(VERSIONS, ({ listTrustListVersions, getTrustListVersion, settings }) => [
    route({
      ...common,
      method: 'get',
      path: '/trust-list/:id/versions',
      operationId: 'listTrustListVersions',
      exampleParameters: { id: 'universities' },
      summary: 'List the former versions of a trust list',
      description:
        'Default order: the newest first, without the present version; the latest 50 are kept. The `Link` header with ' +
        '`rel="next"` is the address of the next page; a page of large lists contains fewer than `limit`.',
      params,
      query: VersionListQuery,
      responses: { 200: z.array(TrustListVersionView) },
      async handle({ caller, params: { id }, query }) {
        const { versions, next } = await listTrustListVersions.execute(caller, id, query);
        const views = versions.map((version) => toVersionView(version, caller.tenantId));
        const address = `${settings.publicUrl}/trust-list/${encodeURIComponent(id)}/versions`;
        return reply(200, views, nextPage(address, query, next));
      },
    }),
    route({
      ...common,
      method: 'get',
      path: '/trust-list/:id/versions/:versionId',
      operationId: 'getTrustListVersion',
      exampleParameters: { id: 'universities' },
      summary: 'Read a former version of a trust list',
      params: params.extend({ versionId: z.string().max(128) }),
      responses: { 200: TrustListVersionView },
      async handle({ caller, params: { id, versionId } }) {
        const version = await getTrustListVersion.execute(caller, id, versionId);
        return reply(200, toVersionView(version, caller.tenantId));
      },
    }),
  ]),
  list.create({
    operationId: 'createTrustList',
    summary: 'Publish a trust list',
    description:
      'The list is composed of the entities, signed and published at `/{tenant}/trust-list/{id}`. An internal entity is listed with the ' +
      'CA of its key chains, an external one with the certificates of the request. `data` contains scheme information in the structure of the ' +
      'document; its numbers, times and entities are written by the service and rejected in the request.',
    body: TrustListReplacement,
    example: EXAMPLE,
    responses: { 409: 'A list with this id exists, or there are already 50' },
    by: CreateTrustList,
  }),
  list.replace({
    operationId: 'replaceTrustList',
    summary: 'Replace a trust list',
    body: TrustListReplacement,
    example: { description: 'No tenant at present', entities: [] },
    by: ReplaceTrustList,
  }),
  list.update({
    operationId: 'updateTrustList',
    summary: 'Change a trust list',
    description: 'Properties are replaced as a whole; null resets a property to its default. An empty change signs the list again.',
    body: TrustListUpdate,
    example: { entities: ENTITIES },
    by: UpdateTrustList,
  }),
  list.delete({
    operationId: 'deleteTrustList',
    summary: 'Delete a published trust list',
    description: 'A later list with this id continues from its last sequence number.',
    by: DeleteTrustList,
  }),
);
