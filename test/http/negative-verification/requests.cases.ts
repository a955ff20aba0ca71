import { expect } from 'chai';
import { encryptResponse, type FetchedRequest } from '../../support/present.ts';
import type { Answer } from '../../support/test-service.ts';
import { type Case, kept, noted, PAGE, type PresentationCase, refused, THROUGH_PAGE, type World } from './world.ts';

const lastPart = (url: string) => url.split('/').at(-1) ?? '';
const POST_ONLY = { vp_formats_supported: { mso_mdoc: {} } };

const posted = (row: number, what: string, options: object, status = 400): Case => ({
  row,
  what,
  run: ({ service }, { url }) => service.call('POST', url, options),
  expected: kept(status),
});
const elsewhere = (row: number, what: string, path: (id: string) => string): Case => ({
  row,
  what,
  run: ({ service }, { url }) => service.call('GET', path(lastPart(url))),
  expected: kept(404),
  async also({ service }, { url }) {
    const { text } = await service.call('GET', path(lastPart(url)));
    expect(text, 'no detail').to.equal((await service.call('GET', '/nobody/request/x')).text);
  },
});

/** Fetching the request object (OpenID4VP 1.0 section 5.10). */
export const requestCases: readonly Case[] = [
  {
    row: 17,
    what: 'a request whose access key was taken away',
    run: async (world) => {
      const chain = { id: 'temporary', usageType: 'access' };
      expect((await world.admin('POST', '/key-chain', chain)).status).to.equal(201);
      const own = { accessKeyChainId: chain.id, lifeTime: 120 };
      const asked = await world.ask(own);
      const path = `/verifier/config/${await world.configured(own)}`;
      expect((await world.admin('PATCH', path, { accessKeyChainId: null })).status).to.equal(200);
      const removed = await world.admin('DELETE', `/key-chain/${chain.id}`);
      expect(removed.status, removed.text).to.be.within(200, 204);
      return world.service.call('GET', asked.url);
    },
    expected: kept(410),
  },
  elsewhere(21, 'an unknown request', () => '/shop/request/unknown'),
  {
    row: 22,
    what: 'a request that has expired',
    run: (world, { url }) => world.later(301, () => world.service.call('GET', url)),
    // The session is seen by the clock of the tests again.
    expected: kept(410),
    also: (world, asked) =>
      world.later(301, async () => {
        expect((await world.session(asked))['status']).to.equal('expired');
      }),
  },
  {
    row: 23,
    what: 'a request that was answered',
    run: async (world, asked) => {
      await world.answer(asked, { card: [world.card(asked)] });
      return world.service.call('GET', asked.url);
    },
    expected: { status: 410, session: 'completed' },
  },
  {
    row: 23,
    what: 'a request whose answer was refused',
    run: async (world, asked) => {
      await world.answer(asked, { card: ['nonsense'] });
      return world.service.call('GET', asked.url);
    },
    expected: { status: 410, session: 'failed', code: 'presentation_refused' },
  },
  posted(24, 'a POST of JSON', { json: { wallet_nonce: 'x' } }, 415),
  posted(25, 'a wallet_nonce that is too long', { form: { wallet_nonce: 'x'.repeat(513) } }),
  posted(25, 'control characters in the wallet_nonce', { form: { wallet_nonce: 'a\u0007b\n' } }),
  posted(26, 'wallet_metadata that is not JSON', { form: { wallet_metadata: '{' } }),
  posted(26, 'wallet_metadata that is not an object', { form: { wallet_metadata: '[]' } }),
  posted(27, 'a wallet without our formats', { form: { wallet_metadata: JSON.stringify(POST_ONLY) } }),
  posted(28, 'a wallet without our client identifier prefix', {
    form: { wallet_metadata: '{"client_id_prefixes_supported":["redirect_uri","x509_san_dns"]}' },
  }),
  {
    row: 29,
    what: 'a second fetch, which gives the same bytes',
    run: ({ service }, { url }) => service.call('GET', url),
    expected: { status: 200, session: 'fetched', answerable: true },
    async also({ service }, { url, text }) {
      expect((await service.call('GET', url)).text).to.equal(text);
    },
  },
  elsewhere(30, 'the request of another tenant', (id) => `/rival/request/${id}`),
  elsewhere(30, 'the request under the name of nobody', (id) => `/nobody/request/${id}`),
];

const REDIRECTED = { redirectUri: 'https://shop.example/done/{sessionId}' };

/** One way to a result that somebody else is to have. */
export type ResultCase = {
  readonly row: number;
  readonly what: string;
  readonly status: 403 | 404;
  readonly read: (world: World, asked: FetchedRequest, code: string) => Promise<Answer>;
};

/** Makes a session whose result is there, and the code that the browser brings. */
export async function answered(world: World): Promise<{ asked: FetchedRequest; code: string }> {
  const asked = await world.ask(REDIRECTED);
  const answer = await world.answer(asked, { card: [world.card(asked)] });
  expect(answer.status, answer.text).to.equal(200);
  return { asked, code: new URL(answer.body.redirect_uri).searchParams.get('response_code') ?? '' };
}

const read = ({ admin }: World, id: string, code?: string, tenant?: 'rival') =>
  admin('GET', `/session/${id}${code === undefined ? '' : `?response_code=${code}`}`, undefined, tenant);

