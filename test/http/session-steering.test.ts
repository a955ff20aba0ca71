import { expect } from 'chai';
import { type Asked, type Held, Shop } from '../support/present.ts';
import { RawWallet } from '../support/raw-wallet.ts';

describe('a session that its caller steers', () => {
  let shop: Shop;
  let held: Held;

  before(async () => {
    shop = await Shop.open();
    held = await shop.issue();
    await shop.configure({ id: 'told', webhook: { url: `${shop.backend.url}/told` } });
  });
  after(() => shop.close());
  beforeEach(() => {
    shop.backend.forget();
    shop.backend.on('/told', { json: {} });
  });

  const asAcme = (method: string, path: string, json?: unknown) =>
    shop.call(method, path, json, shop.acme.token);
  const OFFER = {
    response_type: 'uri',
    flow: 'pre_authorized_code',
    credentialConfigurationIds: ['card'],
  };
  const offer = async (more: object = {}): Promise<{ uri: string; session: string }> => {
    const made = await asAcme('POST', '/issuer/offer', { ...OFFER, ...more });
    expect(made.status, made.text).to.equal(201);
    return made.body;
  };

  describe('and looks for', () => {
    const found = async (q: string, token = shop.acme.token, more = '') => {
      const answer = await shop.call('GET', `/session?q=${encodeURIComponent(q)}${more}`, undefined, token);
      expect(answer.status, answer.text).to.equal(200);
      return answer.body.map(({ id }: { id: string }) => id);
    };

    it('is found by its reference, which others may share, page by page', async () => {
      const ids: string[] = [];
      for (let i = 0; i < 3; i++) ids.push((await offer({ reference: 'order 17/ä' })).session);
      await offer({ reference: 'order 18' });
      expect(await found('order 17/ä')).to.have.members(ids);
      expect(await found('order 1')).to.deep.equal([]);
      const first = await asAcme('GET', '/session?q=order%2017%2F%C3%A4&limit=2');
      expect(first.body).to.have.length(2);
      const link = /<([^>]+)>/.exec(first.headers.get('link') ?? '')?.[1] ?? '';
      const rest = await asAcme('GET', link);
      expect([...first.body, ...rest.body].map(({ id }) => id)).to.have.members(ids);
      expect(first.body[0].reference).to.equal('order 17/ä');
      expect(await found('order 17/ä', shop.token), 'in another tenant').to.deep.equal([]);
    });

    it('is found by its id, its link, what the link leads to, and its code, spent or not', async () => {
      const { uri, session } = await offer();
      const address = new URL(uri).searchParams.get('credential_offer_uri') ?? '';
      const wallet = new RawWallet(shop.service, 'acme');
      const code = await wallet.code(uri);
      for (const q of [session, uri, address, address.split('/').at(-1) ?? '', code]) {
        expect(await found(q), q).to.deep.equal([session]);
      }
      expect((await wallet.redeem(code)).status).to.equal(200);
      expect(await found(code)).to.deep.equal([session]);
      expect(await found(code, undefined, '&status=failed')).to.deep.equal([]);
      expect(await found(`${code}x`)).to.deep.equal([]);
      expect(await found(code, shop.token), 'in another tenant').to.deep.equal([]);
    });

    it('is found by the nonce, the link and the addresses of a request, and by its reference', async () => {
      const asked = await shop.ask('check', { reference: 'counter 4' });
      const { nonce, response_uri: responseUri } = asked.payload;
      for (const q of [nonce, asked.uri, asked.url, responseUri, 'counter 4', asked.session]) {
        expect(await found(q, shop.token), q).to.deep.equal([asked.session]);
      }
      expect(await found(nonce), 'in another tenant').to.deep.equal([]);
    });

    it('is not shown to whom it is hidden, nor looked for by what is too long or empty', async () => {
      const { session } = await offer({ reference: 'hidden' });
      const secret = 'a-secret-of-this-very-client';
      await asAcme('POST', '/client', { clientId: 'verifier', secret, roles: ['presentation:request'] });
      const token = await shop.service.token('verifier', secret);
      expect(await found('hidden', token)).to.deep.equal([]);
      expect(await found(session, token)).to.deep.equal([]);
      for (const q of ['', 'x'.repeat(8_001)]) {
        expect((await asAcme('GET', `/session?q=${q}`)).status).to.equal(400);
      }
      for (const reference of ['', 'x'.repeat(201), 'a\u0000b', 'a\nb', 7]) {
        expect((await asAcme('POST', '/issuer/offer', { ...OFFER, reference })).status).to.equal(400);
      }
    });

    it('is never shown to a wallet by its reference', async () => {
      const { uri } = await offer({ reference: 'for us alone' });
      const shown = await shop.service.call(
        'GET',
        new URL(uri).searchParams.get('credential_offer_uri') ?? '',
      );
      expect(shown.text).to.not.include('for us alone');
      expect((await shop.ask('check', { reference: 'for us alone' })).text).to.not.include('for us alone');
    });
  });

  describe('is cancelled', () => {
    const cancel = (id: string, token = shop.acme.token) =>
      shop.call('POST', `/session/${id}/cancel`, undefined, token);

    it('before its code is redeemed, and the wallet gets nothing', async () => {
      const { uri, session } = await offer();
      const wallet = new RawWallet(shop.service, 'acme');
      const code = await wallet.code(uri);
      const answer = await cancel(session);
      expect([answer.status, answer.body.status, answer.body.failure.code], answer.text).to.deep.equal([
        200,
        'failed',
        'cancelled',
      ]);
      const { updatedAt: _at, ...shown } = answer.body;
      const { updatedAt: _then, ...seen } = (await asAcme('GET', `/session/${session}`)).body;
      expect(seen).to.deep.equal(shown);
      const redeemed = await wallet.redeem(code);
      expect([redeemed.status, redeemed.body.error]).to.deep.equal([400, 'invalid_grant']);
      const address = new URL(uri).searchParams.get('credential_offer_uri') ?? '';
      expect((await shop.service.call('GET', address)).status).to.be.oneOf([404, 410]);
      const again = await cancel(session);
      expect([again.status, again.body.code]).to.deep.equal([409, 'conflict']);
    });

    it('after its code was redeemed, and the token brings nothing', async () => {
      const { uri, session } = await offer();
      const wallet = new RawWallet(shop.service, 'acme');
      const token = await wallet.accessToken(uri);
      expect((await cancel(session)).status).to.equal(200);
      const refused = await wallet.request(token, 'card');
      expect(refused.status, refused.text).to.be.oneOf([400, 401]);
      expect(refused.body.error).to.be.oneOf(['credential_request_denied', 'invalid_token']);
    });

    it('before it is answered, and the wallet is refused', async () => {
      const asked = await shop.ask();
      expect((await cancel(asked.session, shop.token)).body.failure.code).to.equal('cancelled');
      const answer = await shop.present(asked, held);
      expect([answer.status, answer.body.error], answer.text).to.deep.equal([400, 'invalid_request']);
      const fetched = await shop.service.call('GET', asked.url);
      expect(fetched.status).to.be.oneOf([400, 404, 410]);
    });

    it('not once it has ended, is unknown, or belongs to somebody else', async () => {
      const asked = await shop.ask();
      expect((await shop.present(asked, held)).status).to.equal(200);
      expect((await cancel(asked.session, shop.token)).status).to.equal(409);
      expect((await shop.session(asked.session)).status).to.equal('completed');
      expect((await cancel('nowhere', shop.token)).status).to.equal(404);
      expect((await cancel(asked.session)).status).to.equal(404);
    });

    it('not while its backend is told', async () => {
      let told: (() => void) | undefined;
      const asking = new Promise<void>((resolve) => {
        shop.backend.on('/told', (response) => {
          resolve();
          told = () => response.end('{}');
        });
      });
      const asked = await shop.ask('told');
      const presented = shop.present(asked, held);
      await asking;
      expect((await cancel(asked.session, shop.token)).status).to.equal(409);
      told?.();
      expect((await presented).status).to.equal(200);
      expect((await shop.session(asked.session)).status).to.equal('completed');
    });
  });

  describe('has a delivery made again', () => {
    const retry = (session: string, delivery: string, token = shop.token) =>
      shop.call('POST', `/session/${session}/deliveries/${delivery}/retry`, undefined, token);
    const failing = async (): Promise<{ asked: Asked; id: string }> => {
      shop.backend.on('/told', (response) => response.writeHead(503).end());
      const asked = await shop.ask('told');
      expect((await shop.present(asked, held)).status).to.equal(400);
      const { deliveries } = await shop.session(asked.session);
      return { asked, id: deliveries[0].id };
    };

    it('with the same id and body, and its backend has what it missed', async () => {
      const { asked, id } = await failing();
      shop.backend.on('/told', (response) => response.end('OK'));
      const answer = await retry(asked.session, id);
      expect(answer.status, answer.text).to.equal(200);
      expect(answer.body).to.include({ id, webhook: 'presentation', result: 'delivered' });
      expect(answer.body).to.not.have.property('detail');
      const [first, second] = shop.backend.calls;
      expect(second?.headers['idempotency-key']).to.equal(first?.headers['idempotency-key']);
      expect(second?.headers['webhook-id']).to.equal(id);
      expect(second?.body).to.deep.equal(first?.body);
      const { status, failure, deliveries } = await shop.session(asked.session);
      expect([status, failure.code]).to.deep.equal(['failed', 'webhook_failed']);
      expect(deliveries).to.deep.equal([answer.body]);
      const again = await retry(asked.session, id);
      expect([again.status, again.body.code]).to.deep.equal([409, 'conflict']);
      expect(shop.backend.calls).to.have.length(2);
    });

    it('once, however many ask at the same time', async () => {
      const { asked, id } = await failing();
      shop.backend.on('/told', { json: {} });
      shop.backend.forget();
      const answers = await Promise.all(Array.from({ length: 30 }, () => retry(asked.session, id)));
      expect(answers.map(({ status }) => status).sort()).to.deep.equal([200, ...Array(29).fill(409)]);
      expect(shop.backend.calls).to.have.length(1);
    });

    it('also when it fails once more, and when it told of a refusal', async () => {
      const { asked, id } = await failing();
      const failed = await retry(asked.session, id);
      expect([failed.status, failed.body.result], failed.text).to.deep.equal([200, 'failed']);
      expect(failed.body.detail).to.include('503');
      const refused = await shop.ask('told');
      const wrong = { ...held, holder: (await shop.issue()).holder };
      expect((await shop.present(refused, wrong)).status).to.equal(400);
      const [delivery] = (await shop.session(refused.session)).deliveries;
      expect(delivery).to.not.have.property('told');
      shop.backend.on('/told', { json: {} });
      shop.backend.forget();
      expect((await retry(refused.session, delivery.id)).body.result).to.equal('delivered');
      expect(shop.backend.calls[0]?.body.credentials[0]).to.have.keys('id', 'error');
    });

    it('of a notification', async () => {
      shop.backend.on('/noted', (response) => response.writeHead(500).end());
      const { uri, session } = await offer({ notifyWebhook: { url: `${shop.backend.url}/noted` } });
      const wallet = new RawWallet(shop.service, 'acme');
      const token = await wallet.accessToken(uri);
      const { notification_id } = (await wallet.request(token, 'card')).body;
      const told = await shop.service.call('POST', '/acme/notification', {
        headers: wallet.authorization(token, { path: 'notification' }),
        json: { notification_id, event: 'credential_accepted' },
      });
      expect(told.status).to.equal(204);
      const { deliveries } = (await asAcme('GET', `/session/${session}`)).body;
      shop.backend.on('/noted', { json: {} });
      const answer = await retry(session, deliveries[0].id, shop.acme.token);
      expect([answer.status, answer.body.result], answer.text).to.deep.equal([200, 'delivered']);
      const [first, second] = shop.backend.at('/noted');
      expect(second?.body).to.deep.equal(first?.body);
    });

    it('not when it is unknown, or another tenant asks', async () => {
      const { asked, id } = await failing();
      expect((await retry(asked.session, 'nothing')).status).to.equal(404);
      expect((await retry(asked.session, id, shop.acme.token)).status).to.equal(404);
      expect((await retry('nowhere', id)).status).to.equal(404);
    });
  });
});
