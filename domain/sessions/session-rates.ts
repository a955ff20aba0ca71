import { isJsonObject } from '../shared/json.ts';
import { listedFailure, type SessionFailureCode } from '../shared/session-failure.ts';
import type { Delivery, SessionOutcome } from './session.ts';

/** What is counted of one session; of what came of it nothing else is kept in memory. */
export type OutcomeFacts = {
  readonly failure?: { readonly code: SessionFailureCode; readonly reason?: string };
  /** Codes that wallets were told which came to collect. */
  readonly refused: readonly string[];
  readonly deliveries: readonly Pick<Delivery, 'webhook' | 'result'>[];
};

/** How often sessions failed for one cause. */
export type FailureCount = {
  readonly code: SessionFailureCode;
  /** Of a presentation that was refused: the reason of the first check that failed. */
  readonly reason?: string;
  readonly count: number;
};
export type RefusalCount = { readonly code: string; readonly count: number };
export type DeliveryCount = Readonly<Record<Delivery['result'], number>> & { readonly webhook: Delivery['webhook'] };

/** Causes that are told. */
export const MOST_FREQUENT = 5;
/** Reasons have names; what is said of a response as a whole is in words, which differ from one to the next. */
const NAMED = /^[a-z0-9_]{1,60}$/;

export function factsOf(outcome: SessionOutcome): OutcomeFacts {
  const { attempts = [], deliveries = [] } = outcome;
  const failure = outcome.failure === undefined ? undefined : listedFailure(outcome.failure);
  const reason = failure?.code === 'presentation_refused' ? reasonOf(outcome) : undefined;
  return {
    ...(failure !== undefined && {
      failure: { code: failure.code, ...(reason !== undefined && { reason }) },
    }),
    refused: attempts.map(({ code }) => code),
    deliveries: deliveries.map(({ webhook, result }) => ({ webhook, result })),
  };
}

function reasonOf({ report = [] }: SessionOutcome): string | undefined {
  const failed = report.find((check) => isJsonObject(check) && check['result'] === 'failed');
  const reason = isJsonObject(failed) ? failed['reason'] : undefined;
  return typeof reason === 'string' && NAMED.test(reason) ? reason : undefined;
}

/** The most frequent first; those that are as frequent by their names. */
export function failuresOf(facts: readonly OutcomeFacts[]): readonly FailureCount[] {
  const failures = facts.flatMap(({ failure }) => failure ?? []);
  return mostFrequent(failures, ({ code, reason = '' }) => `${code} ${reason}`);
}

/** Why requests of wallets that came to collect were refused, the most frequent first. */
export function refusalsOf(facts: readonly OutcomeFacts[]): readonly RefusalCount[] {
  const refusals = facts.flatMap(({ refused }) => refused.map((code) => ({ code })));
  return mostFrequent(refusals, ({ code }) => code);
}

export function deliveriesOf(facts: readonly OutcomeFacts[]): readonly DeliveryCount[] {
  const counts = new Map<Delivery['webhook'], DeliveryCount>();
  for (const { webhook, result } of facts.flatMap(({ deliveries }) => deliveries)) {
    const before = counts.get(webhook) ?? { webhook, delivered: 0, pending: 0, failed: 0 };
    counts.set(webhook, { ...before, [result]: before[result] + 1 });
  }
  return [...counts.values()].sort((one, other) => (one.webhook < other.webhook ? -1 : 1));
}

function mostFrequent<T extends object>(all: readonly T[], nameOf: (one: T) => string): readonly (T & { readonly count: number })[] {
  const counts = new Map<string, T & { readonly count: number }>();
  for (const one of all) {
    const name = nameOf(one);
    counts.set(name, { ...one, count: (counts.get(name)?.count ?? 0) + 1 });
  }
  return [...counts]
    .sort(([name, { count }], [other, { count: others }]) => others - count || (name < other ? -1 : 1))
    .slice(0, MOST_FREQUENT)
    .map(([, counted]) => counted);
}
