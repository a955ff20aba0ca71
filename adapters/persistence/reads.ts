import type { Cipher } from '../../application/ports/cipher.ts';
import type { SessionWithAuthorization, TenantLists, TenantReads, TenantState } from '../../application/ports/store.ts';
import type { StoredTrustLists } from '../../application/ports/stored-trust-lists.ts';
import { type ConsumedValue, sortConsumedValues } from '../../domain/oauth/consumed-value.ts';
import type { Session, SessionRequest } from '../../domain/sessions/session.ts';
import type { SessionId } from '../../domain/shared/ids.ts';
import type { OpenSessionBytes } from './open-session-bytes.ts';
import { DEFERRED, readAuthorization } from './rows/authorization-codec.ts';
import {
  GRANTS,
  readAsked,
  readIssued,
  readPublication,
  readRelease,
  readSeen,
  readSession,
  readStanding,
  readStatusList,
  readStatusListVersion,
  readTenantState,
  STORED_RESPONSES,
} from './rows/session-codec.ts';
import * as rates from './session-rates.ts';
import { brief, type Parameter, type Row, type Statement } from './statement.ts';
import * as statements from './statements.ts';

/** Runs one statement of one tenant, whose id is its first parameter. */
export type TenantQuery = (statement: Statement, ...parameters: Parameter[]) => Promise<readonly Row[]>;

/** Statements in which the dialects differ: the condition for the elements of an array. */
export type ListingStatements = {
  readonly sessionVersions: Statement;
  readonly statusListVersions: Statement;
  readonly statusesAt: Statement;
  readonly entriesAt: Statement;
  readonly issuing: Statement;
};

/** Called with the session, authorization or deferred transaction that a read returns. */
type Listeners = {
  readonly touched?: (id: SessionId) => void;
  readonly sessionBytes?: Pick<OpenSessionBytes, 'observeSession' | 'observeDeferred'> | undefined;
};

type Reader = ReturnType<typeof readerOf>;

function readerOf(query: TenantQuery, cipher: Cipher, { touched = () => {}, sessionBytes }: Listeners) {
  const queryOne = async (statement: Statement, ...parameters: Parameter[]) => (await query(statement, ...parameters))[0];
  /** Adds the tenant; `read` gets a row only if the queried row exists. */
  const withTenant = async <T>(read: (row: Row) => T, statement: Statement, ...parameters: Parameter[]) => {
    const row = await queryOne(statement, ...parameters);
    if (row === undefined) return undefined;
    return { tenant: readTenantState(row), value: row['id'] === null ? undefined : read(row) };
  };
  const sessionOf = (row: Row) => readSession(cipher, row);
  const oneSession = (row: Row) => {
    sessionBytes?.observeSession(row);
    return sessionOf(row);
  };
  const withSession = async (statement: Statement, id: string) => {
    const read = await withTenant(oneSession, statement, id);
    if (read?.value !== undefined) touched(read.value.id);
    return read && { tenant: read.tenant, session: read.value };
  };
  const withGrant = async (statement: Statement, name: string) => {
    const read = await withTenant((row) => GRANTS.read(cipher, row), statement, name);
    if (read?.value !== undefined) touched(read.value.sessionId);
    return read && { tenant: read.tenant, grant: read.value };
  };
  const withRequest = (row: Row): SessionWithAuthorization => ({ session: oneSession(row), authorization: readAsked(cipher, row) });
  const withoutRequest = (id: SessionId, request: SessionRequest) =>
    withTenant((row) => readSeen(cipher, row, request), statements.SEEN[request.kind], id);
  return {
    query,
    cipher,
    sessionBytes,
    touched,
    queryOne,
    withTenant,
    sessionOf,
    oneSession,
    withSession,
    withGrant,
    seenWhole: withRequest,
    withoutRequest,
  };
}

export function tenantReads(query: TenantQuery, cipher: Cipher, listing: ListingStatements, listeners: Listeners = {}): TenantReads {
  const reader = readerOf(query, cipher, listeners);
  return { state: stateRead(reader), ...sessionReads(reader, listing), ...authorizationReads(reader), ...listReads(reader, listing) };
}

/** Reads the state of the tenant. Callers of the same turn of the event loop share one read. */
function stateRead({ queryOne }: Reader): TenantReads['state'] {
  let pendingRead: Promise<TenantState | undefined> | undefined;
  return () => {
    pendingRead ??= new Promise((resolve) => setImmediate(resolve)).then(async () => {
      // Later callers may know of a change that this read does not see.
      pendingRead = undefined;
      const row = await queryOne(statements.STATE);
      return row && readTenantState(row);
    });
    return pendingRead;
  };
}

