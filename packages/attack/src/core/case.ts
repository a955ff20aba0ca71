import type { Answer } from './http.ts';

/**
 * `held`: refused as it has to be. `open`: the attack worked, or the target broke. `unclear`: neither can be said.
 * `skipped`: could not be tried.
 */
export type Outcome = 'held' | 'open' | 'unclear' | 'skipped';

export type Seen = { readonly outcome: Outcome; readonly seen: string };

/** What a safe answer is. Without `error`, any is. */
export type Safe = { readonly status: readonly number[]; readonly error?: readonly string[] };

/** One attack. `World` is what its family plays with. */
export type Case<World> = {
  readonly name: string;
  /** Where the specification says so. */
  readonly section: string;
  /** Why the answer has to be this one. */
  readonly why: string;
  readonly safe: Safe;
  readonly run: (world: World) => Promise<Answer | Seen>;
};

export type Family<World> = {
  readonly id: string;
  readonly title: string;
  /** A flow that is right: it has to succeed, or nothing that is refused means anything. */
  readonly control: (world: World) => Promise<void>;
  readonly cases: readonly Case<World>[];
};

/** Thrown when a step that is right does not succeed. */
export class NoControl extends Error {}

/** @throws NoControl unless the answer is a success. */
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

/** Strangers' texts, for a terminal: no control characters, and not much. */
export const printable = (text: string): string => text.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, 120);

/** Compares an answer with what is safe. A target that breaks or hangs is not safe, whatever was asked. */
export function judge(answer: Answer, safe: Safe): Seen {
  const seen = describe(answer);
  const { status } = answer;
  if (safe.status.includes(status) && errorFits(answer, safe)) return { outcome: 'held', seen };
  if (status === -1) return { outcome: 'open', seen: 'hangs' };
  if (status >= 500) return { outcome: 'open', seen: `breaks: ${seen}` };
  if (status >= 200 && status < 400) return { outcome: 'open', seen: `taken: ${seen}` };
  return { outcome: 'unclear', seen };
}

function errorFits({ json, headers }: Answer, { error }: Safe): boolean {
  if (error === undefined) return true;
  const challenge = headers['www-authenticate'] ?? '';
  return error.some((one) => json.error === one || challenge.includes(`error="${one}"`));
}

export const held = (seen: string): Seen => ({ outcome: 'held', seen });
export const open = (seen: string): Seen => ({ outcome: 'open', seen });
export const unclear = (seen: string): Seen => ({ outcome: 'unclear', seen });

/** Refused with 400 and one of these errors. */
export const bad = (...error: string[]): Safe => ({ status: [400], error });
/** Refused with 400 or 401 and one of these errors, as servers differ in which. */
export const denied = (...error: string[]): Safe => ({ status: [400, 401], error });
/** Refused, however. */
export const anyRefusal: Safe = { status: [400, 401, 403, 404, 405, 406, 409, 410, 413, 414, 415, 422, 431] };
/** Taken, although it looks odd: refusing it would shut out wallets that are right. */
export const taken = (...status: number[]): Safe => ({ status });
