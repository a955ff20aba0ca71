import { type EntityManager, type EntityName, LockMode, raw } from '@mikro-orm/core';
import type { Cipher } from '../../../application/ports/cipher.ts';
import type { Documents } from '../../../application/ports/store.ts';
import type { Client, SecretPickUp } from '../../../domain/clients/client.ts';
import type { Role } from '../../../domain/clients/role.ts';
import type { KeyChain } from '../../../domain/keys/key-chain.ts';
import type { DocumentKind } from '../../../domain/resources.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import {
  type ConfiguredKind,
  firstRevisions,
  type StoredRevisions,
} from '../../../domain/tenants/revisions.ts';
import type {
  SessionStorageConfig,
  StatusListConfig,
  Tenant,
  TenantStatus,
} from '../../../domain/tenants/tenant.ts';
import type { PlainServiceRepositories, PlainTenantRepositories } from '../audited-repositories.ts';
import { documentRepositories } from '../document-repositories.ts';
import { auditLog, lockHead, serviceAuditLog } from './audit-chain.ts';
import { decodeDocument, encodeDocument } from './document-codec.ts';
import { insertUnique } from './insert-unique.ts';
import { ClientRow, documentRows, RemovedClientRow, TenantRow, tableOf } from './rows/administration.row.ts';
import { SealingKeyRow, StatusListRow } from './rows/status.row.ts';
import { SeenReleaseRow } from './rows/trust-list.row.ts';
import { readStatusList, statusSecretPlace } from './session-codec.ts';
import { beginRemoval, endRemoval } from './tenant-remains.ts';
import { trustListRepository } from './trust-list-repository.ts';

type AnyRow = Record<string, unknown>;
/** Statements bypass the identity map, so it must not answer with what a row was before. */
const FRESH = { disableIdentityMap: true } as const;
/** By code unit: a database would order by its locale. */
const byId = (a: { readonly id: string }, b: { readonly id: string }) => (a.id < b.id ? -1 : 1);
const byClientId = (a: Client, b: Client) => (a.clientId < b.clientId ? -1 : 1);

/** The revision that a write of a document raises. */
const CONFIGURED: Readonly<Record<DocumentKind, ConfiguredKind>> = {
  'key-chain': 'keyChains',
  'issuance-configuration': 'issuance',
  'credential-configuration': 'credentials',
  'presentation-configuration': 'presentations',
  'registrar-configuration': 'registrar',
  'registration-certificate': 'registrationCertificates',
};

