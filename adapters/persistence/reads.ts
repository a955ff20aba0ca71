import type { Cipher } from '../../application/ports/cipher.ts';
import type { KeptTrustLists } from '../../application/ports/kept-trust-lists.ts';
import type { AskedSession, ListKeeping, TenantReads, TenantState } from '../../application/ports/store.ts';
import { inOrder, type UsedValue } from '../../domain/oauth/used-value.ts';
import type { Session, SessionRequest } from '../../domain/sessions/session.ts';
import type { SessionId } from '../../domain/shared/ids.ts';
import type { OpenSessionBytes } from './open-session-bytes.ts';
import { DEFERRED, readAuthorization } from './rows/authorization-codec.ts';
import {
  GRANTS,
  KEPT_ANSWERS,
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
} from './rows/session-codec.ts';
import * as rates from './session-rates.ts';
import { brief, type Parameter, type Row, type Statement } from './statement.ts';
import * as statements from './statements.ts';

/** Runs one statement of one tenant, whose id it puts first. */
export type TenantQuery = (statement: Statement, ...parameters: Parameter[]) => Promise<readonly Row[]>;

/** Statements in which the dialects differ: how the elements of an array are listed. */
export type ListingStatements = {
  readonly sessionVersions: Statement;
  readonly statusListVersions: Statement;
  readonly statusesAt: Statement;
  readonly entriesAt: Statement;
  readonly issuing: Statement;
};

/** What is called with the one session, authorization or deferred transaction that a read is about. */
type Listeners = {
  readonly touched?: (id: SessionId) => void;
  readonly sessionBytes?: Pick<OpenSessionBytes, 'observeSession' | 'observeDeferred'> | undefined;
};

/** What all reads of one tenant use. */
type Reader = ReturnType<typeof readerOf>;

function readerOf(query: TenantQuery, cipher: Cipher, { touched = () => {}, sessionBytes }: Listeners) {
  const one = async (statement: Statement, ...parameters: Parameter[]) => (await query(statement, ...parameters))[0];
  /** With the tenant; `read` gets a row only if there is what was asked for. */
  const withTenant = async <T>(read: (row: Row) => T, statement: Statement, ...parameters: Parameter[]) => {
    const row = await one(statement, ...parameters);
    if (row === undefined) return undefined;
    return { tenant: readTenantState(row), found: row['id'] === null ? undefined : read(row) };
  };
  const sessionOf = (row: Row) => readSession(cipher, row);
  const oneSession = (row: Row) => {
    sessionBytes?.observeSession(row);
    return sessionOf(row);
  };
  const withSession = async (statement: Statement, id: string) => {
    const read = await withTenant(oneSession, statement, id);
    if (read?.found !== undefined) touched(read.found.id);
    return read && { tenant: read.tenant, session: read.found };
  };
  const withGrant = async (statement: Statement, name: string) => {
    const read = await withTenant((row) => GRANTS.read(cipher, row), statement, name);
    if (read?.found !== undefined) touched(read.found.sessionId);
    return read && { tenant: read.tenant, grant: read.found };
  };
  const seenWhole = (row: Row): AskedSession => ({ session: oneSession(row), asked: readAsked(cipher, row) });
  const withoutRequest = (id: SessionId, request: SessionRequest) =>
    withTenant((row) => readSeen(cipher, row, request), statements.SEEN[request.kind], id);
  return {
    query,
    cipher,
    sessionBytes,
    touched,
    one,
    withTenant,
    sessionOf,
    oneSession,
    withSession,
    withGrant,
    seenWhole,
    withoutRequest,
  };
}

/** All reads of one tenant. */
export function tenantReads(query: TenantQuery, cipher: Cipher, listing: ListingStatements, listeners: Listeners = {}): TenantReads {
  const reader = readerOf(query, cipher, listeners);
  return { state: stateRead(reader), ...sessionReads(reader, listing), ...authorizationReads(reader), ...listReads(reader, listing) };
}

/** The state of the tenant. Callers of the same turn of the event loop share one read. */
function stateRead({ one }: Reader): TenantReads['state'] {
  let asked: Promise<TenantState | undefined> | undefined;
  return () => {
    asked ??= new Promise((resolve) => setImmediate(resolve)).then(async () => {
      // Who asks from here on may know of something that this read does not see.
      asked = undefined;
      const row = await one(statements.STATE);
      return row && readTenantState(row);
    });
    return asked;
  };
}

/** Sessions, their events and what they issued. */
function sessionReads(
  { query, cipher, touched, one, withTenant, sessionOf, oneSession, withSession, seenWhole, withoutRequest }: Reader,
  listing: ListingStatements,
): Pick<
  TenantReads,
  | 'session'
  | 'seenSession'
  | 'sessionStanding'
  | 'sessionByPublicId'
  | 'issuing'
  | 'sessions'
  | 'sessionPlace'
  | 'sessionCounts'
  | 'sessionOutcomes'
  | 'sessionsOfSubject'
  | 'sessionVersions'
  | 'sessionEvents'
  | 'issued'
