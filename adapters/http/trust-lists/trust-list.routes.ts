import { z } from 'zod';
import type { TenantCaller } from '../../../application/caller.ts';
import type { PortsOf } from '../../../application/needs.ts';
import { ServiceSettings } from '../../../application/ports/settings.ts';
import {
  GetTrustListVersion,
  ListTrustListVersions,
  VersionListQuery,
} from '../../../application/trust-lists/trust-list-versions.ts';
import {
  CreateTrustList,
  DeleteTrustList,
  GetTrustList,
  ListTrustLists,
  ReplaceTrustList,
  UpdateTrustList,
} from '../../../application/trust-lists/trust-lists.ts';
import { TrustListReplacement, TrustListUpdate } from '../../../domain/trust-lists/list-configuration.ts';
import type { PublishedList } from '../../../domain/trust-lists/published-list.ts';
import { family, type Route, reply, route, show } from '../route.ts';
import { DeletedView } from '../shapes/deleted.view.ts';
import {
  TrustListExportView,
  TrustListVersionView,
  TrustListView,
  toExportView,
  toTrustListView,
  toVersionView,
} from './trust-list.view.ts';

const common = {
  tag: 'Trust lists',
  surface: 'admin',
  access: { anyOf: ['issuance:manage', 'presentation:manage'] },
} as const;
/** Certificates of others weigh most. */
const BODY_LIMIT = 512 * 1024;
/** All configurations rest on them. */
const written = {
  ...common,
  bodyLimit: BODY_LIMIT,
  access: { ...common.access, unrestricted: true },
} as const;
const params = z.object({ id: z.string().max(128) });

const USE_CASES = {
  listTrustLists: ListTrustLists,
  getTrustList: GetTrustList,
  createTrustList: CreateTrustList,
  replaceTrustList: ReplaceTrustList,
  updateTrustList: UpdateTrustList,
  deleteTrustList: DeleteTrustList,
  listTrustListVersions: ListTrustListVersions,
  settings: ServiceSettings,
  getTrustListVersion: GetTrustListVersion,
};
type UseCases = PortsOf<typeof USE_CASES>;

const ENTITIES = [
  {
    type: 'internal',
    issuerKeyChainId: 'signing',
    revocationKeyChainId: 'status-list',
    info: { name: 'Acme University', country: 'DE', uri: 'https://university.example' },
  },
];
const EXAMPLE = {
  id: 'universities',
  description: 'Who issues student cards',
  entities: ENTITIES,
  data: {
    LoTE: { ListAndSchemeInformation: { SchemeName: [{ lang: 'en', value: 'DE:Universities' }] } },
  },
};

async function shown(status: number, caller: TenantCaller, list: PublishedList) {
  const view = toTrustListView(list, await caller.configured.tenant(), await caller.configured.keyChains());
  return show(status, view, list);
}

/** The trust lists of a tenant as its administrators write and read them. */
export const trustListRoutes = family(USE_CASES, (useCases) => [
  ...readRoutes(useCases),
  ...versionRoutes(useCases),
  ...writeRoutes(useCases),
]);

type Asked = { readonly caller: TenantCaller; readonly params: { readonly id: string } };

function shows({ getTrustList }: UseCases) {
  return async ({ caller, params: { id } }: Asked) =>
    shown(200, caller, await getTrustList.execute(caller, id));
}

function readRoutes(useCases: UseCases): readonly Route[] {
  const { listTrustLists, getTrustList } = useCases;
  return [
    route({
      ...common,
      method: 'get',
      path: '/trust-list',
      summary: 'List the trust lists',
      responses: { 200: z.array(TrustListView) },
      async handle({ caller }) {
        const lists = await listTrustLists.execute(caller);
        const [tenant, chains] = [await caller.configured.tenant(), await caller.configured.keyChains()];
        return reply(
          200,
          lists.map((list) => toTrustListView(list, tenant, chains)),
        );
      },
    }),
    route({
      ...common,
      method: 'get',
      path: '/trust-list/:id',
      edits: { kind: 'trust-list' },
      summary: 'Read a trust list',
      params,
      responses: { 200: TrustListView },
      handle: shows(useCases),
    }),
    route({
      ...common,
      method: 'get',
      path: '/trust-list/:id/export',
      summary: 'Read a trust list in the form in which it is written',
      params,
      responses: { 200: TrustListExportView },
      async handle({ caller, params: { id } }) {
        return reply(200, toExportView(await getTrustList.execute(caller, id)));
      },
    }),
  ];
}

