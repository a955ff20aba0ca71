import { z } from 'zod';
import type { TenantCaller } from '../../../application/caller.ts';
import type { PortsOf } from '../../../application/needs.ts';
import { ServiceSettings } from '../../../application/ports/settings.ts';
import {
  CreateStatusList,
  DeleteStatusList,
  GetStatusList,
  ListStatusLists,
  UpdateStatusList,
} from '../../../application/status-lists/status-lists.ts';
import { StatusListCreation, StatusListUpdate } from '../../../domain/status-lists/list-definition.ts';
import { family, type Route, reply, route, show } from '../route.ts';
import { StatusListView, toStatusListView } from './status-list.view.ts';

const USE_CASES = {
  listStatusLists: ListStatusLists,
  getStatusList: GetStatusList,
  createStatusList: CreateStatusList,
  updateStatusList: UpdateStatusList,
  deleteStatusList: DeleteStatusList,
  settings: ServiceSettings,
};
type UseCases = PortsOf<typeof USE_CASES>;

const params = z.object({ listId: z.string().max(128) });
const common = { tag: 'Status lists', surface: 'admin', access: { anyOf: ['issuance:manage'] } } as const;
/** Lists are shared by all configurations. */
const writing = { ...common, access: { ...common.access, unrestricted: true } } as const;

/** Status lists as their tenant administers them. Without any of this, issuing makes the lists that it needs. */
export const statusListAdministrationRoutes = family(USE_CASES, (useCases) => [
  ...readRoutes(useCases),
  ...writeRoutes(useCases),
]);

type Asked = { readonly caller: TenantCaller; readonly params: { readonly listId: string } };

function shows({ getStatusList, settings }: UseCases) {
  return async ({ caller, params: { listId } }: Asked) => {
    const list = await getStatusList.execute(caller, listId);
    return show(200, toStatusListView(settings, caller.tenantId, list), list);
  };
}

function readRoutes(useCases: UseCases): readonly Route[] {
  const { listStatusLists, settings } = useCases;
  return [
    route({
      ...common,
      method: 'get',
      path: '/status-lists',
      summary: 'List the status lists',
      responses: { 200: z.array(StatusListView) },
      async handle({ caller }) {
        const lists = await listStatusLists.execute(caller);
        return reply(
          200,
          lists.map((list) => toStatusListView(settings, caller.tenantId, list)),
        );
      },
    }),
    route({
      ...common,
      method: 'get',
      path: '/status-lists/:listId',
      edits: { kind: 'status-list' },
      summary: 'Read a status list',
      params,
      responses: { 200: StatusListView },
      handle: shows(useCases),
    }),
  ];
}

function writeRoutes(useCases: UseCases): readonly Route[] {
  const { createStatusList, updateStatusList, deleteStatusList, settings } = useCases;
  return [
    route({
      ...writing,
      method: 'post',
      path: '/status-lists',
      edits: { kind: 'status-list' },
      summary: 'Make a status list',
      description:
        'Of the shape that `GET /status-list-config` shows, unless stated here. With `credentialConfigurationId` only ' +
        'credentials of that configuration get entries, and they get them there first. There may be 100 lists that no ' +
        'credential uses.',
      body: StatusListCreation,
      example: { bits: 2, capacity: 10000 },
      responses: { 201: StatusListView, 409: 'There are 100 lists that no credential uses' },
      async handle({ caller, body }) {
        const list = await createStatusList.execute(caller, body);
        return show(201, toStatusListView(settings, caller.tenantId, list), list);
      },
    }),
    route({
      ...writing,
      method: 'patch',
      path: '/status-lists/:listId',
      edits: { kind: 'status-list', id: ({ params }) => params.listId },
      summary: 'Change whose credentials a status list serves, and who signs it',
      description:
        'Credentials that use the list keep their entries. What is left out stays; null shares the list, or has the ' +
        "tenant's default sign it.",
      params,
      body: StatusListUpdate,
      example: { credentialConfigurationId: null },
      shows: shows(useCases),
      responses: { 200: StatusListView, 409: 'Readers of its credentials do not trust this key chain' },
      async handle({ caller, params: { listId }, body }) {
        const list = await updateStatusList.execute(caller, listId, body);
        return show(200, toStatusListView(settings, caller.tenantId, list), list);
      },
    }),
    route({
      ...writing,
      method: 'delete',
      path: '/status-lists/:listId',
      edits: { kind: 'status-list', id: ({ params }) => params.listId },
      summary: 'Delete a status list that no credential uses',
      params,
      responses: { 204: 'Done', 409: 'Credentials use the list' },
      async handle({ caller, params: { listId } }) {
        await deleteStatusList.execute(caller, listId);
        return { status: 204, empty: true };
      },
    }),
  ];
}
