import type { Documents } from '../../../application/ports/store.ts';
import type { Client } from '../../../domain/clients/client.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import type { Tenant } from '../../../domain/tenants/tenant.ts';
import type { PlainServiceRepositories, PlainTenantRepositories } from '../audited-repositories.ts';
import type { State } from './state.ts';
import { EVERYWHERE, type Table } from './table.ts';
import { trustListRepository } from './trust-list-repository.ts';

const by =
  <T>(name: (row: T) => string) =>
  (a: T, b: T) =>
    name(a) < name(b) ? -1 : 1;
const byClientId = by<Client>((client) => client.clientId);

/** Repositories of one tenant inside one transaction; `touched` tells whether something was written. */
export function tenantRepositories(
  state: State,
  tenantId: TenantId,
  touched: () => void,
): Omit<PlainTenantRepositories, 'audit'> {
  const { clients, statusLists, tenants } = state;
  const ownClient = (clientId: string) => {
    const client = clients.find(EVERYWHERE, clientId);
    if (client?.tenantId !== tenantId) throw new Failure('not_found', 'there is no such client');
    return client;
  };
  const documents = <T extends { readonly id: string }>(table: Table<T>) =>
    documentsOf(table, tenantId, touched);
  return {
    tenant: {
      get: async () => known(tenants.find(EVERYWHERE, tenantId), 'tenant'),
      async save(tenant) {
        const stored = tenants.find(EVERYWHERE, tenantId);
        if (stored?.version !== tenant.version) throw staleWrite('tenant');
        const { id, revision } = stored;
        tenants.put(EVERYWHERE, tenantId, { ...tenant, id, revision, version: tenant.version + 1 });
        touched();
        return { ...tenant, version: tenant.version + 1 };
      },
    },
    clients: {
      get: async (clientId) => ownClient(clientId),
      list: async () => clients.list(EVERYWHERE, (client) => client.tenantId === tenantId).sort(byClientId),
      async add(client) {
        addClient(state, { ...client, tenantId });
        touched();
      },
      async save(client) {
        touched();
        return saveClient(state, client, tenantId);
      },
      async remove(clientId) {
        clients.remove(EVERYWHERE, ownClient(clientId).clientId);
        state.removedClients.put(tenantId, clientId, { clientId });
        touched();
      },
    },
    issuanceConfiguration: documents(state.issuanceConfigurations),
    credentialConfigurations: documents(state.credentialConfigurations),
    presentationConfigurations: documents(state.presentationConfigurations),
    keyChains: documents(state.keyChains),
    registrarConfiguration: documents(state.registrarConfigurations),
    registrationCertificates: documents(state.registrationCertificates),
    statusLists: {
      get: async (id) => known(statusLists.find(tenantId, id), 'status list'),
      async list() {
        return statusLists
          .list(tenantId)
          .sort((a, b) => a.createdAt.getTime() - b.createdAt.getTime() || (a.id < b.id ? -1 : 1));
      },
      async add(list) {
        if (statusLists.has(tenantId, list.id)) throw taken('this id');
        statusLists.put(tenantId, list.id, { ...list, token: null });
        touched();
      },
      async rebind(id, binding, { unused }) {
        const list = statusLists.find(tenantId, id);
        if (list === undefined || (unused && list.usedEntries > 0)) return undefined;
        const rebound = { ...list, ...binding, version: list.version + 1 };
        statusLists.put(tenantId, id, rebound);
        touched();
        return rebound;
      },
      async removeUnused(id) {
        if (statusLists.find(tenantId, id)?.usedEntries !== 0) return false;
        statusLists.remove(tenantId, id);
        touched();
        return true;
      },
    },
    trustLists: trustListRepository(state, tenantId, touched),
    seenReleases: { removeAll: async () => state.seenReleases.removeScope(tenantId) },
  };
}

export function serviceRepositories(state: State): Omit<PlainServiceRepositories, 'audit'> {
  const { clients, tenants } = state;
  return {
    tenants: {
      get: async (id) => known(tenants.find(EVERYWHERE, id), 'tenant'),
      find: async (id) => tenants.find(EVERYWHERE, id),
      list: async () => tenants.list(EVERYWHERE).sort(by<Tenant>((tenant) => tenant.id)),
      async add(tenant, belongings) {
        if (tenants.has(EVERYWHERE, tenant.id)) throw taken('a tenant of this id');
        tenants.put(EVERYWHERE, tenant.id, tenant);
        for (const chain of belongings?.keyChains ?? []) state.keyChains.put(tenant.id, chain.id, chain);
        for (const client of belongings?.clients ?? []) addClient(state, client);
      },
      async remove(id) {
        if (!tenants.remove(EVERYWHERE, id)) throw unknown('tenant');
        const head = state.auditHeads.find(id, 'head');
        state.removeTenantRows(id);
        return head;
      },
    },
    clients: {
      find: async (clientId) => clients.find(EVERYWHERE, clientId),
      listOf: async (tenantId) =>
        clients.list(EVERYWHERE, (client) => client.tenantId === tenantId).sort(byClientId),
      isRemoved: async (tenantId, clientId) => state.removedClients.has(tenantId, clientId),
      async add(client) {
        addClient(state, client);
        if (client.tenantId !== null) state.raiseRevision(client.tenantId);
      },
      async save(client) {
        const saved = saveClient(state, client, client.tenantId);
        if (client.tenantId !== null) state.raiseRevision(client.tenantId);
        return saved;
      },
    },
  };
}

function documentsOf<T extends { readonly id: string }>(
  table: Table<T>,
  tenantId: TenantId,
  touched: () => void,
): Documents<T> {
  return {
    get: async (id) => known(table.find(tenantId, id), 'document'),
    find: async (id) => table.find(tenantId, id),
    list: async () => table.list(tenantId).sort(by<T>((document) => document.id)),
    async add(document) {
      if (table.has(tenantId, document.id)) throw taken('this id');
      table.put(tenantId, document.id, document);
      touched();
    },
    async put(document) {
      table.put(tenantId, document.id, document);
      touched();
    },
    async remove(id) {
      if (!table.remove(tenantId, id)) throw unknown('document');
      touched();
    },
  };
}

function addClient({ clients, removedClients }: State, client: Client): void {
  if (clients.has(EVERYWHERE, client.clientId)) throw taken('a client of this id');
  clients.put(EVERYWHERE, client.clientId, client);
  if (client.tenantId !== null) removedClients.remove(client.tenantId, client.clientId);
}

function saveClient({ clients }: State, client: Client, tenantId: TenantId | null): Client {
  const stored = clients.find(EVERYWHERE, client.clientId);
  if (stored?.tenantId !== tenantId || stored.version !== client.version) throw staleWrite('client');
  const { createdAt } = stored;
  clients.put(EVERYWHERE, client.clientId, { ...client, tenantId, createdAt, version: client.version + 1 });
  return { ...client, version: client.version + 1 };
}

function known<T>(row: T | undefined, what: string): T {
  if (row === undefined) throw unknown(what);
  return row;
}

function unknown(what: string): Failure {
  return new Failure('not_found', `there is no such ${what}`);
}

function taken(what: string): Failure {
  return new Failure('conflict', `${what} exists already`);
}

function staleWrite(what: string): Failure {
  return new Failure('conflict', `the ${what} was changed meanwhile; read it again and repeat the change`);
}
