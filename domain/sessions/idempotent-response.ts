import { createHash } from 'node:crypto';
import type { Json, JsonObject } from '../shared/json.ts';

/** Time for which a request with the same idempotency key gets the same response. */
export const IDEMPOTENCY_SECONDS = 86_400;

/** A stored response for retries with the same `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header-07 section 2.6). */
export type IdempotentResponse<T extends JsonObject = JsonObject> = {
  /** SHA-256 of the client, the address and the key, base64url: keys of different clients or addresses do not collide. */
  readonly id: string;
  /** Sealed at rest: the response contains the code of an offer, and the hash would permit guessing a transaction code. */
  readonly said: {
    /** SHA-256 of the body, base64url. */
    readonly requestHash: string;
    readonly answer: T;
  };
  readonly expiresAt: Date;
};

/** Identifies a request for idempotency. */
export type RequestIdentity = { readonly id: string; readonly requestHash: string };

/** @param body the parsed request; the order of properties is irrelevant. */
export function identifyRequest(clientId: string, address: string, key: string, body: Json): RequestIdentity {
  return { id: hash(JSON.stringify([clientId, address, key])), requestHash: hash(JSON.stringify(sorted(body))) };
}

function sorted(value: Json): Json {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return Object.fromEntries(members.map(([name, member]) => [name, sorted(member as Json)] as const).sort(([a], [b]) => (a < b ? -1 : 1)));
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}
