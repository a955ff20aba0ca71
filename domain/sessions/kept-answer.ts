import { createHash } from 'node:crypto';
import type { Json, JsonObject } from '../shared/json.ts';

/** Seconds for which a request that comes again under its key is answered as before. */
export const KEPT_ANSWER_SECONDS = 86_400;

/**
 * What a client was answered, to be repeated when it asks again with the same `Idempotency-Key`
 * (draft-ietf-httpapi-idempotency-key-header-07 section 2.6).
 */
export type KeptAnswer<T extends JsonObject = JsonObject> = {
  /** SHA-256 of the client, the address and the key, base64url: keys of two clients, or of two addresses, never meet. */
  readonly id: string;
  /** Sealed at rest: an answer leads to the code of an offer, and the hash tells a transaction code to who tries all. */
  readonly said: {
    /** SHA-256 of the body, base64url. */
    readonly requestHash: string;
    readonly answer: T;
  };
  readonly expiresAt: Date;
};

/** What names an answer. */
export type AnswerName = { readonly id: string; readonly requestHash: string };

/** @param body the request as it was read; members in another order are the same request. */
export function nameAnswer(clientId: string, address: string, key: string, body: Json): AnswerName {
  return { id: hash(JSON.stringify([clientId, address, key])), requestHash: hash(JSON.stringify(sorted(body))) };
}

function sorted(value: Json): Json {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return Object.fromEntries(
    members.map(([name, member]) => [name, sorted(member as Json)] as const).sort(([one], [other]) => (one < other ? -1 : 1)),
  );
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}
