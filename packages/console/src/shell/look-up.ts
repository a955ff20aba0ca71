import { ask, askPage } from '../api/call.ts';
import type { Identity } from './identities.ts';

export type Led = { readonly address: string } | { readonly session: string } | { readonly told: string } | undefined;

type Row = { readonly id: string };
type Looking = {
  readonly identity: Identity;
  readonly text: string;
  /** Names of the pages that the person may open. */
  readonly pages: readonly string[];
};

/** Parameters of links by which a wallet finds an offer or a request; the service knows the same ones. */
const BY_REFERENCE = ['credential_offer_uri', 'request_uri', 'response_uri'];
const ADDRESS = /\/(?:credential-offer|request|response|dc-api|offer)\/([A-Za-z0-9_-]{22})(?:\.[A-Za-z0-9_-]{22})?$/;
/** 128 random bits. A name of a person or a word is not asked for, even where it is as long. */
const SESSION_ID = /^(?=.*\d)(?=.*[a-z])(?=.*[A-Z])[A-Za-z0-9_-]{22}$/;
const BEGINNING = /^([A-Za-z0-9_-]{8})(?:…|\.\.\.)?$/;
const PAGE_SIZE = 100;
const MAX_PAGES = 5;

/** @returns undefined for what may be taken apart. @throws ApiFailure */
export async function lookUp({ identity, text, pages }: Looking): Promise<Led> {
  const place = placeOf(text);
  if (place !== undefined)
    return pages.includes(place.page)
      ? { address: place.hash }
      : { told: 'This client has no such page. Another one may: choose at the top who you are.' };
  if (!pages.includes('sessions')) return undefined;
  const id = nameInLink(text) ?? SESSION_ID.exec(text)?.[0];
  if (id !== undefined) {
    const session = await sessionCalled(identity, id);
    return session === undefined ? undefined : { session };
  }
  const [, beginning] = BEGINNING.exec(text) ?? [];
  return beginning === undefined ? undefined : beginningWith(identity, beginning, text !== beginning);
}

/** The session of this name: an id, a reference, a code, a nonce, or a part of a link. @throws ApiFailure */
export async function sessionCalled(identity: Identity, q: string): Promise<string | undefined> {
  const sessions = await ask<readonly Row[]>(identity, 'GET', '/session', { query: { q, limit: 2, values: 'masked' } });
  return sessions[0]?.id;
}

/** @param isSure whether it cannot be anything else. */
async function beginningWith(identity: Identity, beginning: string, isSure: boolean): Promise<Led> {
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES; page++) {
    const query = { limit: PAGE_SIZE, values: 'masked', cursor };
    const { rows, next } = await askPage<Row>(identity, '/session', query);
    const session = rows.find(({ id }) => id.startsWith(beginning))?.id;
    if (session !== undefined) return { session };
    cursor = next;
    if (cursor === undefined) break;
  }
  if (!isSure && cursor === undefined) return undefined;
  const among = cursor === undefined ? 'the sessions' : `the newest ${PAGE_SIZE * MAX_PAGES} sessions`;
  return { told: `None of ${among} has an id that begins with ${beginning}.` };
}

function placeOf(text: string): { page: string; hash: string } | undefined {
  const link = /^https?:\/\/\S+$/i.test(text) ? URL.parse(text) : null;
  if (link === null || link.origin !== location.origin || link.pathname !== location.pathname) return undefined;
  const [, page] = /^#([a-z]+)(?:[/?]|$)/.exec(link.hash) ?? [];
  return page === undefined || link.hash.includes('ticket=') ? undefined : { page, hash: link.hash };
}

function nameInLink(text: string): string | undefined {
  const link = URL.parse(text);
  if (link === null || /\s/.test(text)) return undefined;
  const targets = [text, ...BY_REFERENCE.flatMap((name) => link.searchParams.get(name) ?? [])];
  for (const target of targets) {
    const [, id] = ADDRESS.exec(URL.parse(target)?.pathname ?? '') ?? [];
    if (id !== undefined) return id;
  }
  return undefined;
}
