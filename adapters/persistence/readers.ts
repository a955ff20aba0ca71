import type { Cipher } from '../../application/ports/cipher.ts';
import type {
  AuditLog,
  DocumentRepositories,
  Documents,
  Listing,
  ServiceAuditLog,
  ServiceReader,
  TenantReader,
  TrustListRepository,
} from '../../application/ports/repositories.ts';
import { DOCUMENTS, type DocumentKind } from '../../domain/resources.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { ClientMacs } from './client-macs.ts';
import { decodeDocument } from './rows/document-codec.ts';
import { byClientId, byId, MARK_LENGTH, placeOf, tableOf } from './rows/document-tables.ts';
import { readStatusList } from './rows/session-codec.ts';
import { CLIENT_COLUMNS, recordedKeyOf, TENANT_COLUMNS, tenantOf } from './rows/tenant-columns.ts';
import { named, type Parameter, type Row, type Statement } from './statement.ts';

/** Runs one statement. */
export type Read = (statement: Statement, ...parameters: Parameter[]) => Promise<readonly Row[]>;

/** What is read seldom, and only by who administrates, is read by MikroORM. */
export type SeldomRead = { readonly trustLists: TrustListRepository; readonly audit: AuditLog };

type Statements = Readonly<Record<'find' | 'list' | 'marks' | 'some', Statement>>;

/** @param elements how those of an array are listed. */
const statementsOf = (table: string, elements: string): Statements => {
  const all = `select id, body from ${table} where tenant_id = $1`;
  return {
    find: named(`find_${table}`, `${all} and id = $2`),
    list: named(`list_${table}`, all),
    marks: named(`marks_${table}`, `select id, substr(body, 1, ${MARK_LENGTH}) as mark from ${table} where tenant_id = $1`),
    some: named(`some_${table}`, `${all} and id ${elements}`),
  };
};

export type DocumentStatements = ReadonlyMap<DocumentKind, Statements>;
const ofDocuments = (elements: string): DocumentStatements =>
  new Map(DOCUMENTS.map(({ kind }) => [kind, statementsOf(tableOf(kind), elements)]));
export const POSTGRES_DOCUMENTS = ofDocuments('= any($2::text[])');
export const SQLITE_DOCUMENTS = ofDocuments('in (select value from json_each($2))');

const TENANT = named('read_tenant', `select ${TENANT_COLUMNS} from tenants where id = $1`);
const TENANTS = named('list_tenants', `select ${TENANT_COLUMNS} from tenants`);
const CLIENT = named('read_client', `select ${CLIENT_COLUMNS} from clients where client_id = $1`);
const CLIENTS_OF = named('clients_of', `select ${CLIENT_COLUMNS} from clients where tenant_id = $1`);
const REMOVED_CLIENT = named('removed_client', 'select 1 as found from removed_clients where tenant_id = $1 and client_id = $2');
const RECORDED_KEYS = named(
  'recorded_keys',
  'select thumbprint, compromised_at, certificates from recorded_keys where tenant_id = $1 order by thumbprint',
);
const COMPROMISED_KEYS = named('compromised_keys', 'select tenant_id, thumbprint from recorded_keys where compromised_at is not null');
const OF_STATUS_LISTS = `select tenant_id, id, credential_configuration_id, key_chain_id, bits, capacity, ttl_seconds,
  immediate_update, enable_aggregation, secret, used_entries, version, created_at, token, token_version,
  token_issued_at, token_expires_at from status_lists where tenant_id = $1`;
const STATUS_LISTS = named('list_status_lists', `${OF_STATUS_LISTS} order by created_at, id`);
const STATUS_LIST = named('read_status_list', `${OF_STATUS_LISTS} and id = $2`);

/** More than these are read with all others. */
const MAX_CHANGED = 100;

/** A mistake in our own code, which its types should have shown. */
const refuse = async (): Promise<never> => {
  throw new Error('A transaction without an actor only reads.');
};
const WRITES = ['add', 'put', 'save', 'remove', 'replace', 'rebind', 'removeUnused', 'removeAll', 'note'];
const REFUSALS = Object.fromEntries(WRITES.map((name) => [name, refuse]));
const onlyReading = <T extends object>(repositories: T): T =>
  Object.fromEntries(Object.entries(repositories).map(([name, own]) => [name, { ...REFUSALS, ...own }])) as T;

const missing = (what: string) => new Failure('not_found', `there is no such ${what}`);

type Scope = { readonly cipher: Cipher; readonly clientMacs: ClientMacs; readonly tenantId: TenantId };

/** Rows that something else than the service wrote are left out. */
const clientsIn = (macs: ClientMacs, rows: readonly Row[]) => rows.flatMap((row) => macs.verifyRow(row) ?? []).sort(byClientId);

