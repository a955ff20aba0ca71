import type {
  AuditLog,
  Documents,
  ServiceAuditLog,
  ServiceRepositories,
  TenantRepositories,
  TrustListRepository,
} from '../../../application/ports/repositories.ts';
import { type AuditChange, type AuditEntry, SERVICE_SCOPE } from '../../../domain/audit/audit-entry.ts';
import type { AuditHead } from '../../../domain/audit/chain.ts';
import { describeChange, describeClient, describeNewClient } from '../../../domain/audit/describe-change.ts';
import type { Client } from '../../../domain/clients/client.ts';
import type { DocumentKind } from '../../../domain/resources.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import type { Tenant } from '../../../domain/tenants/tenant.ts';
import { documentRepositories } from './document-repositories.ts';
import type { Journal } from './journal.ts';
import { undefinedIfNotFound } from './not-found.ts';

/** Repositories of a tenant as an adapter implements them, without the audit log. */
export type PlainTenantRepositories = Omit<TenantRepositories, 'audit'> & { readonly audit: AuditLog };

export type PlainServiceRepositories = Omit<ServiceRepositories, 'tenants' | 'audit'> & {
  readonly audit: ServiceAuditLog & {
    /** Returns true if the chain of the tenant has this entry. */
    has(tenantId: TenantId, entry: Pick<AuditEntry, 'sequence' | 'hash'>): Promise<boolean>;
  };
  readonly tenants: Omit<ServiceRepositories['tenants'], 'remove' | 'removeEnded'> & {
    /** @returns the head of the chain that was removed with the tenant. */
    remove(id: TenantId): Promise<AuditHead | undefined>;
    /** Removes the tenant if it has expired; otherwise `ended` is undefined. */
    removeEnded(id: TenantId, now: Date): Promise<{ readonly ended?: Tenant; readonly head?: AuditHead }>;
  };
};

type Note = (change: AuditChange) => void;

/** Methods that only read. Each is listed by name, so that a new method that writes cannot pass unrecorded. */
function reads<T, Name extends keyof T>(repository: T, ...names: readonly Name[]): Pick<T, Name> {
  const bound = names.map((name) => [name, (repository[name] as () => unknown).bind(repository)]);
  return Object.fromEntries(bound) as Pick<T, Name>;
}

/**
 * Records every write to the repositories of a tenant in the audit log. Each method is listed by name, so a new method does not compile
 * until its log entry is decided.
 */
export function auditedTenant(plain: PlainTenantRepositories, tenantId: TenantId, journal: Journal, now: () => Date): TenantRepositories {
  const note: Note = (change) => journal.note(tenantId, change);
  const { tenant, clients, statusLists } = plain;
  return {
    ...documentRepositories(({ kind, repository }) => audited(kind, plain[repository] as Documents<never>, note)),
    tenant: {
      ...reads(tenant, 'get'),
      async save(updatedTenant) {
        // A missing tenant is reported by the write below.
        const previousTenant = await undefinedIfNotFound(tenant.get());
        const saved = await tenant.save(updatedTenant);
        note(describeChange('tenant', tenantId, previousTenant ?? saved, saved));
        return saved;
      },
    },
    clients: {
      ...reads(clients, 'get', 'list'),
      ...auditedClients(
        clients,
        (id) => undefinedIfNotFound(clients.get(id)),
        (_client, change) => note(change),
        now,
      ),
      async remove(id) {
        await clients.remove(id);
        note(describeChange('client', id, {}, undefined));
      },
    },
    statusLists: {
      ...reads(statusLists, 'get', 'list'),
      async add(list) {
        await statusLists.add(list);
        note(describeChange('status-list', list.id, undefined, list));
      },
      async rebind(id, binding, state) {
        const previousList = await statusLists.get(id);
        const reboundList = await statusLists.rebind(id, binding, state);
        if (reboundList !== undefined) note(describeChange('status-list', id, previousList, { ...previousList, ...binding }));
        return reboundList;
      },
      async removeUnused(id) {
        const removed = await statusLists.removeUnused(id);
        if (removed) note(describeChange('status-list', id, {}, undefined));
        return removed;
      },
    },
    recordedKeys: {
      ...reads(plain.recordedKeys, 'list'),
      async put(key) {
        await plain.recordedKeys.put(key);
        if (key.compromisedAt === null) return;
        const changes = [{ member: 'thumbprint', after: key.thumbprint }];
        note({ action: 'revoked', kind: 'key-chain', target: key.thumbprint, changes });
      },
    },
    trustLists: auditedTrustLists(plain.trustLists, note),
    seenReleases: {
      async removeAll() {
        await plain.seenReleases.removeAll();
        note({ action: 'cleared', kind: 'cache', target: 'seen-releases', changes: [] });
      },
    },
    audit: { ...plain.audit, note },
  };
}

