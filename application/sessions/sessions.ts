import { z } from 'zod';
import { describeSessionRemoval } from '../../domain/audit/describe-change.ts';
import type { AskedAuthorization } from '../../domain/oauth/asked-authorization.ts';
import { isTerminal, SESSION_STATUSES, type Session, statusAt } from '../../domain/sessions/session.ts';
import { MAX_SEARCH, namesIn } from '../../domain/sessions/session-search.ts';
import { defined } from '../../domain/shared/defined.ts';
import { invalidInput } from '../../domain/shared/failure.ts';
import type { SessionId } from '../../domain/shared/ids.ts';
import { lengthOf } from '../../domain/shared/json.ts';
import { pageLimit, textCursor } from '../../domain/shared/list-page.ts';
import type { Tenant } from '../../domain/tenants/tenant.ts';
import type { RememberedCaller, TenantCaller } from '../caller.ts';
import { needs } from '../needs.ts';
import { Clock } from '../ports/clock.ts';
import { type SessionQuery, Store } from '../ports/store.ts';
import { attemptFor, record } from '../transactions/attempt.ts';
import { WORLD } from '../transactions/known.ts';
import { FetchedSessions } from './fetched-sessions.ts';
import { isVisible, mayKnow, noSession, visible, visibleKinds } from './visibility.ts';

const DEFAULT_LIMIT = 100;
/** Rows per read, at most. A row can hold megabytes once it is opened, and all rows of a read are in memory together. */
const BATCH = 26;
/** Rows that one page may cost; a caller who may see little gets a short page and goes on from there. */
const MAX_ROWS = 2_500;
/**
 * Sessions that a page may pass in the index, in steps: a filter that few sessions match gives a short page, whose `next` link goes
 * on from there. The first step is enough for a page that fills at once.
 */
const VISITS = [600, 2_400, 7_000] as const;
/** Another process may have created a session by a clock that is ahead. */
const CLOCKS_DIFFER_MS = 3_600_000;
/** Characters after which a page ends early. */
const MAX_PAGE_LENGTH = 8 * 1024 * 1024;

/** The place after which a page begins: a time in milliseconds, and the id of a session of the page before. */
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
    .describe(
      'Only sessions of this name, exactly: the id, your `reference`, the link or an address in it, a code, the nonce of a request',
    ),
  limit: pageLimit(DEFAULT_LIMIT),
  cursor: textCursor(CURSOR),
  sort: z.enum(['asc', 'desc']).default('desc').describe('By time of creation'),
});
export type SessionListQuery = z.infer<typeof SessionListQuery>;

export type SessionPage = {
  readonly sessions: readonly Session[];
  /** When they are so. */
  readonly now: Date;
  /** Where the next page begins; absent on the last one. */
  readonly next?: string;
};

/** One session as it is at a time. */
export type SeenSession = {
  readonly session: Session;
  readonly tenant: Tenant;
  readonly now: Date;
  /** Of an issuance with an authorization code of ours. */
  readonly asked?: AskedAuthorization | undefined;
};

type Place = NonNullable<SessionQuery['after']>;

/** The sessions that the caller may know of, page by page. */
export class ListSessions extends needs({ store: Store, clock: Clock, fetchedSessions: FetchedSessions }) {
  /** @throws Failure `invalid_input` for a cursor that this service did not write. */
  async execute(caller: TenantCaller, wanted: SessionListQuery): Promise<SessionPage> {
    const { store, clock, fetchedSessions } = this.ports;
    await fetchedSessions.settled(caller.tenantId);
    const now = clock.now();
    const reads = store.read(caller.tenantId);
    const query = queryOf(caller, wanted, now);
    const sessions: Session[] = [];
    let length = 0;
    const start = wanted.cursor === undefined ? undefined : parseCursor(wanted.cursor);
    let after = start;
    let limit = 0;
    let read = 0;
    for (const visits of VISITS) {
      const range = { ...query, ...(after !== undefined && { after }) };
      // A name leads to its sessions by an index of its own.
      const through = query.named === undefined ? await reads.sessionPlace(range, visits) : undefined;
      for (; read < MAX_ROWS; read += limit) {
        // Each row is to be opened: no more than the page and one that tells of the next, while all that are read belong to it.
        limit = sessions.length === read ? Math.min(BATCH, wanted.limit + 1 - read) : BATCH;
        const rows = await reads.sessions({ ...query, limit, ...defined({ after, through }) });
        for (const row of rows) {
          if (isVisible(caller, row) && isStill(row, wanted.status, now)) {
            const last = sessions.at(-1);
            if (last !== undefined && (sessions.length === wanted.limit || length >= MAX_PAGE_LENGTH)) {
              return { sessions, now, next: cursorAfter(last) };
            }
            length += lengthOf(row.request) + lengthOf(row.outcome);
            sessions.push(row);
          }
          after = { createdAt: row.createdAt, id: row.id };
        }
        if (rows.length < limit) break;
      }
      if (read >= MAX_ROWS) break;
      if (through === undefined) return { sessions, now };
      after = through;
    }
    return { sessions, now, next: cursorAt(start, after, sessions.at(-1), wanted.sort) };
  }
}