/** Repositories of one tenant inside one transaction; `touch` comes before each write. */
export function tenantRepositories(
  em: EntityManager,
  cipher: Cipher,
  tenantId: TenantId,
  touch: (kind: ConfiguredKind) => Promise<void>,
): PlainTenantRepositories {
  return {
    ...documentRepositories((kind) => documentsOf(em, cipher, tenantId, kind, () => touch(CONFIGURED[kind]))),
    tenant: {
      async get() {
        const row = await em.findOne(TenantRow, { id: tenantId }, FRESH);
        if (row === null) throw new Failure('not_found', 'there is no such tenant');
        return readTenant(row);
      },
      async save(tenant) {
        await touch('tenant');
        const { id: _id, version: _version, revision: _revision, ...columns } = tenantColumns(tenant);
        const data = { ...columns, version: tenant.version + 1 };
        const changed = await em.nativeUpdate(TenantRow, { id: tenantId, version: tenant.version }, data);
        if (changed === 0) throw staleWrite('tenant');
        return { ...tenant, version: tenant.version + 1 };
      },
    },
    clients: {
      async get(clientId) {
        const row = await em.findOne(ClientRow, { clientId }, FRESH);
        if (row === null) throw new Failure('not_found', 'there is no such client');
        return readClient(row);
      },
      async list() {
        return (await em.find(ClientRow, {}, FRESH)).map(readClient).sort(byClientId);
      },
      async add(client) {
        await touch('clients');
        await addClient(em, { ...client, tenantId });
      },
      async save(client) {
        await touch('clients');
        return saveClient(em, client, { tenantId });
      },
      async remove(clientId) {
        await touch('clients');
        const removed = await em.nativeDelete(ClientRow, { clientId, tenantId });
        if (removed === 0) throw new Failure('not_found', 'there is no such client');
        await em.upsert(RemovedClientRow, { tenantId, clientId }, { onConflictAction: 'ignore' });
      },
    },
    statusLists: {
      async get(id) {
        const row = await em.findOne(StatusListRow, { id }, FRESH);
        if (row === null) throw new Failure('not_found', 'there is no such status list');
        return readStatusList(cipher, snakeCase(row as unknown as AnyRow));
      },
      async list() {
        const rows = await em.find(StatusListRow, {}, { ...FRESH, orderBy: { createdAt: 'asc', id: 'asc' } });
        return rows.map((row) => readStatusList(cipher, snakeCase(row as unknown as AnyRow)));
      },
      async add(list) {
        await touch('statusLists');
        const { secret, token: _token, createdAt, ...columns } = list;
        const row = {
          ...columns,
          tenantId,
          secret: cipher.seal(secret, statusSecretPlace(tenantId, list.id)),
          createdAt: createdAt.getTime(),
          token: null,
        };
        await insertUnique('this id exists already', () => em.insert(StatusListRow, row));
      },
      async rebind(id, { credentialConfigurationId, keyChainId }, { unused }) {
        await touch('statusLists');
        const version = raw<number>('version + 1');
        const changed = await em.nativeUpdate(
          StatusListRow,
          { tenantId, id, ...(unused && { usedEntries: 0 }) },
          { credentialConfigurationId, keyChainId, version },
        );
        return changed === 0 ? undefined : this.get(id);
      },
      async removeUnused(id) {
        await touch('statusLists');
        const removed = await em.nativeDelete(StatusListRow, { tenantId, id, usedEntries: 0 });
        return removed > 0;
      },
    },
    trustLists: trustListRepository(em, cipher, tenantId, () => touch('trustLists')),
    seenReleases: {
      async removeAll() {
        await em.nativeDelete(SeenReleaseRow, { tenantId });
      },
    },
    audit: auditLog(em, tenantId),
  };
}

export function serviceRepositories(em: EntityManager, cipher: Cipher): PlainServiceRepositories {
  const unscoped = { filters: { tenant: false }, ...FRESH } as const;
  return {
    tenants: {
      async get(id) {
        const row = await em.findOne(TenantRow, { id }, FRESH);
        if (row === null) throw new Failure('not_found', 'there is no such tenant');
        return readTenant(row);
      },
      async find(id) {
        const row = await em.findOne(TenantRow, { id }, FRESH);
        return row === null ? undefined : readTenant(row);
      },
      async list() {
        return (await em.find(TenantRow, {}, FRESH)).map(readTenant).sort(byId);
      },
      async add(tenant, belongings) {
        await endRemoval(em, tenant.id);
        await insertUnique('a tenant of this id exists already', () =>
          em.insert(TenantRow, { ...tenantColumns(tenant), revisions: firstRevisions(tenant.createdAt) }),
        );
        const chains = documentsOf<KeyChain>(em, cipher, tenant.id, 'key-chain', async () => {});
        for (const chain of belongings?.keyChains ?? []) await chains.add(chain);
        for (const client of belongings?.clients ?? []) {
          await addClient(em, { ...client, tenantId: tenant.id });
        }
      },
      async remove(id) {
        const removed = await em.nativeDelete(TenantRow, { id });
        if (removed === 0) throw new Failure('not_found', 'there is no such tenant');
        await beginRemoval(em, id);
        // The head of its chain is locked last, as everywhere.
        return lockHead(em, id);
      },
    },
    clients: {
      async find(clientId) {
        const row = await em.findOne(ClientRow, { clientId }, unscoped);
        return row === null ? undefined : readClient(row);
      },
      async listOf(tenantId) {
        return (await em.find(ClientRow, { tenantId }, unscoped)).map(readClient).sort(byClientId);
      },
      async isRemoved(tenantId, clientId) {
        return (await em.findOne(RemovedClientRow, { tenantId, clientId }, unscoped)) !== null;
      },
      async add(client) {
        if (client.tenantId !== null) await raiseRevision(em, client.tenantId, 'clients', { isFirst: true });
        await addClient(em, client);
      },
      async save(client) {
        if (client.tenantId !== null) await raiseRevision(em, client.tenantId, 'clients', { isFirst: true });
        return saveClient(em, client, { tenantId: client.tenantId });
      },
    },
    audit: serviceAuditLog(em),
  };
}

