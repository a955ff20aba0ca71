import { expect } from 'chai';
import { encryptResponse, type FetchedRequest } from '../../support/present.ts';
import type { Answer } from '../../support/test-service.ts';
import { type Case, failedByWallet, PAGE, type PresentationCase, rejected, stillOpen, THROUGH_PAGE, type World } from './world.ts';

const lastPart = (url: string) => url.split('/').at(-1) ?? '';
const POST_ONLY = { vp_formats_supported: { mso_mdoc: {} } };

const postedRequest = (row: number, title: string, options: object, status = 400): Case => ({
  row,
  title,
  run: ({ service }, { url }) => service.call('POST', url, options),
  expected: stillOpen(status),
});
const otherAddress = (row: number, title: string, path: (id: string) => string): Case => ({
  row,
  title,
  run: ({ service }, { url }) => service.call('GET', path(lastPart(url))),
  expected: stillOpen(404),
  async assertAfter({ service }, { url }) {
    const { text } = await service.call('GET', path(lastPart(url)));
    expect(text, 'the response has no detail').to.equal((await service.call('GET', '/unknown/request/x')).text);
  },
});

/** Fetching the request object (OpenID4VP 1.0 section 5.10). */
export const requestCases: readonly Case[] = [
  {
    row: 17,
    title: 'a request whose access key was removed',
    run: async (world) => {
      const chain = { id: 'temporary', usageType: 'access' };
      expect((await world.admin('POST', '/key-chain', chain)).status).to.equal(201);
      const configuration = { accessKeyChainId: chain.id, lifeTime: 120 };
      const request = await world.ask(configuration);
      const path = `/verifier/config/${await world.configured(configuration)}`;
      expect((await world.admin('PATCH', path, { accessKeyChainId: null })).status).to.equal(200);
      const deletion = await world.admin('DELETE', `/key-chain/${chain.id}`);
      expect(deletion.status, deletion.text).to.be.within(200, 204);
      return world.service.call('GET', request.url);
    },
    expected: stillOpen(410),
  },
  otherAddress(21, 'an unknown request', () => '/shop/request/unknown'),
  {
    row: 22,
    title: 'a request that has expired',
    run: (world, { url }) => world.later(301, () => world.service.call('GET', url)),
    // The session is read with the clock of the tests again.
    expected: stillOpen(410),
    assertAfter: (world, request) =>
      world.later(301, async () => {
        expect((await world.session(request))['status']).to.equal('expired');
      }),
  },
  {
    row: 23,
    title: 'a request that was answered',
    run: async (world, request) => {
      await world.answer(request, { card: [world.card(request)] });
      return world.service.call('GET', request.url);
    },
    expected: { status: 410, session: 'completed' },
  },
  {
    row: 23,
    title: 'a request whose response was rejected',
    run: async (world, request) => {
      await world.answer(request, { card: ['nonsense'] });
      return world.service.call('GET', request.url);
    },
    expected: { status: 410, session: 'failed', code: 'presentation_refused' },
  },
  postedRequest(24, 'a POST of JSON', { json: { wallet_nonce: 'x' } }, 415),
  postedRequest(25, 'a wallet_nonce that is too long', { form: { wallet_nonce: 'x'.repeat(513) } }),
  postedRequest(25, 'control characters in the wallet_nonce', { form: { wallet_nonce: 'a\u0007b\n' } }),
  postedRequest(26, 'wallet_metadata that is not JSON', { form: { wallet_metadata: '{' } }),
  postedRequest(26, 'wallet_metadata that is not an object', { form: { wallet_metadata: '[]' } }),
  postedRequest(27, 'a wallet without our formats', { form: { wallet_metadata: JSON.stringify(POST_ONLY) } }),
  postedRequest(28, 'a wallet without our client identifier prefix', {
    form: { wallet_metadata: '{"client_id_prefixes_supported":["redirect_uri","x509_san_dns"]}' },
  }),
  {
    row: 29,
    title: 'a second fetch, which gives the same bytes',
    run: ({ service }, { url }) => service.call('GET', url),
    expected: { status: 200, session: 'fetched', staysOpen: true },
    async assertAfter({ service }, { url, text }) {
      expect((await service.call('GET', url)).text).to.equal(text);
    },
  },
  otherAddress(30, 'the request of another tenant', (id) => `/rival/request/${id}`),
  otherAddress(30, 'the request under an unknown tenant', (id) => `/unknown/request/${id}`),
];

const REDIRECTED = { redirectUri: 'https://shop.example/done/{sessionId}' };

/** An attempt to read the result of another session. */
export type ResultCase = {
  readonly row: number;
  readonly title: string;
  readonly status: 403 | 404;
  readonly read: (world: World, request: FetchedRequest, code: string) => Promise<Answer>;
};

/** Creates a session with a result, and returns the response code for the browser. */
export async function createAnswered(world: World): Promise<{ request: FetchedRequest; code: string }> {
  const request = await world.ask(REDIRECTED);
  const answer = await world.answer(request, { card: [world.card(request)] });
  expect(answer.status, answer.text).to.equal(200);
  return { request, code: new URL(answer.body.redirect_uri).searchParams.get('response_code') ?? '' };
}

const readSession = ({ admin }: World, id: string, code?: string, tenant?: 'rival') =>
  admin('GET', `/session/${id}${code === undefined ? '' : `?response_code=${code}`}`, undefined, tenant);