/** Reads of sessions, their events and their issued batches. */
function sessionReads(
  { query, cipher, touched, queryOne, withTenant, sessionOf, oneSession, withSession, seenWhole, withoutRequest }: Reader,
  listing: ListingStatements,
): Pick<
  TenantReads,
  | 'session'
  | 'sessionWithAuthorization'
  | 'sessionState'
  | 'sessionByPublicId'
  | 'issuing'
  | 'sessions'
  | 'sessionCursorAt'
  | 'sessionCounts'
  | 'sessionOutcomes'
  | 'sessionsOfSubject'
  | 'sessionVersions'
  | 'sessionEvents'
  | 'issued'
> {
  return {
    session: (id) => withSession(statements.READ_SESSION, id),
    async sessionWithAuthorization(id, request) {
      let read = request && (await withoutRequest(id, request));
      // The session is gone, or its request is.
      if (read?.value === undefined) read = await withTenant(seenWhole, statements.SEEN_SESSION, id);
      if (read?.value !== undefined) touched(read.value.session.id);
      return read && { tenant: read.tenant, session: read.value?.session, authorization: read.value?.authorization };
    },
    async sessionState(publicId) {
      const toState = (row: Row) => ({ id: row['id'] as SessionId, standing: readStanding(row) });
      const read = await withTenant(toState, statements.SESSION_STANDING, publicId);
      if (read?.value !== undefined) touched(read.value.id);
      return read && { tenant: read.tenant, sessionState: read.value?.standing };
    },
    sessionByPublicId: (publicId) => withSession(statements.FIND_BY_PUBLIC_ID, publicId),
    async issuing(publicId, uses, grantId) {
      const used = sortConsumedValues(uses);
      const [kinds, hashes] = [used.map(({ kind }) => kind), used.map(({ hash }) => hash)];
      const row = await queryOne(listing.issuing, publicId, kinds, hashes, grantId ?? null);
      if (row === undefined) return undefined;
      const session = row['id'] === null ? undefined : oneSession(row);
      if (session !== undefined) touched(session.id);
      return {
        tenant: readTenantState(row),
        session,
        use: session && { issued: Number(row['issued_count']), barred: Number(row['revoked_mask']) },
        used: (row['used_kind'] ?? undefined) as ConsumedValue['kind'] | undefined,
        revoked: Boolean(row['revoked']),
      };
    },
    async sessions(asking) {
      const { statement, parameters } = statements.listSessionsQuery(asking);
      return (await query(statement, ...parameters)).map(sessionOf);
    },
    async sessionCursorAt(range, count) {
      const { statement, parameters } = statements.sessionPlaceQuery(range, count);
      const [row] = await query(statement, ...parameters);
      return row && { createdAt: new Date(Number(row['created_at'])), id: String(row['id']) };
    },
    async sessionCounts(asking) {
      const { statement, parameters } = rates.countQuery(asking);
      return rates.readCounts(await query(statement, ...parameters), asking);
    },
    async sessionOutcomes(asking) {
      const { statement, parameters } = rates.outcomeQuery(asking);
      return (await query(statement, ...parameters)).map((row) => rates.readOutcome(cipher, row));
    },
    sessionsOfSubject: async (subjectHash) => (await query(statements.FIND_BY_SUBJECT, subjectHash)).map(sessionOf),
    async sessionVersions(ids) {
      const rows = await query(listing.sessionVersions, ids);
      return rows.map((row) => ({ id: row['id'] as SessionId, version: Number(row['version']) }));
    },
    sessionEvents: async (id, afterSequence, limit) => (await query(statements.SESSION_EVENTS, id, afterSequence, limit)).map(readEvent),
    issued: async (sessionId) => readIssued(cipher, await query(statements.READ_ISSUED, sessionId)),
  };
}

/** Reads of grants, authorizations, deferred transactions and stored responses. */
function authorizationReads({
  query,
  cipher,
  sessionBytes,
  queryOne,
  withTenant,
  withGrant,
}: Reader): Pick<TenantReads, 'grantByCode' | 'grant' | 'authorization' | 'deferred' | 'idempotentResponse' | 'deferredTransactions'> {
  return {
    grantByCode: (codeHash) => withGrant(statements.FIND_GRANT, codeHash),
    grant: (id) => withGrant(statements.FIND_GRANT_BY_ID, id),
    async authorization(id) {
      const toAuthorization = (row: Row) => {
        const authorization = readAuthorization(cipher, row);
        return authorization;
      };
      const read = await withTenant(toAuthorization, statements.FIND_AUTHORIZATION, id);
      return read && { tenant: read.tenant, authorization: read.value };
    },
    async deferred(id) {
      const row = await queryOne(statements.FIND_DEFERRED, id);
      if (row !== undefined) sessionBytes?.observeDeferred(row);
      return row && DEFERRED.read(cipher, row);
    },
    async idempotentResponse(id, now) {
      const toStoredResponse = (row: Row) => STORED_RESPONSES.read(cipher, row);
      const read = await withTenant(toStoredResponse, statements.FIND_KEPT_ANSWER, id, now.getTime());
      return read && { tenant: read.tenant, response: read.value };
    },
    async deferredTransactions({ sessionId, limit }) {
      const rows = await query(statements.LIST_DEFERRED, sessionId ?? null, limit);
      if (sessionId !== undefined) for (const row of rows) sessionBytes?.observeDeferred(row);
      return rows.map((row) => DEFERRED.read(cipher, row));
    },
  };
}

