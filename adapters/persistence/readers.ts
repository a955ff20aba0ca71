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
import { byClientId, byId, documentContext, MARK_LENGTH, tableOf } from './rows/document-tables.ts';
import { readStatusList } from './rows/session-codec.ts';
import { CLIENT_COLUMNS, recordedKeyOf, TENANT_COLUMNS, tenantOf } from './rows/tenant-columns.ts';
import { namedStatement, type Parameter, type Row, type Statement } from './statement.ts';

export type RunStatement = (statement: Statement, ...parameters: Parameter[]) => Promise<readonly Row[]>;

/** Administration reads these rarely, so MikroORM reads them. */
export type SeldomRead = { readonly trustLists: TrustListRepository; readonly audit: AuditLog };

type Statements = Readonly<Record<'find' | 'list' | 'marks' | 'some', Statement>>;

/** @param elements SQL condition for the elements of an array. */
const statementsOf = (table: string, elements: string): Statements => {
  const selectAll = `select id, body from ${table} where tenant_id = $1`;
  return {
    find: namedStatement(`find_${table}`, `${selectAll} and id = $2`),
    list: namedStatement(`list_${table}`, selectAll),
    marks: namedStatement(`marks_${table}`, `select id, substr(body, 1, ${MARK_LENGTH}) as mark from ${table} where tenant_id = $1`),
    some: namedStatement(`some_${table}`, `${selectAll} and id ${elements}`),
  };
};

export type DocumentStatements = ReadonlyMap<DocumentKind, Statements>;
const documentStatements = (elements: string): DocumentStatements =>
  new Map(DOCUMENTS.map(({ kind }) => [kind, statementsOf(tableOf(kind), elements)]));
export const POSTGRES_DOCUMENTS = documentStatements('= any($2::text[])');
export const SQLITE_DOCUMENTS = documentStatements('in (select value from json_each($2))');

const TENANT = namedStatement('read_tenant', `select ${TENANT_COLUMNS} from tenants where id = $1`);
const TENANTS = namedStatement('list_tenants', `select ${TENANT_COLUMNS} from tenants`);
const CLIENT = namedStatement('read_client', `select ${CLIENT_COLUMNS} from clients where client_id = $1`);
const CLIENTS_OF = namedStatement('clients_of', `select ${CLIENT_COLUMNS} from clients where tenant_id = $1`);
const REMOVED_CLIENT = namedStatement('removed_client', 'select 1 as found from removed_clients where tenant_id = $1 and client_id = $2');
const RECORDED_KEYS = namedStatement(
  'recorded_keys',
  'select thumbprint, compromised_at, certificates from recorded_keys where tenant_id = $1 order by thumbprint',
);
const COMPROMISED_KEYS = namedStatement(
  'compromised_keys',
  'select tenant_id, thumbprint from recorded_keys where compromised_at is not null',
);
const OF_STATUS_LISTS = `select tenant_id, id, credential_configuration_id, key_chain_id, bits, capacity, ttl_seconds,
  immediate_update, enable_aggregation, secret, used_entries, version, created_at, token, token_version,
  token_issued_at, token_expires_at from status_lists where tenant_id = $1`;
const STATUS_LISTS = namedStatement('list_status_lists', `${OF_STATUS_LISTS} order by created_at, id`);
const STATUS_LIST = namedStatement('read_status_list', `${OF_STATUS_LISTS} and id = $2`);

/** If more documents than this changed, all are read. */
const MAX_CHANGED_DOCUMENTS = 100;

/** Reports a programming error that the types should have shown. */
const rejectWrite = async (): Promise<never> => {
  throw new Error('A transaction without an actor only reads.');
};
const WRITES = ['add', 'put', 'save', 'remove', 'replace', 'rebind', 'removeUnused', 'removeAll', 'note'];
const REFUSALS = Object.fromEntries(WRITES.map((name) => [name, rejectWrite]));
const readOnly = <T extends object>(repositories: T): T =>
  Object.fromEntries(Object.entries(repositories).map(([name, repository]) => [name, { ...REFUSALS, ...repository }])) as T;

const notFoundError = (resource: string) => new Failure('not_found', `there is no such ${resource}`);

type Scope = { readonly cipher: Cipher; readonly clientMacs: ClientMacs; readonly tenantId: TenantId };

/** Leaves out rows that the service did not write. */
const clientsIn = (macs: ClientMacs, rows: readonly Row[]) => rows.flatMap((row) => macs.verifyRow(row) ?? []).sort(byClientId);

