import type { Answer } from './http.ts';

/**
 * `held`: rejected as required. `open`: the attack worked, or the target failed. `unclear`: neither is certain. `skipped`: not applicable.
 */
export type Outcome = 'held' | 'open' | 'unclear' | 'skipped';

export type CaseResult = { readonly outcome: Outcome; readonly seen: string };

/** A safe response. Without `error`, any error code is safe. */
export type Safe = { readonly status: readonly number[]; readonly error?: readonly string[] };

/** One attack. `World` is the state of its family. */
export type Case<World> = {
  readonly name: string;
  /** The section of the specification. */
  readonly section: string;
  /** The reason for the required response. */
  readonly why: string;
  readonly safe: Safe;
  readonly run: (world: World) => Promise<Answer | CaseResult>;
};

export type Family<World> = {
  readonly id: string;
  readonly title: string;
  /** A correct flow: it must succeed, otherwise rejections prove nothing. */
  readonly control: (world: World) => Promise<void>;
  readonly cases: readonly Case<World>[];
};

/** The error of a correct step that does not succeed. */
export class NoControl extends Error {}

/** @throws NoControl unless the response is a success. */
export function expectSuccess(answer: Answer, step: string): Answer {
  if (answer.status >= 200 && answer.status < 300) return answer;
  throw new NoControl(`${step}: ${describe(answer)}`);
}

export const describe = ({ status, json, text, headers }: Answer): string => {
  if (status <= 0) return text;
  const challenge = /error="([^"]+)"/.exec(headers['www-authenticate'] ?? '')?.[1];
  const error = typeof json.error === 'string' ? json.error : challenge;
  return printable(error === undefined ? String(status) : `${status} ${error}`);
};

/** Untrusted text for a terminal: truncated and without control characters. */
export const printable = (text: string): string => text.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, 120);

/** Compares a response with the safe ones. A target that fails or hangs is not safe, independent of the request. */
export function evaluate(answer: Answer, safe: Safe): CaseResult {
  const observation = describe(answer);
  const { status } = answer;
  if (safe.status.includes(status) && errorFits(answer, safe)) return { outcome: 'held', seen: observation };
  if (status === -1) return { outcome: 'open', seen: 'hangs' };
  if (status >= 500) return { outcome: 'open', seen: `breaks: ${observation}` };
  if (status >= 200 && status < 400) return { outcome: 'open', seen: `taken: ${observation}` };
  return { outcome: 'unclear', seen: observation };
}

function errorFits({ json, headers }: Answer, { error }: Safe): boolean {
  if (error === undefined) return true;
  const challenge = headers['www-authenticate'] ?? '';
  return error.some((code) => json.error === code || challenge.includes(`error="${code}"`));
}

export const held = (observation: string): CaseResult => ({ outcome: 'held', seen: observation });
export const open = (observation: string): CaseResult => ({ outcome: 'open', seen: observation });
export const unclear = (observation: string): CaseResult => ({ outcome: 'unclear', seen: observation });

/** Rejected with 400 and one of these errors. */
export const bad = (...error: string[]): Safe => ({ status: [400], error });
/** Rejected with 400 or 401 and one of these errors, because servers differ. */
export const denied = (...error: string[]): Safe => ({ status: [400, 401], error });
/** Rejected with any error. */
export const anyRefusal: Safe = { status: [400, 401, 403, 404, 405, 406, 409, 410, 413, 414, 415, 422, 431] };
/** Accepted although unusual: rejecting it would exclude correct wallets. */
export const accepted = (...status: number[]): Safe => ({ status });
