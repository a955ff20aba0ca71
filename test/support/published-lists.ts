import { inflateSync } from 'node:zlib';
import { expect } from 'chai';
import type { Racing } from './raced-services.ts';

/** Where a credential says that its status stands. */
export type Entry = { readonly idx: number; readonly uri: string };

export const payloadOf = (jwt: string) =>
  JSON.parse(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString());

export const entryOf = (credential: string): Entry => payloadOf(credential).status.status_list;

/** The entries of a list as everybody can read them at one of the processes. */
export async function readList({ service, addresses }: Racing, process: string, uri: string) {
  const address = uri.replace(addresses[0] ?? '', process);
  const answer = await fetch(address);
  expect(answer.status, address).to.equal(200);
  const { sub, status_list: list } = payloadOf(await answer.text());
  expect(sub).to.equal(uri);
  const { bits } = list;
  expect(uri.startsWith(service.address)).to.equal(true);
  const bytes = inflateSync(Buffer.from(list.lst, 'base64url'));
  const at = (idx: number) => ((bytes[(idx * bits) >> 3] ?? 0) >> ((idx * bits) & 7)) & ((1 << bits) - 1);
  return { capacity: (bytes.length * 8) / bits, at };
}
