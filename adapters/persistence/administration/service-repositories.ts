import type { EntityManager } from '@mikro-orm/core';
import type { Cipher } from '../../../application/ports/cipher.ts';
import type { KeyChain } from '../../../domain/keys/key-chain.ts';
import { keysAtProviders } from '../../../domain/keys/retired-keys.ts';
import { defined } from '../../../domain/shared/defined.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import type { Quotas } from '../../../domain/tenants/quotas.ts';
import { firstRevisions } from '../../../domain/tenants/revisions.ts';
import { hasEnded } from '../../../domain/tenants/tenant-end.ts';
import type { ClientMacs } from '../client-macs.ts';
import { ClientRow, RecordedKeyRow, RemovedClientRow, TenantRow } from '../rows/administration.row.ts';
import { byClientId, byId } from '../rows/document-tables.ts';
import { readTenant, tenantColumns } from '../rows/tenant-columns.ts';
import { lockHead, serviceAuditLog } from './audit-chain.ts';
import type { PlainServiceRepositories } from './audited-repositories.ts';
import { addClient, saveClient, verifiedClient } from './clients.ts';
import { documentsOf, FRESH } from './documents.ts';
import { assertFound, insertUnique, notFoundError } from './not-found.ts';
import { ProfileGuard } from './profiles.ts';
import { QuotaGuard } from './quotas.ts';
import { keyChainsOf, retireKeys } from './retired-keys.ts';
import { raiseRevision } from './revisions.ts';
import { beginRemoval, endRemoval } from './tenant-removal.ts';

export function serviceRepositories(
  em: EntityManager,
  { cipher, clientMacs: macs }: { readonly cipher: Cipher; readonly clientMacs: ClientMacs },
  limits: Quotas | undefined,
): PlainServiceRepositories {
  const unscoped = { filters: { tenant: false }, ...FRESH } as const;
  return {
    tenants: {
      async get(id) {
        return assertFound(await this.find(id), 'tenant');
      },
      async find(id) {
        const row = await em.findOne(TenantRow, { id }, FRESH);
        return row === null ? undefined : readTenant(row);
      },
      list: async () => (await em.find(TenantRow, {}, FRESH)).map(readTenant).sort(byId),
      async add(tenant, belongings) {
        await endRemoval(em, tenant.id);
        await insertUnique('a tenant with this id already exists', () =>
          em.insert(TenantRow, { ...tenantColumns(tenant), revisions: firstRevisions(tenant.createdAt) }),
        );
        const quotas = new QuotaGuard(em, tenant.id, limits);
        const guards = { quotas, profiles: new ProfileGuard(em, tenant.id) };
        const chains = documentsOf<KeyChain>(em, cipher, tenant.id, 'key-chain', async () => {}, guards);
        for (const chain of belongings?.keyChains ?? []) await chains.add(chain);
        for (const client of belongings?.clients ?? []) await addClient(em, macs, { ...client, tenantId: tenant.id });
        await quotas.assertClientsFit();
      },
      async remove(id) {
        await waitForWriters(em, id);
        const keys = keysAtProviders(await keyChainsOf(em, cipher, id));
        const removed = await em.nativeDelete(TenantRow, { id });
        if (removed === 0) throw notFoundError('tenant');
        await beginRemoval(em, id);
        await retireKeys(em, keys);
        // The head of its chain is locked last, as in every transaction.
        return lockHead(em, id);
      },
      async removeEnded(id, now) {
        // The expiry of the tenant may be extended at this moment, so it is read again behind the lock.
        await waitForWriters(em, id);
        const ended = await this.find(id);
        if (ended === undefined || !hasEnded(ended, now)) return {};
        return { ended, ...defined({ head: await this.remove(id) }) };
      },
    },
    clients: {
      find: async (clientId) => verifiedClient(macs, await em.findOne(ClientRow, { clientId }, unscoped)),
      async listOf(tenantId) {
        return (await em.find(ClientRow, { tenantId }, unscoped)).flatMap((row) => verifiedClient(macs, row) ?? []).sort(byClientId);
      },
      isRemoved: async (tenantId, clientId) => (await em.findOne(RemovedClientRow, { tenantId, clientId }, unscoped)) !== null,
      async add(client) {
        if (client.tenantId !== null) await raiseRevision(em, client.tenantId, 'clients', { isFirst: true });
        await addClient(em, macs, client);
        if (client.tenantId !== null) await new QuotaGuard(em, client.tenantId, limits).assertClientsFit();
      },
      async save(client) {
        if (client.tenantId !== null) await raiseRevision(em, client.tenantId, 'clients', { isFirst: true });
        return saveClient(em, macs, client, client.tenantId);
      },
    },
    recordedKeys: {
      async compromised() {
        const rows = await em.find(RecordedKeyRow, { compromisedAt: { $ne: null } }, unscoped);
        return rows.map(({ tenantId, thumbprint }) => ({ tenantId: tenantId as TenantId, thumbprint }));
      },
    },
    audit: serviceAuditLog(em),
  };
}

/** Waits for the transactions that write to the tenant, so that none of its keys is missed. */
async function waitForWriters(em: EntityManager, id: TenantId): Promise<void> {
  await em.getConnection().execute('update tenants set name = name where id = ?', [id], 'run', em.getTransactionContext());
}