export function auditedService(
  { tenants, clients, recordedKeys, audit }: PlainServiceRepositories,
  journal: Journal,
  now: () => Date,
): ServiceRepositories {
  const noteClient = ({ tenantId }: Client, change: AuditChange) => journal.note(tenantId ?? SERVICE_SCOPE, change);
  return {
    tenants: {
      ...reads(tenants, 'get', 'find', 'list'),
      async add(tenant, belongings) {
        await tenants.add(tenant, belongings);
        journal.note(tenant.id, describeChange('tenant', tenant.id, undefined, tenant));
        for (const chain of belongings?.keyChains ?? []) journal.note(tenant.id, describeChange('key-chain', chain.id, undefined, chain));
        for (const client of belongings?.clients ?? []) journal.note(tenant.id, describeNewClient(client));
      },
      async remove(id) {
        const removedTenant = await tenants.find(id);
        const { sequence, hash } = (await tenants.remove(id)) ?? { sequence: 0, hash: '' };
        const change = describeChange('tenant', id, removedTenant, undefined);
        journal.note(SERVICE_SCOPE, change, { tenantId: id, sequence, hash });
      },
      async removeEnded(id, now) {
        const { ended, head } = await tenants.removeEnded(id, now);
        if (ended === undefined) return false;
        const { sequence, hash } = head ?? { sequence: 0, hash: '' };
        const change = describeChange('tenant', id, ended, undefined);
        journal.note(SERVICE_SCOPE, change, { tenantId: id, sequence, hash });
        return true;
      },
    },
    clients: { ...reads(clients, 'find', 'listOf', 'isRemoved'), ...auditedClients(clients, (id) => clients.find(id), noteClient, now) },
    recordedKeys: reads(recordedKeys, 'compromised'),
    audit: {
      ...reads(audit, 'list', 'head', 'nextScope'),
      note: (change) => journal.note(SERVICE_SCOPE, change),
      async prune(tenantId, { sequence, hash }) {
        // The tenant may have been removed since its log was read, and another tenant with its id created.
        if (!(await audit.has(tenantId, { sequence, hash }))) throw new Failure('conflict', 'the log has changed');
        const change = { action: 'pruned', kind: 'audit-log', changes: [{ member: 'entries', before: sequence }] } as const;
        journal.note(tenantId, { ...change, target: 'chain' });
        journal.note(SERVICE_SCOPE, { ...change, target: tenantId }, { tenantId, sequence, hash });
      },
    },
  };
}

type ClientWrites = Pick<TenantRepositories['clients'], 'add' | 'save'>;

function auditedClients(
  clients: ClientWrites,
  find: (id: string) => Promise<Client | undefined>,
  note: (client: Client, change: AuditChange) => void,
  now: () => Date,
): ClientWrites {
  return {
    async add(client) {
      await clients.add(client);
      note(client, describeNewClient(client));
    },
    async save(client) {
      const previousClient = await find(client.clientId);
      const saved = await clients.save(client);
      note(saved, describeClient(previousClient ?? saved, saved, now()));
      return saved;
    },
  };
}

function audited<T extends { readonly id: string }>(kind: DocumentKind, documents: Documents<T>, note: Note): Documents<T> {
  return {
    ...reads(documents, 'get', 'find', 'list', 'relist'),
    async add(document) {
      await documents.add(document);
      note(describeChange(kind, document.id, undefined, document));
    },
    async put(document) {
      const previousDocument = await documents.find(document.id);
      await documents.put(document);
      note(describeChange(kind, document.id, previousDocument, document));
    },
    async remove(id) {
      await documents.remove(id);
      note(describeChange(kind, id, {}, undefined));
    },
  };
}

function auditedTrustLists(lists: TrustListRepository, note: Note): TrustListRepository {
  return {
    ...reads(lists, 'get', 'find', 'list', 'lastNumber', 'versions', 'version'),
    async add(list) {
      await lists.add(list);
      note(describeChange('trust-list', list.id, undefined, list));
    },
    async replace(list, replacedVersion) {
      const replaced = await lists.replace(list, replacedVersion);
      if (replaced) note(describeChange('trust-list', list.id, replacedVersion.list, list));
      return replaced;
    },
    async remove(removedVersion) {
      const removed = await lists.remove(removedVersion);
      if (removed) note(describeChange('trust-list', removedVersion.list.id, removedVersion.list, undefined));
      return removed;
    },
  };
}