/** Repositories of one tenant without a transaction: each answer is as of its own moment. */
export function tenantReader(
  read: RunStatement,
  statements: DocumentStatements,
  { cipher, clientMacs, tenantId }: Scope,
  seldom: () => Promise<SeldomRead>,
): TenantReader {
  const documents = DOCUMENTS.map(({ kind, repository }) => [
    repository,
    documentReader(read, statements.get(kind) as Statements, cipher, tenantId, tableOf(kind)),
  ]);
  return readOnly({
    ...(Object.fromEntries(documents) as DocumentRepositories),
    tenant: {
      async get() {
        const [row] = await read(TENANT, tenantId);
        if (row === undefined) throw notFoundError('tenant');
        return tenantOf(row);
      },
    },
    clients: {
      async get(clientId) {
        const [row] = await read(CLIENT, clientId);
        const client = row && clientMacs.verifyRow(row);
        if (client === undefined || client.tenantId !== tenantId) throw notFoundError('client');
        return client;
      },
      list: async () => clientsIn(clientMacs, await read(CLIENTS_OF, tenantId)),
    },
    statusLists: {
      async get(id) {
        const [row] = await read(STATUS_LIST, tenantId, id);
        if (row === undefined) throw notFoundError('status list');
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
    recordedKeys: { list: async () => (await read(RECORDED_KEYS, tenantId)).map(recordedKeyOf) },
    seenReleases: {},
    audit: { list: async (query) => (await seldom()).audit.list(query), head: async () => (await seldom()).audit.head() },
  });
}

export function serviceReader(
  read: RunStatement,
  clientMacs: ClientMacs,
  seldom: () => Promise<{ readonly audit: ServiceAuditLog }>,
): ServiceReader {
  return readOnly<ServiceReader>({
    tenants: {
      async get(id) {
        const tenant = await this.find(id);
        if (tenant === undefined) throw notFoundError('tenant');
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
        // A token of an external provider must not lose its restrictions because the row of its client is not genuine.
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
      nextScope: async (previousScope) => (await seldom()).audit.nextScope(previousScope),
    },
  });
}

type Reading<T> = Pick<Documents<T>, 'get' | 'find' | 'list' | 'relist'>;

function documentReader<T extends { readonly id: string }>(
  read: RunStatement,
  statements: Statements,
  cipher: Cipher,
  tenantId: TenantId,
  table: string,
): Reading<T> {
  const open = ({ id, body }: Row): T =>
    decodeDocument<T>(cipher.open(String(body), documentContext(table, tenantId, String(id))).toString('utf8'));
  const toListing = (rows: readonly Row[], unchangedDocuments: readonly T[], previousMarks: Listing<T>['marks']): Listing<T> => {
    const marks = new Map(unchangedDocuments.map(({ id }) => [id, previousMarks.get(id) ?? '']));
    for (const { id, body } of rows) marks.set(String(id), String(body).slice(0, MARK_LENGTH));
    return { documents: [...unchangedDocuments, ...rows.map(open)].sort(byId), marks };
  };
  const readAll = async () => toListing(await read(statements.list, tenantId), [], new Map());
  return {
    async get(id) {
      const document = await this.find(id);
      if (document !== undefined) return document;
      throw new Failure('not_found', `there is no ${table.slice(0, -1).replaceAll('_', ' ')} with this id`);
    },
    async find(id) {
      const [row] = await read(statements.find, tenantId, id);
      return row && open(row);
    },
    list: async () => [...(await readAll()).documents],
    async relist(previousListing) {
      if (previousListing === undefined || previousListing.documents.length === 0) return readAll();
      const rows = await read(statements.marks, tenantId);
      const outdated = rows.filter(({ id, mark }) => previousListing.marks.get(String(id)) !== mark);
      if (outdated.length > MAX_CHANGED_DOCUMENTS) return readAll();
      const changedIds = new Set(outdated.map(({ id }) => String(id)));
      const unchanged = new Set(rows.map(({ id }) => String(id)).filter((id) => !changedIds.has(id)));
      const unchangedDocuments = previousListing.documents.filter(({ id }) => unchanged.has(id));
      const changedRows = changedIds.size === 0 ? [] : await read(statements.some, tenantId, [...changedIds]);
      return toListing(changedRows, unchangedDocuments, previousListing.marks);
    },
  };
}
