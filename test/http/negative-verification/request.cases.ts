import { expect } from 'chai';
import { type Case, kept } from './world.ts';

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
  posted(26, 'wallet_metadata that is no object', { form: { wallet_metadata: '[]' } }),
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
