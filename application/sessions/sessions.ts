import { z } from 'zod';
import { describeSessionRemoval } from '../../domain/audit/describe-change.ts';
import type { AuthorizationSummary } from '../../domain/oauth/authorization-summary.ts';
import { isTerminal, SESSION_STATUSES, type Session, statusAt } from '../../domain/sessions/session.ts';
import { MAX_SEARCH, parseSearchKeys } from '../../domain/sessions/session-search.ts';
import { defined } from '../../domain/shared/defined.ts';
import { invalidInput } from '../../domain/shared/failure.ts';
import type { SessionId } from '../../domain/shared/ids.ts';
import { estimateJsonLength } from '../../domain/shared/json.ts';
import { pageLimit, textCursor } from '../../domain/shared/list-page.ts';
import type { Tenant } from '../../domain/tenants/tenant.ts';
import type { CachedCaller, TenantCaller } from '../caller.ts';
import { needs } from '../needs.ts';
import { Clock } from '../ports/clock.ts';
import { type SessionQuery, Store } from '../ports/store.ts';
import { attemptFor, record } from '../transactions/attempt.ts';
import { TRANSACTION_PORTS } from '../transactions/tenant-transaction.ts';
import { FetchedSessions } from './fetched-sessions.ts';
import { assertVisible, isVisible, mayAccess, sessionNotFoundError, visibleKinds } from './visibility.ts';

const DEFAULT_LIMIT = 100;
/** Maximum rows per read. An unsealed row can hold megabytes, and all rows of a read are in memory together. */
const BATCH = 26;
/** Maximum rows per page; a caller who may see few of them gets a short page and continues from there. */
const MAX_ROWS = 2_500;
/**
 * Limits of index entries that a page may visit, in steps: a filter with few matches gives a short page, whose `next` link continues
 * from there. The first step is sufficient for a page that fills at once.
 */
const VISIT_LIMITS = [600, 2_400, 7_000] as const;
/** Allows for sessions that another process created with a fast clock. */
const CLOCK_SKEW_MS = 3_600_000;
/** Limit of characters after which a page ends early. */
const MAX_PAGE_LENGTH = 8 * 1024 * 1024;

/** Position after which a page begins: a time in milliseconds, and the id of a session of the previous page. */
const CURSOR = /^(\d{1,15})\.([A-Za-z0-9_-]{0,200})$/;

export const SessionListQuery = z.object({
  status: z.enum(SESSION_STATUSES).optional(),
  since: z.iso
    .datetime({ offset: true })
    .transform((text) => new Date(text))
    .optional()
    .describe('Only sessions created at this time or later'),
  q: z
    .string()
    .min(1)
    .max(MAX_SEARCH)
    .optional()
    .describe('Only sessions with exactly this id, `reference`, link or address in it, code, or nonce of a request'),
  limit: pageLimit(DEFAULT_LIMIT),
  cursor: textCursor(CURSOR),
  sort: z.enum(['asc', 'desc']).default('desc').describe('By time of creation'),
});
export type SessionListQuery = z.infer<typeof SessionListQuery>;

export type SessionPage = {
  readonly sessions: readonly Session[];
  /** Time of the read. */
  readonly now: Date;
  /** Cursor of the next page; absent on the last one. */
  readonly next?: string;
};

/** A session at a point in time. */
export type SessionSnapshot = {
  readonly session: Session;
  readonly tenant: Tenant;
  readonly now: Date;
  /** Request of the wallet in an issuance with an authorization code of the built-in server. */
  readonly authorization?: AuthorizationSummary | undefined;
};

type Position = NonNullable<SessionQuery['after']>;

/** Lists the sessions that the caller may see, page by page. */
export class ListSessions extends needs({ store: Store, clock: Clock, fetchedSessions: FetchedSessions }) {
  /** @throws Failure `invalid_input` for a cursor that this service did not create. */
  async execute(caller: TenantCaller, request: SessionListQuery): Promise<SessionPage> {
    const { store, clock, fetchedSessions } = this.ports;
    await fetchedSessions.flushTenant(caller.tenantId);
    const now = clock.now();
    const reads = store.read(caller.tenantId);
    const query = queryOf(caller, request, now);
    const sessions: Session[] = [];
    let length = 0;
    const start = request.cursor === undefined ? undefined : parseCursor(request.cursor);
    let position = start;
    let limit = 0;
    let readRows = 0;
    for (const visits of VISIT_LIMITS) {
      const range = { ...query, ...(position !== undefined && { after: position }) };
      // A query by name uses another index.
      const through = query.named === undefined ? await reads.sessionCursorAt(range, visits) : undefined;
      for (; readRows < MAX_ROWS; readRows += limit) {
        // Rows are unsealed, so only the page and one further row are read as long as all rows match.
        limit = sessions.length === readRows ? Math.min(BATCH, request.limit + 1 - readRows) : BATCH;
        const rows = await reads.sessions({ ...query, limit, ...defined({ after: position, through }) });
        for (const row of rows) {
          if (isVisible(caller, row) && hasStatus(row, request.status, now)) {
            const lastSession = sessions.at(-1);
            if (lastSession !== undefined && (sessions.length === request.limit || length >= MAX_PAGE_LENGTH)) {
              return { sessions, now, next: cursorAfter(lastSession) };
            }
            length += estimateJsonLength(row.request) + estimateJsonLength(row.outcome);
            sessions.push(row);
          }
          position = { createdAt: row.createdAt, id: row.id };
        }
        if (rows.length < limit) break;
      }
      if (readRows >= MAX_ROWS) break;
      if (through === undefined) return { sessions, now };
      position = through;
    }
    return { sessions, now, next: cursorAt(start, position, sessions.at(-1), request.sort) };
  }
}

