import { type CaseResult, describe, held, open, unclear } from '../core/case.ts';
import type { Answer } from '../core/http.ts';
import type { Issuer } from '../targets/issuer.ts';

/** The control flow of every family about credentials. */
export async function issueCredential(issuer: Issuer): Promise<void> {
  await issuer.issue(await issuer.token());
}

export async function obtainToken(issuer: Issuer): Promise<void> {
  await issuer.token();
}

/** Number of concurrent callers. */
export const CONCURRENT_CALLERS = 24;

/** At most one of several concurrent uses of a single-use value may succeed. */
export function evaluateSingleUse(answers: readonly Answer[]): CaseResult {
  const acceptedCount = answers.filter(({ status }) => status >= 200 && status < 300).length;
  const broken = answers.filter(({ status }) => status >= 500 || status === -1);
  const summary = `${acceptedCount} of ${answers.length} taken`;
  const [firstBroken] = broken;
  if (firstBroken !== undefined) return open(`${summary}; breaks: ${describe(firstBroken)}`);
  if (acceptedCount > 1) return open(summary);
  return acceptedCount === 1 ? held(summary) : unclear(summary);
}

export const runConcurrently = <T>(count: number, work: (index: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, (_, index) => work(index)));

/** The flow with a page on which the user approves. */
export async function issueByCode(issuer: Issuer): Promise<void> {
  await issuer.issue(await issuer.token(issuer.source('code')));
}