/** Unauthorized access to a result (OpenID4VP 1.0 sections 13.3 and 14.3). */
export const resultCases: readonly ResultCase[] = [
  { row: 148, title: 'a wrong response_code', status: 403, read: (world, { session }, code) => readSession(world, session, `${code}x`) },
  { row: 148, title: 'an empty response_code', status: 403, read: (world, { session }) => readSession(world, session, '') },
  {
    row: 148,
    title: 'a response_code that was used',
    status: 403,
    async read(world, { session }, code) {
      expect((await readSession(world, session, code)).status).to.equal(200);
      return readSession(world, session, code);
    },
  },
  {
    row: 148,
    title: 'the response_code of another session',
    status: 403,
    read: async (world, { session }) => readSession(world, session, (await createAnswered(world)).code),
  },
  {
    row: 148,
    title: 'a response_code of long ago',
    status: 403,
    read: (world, { session }, code) => world.later(301, () => readSession(world, session, code)),
  },
  { row: 149, title: 'the id that the wallet saw', status: 404, read: (world, { url }) => readSession(world, url.split('/').at(-1) ?? '') },
  { row: 149, title: 'the state that the wallet saw', status: 404, read: (world, { payload }) => readSession(world, payload['state']) },
  {
    row: 150,
    title: 'a token of another tenant',
    status: 404,
    read: (world, { session }) => readSession(world, session, undefined, 'rival'),
  },
  {
    row: 150,
    title: 'a token of another tenant with the right response_code',
    status: 404,
    read: (world, { session }, code) => readSession(world, session, code, 'rival'),
  },
];

export async function expectNoResult(world: World, { read, status }: ResultCase): Promise<void> {
  const { request, code } = await createAnswered(world);
  const answer = await read(world, request, code);
  expect(answer.status, answer.text).to.equal(status);
  expect(answer.text, 'no value is released').to.not.include('Erika');
}

const EVIL = 'https://evil.example';

const card = (row: number, title: string, aud: (request: FetchedRequest) => unknown): PresentationCase => ({
  row,
  title,
  reason: 'aud_mismatch',
  configuration: THROUGH_PAGE,
  present: (world, request) => world.card(request, { kb: { aud: aud(request) } }),
});
const licence = (row: number, title: string, transcript: (world: World, request: FetchedRequest) => Buffer): PresentationCase => ({
  row,
  title,
  reason: 'device_signature',
  format: 'mso_mdoc',
  configuration: THROUGH_PAGE,
  present: (world, request) => world.licence(request, { transcript: transcript(world, request) }),
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
  licence(121, 'a redirect transcript for a page', (world, request) => world.transcript(request, { responseUri: request.uri })),
  licence(122, 'a transcript of the origin with its prefix', (world, request) =>
    world.pageTranscript(request, { origin: `origin:${PAGE}` }),
  ),
  licence(122, 'a transcript of the origin with a slash', (world, request) => world.pageTranscript(request, { origin: `${PAGE}/` })),
  licence(152, 'a transcript of another page', (world, request) => world.pageTranscript(request, { origin: EVIL })),
  licence(152, 'a transcript of another nonce', (world, request) => world.pageTranscript(request, { nonce: 'other' })),
  {
    row: 120,
    title: 'a transcript for a page without thumbprint',
    reason: 'device_signature',
    format: 'mso_mdoc',
    configuration: { ...THROUGH_PAGE, responseMode: 'direct_post.jwt' },
    present: (world, request) => world.licence(request, { transcript: world.pageTranscript(request, { encryptionKey: undefined }) }),
  },
];

const post = ({ service }: World, { uri }: FetchedRequest, json: unknown) => service.call('POST', uri, { json });
const UNENCRYPTED_PAGE = { ...THROUGH_PAGE, responseMode: 'direct_post' };

/** Responses that a page sends. */
export const pageResponseCases: readonly Case[] = [
  {
    row: 151,
    title: 'a presentation in the clear though it was to be encrypted',
    configuration: THROUGH_PAGE,
    run: (world, request) => post(world, request, { vp_token: { card: [world.card(request)] } }),
    expected: rejected('response_mode'),
  },
  {
    row: 151,
    title: 'an encrypted response of a page to a request for an unencrypted one',
    configuration: UNENCRYPTED_PAGE,
    run: async (world, request) => {
      const otherRequest = await world.ask(THROUGH_PAGE);
      const response = await encryptResponse(otherRequest, { vp_token: { card: [world.card(request)] } });
      return post(world, request, { response });
    },
    expected: rejected('response_mode'),
  },
  {
    row: 151,
    title: 'a response and a presentation beside it',
    configuration: THROUGH_PAGE,
    run: async (world, request) => {
      const vp_token = { card: [world.card(request)] };
      return post(world, request, { response: await encryptResponse(request, { vp_token }), vp_token });
    },
    expected: rejected('response_mode'),
  },
  ...[THROUGH_PAGE, UNENCRYPTED_PAGE].map(
    (configuration): Case => ({
      row: 153,
      title: `an error of the wallet, ${JSON.stringify(configuration)}`,
      configuration,
      run: (world, request) => post(world, request, { error: 'access_denied' }),
      expected: failedByWallet('access_denied'),
    }),
  ),
];