function queryOf(caller: TenantCaller, request: SessionListQuery, now: Date): Omit<SessionQuery, 'limit'> {
  return {
    kinds: visibleKinds(caller),
    ...defined({ status: request.status, since: request.since, named: request.q === undefined ? undefined : parseSearchKeys(request.q) }),
    // A removed session that is kept for a refreshing wallet is hidden; its row has the time of its own end.
    until: new Date(now.getTime() + CLOCK_SKEW_MS),
    ascending: request.sort === 'asc',
  };
}

/** A stored status can be out of date: a session that expired meanwhile is not listed as open. */
function hasStatus(session: Session, status: SessionListQuery['status'], now: Date): boolean {
  return status === undefined || isTerminal(status) || statusAt(session, now) === status;
}

function cursorAfter(position: Position): string {
  return `${position.createdAt.getTime()}.${position.id}`;
}

/**
 * The cursor at which reading stopped, without the id of a session that the caller must not see: the beginning of its millisecond. If
 * more sessions than a page may visit have the same time (anonymous ones have that of their day), the exact position, so that
 * the next page makes progress.
 * @param start of the page. @param lastSession session on the page.
 */
function cursorAt(
  start: Position | undefined,
  stoppedAt: Position | undefined,
  lastSession: Session | undefined,
  sort: SessionListQuery['sort'],
): string {
  if (stoppedAt === undefined) throw new Error('Rows were read.');
  const time = stoppedAt.createdAt.getTime();
  if (lastSession?.createdAt.getTime() === time) return cursorAfter(lastSession);
  // In descending order the millisecond begins after the one above it, since an empty id sorts first.
  const rounded = { createdAt: new Date(sort === 'asc' ? time : time + 1), id: '' };
  return cursorAfter(start === undefined || isBehind(rounded, start, sort) ? rounded : stoppedAt);
}

function isBehind(position: Position, otherPosition: Position, sort: SessionListQuery['sort']): boolean {
  const difference = position.createdAt.getTime() - otherPosition.createdAt.getTime();
  if (difference !== 0) return sort === 'asc' ? difference > 0 : difference < 0;
  return sort === 'asc' ? position.id > otherPosition.id : position.id < otherPosition.id;
}

function parseCursor(cursor: string): Position {
  const [, time, id] = CURSOR.exec(cursor) ?? [];
  if (time === undefined || id === undefined) throw invalidInput('cursor', 'use the cursor of the link of the previous page');
  return { createdAt: new Date(Number(time)), id };
}

export class GetSession extends needs({ ...TRANSACTION_PORTS, fetchedSessions: FetchedSessions }) {
  /** @throws Failure `not_found`. */
  execute(caller: CachedCaller, id: SessionId): Promise<SessionSnapshot> {
    return attemptFor(this.ports, caller, async (transaction, currentCaller) => {
      const { now, tenant } = transaction;
      await this.ports.fetchedSessions.flushTenant(transaction.tenantId);
      const result = await transaction.confirm(transaction.reads.sessionWithAuthorization(id, transaction.cachedRequest(id)));
      const session = assertVisible(currentCaller, result.session);
      return { session, authorization: result.authorization, tenant: await tenant.tenant(), now };
    });
  }
}

/** Removes a session with its data and its grants. */
export class DeleteSession extends needs(TRANSACTION_PORTS) {
  /** @throws Failure `not_found`. */
  async execute(caller: TenantCaller, id: SessionId): Promise<void> {
    const session = (await this.ports.store.read(caller.tenantId).session(id))?.session;
    if (session === undefined || !mayAccess(caller, session)) throw sessionNotFoundError();
    const audit = { by: caller, change: describeSessionRemoval(id) };
    const committed = await record(this.ports, caller.tenantId, { removes: id, audit });
    if (!committed.done) throw sessionNotFoundError();
  }
}
