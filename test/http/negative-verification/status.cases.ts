import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { deflateSync } from 'node:zlib';
import { expect } from 'chai';
import type { RefusalReason } from '../../../domain/shared/refusal.ts';
import type { BackendAnswer } from '../../support/backend.ts';
import { newKey, now } from '../../support/raw-wallet.ts';
import { type JsonProperties, jws, type Signer } from '../../support/sd-jwt-maker.ts';
import { type CertificateOptions, certify, WEB_SERVER } from '../../support/test-certificates.ts';
import type { PresentationCase, World } from './world.ts';

/** Statuses of the entries 0 to 3, two bits each, and 0 for those that follow (Token Status List section 4.1). */
const LIST = deflateSync(Buffer.concat([Buffer.of(0b11_10_01_00), Buffer.alloc(24)])).toString('base64url');
const MEDIA_TYPE = 'application/statuslist+jwt';

export type ListBend = {
  readonly header?: JsonProperties;
  readonly payload?: JsonProperties;
  readonly signer?: Signer;
  /** Signs in the signer's place, under the signer's certificates. */
  readonly key?: Signer['key'];
  readonly contentType?: string;
  /** Replaces the whole answer. */
  readonly answer?: BackendAnswer;
};

let lists = 0;

/** Publishes a status list that is right in every respect that `bend` does not touch. @returns its address. */
export function publish({ backend, issuer }: World, bend: ListBend = {}): string {
  const path = `/lists/${lists++}`;
  const uri = backend.url + path;
  const { signer = issuer } = bend;
  const status_list = { bits: 2, lst: LIST };
  const payload = { sub: uri, iat: now(), exp: now() + 3600, ttl: 600, status_list, ...bend.payload };
  const header = { alg: 'ES256', typ: 'statuslist+jwt', x5c: signer.chain, ...bend.header };
  const token = jws(header, payload, bend.key ?? signer.key);
  const { answer, contentType = MEDIA_TYPE } = bend;
  backend.on(path, answer ?? ((response) => response.writeHead(200, { 'Content-Type': contentType }).end(token)));
  return uri;
}

/**
 * The same list, behind so many redirects.
 * @returns the address where it stood once, which the list goes on to speak of unless it is bent.
 */
export function publishMoved(world: World, redirects: number, bend: ListBend = {}): string {
  const { backend } = world;
  const paths = Array.from({ length: redirects }, () => `/moved/${lists++}`);
  const uri = `${backend.url}${paths[0]}`;
  const last = publish(world, { ...bend, payload: { sub: uri, ...bend.payload } });
  for (const [index, path] of paths.entries()) {
    const location = paths[index + 1] ?? last;
    backend.on(path, (response) => response.writeHead(302, { Location: location }).end());
  }
  return uri;
}

/** A server at an address that the service may not call; whatever reaches it is counted. */
export async function hiddenServer(): Promise<{ url: string; calls: () => number; close: () => Promise<void> }> {
  let calls = 0;
  const server = createServer((_, response) => {
    calls++;
    response.end();
  });
  server.on('connection', () => calls++);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.2', resolve));
  const { port } = server.address() as AddressInfo;
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
    });
  return { url: `http://127.0.0.2:${port}`, calls: () => calls, close };
}

type Status = (world: World) => unknown | Promise<unknown>;

/** A card and a licence that say this about their status. */
const withStatus = (row: number, reason: RefusalReason, what: string, status: Status): PresentationCase[] => [
  {
    row,
    what: `a card with ${what}`,
    reason,
    async present(world, asked) {
      return world.card(asked, { visible: { status: await status(world) } });
    },
  },
  {
    row,
    what: `a licence with ${what}`,
    reason,
    format: 'mso_mdoc',
    async present(world, asked) {
      const value = (await status(world)) as object;
      return world.licence(asked, { mso: (mso) => mso.set('status', { ...value }) });
    },
  },
];
const at = (uri: string, idx: unknown = 0) => ({ status_list: { idx, uri } });
const listed = (
  row: number,
  reason: RefusalReason,
  cases: Readonly<Record<string, ListBend | ((world: World) => ListBend | Promise<ListBend>)>>,
  idx: unknown = 0,
) =>
  Object.entries(cases).flatMap(([what, bend]) =>
    withStatus(row, reason, what, async (world) => at(publish(world, typeof bend === 'function' ? await bend(world) : bend), idx)),
  );
const stranger = async (options: Partial<CertificateOptions> = {}) => {
  const leaf = await certify({ name: 'Stranger', ...options });
  return { key: leaf, chain: [leaf.certificate] };
};
const list = (status_list: object): ListBend => ({ payload: { status_list } });

