import { hash } from 'node:crypto';
import { z } from 'zod';
import { LINE_PATTERN } from '../shared/address-patterns.ts';
import type { PublicId } from '../shared/ids.ts';
import { isText } from '../shared/json.ts';

/** What the caller calls an offer or a request, in its own terms. */
export const SessionReference = z
  .string()
  .min(1)
  .max(200)
  .refine((text) => isText(text) && !/\p{Cc}/u.test(text), 'no control characters')
  .meta({ pattern: LINE_PATTERN })
  .describe(
    'The name that you have for it, such as the number of an order: `GET /session?q=` finds it. It need not be unique, ' +
      'and wallets never see it',
  );

/** Characters of what is looked for; a link is the longest. */
export const MAX_SEARCH = 8_000;

/** Hashes and names under which sessions are found; each is looked up by an index. */
export type SessionNames = {
  readonly id: string;
  readonly publicIds: readonly string[];
  readonly codeHash: string;
  readonly referenceHash: string;
};

const sha256 = (text: string) => hash('sha256', text, 'base64url');

/** Stands beside hashes of other kinds, none of which it can be. */
export function referenceHash(reference: string): string {
  return sha256(`session reference ${reference}`);
}

/**
 * The public id of the request with this nonce. The nonce says nothing that the address did not say, and the address,
 * which is seen by more people, says nothing of the nonce.
 */
export function publicIdOf(nonce: string): PublicId {
  return sha256(`presentation request ${nonce}`).slice(0, 22) as PublicId;
}

/**
 * Everything that somebody may mean who looks for a session: its id, a reference, a code, a nonce, an `issuer_state`, or
 * a link that wallets are given, or its address.
 */
export function namesIn(text: string): SessionNames {
  const named = linkedName(text) ?? text;
  const code = linkedCode(text) ?? text;
  return { id: text, publicIds: [named, publicIdOf(text)], codeHash: sha256(code), referenceHash: referenceHash(text) };
}

/** Parameters of links by which a wallet finds an offer or a request. */
const BY_REFERENCE = ['credential_offer_uri', 'request_uri', 'response_uri'];
const ADDRESS = /\/(?:credential-offer|request|response|dc-api|offer)\/([A-Za-z0-9_-]{1,100})(?:\.[A-Za-z0-9_-]{22})?(?:\/cross-device)?$/;

/** The public id in a link, or in the address that it leads to. */
function linkedName(text: string): string | undefined {
  const link = URL.parse(text);
  if (link === null) return undefined;
  const targets = [text, ...BY_REFERENCE.flatMap((name) => link.searchParams.get(name) ?? [])];
  for (const target of targets) {
    const [, id] = ADDRESS.exec(URL.parse(target)?.pathname ?? '') ?? [];
    if (id !== undefined) return id;
  }
  return undefined;
}

/** The code in the address to which a wallet is sent back. */
function linkedCode(text: string): string | undefined {
  return URL.parse(text)?.searchParams.get('code') ?? undefined;
}