/** Who may see a result (OpenID4VP 1.0 sections 13.3 and 14.3). */
export const resultCases: readonly ResultCase[] = [
  { row: 148, what: 'a wrong response_code', status: 403, read: (world, { session }, code) => read(world, session, `${code}x`) },
  { row: 148, what: 'an empty response_code', status: 403, read: (world, { session }) => read(world, session, '') },
  {
    row: 148,
    what: 'a response_code that was used',
    status: 403,
    async read(world, { session }, code) {
      expect((await read(world, session, code)).status).to.equal(200);
      return read(world, session, code);
    },
  },
  {
    row: 148,
    what: 'the response_code of another session',
    status: 403,
    read: async (world, { session }) => read(world, session, (await answered(world)).code),
  },
  {
    row: 148,
    what: 'a response_code of long ago',
    status: 403,
    read: (world, { session }, code) => world.later(301, () => read(world, session, code)),
  },
  { row: 149, what: 'the id that the wallet saw', status: 404, read: (world, { url }) => read(world, url.split('/').at(-1) ?? '') },
  { row: 149, what: 'the state that the wallet saw', status: 404, read: (world, { payload }) => read(world, payload['state']) },
  { row: 150, what: 'a token of another tenant', status: 404, read: (world, { session }) => read(world, session, undefined, 'rival') },
  {
    row: 150,
    what: 'a token of another tenant with the right response_code',
    status: 404,
    read: (world, { session }, code) => read(world, session, code, 'rival'),
  },
];

export async function expectNoResult(world: World, { read, status }: ResultCase): Promise<void> {
  const { asked, code } = await answered(world);
  const answer = await read(world, asked, code);
  expect(answer.status, answer.text).to.equal(status);
  expect(answer.text, 'no value is released').to.not.include('Erika');
}

const EVIL = 'https://evil.example';

const card = (row: number, what: string, aud: (asked: FetchedRequest) => unknown): PresentationCase => ({
  row,
  what,
  reason: 'aud_mismatch',
  configuration: THROUGH_PAGE,
  present: (world, asked) => world.card(asked, { kb: { aud: aud(asked) } }),
});
const licence = (row: number, what: string, transcript: (world: World, asked: FetchedRequest) => Buffer): PresentationCase => ({
  row,
  what,
  reason: 'device_signature',
  format: 'mso_mdoc',
  configuration: THROUGH_PAGE,
  present: (world, asked) => world.licence(asked, { transcript: transcript(world, asked) }),
});

/** Presentations through the Digital Credentials API (OpenID4VP 1.0 appendix A.4). */
export const pagePresentationCases: readonly PresentationCase[] = [
  card(83, 'the client identifier as audience of a page', ({ payload }) => payload['client_id']),
  card(83, 'the address of the answer as audience of a page', ({ uri }) => uri),
  card(152, 'another page as audience', () => `origin:${EVIL}`),
  card(152, 'the page without prefix as audience', () => PAGE),
  card(152, 'the page with the prefix of earlier drafts', () => `web-origin:${PAGE}`),
  card(152, 'the page with a slash', () => `origin:${PAGE}/`),
  card(152, 'the page in other letters', () => `origin:${PAGE.toUpperCase()}`),
  licence(121, 'a redirect transcript for a page', (world, asked) => world.transcript(asked, { responseUri: asked.uri })),
  licence(122, 'a transcript of the origin with its prefix', (world, asked) => world.pageTranscript(asked, { origin: `origin:${PAGE}` })),
  licence(122, 'a transcript of the origin with a slash', (world, asked) => world.pageTranscript(asked, { origin: `${PAGE}/` })),
  licence(152, 'a transcript of another page', (world, asked) => world.pageTranscript(asked, { origin: EVIL })),
  licence(152, 'a transcript of another nonce', (world, asked) => world.pageTranscript(asked, { nonce: 'other' })),
  {
    row: 120,
    what: 'a transcript for a page without thumbprint',
    reason: 'device_signature',
    format: 'mso_mdoc',
    configuration: { ...THROUGH_PAGE, responseMode: 'direct_post.jwt' },
    present: (world, asked) => world.licence(asked, { transcript: world.pageTranscript(asked, { encryptionKey: undefined }) }),
  },
];

const hand = ({ service }: World, { uri }: FetchedRequest, json: unknown) => service.call('POST', uri, { json });
const PLAIN = { ...THROUGH_PAGE, responseMode: 'direct_post' };

/** What a page hands over. */
export const pageResponseCases: readonly Case[] = [
  {
    row: 151,
    what: 'a presentation in the clear though it was to be encrypted',
    configuration: THROUGH_PAGE,
    run: (world, asked) => hand(world, asked, { vp_token: { card: [world.card(asked)] } }),
    expected: refused('response_mode'),
  },
  {
    row: 151,
    what: 'an encrypted response of a page though it was not asked for',
    configuration: PLAIN,
    run: async (world, asked) => {
      const other = await world.ask(THROUGH_PAGE);
      const response = await encryptResponse(other, { vp_token: { card: [world.card(asked)] } });
      return hand(world, asked, { response });
    },
    expected: refused('response_mode'),
  },
  {
    row: 151,
    what: 'a response and a presentation beside it',
    configuration: THROUGH_PAGE,
    run: async (world, asked) => {
      const vp_token = { card: [world.card(asked)] };
      return hand(world, asked, { response: await encryptResponse(asked, { vp_token }), vp_token });
    },
    expected: refused('response_mode'),
  },
  ...[THROUGH_PAGE, PLAIN].map(
    (configuration): Case => ({
      row: 153,
      what: `an error of the wallet, ${JSON.stringify(configuration)}`,
      configuration,
      run: (world, asked) => hand(world, asked, { error: 'access_denied' }),
      expected: noted('access_denied'),
    }),
  ),
];
