import { expect } from 'chai';
import { later } from '../support/chained-world.ts';
import { created, offerBody } from '../support/populated.ts';
import { CLIENT_ID, newKey, RawWallet } from '../support/raw-wallet.ts';
import { type Answer, createTenant, startTestService, type TestService } from '../support/test-service.ts';
import { WalletProvider } from '../support/wallet-provider.ts';

const EVIL = 'https://evil.example/take?all=this';

describe('the page of the built-in server', () => {
  let service: TestService;
  let token: string;
  let wallet: RawWallet;

  before(async () => {
    service = await startTestService();
    ({ token } = await createTenant(service, 'acme'));
    wallet = new RawWallet(service, 'acme');
    const config = { format: 'dc+sd-jwt', display: [{ name: 'Card', locale: 'en' }] };
    const card = { id: 'card', config, vct: 'urn:card:1', claims: { name: 'Ada' } };
    await created(service, token, '/issuer/credentials', card);
    await configure({});
  });
  after(() => service.close());

  const configure = async (more: object) => {
    const json = { display: [{ name: 'Acme', locale: 'en' }], ...more };
    expect((await service.call('POST', '/issuer/config', { token, json })).status).to.equal(201);
  };
  const push = async (form: Record<string, string> = {}) => {
    const body = { ...offerBody('card'), flow: 'authorization_code' };
    const { uri } = await created(service, token, '/issuer/offer', body);
    return wallet.push(uri, 'card', form);
  };
  const open = (request_uri: string) =>
    service.call('GET', `/acme/authorize?${new URLSearchParams({ client_id: CLIENT_ID, request_uri })}`);
  const press = (request_uri: string, page: Answer, decision = 'approve') => {
    const [, decision_token = ''] = /name="decision_token" value="([^"]+)"/.exec(page.text) ?? [];
    const form = { client_id: CLIENT_ID, request_uri, decision, decision_token };
    return service.call('POST', '/acme/authorize', { form });
  };
  const codeIn = (answer: Answer) =>
    new URL(answer.headers.get('location') ?? 'nowhere:').searchParams.get('code');

  describe('that was opened in time', () => {
    it('is shown again and can be approved until the authorization ends', async () => {
      const requestUri = await push();
      const page = await open(requestUri);
      expect(page.status).to.equal(200);
      const reloaded = await later(61, () => open(requestUri));
      expect(reloaded.status, 'a reload').to.equal(200);
      expect((await later(1790, () => open(requestUri))).status, 'a late reload').to.equal(200);
      const answer = await later(1790, () => press(requestUri, page));
      expect(answer.status, answer.text).to.equal(303);
      expect(codeIn(answer)).to.be.a('string');
    });

    it('is gone with the authorization', async () => {
      const requestUri = await push();
      const page = await open(requestUri);
      expect((await later(1801, () => open(requestUri))).status).to.equal(400);
      const answer = await later(1801, () => press(requestUri, page));
      expect([answer.status, answer.headers.get('location')]).to.deep.equal([400, null]);
    });

    it('is gone with the answer', async () => {
      const requestUri = await push();
      const page = await open(requestUri);
      expect((await press(requestUri, page, 'deny')).status).to.equal(303);
      expect((await open(requestUri)).status).to.equal(400);
      expect((await press(requestUri, page)).status).to.equal(400);
    });

    it('by many at once, is one page to all of them', async () => {
      const requestUri = await push();
      const pages = await Promise.all(Array.from({ length: 20 }, () => open(requestUri)));
      expect(pages.map(({ status }) => status)).to.deep.equal(Array(20).fill(200));
      const [page] = pages;
      expect(page && codeIn(await press(requestUri, page))).to.be.a('string');
    });
  });

  it('cannot be opened for the first time after the minute that the wallet was told', async () => {
    const requestUri = await push();
    expect((await later(61, () => open(requestUri))).status).to.equal(400);
    expect((await later(59, () => open(requestUri))).status).to.equal(200);
  });

  describe('tells the user', () => {
    it('that the wallet is not verified, and where the browser will go', async () => {
      const page = await open(await push({ redirect_uri: EVIL }));
      expect(page.text)
        .to.include('not verified')
        .and.include('<strong id="destination">evil.example</strong>');
      expect(page.text).to.include(CLIENT_ID);
    });

    const destinations: readonly [string, string][] = [
      ['https://xn--pypal-4ve.example:8443/cb', 'xn--pypal-4ve.example:8443'],
      ['http://127.0.0.1:4711/cb', '127.0.0.1:4711'],
      ['eudi-openid4ci://login.bank.example', 'eudi-openid4ci:'],
      ['com.example.wallet:/cb', 'com.example.wallet:'],
    ];
    for (const [redirect_uri, destination] of destinations) {
      it(`${destination} for ${redirect_uri}`, async () => {
        const page = await open(await push({ redirect_uri }));
        expect(page.text).to.include(`<strong id="destination">${destination}</strong>`);
      });
    }

    it('what a client calls itself as text, whatever it is', async () => {
      const client_id = '<script>alert(1)</script>"\'&';
      const body = { ...offerBody('card'), flow: 'authorization_code' };
      const { uri } = await created(service, token, '/issuer/offer', body);
      const request_uri = await wallet.push(uri, 'card', { client_id });
      const query = new URLSearchParams({ client_id, request_uri });
      const page = await service.call('GET', `/acme/authorize?${query}`);
      expect(page.status).to.equal(200);
      expect(page.text).to.include('&#60;script&#62;alert(1)').and.not.include('<script');
    });

    it('nothing of that kind about a wallet that proved who it is', async () => {
      const provider = await WalletProvider.start();
      try {
        await configure(provider.configuration());
        const body = { ...offerBody('card'), flow: 'authorization_code' };
        const { uri } = await created(service, token, '/issuer/offer', body);
        const { grants } = (await wallet.offer(uri)) as {
          grants: { authorization_code: { issuer_state: string } };
        };
        const challenge = (await service.call('POST', '/acme/challenge')).body.attestation_challenge;
        const { issuer_state } = grants.authorization_code;
        const pushed = await wallet.par(
          { issuer_state, scope: 'card' },
          provider.headers(newKey(), wallet.issuer, challenge),
        );
        expect(pushed.status, pushed.text).to.equal(201);
        const page = await open(pushed.body.request_uri);
        expect(page.text).to.not.include('not verified');
        expect(page.text).to.include('<strong id="destination">wallet.example</strong>');
      } finally {
        await configure({});
        await provider.close();
      }
    });
  });
});
