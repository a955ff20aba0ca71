import { expect } from 'chai';
import { databases, type TestDatabase } from '../support/databases.ts';
import { bindToRequest, issue, postResponse, QUERY, requestPresentation, responseForm, Shop } from '../support/present.ts';
import { type CountingProxy, countingProxy } from '../support/proxies.ts';
import { keyProof, newKey, RawWallet } from '../support/raw-wallet.ts';
import { startTestService } from '../support/test-service.ts';

const postgres = databases().find(({ name }) => name === 'postgres');

const TRIES = 20;

describe('round trips to PostgreSQL', () => {
  let database: TestDatabase | undefined;
  let proxy: CountingProxy;
  let shop: Shop;

  before(async function () {
    database = await postgres?.open();
    if (database === undefined) return this.skip();
    proxy = await countingProxy(database.url);
    shop = await Shop.open({}, () => startTestService({ DATABASE_URL: proxy.url }));
    // What is configured is read once, connections are opened, and entries of the status list are leased.
    for (const id of ['card', 'card-status']) await issue(shop.service, shop.acme, id);
    const held = await issue(shop.service, shop.acme, 'card');
    const asked = await requestPresentation(shop.service, shop.token, 'check');
    expect((await postResponse(shop.service, asked, await responseForm(asked, { card: [bindToRequest(asked, held)] }))).status).to.equal(
      200,
    );
    await shop.call('GET', `/session/${asked.session}`);
  });
  after(async () => {
    await shop?.close();
    await proxy?.end();
    await database?.drop();
  });

  /**
   * Expects so many round trips of each step. Jobs and refreshed caches add some now and then, more often on a busy machine, so the least
   * of several tries counts.
   */
  async function expectTrips(expected: Readonly<Record<string, number>>, steps: () => Promise<Record<string, () => Promise<unknown>>>) {
    const least: Record<string, number> = {};
    const isAsExpected = () => Object.entries(expected).every(([name, count]) => least[name] === count);
    for (let round = 0; round < TRIES && !isAsExpected(); round++) {
      for (const [name, step] of Object.entries(await steps())) {
        proxy.takeRoundTrips();
        await step();
        least[name] = Math.min(least[name] ?? Number.POSITIVE_INFINITY, proxy.takeRoundTrips());
      }
    }
    expect(least).to.deep.equal(expected);
  }

  for (const id of ['card', 'card-status']) {
    it(`are one for each step of an issuance (${id})`, async () => {
      const { service, acme } = shop;
      const expected = { offer: 1, 'fetching the offer': 1, token: 1, nonce: 0, credential: 1 };
      await expectTrips(expected, async () => {
        const wallet = new RawWallet(service, acme.id);
        let uri = '';
        let code = '';
        let token = '';
        let nonce = '';
        return {
          offer: async () => {
            const json = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: [id] };
            uri = (await service.call('POST', '/issuer/offer', { token: acme.token, json })).body.uri;
          },
          'fetching the offer': async () => {
            code = await wallet.code(uri);
          },
          token: async () => {
            const answer = await wallet.redeem(code);
            expect(answer.status, answer.text).to.equal(200);
            token = answer.body.access_token;
          },
          nonce: async () => {
            nonce = await wallet.nonce();
          },
          credential: async () => {
            const body = { credential_configuration_id: id, proofs: { jwt: [keyProof(newKey(), wallet.issuer, nonce)] } };
            const answer = await wallet.request(token, id, { body });
            expect(answer.status, answer.text).to.equal(200);
          },
        };
      });
    });
  }

  it('are one for each step of a verification', async () => {
    const { service, token } = shop;
    const held = await issue(service, shop.acme, 'card');
    // The issuer is another tenant of the service, so whether its keys are compromised is read as well.
    const expected = { request: 1, 'fetching the request': 1, response: 2, session: 1 };
    await expectTrips(expected, async () => {
      let url = '';
      let session = '';
      let asked: Awaited<ReturnType<typeof requestPresentation>>;
      return {
        request: async () => {
          const json = { response_type: 'uri', requestId: 'check' };
          const made = await service.call('POST', '/verifier/offer', { token, json });
          session = made.body.session;
          url = new URL(made.body.uri).searchParams.get('request_uri') ?? '';
        },
        'fetching the request': async () => {
          const { text } = await service.call('GET', url);
          const [header = '', payload = ''] = text.split('.');
          const read = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString());
          asked = { session, uri: '', url, text, header: read(header), payload: read(payload) };
        },
        response: async () => {
          const form = await responseForm(asked, { [QUERY.credentials[0]?.id ?? '']: [bindToRequest(asked, held)] });
          const answer = await postResponse(service, asked, form);
          expect(answer.status, answer.text).to.equal(200);
        },
        session: () => shop.call('GET', `/session/${session}`),
      };
    });
  });
});
