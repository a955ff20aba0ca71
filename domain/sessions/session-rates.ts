import { isJsonObject } from '../shared/json.ts';
import { listedFailure, type SessionFailureCode } from '../shared/session-failure.ts';
import type { Delivery, SessionOutcome } from './session.ts';

/** Data about one session that is counted; nothing else of its outcome is cached. */
export type OutcomeFacts = {
  readonly failure?: { readonly code: SessionFailureCode; readonly reason?: string };
  /** Error codes that wallets received during the issuance. */
  readonly refused: readonly string[];
  readonly deliveries: readonly Pick<Delivery, 'webhook' | 'result'>[];
};

/** Number of failed sessions with one cause. */
export type FailureCount = {
  readonly code: SessionFailureCode;
  /** The reason of the first failed check, for a refused presentation. */
  readonly reason?: string;
  readonly count: number;
};
export type RefusalCount = { readonly code: string; readonly count: number };
export type DeliveryCount = Readonly<Record<Delivery['result'], number>> & { readonly webhook: Delivery['webhook'] };

/** Limit of the reported causes. */
export const MAX_CAUSES = 5;
/** Reasons of checks have names; reasons about a whole response are sentences, which cannot be counted. */
const NAMED = /^[a-z0-9_]{1,60}$/;

export function outcomeFacts(outcome: SessionOutcome): OutcomeFacts {
  const { attempts = [], deliveries = [] } = outcome;
  const failure = outcome.failure === undefined ? undefined : listedFailure(outcome.failure);
  const reason = failure?.code === 'presentation_refused' ? reasonOf(outcome) : undefined;
  return {
    ...(failure !== undefined && { failure: { code: failure.code, ...(reason !== undefined && { reason }) } }),
    refused: attempts.map(({ code }) => code),
    deliveries: deliveries.map(({ webhook, result }) => ({ webhook, result })),
  };
}

function reasonOf({ report = [] }: SessionOutcome): string | undefined {
  const failed = report.find((check) => isJsonObject(check) && check['result'] === 'failed');
  const reason = isJsonObject(failed) ? failed['reason'] : undefined;
  return typeof reason === 'string' && NAMED.test(reason) ? reason : undefined;
}

/** Failures sorted by frequency, then by name. */
export function failuresOf(facts: readonly OutcomeFacts[]): readonly FailureCount[] {
  const failures = facts.flatMap(({ failure }) => failure ?? []);
  return mostFrequent(failures, ({ code, reason = '' }) => `${code} ${reason}`);
}

/** Reasons of refused issuance requests, sorted by frequency. */
export function refusalsOf(facts: readonly OutcomeFacts[]): readonly RefusalCount[] {
  const refusals = facts.flatMap(({ refused: refusedCodes }) => refusedCodes.map((code) => ({ code })));
  return mostFrequent(refusals, ({ code }) => code);
}

export function deliveriesOf(facts: readonly OutcomeFacts[]): readonly DeliveryCount[] {
  const counts = new Map<Delivery['webhook'], DeliveryCount>();
  for (const { webhook, result } of facts.flatMap(({ deliveries }) => deliveries)) {
    const previousCount = counts.get(webhook) ?? { webhook, delivered: 0, pending: 0, failed: 0 };
    counts.set(webhook, { ...previousCount, [result]: previousCount[result] + 1 });
  }
  return [...counts.values()].sort((a, b) => (a.webhook < b.webhook ? -1 : 1));
}

function mostFrequent<T extends object>(entries: readonly T[], nameOf: (entry: T) => string): readonly (T & { readonly count: number })[] {
  const counts = new Map<string, T & { readonly count: number }>();
  for (const entry of entries) {
    const name = nameOf(entry);
    counts.set(name, { ...entry, count: (counts.get(name)?.count ?? 0) + 1 });
  }
  return [...counts]
    .sort(([name, { count }], [otherName, { count: otherCount }]) => otherCount - count || (name < otherName ? -1 : 1))
    .slice(0, MAX_CAUSES)
    .map(([, counted]) => counted);
}
