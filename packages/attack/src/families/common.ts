import { describe, held, open, type Seen, unclear } from '../core/case.ts';
import type { Answer } from '../core/http.ts';
import type { Issuer } from '../targets/issuer.ts';

/** The flow that every family about credentials starts from. */
export async function issueOne(issuer: Issuer): Promise<void> {
  await issuer.issue(await issuer.token());
}

/** That much of the flow that gives a token. */
export async function tokenOne(issuer: Issuer): Promise<void> {
  await issuer.token();
}

/** How many callers come at once. */
export const CALLERS = 24;

/** Of many that used one thing at once, at most one may have got something. */
export function once(answers: readonly Answer[]): Seen {
  const taken = answers.filter(({ status }) => status >= 200 && status < 300).length;
  const broken = answers.filter(({ status }) => status >= 500 || status === -1);
  const seen = `${taken} of ${answers.length} taken`;
  const [first] = broken;
  if (first !== undefined) return open(`${seen}; breaks: ${describe(first)}`);
  if (taken > 1) return open(seen);
  return taken === 1 ? held(seen) : unclear(seen);
}

export const times = <T>(count: number, work: (index: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, (_, index) => work(index)));

/** The flow with a page on which the user approves. */
export async function issueByCode(issuer: Issuer): Promise<void> {
  await issuer.issue(await issuer.token(issuer.source('code')));
}
