import { hash } from 'node:crypto';
import { z } from 'zod';
import { LINE_PATTERN } from '../shared/address-patterns.ts';
import type { PublicId } from '../shared/ids.ts';
import { isText } from '../shared/json.ts';

/** The backend's reference for an offer or a request. */
export const SessionReference = z
  .string()
  .min(1)
  .max(200)
  .refine((text) => isText(text) && !/\p{Cc}/u.test(text), 'no control characters')
  .meta({ pattern: LINE_PATTERN })
  .describe(
    'Your reference for the session, such as an order number: `GET /session?q=` finds it. It need not be unique, ' +
      'and wallets never see it',
  );

/** Limit in characters; links are the longest queries. */
export const MAX_SEARCH = 8_000;

/** Hashes and ids by which sessions are searched; each has an index. */
export type SessionSearchKeys = {
  readonly id: string;
  readonly publicIds: readonly string[];
  readonly codeHash: string;
  readonly referenceHash: string;
};

const sha256 = (text: string) => hash('sha256', text, 'base64url');

/** The prefix prevents collisions with hashes of other kinds. */
export function referenceHash(reference: string): string {
  return sha256(`session reference ${reference}`);
}

/**
 * The public id of the request with this nonce. It is derived by a hash, so the address, which more parties see, does not reveal the nonce.
 */
export function publicIdOf(nonce: string): PublicId {
  return sha256(`presentation request ${nonce}`).slice(0, 22) as PublicId;
}

/**
 * Interprets a search text as each possible key of a session: its id, a reference, a code, a nonce, an `issuer_state`, or a link or address
 * of a wallet.
 */
export function parseSearchKeys(text: string): SessionSearchKeys {
  const publicId = publicIdInLink(text) ?? text;
  const code = codeInLink(text) ?? text;
  return { id: text, publicIds: [publicId, publicIdOf(text)], codeHash: sha256(code), referenceHash: referenceHash(text) };
}

/** Parameters of links that refer to an offer or a request. */
const BY_REFERENCE = ['credential_offer_uri', 'request_uri', 'response_uri'];
const ADDRESS = /\/(?:credential-offer|request|response|dc-api|offer)\/([A-Za-z0-9_-]{1,100})(?:\.[A-Za-z0-9_-]{22})?(?:\/cross-device)?$/;

/** The public id in a link, or in the address that it contains. */
function publicIdInLink(text: string): string | undefined {
  const link = URL.parse(text);
  if (link === null) return undefined;
  const targets = [text, ...BY_REFERENCE.flatMap((name) => link.searchParams.get(name) ?? [])];
  for (const target of targets) {
    const [, id] = ADDRESS.exec(URL.parse(target)?.pathname ?? '') ?? [];
    if (id !== undefined) return id;
  }
  return undefined;
}

/** The code in the redirect address of a wallet. */
function codeInLink(text: string): string | undefined {
  return URL.parse(text)?.searchParams.get('code') ?? undefined;
}
