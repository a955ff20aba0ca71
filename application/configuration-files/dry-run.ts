import { SYSTEM } from '../../domain/audit/audit-entry.ts';
import { DOCUMENTS } from '../../domain/resources.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { DryRuns } from '../ports/dry-runs.ts';
import type { Store } from '../ports/store.ts';
import { Administration, type AdministrationPorts } from './administration.ts';

type DryRunScope = {
  readonly tenants: readonly TenantId[];
  /** Client ids in the documents, which may be taken by tenants outside of `tenants`. */
  readonly clientIds: readonly string[];
};

/** Works on a copy of the tenants, so that documents are validated without effect on the store or a KMS. */
export async function inDryRun<T>(
  ports: AdministrationPorts & { readonly dryRuns: DryRuns },
  { tenants, clientIds }: DryRunScope,
  work: (administration: Administration) => Promise<T>,
): Promise<T> {
  const { close, ...dryRunPorts } = await ports.dryRuns.open();
  try {
    for (const tenant of tenants) await copyTenant(ports.store, dryRunPorts.store, tenant);
    for (const clientId of clientIds) await copyForeignClient(ports.store, dryRunPorts.store, clientId);
    return await work(new Administration({ ...ports, ...dryRunPorts }, true));
  } finally {
    await close();
  }
}

const DOCUMENT_REPOSITORIES = DOCUMENTS.map(({ repository }) => repository);

async function copyTenant(from: Store, to: Store, id: TenantId): Promise<void> {
  const tenant = await from.forService(({ tenants }) => tenants.find(id));
  if (tenant === undefined) return;
  const { clients, statusLists, trustLists, documents } = await from.forTenant(id, async (repositories) => ({
    clients: await repositories.clients.list(),
    statusLists: await repositories.statusLists.list(),
    trustLists: await repositories.trustLists.list(),
    documents: await Promise.all(DOCUMENT_REPOSITORIES.map((name) => repositories[name].list())),
  }));
  await to.forService(({ tenants }) => tenants.add(tenant, { keyChains: [], clients }), { by: SYSTEM });
  await to.forTenant(
    id,
    async (repositories) => {
      for (const [index, name] of DOCUMENT_REPOSITORIES.entries()) {
        for (const document of documents[index] ?? []) await repositories[name].put(document as never);
      }
      for (const list of statusLists) await repositories.statusLists.add(list);
      for (const list of trustLists) await repositories.trustLists.add(list);
    },
    { by: SYSTEM },
  );
}

async function copyForeignClient(from: Store, to: Store, clientId: string): Promise<void> {
  const client = await from.forService(({ clients }) => clients.find(clientId));
  const copiedClient = await to.forService(({ clients }) => clients.find(clientId));
  if (client === undefined || copiedClient !== undefined) return;
  await to.forService(({ clients }) => clients.add({ ...client, tenantId: null }), { by: SYSTEM });
}
