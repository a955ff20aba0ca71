import { object, z } from 'zod';
import type { ServiceSettings } from '../../../application/ports/settings.ts';
import { statusListUri } from '../../../application/status-lists/status-allocator.ts';
import {
  CreateStatusList,
  DeleteStatusList,
  GetStatusList,
  ListStatusLists,
  UpdateStatusList,
} from '../../../application/status-lists/status-lists.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { withKeyReferences } from '../../../domain/shared/older-names.ts';
import { StatusListCreation, StatusListUpdate } from '../../../domain/status-lists/list-definition.ts';
import type { StatusList } from '../../../domain/status-lists/status-list.ts';
import { viewOf } from '../output/view-of.ts';
import { resourceRoutes } from '../resource-routes.ts';
import { families, family, route } from '../route.ts';

const StatusListView = object({
  id: z.string(),
  tenantId: z.string(),
  credentialConfigurationId: z.string().nullable().describe('Null: shared'),
  keyChainId: z.string().nullable().describe('Null: the default of the tenant signs'),
  certId: z.string().nullable().describe('Former name of `keyChainId`'),
  bits: z.union([z.literal(1), z.literal(2), z.literal(4), z.literal(8)]),
  capacity: z.number().int(),
  usedEntries: z
    .number()
    .int()
    .describe(
      'Entries of credentials. Processes reserve entries in advance: those that another process has reserved and not yet ' +
        'allocated to a credential are counted as used',
    ),
  availableEntries: z.number().int(),
  uri: z.string(),
  ttl: z.number().int().describe('Validity of a token of the list in seconds'),
  immediateUpdate: z.boolean(),
  enableAggregation: z.boolean(),
  createdAt: z.iso.datetime(),
  expiresAt: z.iso.datetime().nullable().describe('Expiry of the last token; null before the first'),
}).meta({ id: 'StatusList', description: 'A status list with its administrative properties' });

function toStatusListView(settings: ServiceSettings, tenantId: TenantId, list: StatusList) {
  return withKeyReferences(
    viewOf(StatusListView, {
      ...list,
      tenantId,
      availableEntries: list.capacity - list.usedEntries,
      uri: statusListUri(settings, tenantId, list.id),
      ttl: list.ttlSeconds,
      expiresAt: list.tokenExpiresAt,
    }),
  );
}

const params = object({ listId: z.string().max(128) });
const common = { tag: 'Status lists', surface: 'admin', access: { anyOf: ['issuance:manage'] } } as const;
/** All configurations share the lists. */
const writeOverrides = { access: { ...common.access, unrestricted: true } } as const;

const list = resourceRoutes({
  ...common,
  kind: 'status-list',
  path: '/status-lists',
  params,
  writeOverrides,
  view: StatusListView,
  get: GetStatusList,
  toView: (resource, { caller, settings }) => toStatusListView(settings, caller.tenantId, resource),
});

/** Administration of status lists. It is optional: issuance creates the lists that it needs. */
export const statusListAdministrationRoutes = families(
  list.list({ operationId: 'listStatusLists', summary: 'List the status lists', by: ListStatusLists }),
  list.get({ operationId: 'getStatusList', summary: 'Read a status list' }),
  list.create({
    operationId: 'createStatusList',
    summary: 'Create a status list',
    description:
      'Default parameters: those of `GET /status-list-config`. With `credentialConfigurationId` only ' +
      'credentials of that configuration get entries, and they use this list first. There may be 100 unused lists.',
    body: StatusListCreation,
    example: { bits: 2, capacity: 10000 },
    responses: { 409: 'There are 100 unused lists' },
    by: CreateStatusList,
  }),
  list.update({
    operationId: 'updateStatusList',
    summary: 'Change the configuration and the signer of a status list',
    description:
      'Credentials that use the list keep their entries. Omitted properties are unchanged; null shares the list, or lets the ' +
      'default of the tenant sign it.',
    body: StatusListUpdate,
    example: { credentialConfigurationId: null },
    responses: { 409: 'Verifiers of its credentials do not trust this key chain' },
    by: UpdateStatusList,
  }),
  family({ deleteStatusList: DeleteStatusList }, ({ deleteStatusList }) => [
    route({
      ...common,
      ...writeOverrides,
      method: 'delete',
      path: '/status-lists/:listId',
      operationId: 'deleteStatusList',
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