/**
 * Refuses a cipher that would not open all of the database, and notes the key with which it is going to seal.
 * The note comes first: whoever starts without that key later is refused, also after a crash.
 * @param seals false for who only reads, and leaves no note.
 */
export async function checkCipher(em: EntityManager, cipher: Cipher, seals: boolean): Promise<void> {
  const connection = em.getConnection();
  const known = (await connection.execute('select id from sealing_keys')) as { readonly id: string }[];
  if (known.some(({ id }) => !cipher.keyIds.includes(id))) throw foreignSecret();
  await checkOldest(em, cipher);
  const [id] = cipher.keyIds;
  if (!seals || known.some((key) => key.id === id)) return;
  await em.upsert(SealingKeyRow, { id, firstUsedAt: Date.now() }, { onConflictAction: 'ignore' });
}

/** Opens one sealed document, for databases from before keys were noted; a key chain, since every tenant has one. */
async function checkOldest(em: EntityManager, cipher: Cipher): Promise<void> {
  const rows = await em
    .getConnection()
    .execute('select tenant_id, id, body from key_chains order by created_at limit 1');
  const [oldest] = rows as Record<string, unknown>[];
  if (oldest === undefined) return;
  try {
    cipher.open(
      String(oldest['body']),
      placeOf('key_chains', String(oldest['tenant_id']), String(oldest['id'])),
    );
  } catch (cause) {
    throw foreignSecret(cause);
  }
}

function foreignSecret(cause?: unknown): Error {
  return new Error(
    'MASTER_SECRET is not the one that sealed this database, or not all of those that did. Start with that one; after ' +
      'a change of the secret, list every former one behind it, separated by commas',
    { cause },
  );
}

function placeOf(table: string, tenantId: string, id: string): string {
  return `${table}/body/${tenantId}/${id}`;
}

/** Locks the row that every change of the tenant updates in the end; PostgreSQL only. */
export async function lockTenant(em: EntityManager, tenantId: TenantId): Promise<void> {
  await em.findOne(TenantRow, { id: tenantId }, { ...FRESH, lockMode: LockMode.PESSIMISTIC_WRITE });
}

/**
 * What was read of this kind is read anew after this.
 * @param options `isFirst`: of its transaction, which raises the revision of the tenant once.
 * @throws Failure `not_found`: whoever writes for a tenant that went meanwhile would leave something behind.
 */
export async function raiseRevision(
  em: EntityManager,
  tenantId: TenantId,
  kind: ConfiguredKind,
  { isFirst }: { readonly isFirst: boolean },
): Promise<void> {
  const revision = isFirst ? { revision: raw<number>('revision + 1') } : {};
  const raised = await em.nativeUpdate(
    TenantRow,
    { id: tenantId },
    { ...revision, revisions: raw<StoredRevisions>(raisedIn(em, kind)) },
  );
  if (raised === 0) throw new Failure('not_found', 'there is no such tenant');
}

function raisedIn(em: EntityManager, kind: ConfiguredKind): string {
  const isSqlite = em.getPlatform().constructor.name.startsWith('Sqlite');
  return isSqlite
    ? `json_set(revisions, '$.${kind}', json_extract(revisions, '$.${kind}') + 1)`
    : `jsonb_set(revisions, '{${kind}}', to_jsonb((revisions->>'${kind}')::int + 1))`;
}

function documentsOf<T extends { readonly id: string }>(
  em: EntityManager,
  cipher: Cipher,
  tenantId: TenantId,
  kind: DocumentKind,
  touch: () => Promise<void>,
): Documents<T> {
  // The tables of documents differ by name only.
  const row = documentRows.get(kind) as unknown as EntityName<AnyRow>;
  const table = tableOf(kind);
  const place = (id: string) => placeOf(table, tenantId, id);
  const read = (found: AnyRow): T =>
    decodeDocument<T>(cipher.open(String(found['body']), place(String(found['id']))).toString('utf8'));
  const columns = (document: T) => {
    const { createdAt, updatedAt } = document as unknown as { createdAt: Date; updatedAt: Date };
    return {
      tenantId,
      id: document.id,
      body: cipher.seal(encodeDocument(document), place(document.id)),
      createdAt: createdAt.getTime(),
      updatedAt: updatedAt.getTime(),
    };
  };
  return {
    async get(id) {
      const found = await this.find(id);
      if (found === undefined)
        throw new Failure('not_found', `there is no ${table.slice(0, -1).replaceAll('_', ' ')} of this id`);
      return found;
    },
    async find(id) {
      const found = await em.findOne(row, { id } as AnyRow, FRESH);
      return found === null ? undefined : read(found as AnyRow);
    },
    async list() {
      const rows = await em.find(row, {}, FRESH);
      return rows.map((found) => read(found as AnyRow)).sort(byId);
    },
    async add(document) {
      await touch();
      await insertUnique('this id exists already', () => em.insert(row, columns(document) as AnyRow));
    },
    async put(document) {
      await touch();
      await em.upsert(row, columns(document) as AnyRow);
    },
    async remove(id) {
      await touch();
      const removed = await em.nativeDelete(row, { id, tenantId } as AnyRow);
      if (removed === 0)
        throw new Failure('not_found', `there is no ${table.slice(0, -1).replaceAll('_', ' ')} of this id`);
    },
  };
}

