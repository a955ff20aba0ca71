import { type EntityManager, raw } from '@mikro-orm/core';
import type { Cipher } from '../../../application/ports/cipher.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import type { Quotas } from '../../../domain/tenants/quotas.ts';
import type { ConfiguredKind } from '../../../domain/tenants/revisions.ts';
import type { ClientMacs } from '../client-macs.ts';
import { ClientRow, RemovedClientRow, TenantRow } from '../rows/administration.row.ts';
import { snakeCase } from '../rows/columns.ts';
import { byClientId } from '../rows/document-tables.ts';
import { readStatusList, STATUS_LISTS } from '../rows/session-codec.ts';
import { StatusListRow } from '../rows/status.row.ts';
import { readTenant, tenantColumns } from '../rows/tenant-columns.ts';
import { SeenReleaseRow } from '../rows/trust-list.row.ts';
import type { Row } from '../statement.ts';
import { auditLog } from './audit-chain.ts';
import type { PlainTenantRepositories } from './audited-repositories.ts';
import { addClient, saveClient, staleWriteError, verifiedClient } from './clients.ts';
import { documentRepositories } from './document-repositories.ts';
import { documentsOf, FRESH } from './documents.ts';
import { assertFound, insertUnique, notFoundError } from './not-found.ts';
import { ProfileGuard } from './profiles.ts';
import { QuotaGuard } from './quotas.ts';
import { recordedKeysOf, withRecordedKeys } from './recorded-keys.ts';
import { withRetiredKeys } from './retired-keys.ts';
import { trustListRepository } from './trust-list-repository.ts';

/** Repositories of one tenant within one transaction. @param touch runs before each write. */
export function tenantRepositories(
  em: EntityManager,
  { cipher, clientMacs: macs }: { readonly cipher: Cipher; readonly clientMacs: ClientMacs },
  tenantId: TenantId,
  touch: (kind: ConfiguredKind) => Promise<void>,
  limits: Quotas | undefined,
): PlainTenantRepositories {
  const read = (row: object) => readStatusList(cipher, columnsOf(row));
  const quotas = new QuotaGuard(em, tenantId, limits);
  const guards = { quotas, profiles: new ProfileGuard(em, tenantId) };
  const documents = documentRepositories(({ kind, revision }) => documentsOf(em, cipher, tenantId, kind, () => touch(revision), guards));
  const trustLists = trustListRepository(em, cipher, tenantId, () => touch('trustLists'));
  const recordedKeys = recordedKeysOf(em, tenantId, () => touch('keyChains'));
  return {
    ...documents,
    keyChains: withRecordedKeys(withRetiredKeys(em, documents.keyChains), recordedKeys),
    recordedKeys,
    tenant: {
      get: async () => readTenant(assertFound(await em.findOne(TenantRow, { id: tenantId }, FRESH), 'tenant')),
      async save(tenant) {
        await touch('tenant');
        const { profile } = tenant;
        if (profile !== null && profile !== (await this.get()).profile) await guards.profiles.assertAllFit(profile, documents, trustLists);
        const { id: _id, version: _version, revision: _revision, ...columns } = tenantColumns(tenant);
        const data = { ...columns, version: tenant.version + 1 };
        const changedRows = await em.nativeUpdate(TenantRow, { id: tenantId, version: tenant.version }, data);
        if (changedRows === 0) throw staleWriteError('tenant');
        return { ...tenant, version: tenant.version + 1 };
      },
    },
    clients: {
      get: async (clientId) => assertFound(verifiedClient(macs, await em.findOne(ClientRow, { clientId }, FRESH)), 'client'),
      list: async () => (await em.find(ClientRow, {}, FRESH)).flatMap((row) => verifiedClient(macs, row) ?? []).sort(byClientId),
      async add(client) {
        await touch('clients');
        await addClient(em, macs, { ...client, tenantId });
        await quotas.assertClientsFit();
      },
      async save(client) {
        await touch('clients');
        return saveClient(em, macs, client, tenantId);
      },
      async remove(clientId) {
        await touch('clients');
        const removed = await em.nativeDelete(ClientRow, { clientId, tenantId });
        if (removed === 0) throw notFoundError('client');
        await em.upsert(RemovedClientRow, { tenantId, clientId }, { onConflictAction: 'ignore' });
      },
    },
    statusLists: {
      get: async (id) => read(assertFound(await em.findOne(StatusListRow, { id }, FRESH), 'status list')),
      async list() {
        const rows = await em.find(StatusListRow, {}, { ...FRESH, orderBy: { createdAt: 'asc', id: 'asc' } });
        return rows.map(read);
      },
      async add(list) {
        await touch('statusLists');
        const { secret, token: _token, tokenExpiresAt: _end, createdAt, ...columns } = list;
        const row = {
          ...columns,
          tenantId,
          secret: String(STATUS_LISTS.field('secret', secret, { cipher, tenantId, id: list.id })),
          createdAt: createdAt.getTime(),
          token: null,
        };
        await insertUnique('this id already exists', () => em.insert(StatusListRow, row));
      },
      async rebind(id, { credentialConfigurationId, keyChainId }, { unused }) {
        await touch('statusLists');
        const version = raw<number>('version + 1');
        const changedRows = await em.nativeUpdate(
          StatusListRow,
          { tenantId, id, ...(unused && { usedEntries: 0 }) },
          { credentialConfigurationId, keyChainId, version },
        );
        return changedRows === 0 ? undefined : this.get(id);
      },
      async removeUnused(id) {
        await touch('statusLists');
        const removed = await em.nativeDelete(StatusListRow, { tenantId, id, usedEntries: 0 });
        return removed > 0;
      },
    },
    trustLists,
    seenReleases: {
      async removeAll() {
        await em.nativeDelete(SeenReleaseRow, { tenantId });
      },
    },
    audit: auditLog(em, tenantId),
  };
}

function columnsOf(row: object): Row {
  return Object.fromEntries(Object.entries(row).map(([property, value]) => [snakeCase(property), value]));
}