/** What one tenant has, without a transaction: each answer is as of its own moment. */
export function tenantReader(
  read: Read,
  statements: DocumentStatements,
  { cipher, clientMacs, tenantId }: Scope,
  seldom: () => Promise<SeldomRead>,
): TenantReader {
  const documents = DOCUMENTS.map(({ kind, repository }) => [
    repository,
    documentReader(read, statements.get(kind) as Statements, cipher, tenantId, tableOf(kind)),
  ]);
  return onlyReading({
    ...(Object.fromEntries(documents) as DocumentRepositories),
    tenant: {
      async get() {
        const [row] = await read(TENANT, tenantId);
        if (row === undefined) throw missing('tenant');
        return tenantOf(row);
      },
    },
    clients: {
      async get(clientId) {
        const [row] = await read(CLIENT, clientId);
        const client = row && clientMacs.verifyRow(row);
        if (client === undefined || client.tenantId !== tenantId) throw missing('client');
        return client;
      },
      list: async () => clientsIn(clientMacs, await read(CLIENTS_OF, tenantId)),
    },
    statusLists: {
      async get(id) {
        const [row] = await read(STATUS_LIST, tenantId, id);
        if (row === undefined) throw missing('status list');
        return readStatusList(cipher, row);
      },
      list: async () => (await read(STATUS_LISTS, tenantId)).map((row) => readStatusList(cipher, row)),
    },
    trustLists: {
      get: async (id) => (await seldom()).trustLists.get(id),
      find: async (id) => (await seldom()).trustLists.find(id),
      list: async () => (await seldom()).trustLists.list(),
      lastNumber: async (id) => (await seldom()).trustLists.lastNumber(id),
      versions: async (id, page) => (await seldom()).trustLists.versions(id, page),
      version: async (id, versionId) => (await seldom()).trustLists.version(id, versionId),
    },
    recordedKeys: {
      list: async () => (await read(RECORDED_KEYS, tenantId)).map(recordedKeyOf),
    },
    seenReleases: {},
    audit: { list: async (query) => (await seldom()).audit.list(query), head: async () => (await seldom()).audit.head() },
  });
}

export function serviceReader(
  read: Read,
  clientMacs: ClientMacs,
  seldom: () => Promise<{ readonly audit: ServiceAuditLog }>,
): ServiceReader {
  return onlyReading<ServiceReader>({
    tenants: {
      async get(id) {
        const tenant = await this.find(id);
        if (tenant === undefined) throw missing('tenant');
        return tenant;
      },
      async find(id) {
        const [row] = await read(TENANT, id);
        return row && tenantOf(row);
      },
      list: async () => (await read(TENANTS)).map(tenantOf).sort(byId),
    },
    clients: {
      async find(clientId) {
        const [row] = await read(CLIENT, clientId);
        return row && clientMacs.verifyRow(row);
      },
      listOf: async (tenantId) => clientsIn(clientMacs, await read(CLIENTS_OF, tenantId)),
      async isRemoved(tenantId, clientId) {
        if ((await read(REMOVED_CLIENT, tenantId, clientId)).length > 0) return true;
        // A token of an external provider must not lose its restrictions because its client cannot be trusted.
        const [row] = await read(CLIENT, clientId);
        return row !== undefined && clientMacs.verifyRow(row) === undefined;
      },
    },
    recordedKeys: {
      compromised: async () =>
        (await read(COMPROMISED_KEYS)).map((row) => ({
          tenantId: String(row['tenant_id']) as TenantId,
          thumbprint: String(row['thumbprint']),
        })),
    },
    audit: {
      list: async (query) => (await seldom()).audit.list(query),
      head: async () => (await seldom()).audit.head(),
      nextScope: async (after) => (await seldom()).audit.nextScope(after),
    },
  });
}

type Reading<T> = Pick<Documents<T>, 'get' | 'find' | 'list' | 'relist'>;

function documentReader<T extends { readonly id: string }>(
  read: Read,
  statements: Statements,
  cipher: Cipher,
  tenantId: TenantId,
  table: string,
): Reading<T> {
  const open = ({ id, body }: Row): T =>
    decodeDocument<T>(cipher.open(String(body), placeOf(table, tenantId, String(id))).toString('utf8'));
  const listed = (rows: readonly Row[], kept: readonly T[], known: Listing<T>['marks']): Listing<T> => {
    const marks = new Map(kept.map(({ id }) => [id, known.get(id) ?? '']));
    for (const { id, body } of rows) marks.set(String(id), String(body).slice(0, MARK_LENGTH));
    return { documents: [...kept, ...rows.map(open)].sort(byId), marks };
  };
  const all = async () => listed(await read(statements.list, tenantId), [], new Map());
  return {
    async get(id) {
      const found = await this.find(id);
      if (found !== undefined) return found;
      throw new Failure('not_found', `there is no ${table.slice(0, -1).replaceAll('_', ' ')} of this id`);
    },
    async find(id) {
      const [row] = await read(statements.find, tenantId, id);
      return row && open(row);
    },
    list: async () => [...(await all()).documents],
    async relist(known) {
      if (known === undefined || known.documents.length === 0) return all();
      const rows = await read(statements.marks, tenantId);
      const changed = rows.filter(({ id, mark }) => known.marks.get(String(id)) !== mark);
      if (changed.length > MAX_CHANGED) return all();
      const gone = new Set(changed.map(({ id }) => String(id)));
      const unchanged = new Set(rows.map(({ id }) => String(id)).filter((id) => !gone.has(id)));
      const kept = known.documents.filter(({ id }) => unchanged.has(id));
      const anew = gone.size === 0 ? [] : await read(statements.some, tenantId, [...gone]);
      return listed(anew, kept, known.marks);
    },
  };
}
