import { SYSTEM } from '../../domain/audit/audit-entry.ts';
import { DOCUMENTS } from '../../domain/resources.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { DryRuns } from '../ports/dry-runs.ts';
import type { Store } from '../ports/store.ts';
import { Administration, type AdministrationPorts } from './administration.ts';

/** What a dry run is made over. */
type Wanted = {
  readonly tenants: readonly TenantId[];
  /** Clients that documents want: they may be taken by tenants that are not among `tenants`. */
  readonly clientIds: readonly string[];
};

/** Works on a copy of the tenants: what the rules say of the documents is found out without a trace, neither in the store nor at a KMS. */
export async function inDryRun<T>(
  ports: AdministrationPorts & { readonly dryRuns: DryRuns },
  { tenants, clientIds }: Wanted,
  work: (administration: Administration) => Promise<T>,
): Promise<T> {
  const { close, ...own } = await ports.dryRuns.open();
  try {
    for (const tenant of tenants) await copyTenant(ports.store, own.store, tenant);
    for (const clientId of clientIds) await copyStranger(ports.store, own.store, clientId);
    return await work(new Administration({ ...ports, ...own }, true));
  } finally {
    await close();
  }
}

const DOCUMENT_REPOSITORIES = DOCUMENTS.map(({ repository }) => repository);

async function copyTenant(from: Store, to: Store, id: TenantId): Promise<void> {
  const tenant = await from.forService(({ tenants }) => tenants.find(id));
  if (tenant === undefined) return;
  const { clients, statusLists, trustLists, documents } = await from.forTenant(id, async (own) => ({
    clients: await own.clients.list(),
    statusLists: await own.statusLists.list(),
    trustLists: await own.trustLists.list(),
    documents: await Promise.all(DOCUMENT_REPOSITORIES.map((name) => own[name].list())),
  }));
  await to.forService(({ tenants }) => tenants.add(tenant, { keyChains: [], clients }), { by: SYSTEM });
  await to.forTenant(
    id,
    async (own) => {
      for (const [index, name] of DOCUMENT_REPOSITORIES.entries()) {
        for (const document of documents[index] ?? []) await own[name].put(document as never);
      }
      for (const list of statusLists) await own.statusLists.add(list);
      for (const list of trustLists) await own.trustLists.add(list);
    },
    { by: SYSTEM },
  );
}

async function copyStranger(from: Store, to: Store, clientId: string): Promise<void> {
  const client = await from.forService(({ clients }) => clients.find(clientId));
  const known = await to.forService(({ clients }) => clients.find(clientId));
  if (client === undefined || known !== undefined) return;
  await to.forService(({ clients }) => clients.add({ ...client, tenantId: null }), { by: SYSTEM });
}