function staleWrite(what: string): Failure {
  return new Failure('conflict', `the ${what} was changed meanwhile; read it again and repeat the change`);
}

async function addClient(em: EntityManager, client: Client): Promise<void> {
  await insertUnique('a client of this id exists already', () => em.insert(ClientRow, clientColumns(client)));
  const { tenantId, clientId } = client;
  if (tenantId === null) return;
  await em.nativeDelete(RemovedClientRow, { tenantId, clientId }, { filters: { tenant: false } });
}

async function saveClient(
  em: EntityManager,
  client: Client,
  scope: { tenantId: string | null },
): Promise<Client> {
  const { clientId, tenantId: _tenantId, createdAt: _createdAt, ...columns } = clientColumns(client);
  const data = { ...columns, version: client.version + 1 };
  const where = { clientId, tenantId: scope.tenantId, version: client.version };
  const changed = await em.nativeUpdate(ClientRow, where, data, { filters: { tenant: false } });
  if (changed === 0) throw staleWrite('client');
  return { ...client, version: client.version + 1 };
}

function tenantColumns(tenant: Tenant) {
  return { ...tenant, createdAt: tenant.createdAt.getTime(), updatedAt: tenant.updatedAt.getTime() };
}

function readTenant(row: TenantRow): Tenant {
  return {
    id: row.id as TenantId,
    name: row.name,
    description: row.description ?? null,
    status: row.status as TenantStatus,
    sessionConfig: (row.sessionConfig ?? null) as SessionStorageConfig | null,
    statusListConfig: (row.statusListConfig ?? null) as StatusListConfig | null,
    revision: row.revision,
    version: row.version,
    createdAt: new Date(Number(row.createdAt)),
    updatedAt: new Date(Number(row.updatedAt)),
  };
}

function clientColumns(client: Client) {
  return {
    ...client,
    roles: [...client.roles],
    allowedPresentationConfigs:
      client.allowedPresentationConfigs === null ? null : [...client.allowedPresentationConfigs],
    allowedIssuanceConfigs:
      client.allowedIssuanceConfigs === null ? null : [...client.allowedIssuanceConfigs],
    pickUp:
      client.pickUp === null ? null : { ...client.pickUp, expiresAt: client.pickUp.expiresAt.getTime() },
    createdAt: client.createdAt.getTime(),
    updatedAt: client.updatedAt.getTime(),
  };
}

function readClient(row: ClientRow): Client {
  const pickUp = row.pickUp as (Omit<SecretPickUp, 'expiresAt'> & { expiresAt: number }) | null | undefined;
  return {
    clientId: row.clientId,
    tenantId: (row.tenantId ?? null) as TenantId | null,
    roles: row.roles as Role[],
    description: row.description ?? null,
    allowedPresentationConfigs: row.allowedPresentationConfigs ?? null,
    allowedIssuanceConfigs: row.allowedIssuanceConfigs ?? null,
    secretHash: row.secretHash,
    pickUp:
      pickUp === null || pickUp === undefined ? null : { ...pickUp, expiresAt: new Date(pickUp.expiresAt) },
    version: row.version,
    createdAt: new Date(Number(row.createdAt)),
    updatedAt: new Date(Number(row.updatedAt)),
  };
}

function snakeCase(row: AnyRow): AnyRow {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => [
      name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      value,
    ]),
  );
}