function versionRoutes({ listTrustListVersions, getTrustListVersion, settings }: UseCases): readonly Route[] {
  return [
    route({
      ...common,
      method: 'get',
      path: '/trust-list/:id/versions',
      summary: 'List what a trust list was before',
      description:
        'Newest first, without the list as it is now; the latest 50 are kept. The `Link` header with `rel="next"` ' +
        'leads to older ones; a page of long lists holds fewer than `limit`.',
      params,
      query: VersionListQuery,
      responses: { 200: z.array(TrustListVersionView) },
      async handle({ caller, params: { id }, query }) {
        const { versions, next } = await listTrustListVersions.execute(caller, id, query);
        return reply(
          200,
          versions.map((version) => toVersionView(version, caller.tenantId)),
          next === undefined ? {} : olderVersions(settings.publicUrl, id, query.limit, next),
        );
      },
    }),
    route({
      ...common,
      method: 'get',
      path: '/trust-list/:id/versions/:versionId',
      summary: 'Read what a trust list was before',
      params: params.extend({ versionId: z.string().max(128) }),
      responses: { 200: TrustListVersionView },
      async handle({ caller, params: { id, versionId } }) {
        const version = await getTrustListVersion.execute(caller, id, versionId);
        return reply(200, toVersionView(version, caller.tenantId));
      },
    }),
  ];
}

/** A `Link` header to the next page (RFC 8288) that repeats what this page was asked for. */
function olderVersions(
  publicUrl: string,
  id: string,
  limit: number,
  cursor: string,
): { readonly Link: string } {
  const parameters = new URLSearchParams({ limit: String(limit), cursor });
  return { Link: `<${publicUrl}/trust-list/${encodeURIComponent(id)}/versions?${parameters}>; rel="next"` };
}

function writeRoutes(useCases: UseCases): readonly Route[] {
  const { createTrustList, replaceTrustList, updateTrustList, deleteTrustList } = useCases;
  return [
    route({
      ...written,
      method: 'post',
      path: '/trust-list',
      edits: { kind: 'trust-list' },
      summary: 'Publish a trust list',
      description:
        'The list is composed of the entities, signed and published at `/{tenant}/trust-list/{id}`. An internal ' +
        'entity is listed with the CA of its key chains, an external one with the certificates that are given. ' +
        '`data` says more about the scheme, in the shape of the document; numbers, times and entities in it are ' +
        'written by the service and refused.',
      body: TrustListReplacement,
      example: EXAMPLE,
      responses: { 201: TrustListView, 409: 'There is a list of this id, or there are 50 already' },
      async handle({ caller, body }) {
        return shown(201, caller, await createTrustList.execute(caller, body));
      },
    }),
    route({
      ...written,
      method: 'put',
      path: '/trust-list/:id',
      edits: { kind: 'trust-list', id: ({ params }) => params.id },
      summary: 'Replace a trust list',
      params,
      body: TrustListReplacement,
      example: { description: 'Nobody at present', entities: [] },
      shows: shows(useCases),
      responses: { 200: TrustListView },
      async handle({ caller, params: { id }, body }) {
        return shown(200, caller, await replaceTrustList.execute(caller, id, body));
      },
    }),
    route({
      ...written,
      method: 'patch',
      path: '/trust-list/:id',
      edits: { kind: 'trust-list', id: ({ params }) => params.id },
      summary: 'Change members of a trust list',
      description:
        'Members are replaced whole; null resets one to its default. An empty change signs the list anew.',
      params,
      body: TrustListUpdate,
      example: { entities: ENTITIES },
      shows: shows(useCases),
      responses: { 200: TrustListView },
      async handle({ caller, params: { id }, body }) {
        return shown(200, caller, await updateTrustList.execute(caller, id, body));
      },
    }),
    route({
      ...written,
      method: 'delete',
      path: '/trust-list/:id',
      edits: { kind: 'trust-list', id: ({ params }) => params.id },
      summary: 'Take a trust list out of publication',
      description: 'A later list of this id goes on from its last sequence number.',
      params,
      responses: { 200: DeletedView },
      async handle({ caller, params: { id } }) {
        await deleteTrustList.execute(caller, id);
        return reply(200, { id });
      },
    }),
  ];
}