function listReads(
  { query, cipher, queryOne }: Reader,
  listing: ListingStatements,
): Pick<TenantReads, 'statusList' | 'statusListVersions' | 'statusesAt' | 'statusEntriesAt' | 'statusEntries' | 'trustList'> {
  return {
    async statusList(id) {
      const row = await queryOne(statements.FIND_STATUS_LIST, id);
      return row && readStatusList(cipher, row);
    },
    statusListVersions: async (ids) => (await query(listing.statusListVersions, ids)).map(readStatusListVersion),
    async statusesAt(listId, indices) {
      const rows = await query(listing.statusesAt, listId, indices);
      return rows.map((row) => Number(row['status']));
    },
    async statusEntriesAt(listId, indices) {
      const rows = await query(listing.entriesAt, listId, indices);
      return rows.map((row) => ({ index: Number(row['idx']), status: Number(row['status']) }));
    },
    async statusEntries(listId, afterVersion) {
      const rows = await query(statements.STATUS_ENTRIES, listId, afterVersion);
      return rows.map((row) => ({ index: Number(row['idx']), status: Number(row['status']) }));
    },
    async trustList(id) {
      const row = await queryOne(statements.FIND_TRUST_LIST, id);
      return row && readPublication(row);
    },
  };
}

export function listKeeping(query: TenantQuery): Omit<TenantLists, keyof StoredTrustLists> {
  return {
    async allocateStatusRun({ id, keyChainId }, count, usedEntries = 0) {
      const [row] = await query(statements.TAKE_STATUS_RUN, id, keyChainId, count, usedEntries);
      return row && Number(row['first']);
    },
    async saveStatusToken(listId, token, { version, term }, issuedAt, expiresAt) {
      const times = [issuedAt.getTime(), expiresAt.getTime()];
      await query(statements.SAVE_STATUS_TOKEN, listId, token, version, ...times, term);
    },
    async newestListVersion(id) {
      const [row] = await query(statements.FIND_RELEASE, id);
      return readRelease(row);
    },
    async recordListVersion(id, { sequenceNumber, contentHash }, now) {
      await query(statements.NOTE_RELEASE, id, sequenceNumber, contentHash, now.getTime());
      const [row] = await query(statements.FIND_RELEASE, id);
      const { sequenceNumber: newest, contentHash: content } = readRelease(row) ?? { sequenceNumber, contentHash };
      return { sequenceNumber: newest, contentHash: content };
    },
  };
}

function readEvent(row: Row) {
  return {
    sequence: Number(row['version']),
    version: Number(row['version']),
    status: row['status'] as Session['status'],
    at: new Date(Number(row['at'])),
  };
}

const LIST_QUERIES = {
  sessions: 'select id, version from sessions where tenant_id = $1 and id',
  statuses: 'select status from status_entries where tenant_id = $1 and list_id = $2 and idx',
  entries: 'select idx, status from status_entries where tenant_id = $1 and list_id = $2 and idx',
  statusLists: `select id, version, key_chain_id, ${statements.PRESENT_TERM} as term from status_lists
   where tenant_id = $1 and exists (select 1 from tenants where id = $1) and id`,
};

function listingBy(elements: string, indices: string, used: string): ListingStatements {
  return {
    issuing: statements.issuingStatement(used),
    statusesAt: brief('statuses_at', `${LIST_QUERIES.statuses} ${indices}`),
    entriesAt: brief('entries_at', `${LIST_QUERIES.entries} ${indices}`),
    sessionVersions: { name: 'session_versions', text: `${LIST_QUERIES.sessions} ${elements}` },
    statusListVersions: { name: 'status_list_versions', text: `${LIST_QUERIES.statusLists} ${elements}` },
  };
}

export const POSTGRES_LISTING = listingBy(
  '= any($2::text[])',
  '= any($3::int[])',
  'unnest($3::text[], $4::text[]) with ordinality as v(kind, hash, place)',
);
export const SQLITE_LISTING = listingBy(
  'in (select value from json_each($2))',
  'in (select value from json_each($3))',
  `(select k.value as kind, h.value as hash, k.key as place from json_each($3) k join json_each($4) h on h.key = k.key) v`,
);