/** What a verifier asks about a credential that is good otherwise (Token Status List sections 6 to 8). */
export const statusCases: readonly PresentationCase[] = [
  ...listed(140, 'status_revoked', { 'a status of 1': {} }, 1),
  ...listed(141, 'status_suspended', { 'a status of 2': {} }, 2),
  ...listed(142, 'status_unknown', { 'a status of 3': {} }, 3),
  ...listed(143, 'status_invalid', {
    'a list for another address': { payload: { sub: 'https://issuer.example/lists/1' } },
    'a list without sub': { payload: { sub: undefined } },
    'a list of typ JWT': { header: { typ: 'JWT' } },
    'a list without typ': { header: { typ: undefined } },
    'a list that is not signed': { header: { alg: 'none' } },
    'a list without x5c': { header: { x5c: undefined } },
    'a list signed by another key': () => ({ key: newKey() }),
    'a list of a stranger': async () => ({ signer: await stranger() }),
    'a list of another issuer who is trusted, too': async () => {
      const root = await certify({ name: 'Second authority', ca: true });
      return { signer: await stranger({ by: root }) };
    },
    'a list whose signer has an end that is no time': async ({ authority }) => ({
      signer: await stranger({ by: authority, validity: { notAfter: '271399000000Z' } }),
    }),
    'a list of a web server under the authority of the issuer': async ({ authority }) => ({
      signer: await stranger({ by: authority, purposes: [WEB_SERVER] }),
    }),
    'a list that has expired': () => ({ payload: { exp: now() - 90 } }),
    'a list of the future': () => ({ payload: { iat: now() + 90 } }),
    'a list without iat': { payload: { iat: undefined } },
    'a ttl of zero': { payload: { ttl: 0 } },
    'a list of another media type': { contentType: 'application/jwt' },
    'a list that is invalid': {
      answer: (response) => response.writeHead(200, { 'Content-Type': 'application/statuslist+jwt' }).end('hello'),
    },
  }),
  ...listed(144, 'status_invalid', { 'an index behind the end': {} }, 100_000),
  ...listed(144, 'status_invalid', {
    'three bits': list({ bits: 3, lst: 'eNrbuRgAAhcBXQ' }),
    'a list that is not zlib': list({ bits: 1, lst: 'AAAA' }),
    'a list that was cut': list({ bits: 1, lst: 'eNrbuRgAAhc' }),
    'a list that is not there': list({ bits: 1 }),
  }),
  ...[-1, 0.5, '0', null].flatMap((idx) =>
    withStatus(144, 'status_invalid', `the index ${JSON.stringify(idx)}`, (world) => at(publish(world), idx)),
  ),
  ...listed(145, 'status_unavailable', {
    'a list that is broken off': { answer: (response) => response.destroy() },
    'a list behind an error': { answer: (response) => response.writeHead(500).end() },
    'a list that is gone': { answer: (response) => response.writeHead(404).end() },
    'a list that is too large': {
      answer: (response) => response.writeHead(200, { 'Content-Type': 'application/statuslist+jwt' }).end('x'.repeat(3 * 1024 * 1024)),
    },
  }),
  ...withStatus(145, 'status_unavailable', 'a list where nobody listens', () => at('http://127.0.0.1:1/list')),
  ...withStatus(146, 'status_invalid', 'a status without list', () => ({})),
  ...withStatus(146, 'status_invalid', 'a status of another kind', () => ({
    identifier_list: { id: 'x', uri: 'https://issuer.example/ids' },
  })),
  ...withStatus(146, 'status_invalid', 'an address that is none', () => at('x')),
  ...['http://10.0.0.1/list', 'http://169.254.169.254/latest', 'https://[::1]/list', 'http://8.8.8.8/list'].flatMap((uri) =>
    withStatus(147, 'status_unavailable', `a list at ${uri}`, () => at(uri)),
  ),
  ...['file:///etc/passwd', 'ftp://issuer.example/list'].flatMap((uri) =>
    withStatus(147, 'status_unavailable', `a list at ${uri}`, () => at(uri)),
  ),
  {
    row: 147,
    what: 'a list at an address inside, which hears nothing',
    reason: 'status_unavailable',
    async present(world, asked) {
      const hidden = await hiddenServer();
      world.afterwards(async () => {
        await hidden.close();
        expect(hidden.calls(), 'calls to the address inside').to.equal(0);
      });
      return world.card(asked, { visible: { status: at(`${hidden.url}/list`) } });
    },
  },
  {
    row: 147,
    what: 'a list behind redirects inside, which hears nothing',
    reason: 'status_unavailable',
    async present(world, asked) {
      const hidden = await hiddenServer();
      world.afterwards(async () => {
        await hidden.close();
        expect(hidden.calls(), 'calls to the address inside').to.equal(0);
      });
      const inside = publish(world, { answer: (response) => response.writeHead(302, { Location: `${hidden.url}/list` }).end() });
      const uri = publish(world, { answer: (response) => response.writeHead(308, { Location: inside }).end() });
      return world.card(asked, { visible: { status: at(uri) } });
    },
  },
  ...withStatus(143, 'status_invalid', 'a list that has moved, and speaks of where it is now', (world) => {
    const sub = `${world.backend.url}/elsewhere`;
    return at(publishMoved(world, 1, { payload: { sub } }));
  }),
  ...withStatus(147, 'status_unavailable', 'a list behind four redirects', (world) => at(publishMoved(world, 4))),
  ...listed(147, 'status_unavailable', {
    'a list behind a redirect to itself': { answer: (response, call) => response.writeHead(302, { Location: call.path }).end() },
  }),
];
