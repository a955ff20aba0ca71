import { z } from 'zod';
import { isRestricted } from '../../domain/clients/client.ts';
import type { SessionKind, SessionStatus } from '../../domain/sessions/session.ts';
import {
  type DeliveryCount,
  deliveriesOf,
  type FailureCount,
  failuresOf,
  type OutcomeFacts,
  outcomeFacts,
  type RefusalCount,
  refusalsOf,
} from '../../domain/sessions/session-rates.ts';
import { Failure } from '../../domain/shared/failure.ts';
import { estimateJsonLength } from '../../domain/shared/json.ts';
import type { TenantCaller } from '../caller.ts';
import { needs } from '../needs.ts';
import { Clock } from '../ports/clock.ts';
import type { OutcomeQuery } from '../ports/session-rates.ts';
import { Store, type TenantReads } from '../ports/store.ts';
import { FetchedSessions } from './fetched-sessions.ts';
import { visibleKinds } from './visibility.ts';

/** Limit of sessions that are counted: a database counts so many in some tens of milliseconds. */
export const MAX_COUNTED = 20_000;
/** Limits of sessions whose sealed outcomes are read for failures, and for webhooks and wallet errors. */
const MAX_FAILED = 1_000;
const MAX_READ = 2_000;
/** Rows per read. An unsealed row can hold megabytes, and all rows of a read are in memory together. */
const BATCH = 25;
/** Limit of characters of the outcomes that are read. */
const MAX_LENGTH = 16 * 1024 * 1024;

export const PERIODS = { '24h': 86_400_000, '7d': 7 * 86_400_000 } as const;

export const SessionRatesQuery = z.object({
  period: z.enum(['24h', '7d']).default('24h').describe('Period of creation of the sessions, until now'),
});
export type SessionRatesQuery = z.infer<typeof SessionRatesQuery>;

/** The newest sessions of the period that a statistic covers. */
export type Sample = {
  readonly sessions: number;
  /** True if it covers the whole period. */
  readonly isComplete: boolean;
  /** Creation time of the oldest of them; undefined without any. */
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

/** Statistics of the newest sessions of a tenant. They are computed on demand, so that sessions cost nothing extra. */
export class CountSessions extends needs({ store: Store, clock: Clock, fetchedSessions: FetchedSessions }) {
  /** @throws Failure `forbidden` for a client that is restricted to some configurations: statistics cover all of them. */
  async execute(caller: TenantCaller, { period }: SessionRatesQuery): Promise<SessionRates> {
    if (isRestricted(caller)) throw new Failure('forbidden', 'this client is restricted to some configurations, but rates cover all');
    await this.ports.fetchedSessions.flushTenant(caller.tenantId);
    const periodEnd = this.ports.clock.now();
    const periodStart = new Date(periodEnd.getTime() - PERIODS[period]);
    const kinds = visibleKinds(caller);
    const reads = this.ports.store.read(caller.tenantId);
    const { counts, from: reached } = await reads.sessionCounts({ kinds, since: periodStart, now: periodEnd, limit: MAX_COUNTED });
    const sessions = counts.reduce((sum, { count }) => sum + count, 0);
    const oldest = counts.map(({ oldest: at }) => at).sort((date, otherDate) => date.getTime() - otherDate.getTime())[0];
    const isComplete = reached === undefined;
    // Outcomes are read only for the range that was counted.
    const from = reached ?? periodStart;
    const failed = await readOutcomes(reads, { kinds, since: from, failed: true }, MAX_FAILED, isComplete);
    const sampled = await readOutcomes(reads, { kinds, since: from, failed: false }, MAX_READ, isComplete);
    return {
      since: periodStart,
      until: periodEnd,
      counted: { sessions, isComplete, ...(oldest !== undefined && { from: oldest }) },
      outcomes: counts.map(({ kind, status, count }) => ({ kind, status, count })),
      failed: failed.sample,
      failures: failuresOf(failed.facts),
      lookedAt: sampled.sample,
      refusals: refusalsOf(sampled.facts),
      deliveries: deliveriesOf(sampled.facts),
    };
  }
}

/** @param isAll true if `query` covers the whole period. */
async function readOutcomes(
  reads: TenantReads,
  query: Omit<OutcomeQuery, 'limit' | 'after'>,
  maxFacts: number,
  isAll: boolean,
): Promise<{ readonly sample: Sample; readonly facts: readonly OutcomeFacts[] }> {
  const facts: OutcomeFacts[] = [];
  let length = 0;
  let cursor: OutcomeQuery['after'];
  const sampleOf = (isComplete: boolean) => ({
    sample: { sessions: facts.length, isComplete, ...(cursor !== undefined && { from: cursor.createdAt }) },
    facts,
  });
  while (facts.length < maxFacts && length < MAX_LENGTH) {
    const rows = await reads.sessionOutcomes({ ...query, limit: BATCH, ...(cursor !== undefined && { after: cursor }) });
    for (const { id, createdAt, outcome } of rows) {
      facts.push(outcomeFacts(outcome));
      length += estimateJsonLength(outcome);
      cursor = { createdAt, id };
    }
    if (rows.length < BATCH) return sampleOf(isAll);
    // Yields to other requests, also if the database answers synchronously.
    await new Promise((resolve) => setImmediate(resolve));
  }
  return sampleOf(false);
}