function queryOf(caller: TenantCaller, wanted: SessionListQuery, now: Date): Omit<SessionQuery, 'limit'> {
  return {
    kinds: visibleKinds(caller),
    ...defined({
      status: wanted.status,
      since: wanted.since,
      named: wanted.q === undefined ? undefined : namesIn(wanted.q),
    }),
    // What is kept for a wallet after its session was removed is hidden, and stands at the time of its own end.
    until: new Date(now.getTime() + CLOCKS_DIFFER_MS),
    ascending: wanted.sort === 'asc',
  };
}

/** A stored status can be older than the clock: what is expired by now is not listed as open. */
function isStill(session: Session, status: SessionListQuery['status'], now: Date): boolean {
  return status === undefined || isTerminal(status) || statusAt(session, now) === status;
}

function cursorAfter(place: Place): string {
  return `${place.createdAt.getTime()}.${place.id}`;
}

/**
 * Where reading stopped, without a word of a session that the caller must not know of: the beginning of its millisecond. Where more
 * sessions than a page may pass have the same time (anonymous ones have that of their day), the place itself, so that the next
 * page gets further.
 * @param start where the page began. @param last on the page.
 */
function cursorAt(start: Place | undefined, stopped: Place | undefined, last: Session | undefined, sort: SessionListQuery['sort']): string {
  if (stopped === undefined) throw new Error('Rows were read.');
  const time = stopped.createdAt.getTime();
  if (last?.createdAt.getTime() === time) return cursorAfter(last);
  // No id comes before none: in falling order the millisecond begins after the one above it.
  const rounded = { createdAt: new Date(sort === 'asc' ? time : time + 1), id: '' };
  return cursorAfter(start === undefined || isBehind(rounded, start, sort) ? rounded : stopped);
}

function isBehind(one: Place, other: Place, sort: SessionListQuery['sort']): boolean {
  const difference = one.createdAt.getTime() - other.createdAt.getTime();
  if (difference !== 0) return sort === 'asc' ? difference > 0 : difference < 0;
  return sort === 'asc' ? one.id > other.id : one.id < other.id;
}

function parseCursor(cursor: string): Place {
  const [, time, id] = CURSOR.exec(cursor) ?? [];
  if (time === undefined || id === undefined) throw invalidInput('cursor', 'take the cursor from the link of the page before');
  return { createdAt: new Date(Number(time)), id };
}

export class GetSession extends needs({ ...WORLD, fetchedSessions: FetchedSessions }) {
  /** @throws Failure `not_found`. */
  execute(caller: RememberedCaller, id: SessionId): Promise<SeenSession> {
    return attemptFor(this.ports, caller, async (known, present) => {
      const { now, configured } = known;
      await this.ports.fetchedSessions.settled(known.tenantId);
      const read = await known.confirm(known.reads.seenSession(id, known.requestOf(id)));
      const session = visible(present, read.session);
      return { session, asked: read.asked, tenant: await configured.tenant(), now };
    });
  }
}

/** Removes a session with all it holds, and with the right to renew what it gave out; a wallet finds it gone. */
export class DeleteSession extends needs(WORLD) {
  /** @throws Failure `not_found`. */
  async execute(caller: TenantCaller, id: SessionId): Promise<void> {
    const session = (await this.ports.store.read(caller.tenantId).session(id))?.session;
    if (session === undefined || !mayKnow(caller, session)) throw noSession();
    const audit = { by: caller, change: describeSessionRemoval(id) };
    const removed = await record(this.ports, caller.tenantId, { removes: id, audit });
    if (!removed.done) throw noSession();
  }
}