> {
  return {
    session: (id) => withSession(statements.READ_SESSION, id),
    async seenSession(id, request) {
      let read = request && (await withoutRequest(id, request));
      // It is gone, or nothing is left to show of it.
      if (read?.found === undefined) read = await withTenant(seenWhole, statements.SEEN_SESSION, id);
      if (read?.found !== undefined) touched(read.found.session.id);
      return read && { tenant: read.tenant, session: read.found?.session, asked: read.found?.asked };
    },
    async sessionStanding(publicId) {
      const seen = (row: Row) => ({ id: row['id'] as SessionId, standing: readStanding(row) });
      const read = await withTenant(seen, statements.SESSION_STANDING, publicId);
      if (read?.found !== undefined) touched(read.found.id);
      return read && { tenant: read.tenant, standing: read.found?.standing };
    },
    sessionByPublicId: (publicId) => withSession(statements.FIND_BY_PUBLIC_ID, publicId),
    async issuing(publicId, uses, grantId) {
      const used = inOrder(uses);
      const [kinds, hashes] = [used.map(({ kind }) => kind), used.map(({ hash }) => hash)];
      const row = await one(listing.issuing, publicId, kinds, hashes, grantId ?? null);
      if (row === undefined) return undefined;
      const session = row['id'] === null ? undefined : oneSession(row);
      if (session !== undefined) touched(session.id);
      return {
        tenant: readTenantState(row),
        session,
        use: session && { issued: Number(row['issued_count']), barred: Number(row['revoked_mask']) },
        used: (row['used_kind'] ?? undefined) as UsedValue['kind'] | undefined,
        revoked: Boolean(row['revoked']),
      };
    },
    async sessions(asking) {
      const { statement, parameters } = statements.listSessionsQuery(asking);
      return (await query(statement, ...parameters)).map(sessionOf);
    },
    async sessionPlace(range, count) {
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
    sessionEvents: async (id, after, limit) => (await query(statements.SESSION_EVENTS, id, after, limit)).map(readEvent),
    issued: async (sessionId) => readIssued(cipher, await query(statements.READ_ISSUED, sessionId)),
  };
}

/** Grants, authorizations, deferred transactions and kept answers. */
function authorizationReads({
  query,
  cipher,
  sessionBytes,
  one,
  withTenant,
  withGrant,
}: Reader): Pick<TenantReads, 'grantByCode' | 'grant' | 'authorization' | 'deferred' | 'keptAnswer' | 'deferredTransactions'> {
  return {
    grantByCode: (codeHash) => withGrant(statements.FIND_GRANT, codeHash),
    grant: (id) => withGrant(statements.FIND_GRANT_BY_ID, id),
    async authorization(id) {
      const found = (row: Row) => {
        const authorization = readAuthorization(cipher, row);
        return authorization;
      };
      const read = await withTenant(found, statements.FIND_AUTHORIZATION, id);
      return read && { tenant: read.tenant, authorization: read.found };
    },
    async deferred(id) {
      const row = await one(statements.FIND_DEFERRED, id);
      if (row !== undefined) sessionBytes?.observeDeferred(row);
      return row && DEFERRED.read(cipher, row);
    },
    async keptAnswer(id, now) {
      const kept = (row: Row) => KEPT_ANSWERS.read(cipher, row);
      const read = await withTenant(kept, statements.FIND_KEPT_ANSWER, id, now.getTime());
      return read && { tenant: read.tenant, kept: read.found };
    },
    async deferredTransactions({ sessionId, limit }) {
      const rows = await query(statements.LIST_DEFERRED, sessionId ?? null, limit);
      if (sessionId !== undefined) for (const row of rows) sessionBytes?.observeDeferred(row);
      return rows.map((row) => DEFERRED.read(cipher, row));
    },
  };
}

/** Status lists and trust lists. */
function listReads(
  { query, cipher, one }: Reader,
  listing: ListingStatements,
): Pick<TenantReads, 'statusList' | 'statusListVersions' | 'statusesAt' | 'statusEntriesAt' | 'statusEntries' | 'trustList'> {
  return {
    async statusList(id) {
      const row = await one(statements.FIND_STATUS_LIST, id);
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
      const row = await one(statements.FIND_TRUST_LIST, id);
      return row && readPublication(row);
    },
  };
}

export function listKeeping(query: TenantQuery): Omit<ListKeeping, keyof KeptTrustLists> {
  return {
    async takeStatusRun({ id, keyChainId }, count, seen = 0) {
      const [row] = await query(statements.TAKE_STATUS_RUN, id, keyChainId, count, seen);
      return row && Number(row['first']);
    },
    async saveStatusToken(listId, token, { version, term }, issuedAt, expiresAt) {
      const times = [issuedAt.getTime(), expiresAt.getTime()];
      await query(statements.SAVE_STATUS_TOKEN, listId, token, version, ...times, term);
    },
    async release(id) {
      const [row] = await query(statements.FIND_RELEASE, id);
      return readRelease(row);
    },
    async noteRelease(id, { sequenceNumber, contentHash }, now) {
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

const LISTED = {
  sessions: 'select id, version from sessions where tenant_id = $1 and id',
  statuses: 'select status from status_entries where tenant_id = $1 and list_id = $2 and idx',
  entries: 'select idx, status from status_entries where tenant_id = $1 and list_id = $2 and idx',
  statusLists: `select id, version, key_chain_id, ${statements.PRESENT_TERM} as term from status_lists
   where tenant_id = $1 and exists (select 1 from tenants where id = $1) and id`,
};

function listingBy(elements: string, indices: string, used: string): ListingStatements {
  return {
    issuing: statements.issuingStatement(used),
    statusesAt: brief('statuses_at', `${LISTED.statuses} ${indices}`),
    entriesAt: brief('entries_at', `${LISTED.entries} ${indices}`),
    sessionVersions: { name: 'session_versions', text: `${LISTED.sessions} ${elements}` },
    statusListVersions: { name: 'status_list_versions', text: `${LISTED.statusLists} ${elements}` },
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
