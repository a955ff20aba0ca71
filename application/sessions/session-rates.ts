import { z } from 'zod';
import { isRestricted } from '../../domain/clients/client.ts';
import type { SessionKind, SessionStatus } from '../../domain/sessions/session.ts';
import {
  type DeliveryCount,
  deliveriesOf,
  type FailureCount,
  factsOf,
  failuresOf,
  type OutcomeFacts,
  type RefusalCount,
  refusalsOf,
} from '../../domain/sessions/session-rates.ts';
import { Failure } from '../../domain/shared/failure.ts';
import { lengthOf } from '../../domain/shared/json.ts';
import type { TenantCaller } from '../caller.ts';
import { needs } from '../needs.ts';
import { Clock } from '../ports/clock.ts';
import type { OutcomeQuery } from '../ports/session-rates.ts';
import { Store, type TenantReads } from '../ports/store.ts';
import { FetchedSessions } from './fetched-sessions.ts';
import { visibleKinds } from './visibility.ts';

/** Sessions that are read to count those of the caller's kinds: as many as a database counts in some tens of milliseconds. */
export const MOST_COUNTED = 20_000;
/** Sessions that are opened to see why they failed, and what webhooks and wallets said: what came of them is sealed. */
const MOST_FAILED = 1_000;
const MOST_LOOKED_AT = 2_000;
/** Rows per read. A row can hold megabytes once it is opened, and all rows of a read are in memory together. */
const BATCH = 25;
/** Characters after which no more are opened. */
const MAX_LENGTH = 16 * 1024 * 1024;

export const PERIODS = { '24h': 86_400_000, '7d': 7 * 86_400_000 } as const;

export const SessionRatesQuery = z.object({
  period: z.enum(['24h', '7d']).default('24h').describe('Sessions that were made in it, until now'),
});
export type SessionRatesQuery = z.infer<typeof SessionRatesQuery>;

/** Which sessions something is about: the newest ones of the period. */
export type Sample = {
  readonly sessions: number;
  /** Whether there are no others in the period. */
  readonly isComplete: boolean;
  /** When the oldest of them was made; undefined without any. */
  readonly from?: Date;
};

export type SessionRates = {
  readonly since: Date;
  readonly until: Date;
  readonly counted: Sample;
  readonly outcomes: readonly { readonly kind: SessionKind; readonly status: SessionStatus; readonly count: number }[];
  readonly failed: Sample;
  readonly failures: readonly FailureCount[];
  readonly lookedAt: Sample;
  readonly refusals: readonly RefusalCount[];
  readonly deliveries: readonly DeliveryCount[];
};

/** How the newest sessions of a tenant went. Nothing is counted where sessions are made, so nobody waits for it there. */
export class CountSessions extends needs({ store: Store, clock: Clock, fetchedSessions: FetchedSessions }) {
  /** @throws Failure `forbidden` for a client that is restricted to some configurations: rates are about all. */
  async execute(caller: TenantCaller, { period }: SessionRatesQuery): Promise<SessionRates> {
    if (isRestricted(caller)) throw new Failure('forbidden', 'this client is restricted to some configurations, and rates are about all');
    await this.ports.fetchedSessions.settled(caller.tenantId);
    const until = this.ports.clock.now();
    const since = new Date(until.getTime() - PERIODS[period]);
    const kinds = visibleKinds(caller);
    const reads = this.ports.store.read(caller.tenantId);
    const { counts, from: reached } = await reads.sessionCounts({ kinds, since, now: until, limit: MOST_COUNTED });
    const sessions = counts.reduce((sum, { count }) => sum + count, 0);
    const oldest = counts.map(({ oldest: at }) => at).sort((one, other) => one.getTime() - other.getTime())[0];
    const isComplete = reached === undefined;
    // What was not counted is not looked through either, however few there are of what is looked for.
    const from = reached ?? since;
    const failed = await read(reads, { kinds, since: from, failed: true }, MOST_FAILED, isComplete);
    const looked = await read(reads, { kinds, since: from, failed: false }, MOST_LOOKED_AT, isComplete);
    return {
      since,
      until,
      counted: { sessions, isComplete, ...(oldest !== undefined && { from: oldest }) },
      outcomes: counts.map(({ kind, status, count }) => ({ kind, status, count })),
      failed: failed.sample,
      failures: failuresOf(failed.facts),
      lookedAt: looked.sample,
      refusals: refusalsOf(looked.facts),
      deliveries: deliveriesOf(looked.facts),
    };
  }
}

/** @param isAll whether `query` leaves nothing of the period out. */
async function read(
  reads: TenantReads,
  query: Omit<OutcomeQuery, 'limit' | 'after'>,
  most: number,
  isAll: boolean,
): Promise<{ readonly sample: Sample; readonly facts: readonly OutcomeFacts[] }> {
  const facts: OutcomeFacts[] = [];
  let length = 0;
  let after: OutcomeQuery['after'];
  const sampleOf = (isComplete: boolean) => ({
    sample: { sessions: facts.length, isComplete, ...(after !== undefined && { from: after.createdAt }) },
    facts,
  });
  while (facts.length < most && length < MAX_LENGTH) {
    const rows = await reads.sessionOutcomes({ ...query, limit: BATCH, ...(after !== undefined && { after }) });
    for (const { id, createdAt, outcome } of rows) {
      facts.push(factsOf(outcome));
      length += lengthOf(outcome);
      after = { createdAt, id };
    }
    if (rows.length < BATCH) return sampleOf(isAll);
    // Others come in between, also where the database answers at once.
    await new Promise((resolve) => setImmediate(resolve));
  }
  return sampleOf(false);
}
