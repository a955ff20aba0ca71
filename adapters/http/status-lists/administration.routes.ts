import { z } from 'zod';
import {
  CreateStatusList,
  DeleteStatusList,
  GetStatusList,
  ListStatusLists,
  UpdateStatusList,
} from '../../../application/status-lists/status-lists.ts';
import { StatusListCreation, StatusListUpdate } from '../../../domain/status-lists/list-definition.ts';
import { resourceRoutes } from '../resource-routes.ts';
import { families, family, route } from '../route.ts';
import { StatusListView, toStatusListView } from './status-list.view.ts';

const params = z.object({ listId: z.string().max(128) });
const common = { tag: 'Status lists', surface: 'admin', access: { anyOf: ['issuance:manage'] } } as const;
/** Lists are shared by all configurations. */
const writes = { access: { ...common.access, unrestricted: true } } as const;

const list = resourceRoutes({
  ...common,
  kind: 'status-list',
  path: '/status-lists',
  params,
  writes,
  view: StatusListView,
  get: GetStatusList,
  toView: (shown, { caller, settings }) => toStatusListView(settings, caller.tenantId, shown),
});

/** Status lists as their tenant administers them. Without any of this, issuing makes the lists that it needs. */
export const statusListAdministrationRoutes = families(
  list.list({ summary: 'List the status lists', by: ListStatusLists }),
  list.get({ summary: 'Read a status list' }),
  list.create({
    summary: 'Make a status list',
    description:
      'Of the shape that `GET /status-list-config` shows, unless stated here. With `credentialConfigurationId` only ' +
      'credentials of that configuration get entries, and they get them there first. There may be 100 lists that no ' +
      'credential uses.',
    body: StatusListCreation,
    example: { bits: 2, capacity: 10000 },
    responses: { 409: 'There are 100 lists that no credential uses' },
    by: CreateStatusList,
  }),
  list.update({
    summary: 'Change whose credentials a status list serves, and who signs it',
    description:
      'Credentials that use the list keep their entries. What is left out stays; null shares the list, or has the ' +
      "tenant's default sign it.",
    body: StatusListUpdate,
    example: { credentialConfigurationId: null },
    responses: { 409: 'Readers of its credentials do not trust this key chain' },
    by: UpdateStatusList,
  }),
  family({ deleteStatusList: DeleteStatusList }, ({ deleteStatusList }) => [
    route({
      ...common,
      ...writes,
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
  ]),
);
