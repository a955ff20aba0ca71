import type { Change } from '../../domain/changes/change.ts';
import { type AnswerName, KEPT_ANSWER_SECONDS } from '../../domain/sessions/kept-answer.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import type { Known, Refusals } from '../transactions/known.ts';

/** What the commit of an answer that counts once takes along. */
export type Keeping<T> = (answer: T) => { readonly change: Pick<Change, 'keeps'>; readonly refusals: Refusals };

/**
 * Answers a request that comes again under its key as the first time, whatever has become of that since. Of several at once
 * one makes the answer, and the others are told the same.
 * @param known whose rights to such an answer were judged.
 * @param name absent where the caller named no key: then nothing is kept.
 * @param make makes the answer and commits it with what it is given.
 * @throws Failure `conflict` where the key named another request.
 */
export async function answerOnce<T extends object>(
  known: Known,
  name: AnswerName | undefined,
  make: (keeping: Keeping<T>) => Promise<T>,
): Promise<T> {
  if (name === undefined) return make(() => ({ change: {}, refusals: {} }));
  const earlier = await find<T>(known, name);
  if (earlier !== undefined) return earlier;
  const taken = new Failure('conflict', 'another request has this Idempotency-Key at this moment; try again');
  const { id, requestHash } = name;
  const expiresAt = new Date(known.now.getTime() + KEPT_ANSWER_SECONDS * 1000);
  try {
    return await make((answer) => ({
      change: { keeps: { id, said: { requestHash, answer: answer as JsonObject }, expiresAt } },
      refusals: { keeps: () => taken },
    }));
  } catch (error) {
    if (error !== taken) throw error;
  }
  const first = await find<T>(known, name);
  if (first === undefined) throw taken;
  return first;
}

async function find<T>(known: Known, { id, requestHash }: AnswerName): Promise<T | undefined> {
  // With the tenant as it is: whose rights ended meanwhile is told nothing.
  const { kept } = await known.confirm(known.reads.keptAnswer(id, known.now));
  if (kept === undefined) return undefined;
  // Draft-ietf-httpapi-idempotency-key-header-07 section 2.7: a key stands for one request
  if (kept.said.requestHash !== requestHash)
    throw new Failure('conflict', 'this Idempotency-Key was used for another request; take a new one');
  return kept.said.answer as T;
}
