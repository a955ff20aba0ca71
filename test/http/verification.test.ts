import { createHash, X509Certificate } from 'node:crypto';
import { expect } from 'chai';
import { calculateJwkThumbprint, type JWK } from 'jose';
import sinon from 'sinon';
import { type Asked, decode, type Held, QUERY, Shop, verifiedByLeaf } from '../support/present.ts';

const MEDIA_TYPE = 'application/oauth-authz-req+jwt';

describe('verifying through HTTP', () => {
  let shop: Shop;
  let held: Held;

  before(async () => {
    shop = await Shop.open();
    held = await shop.issue();
  });
  after(() => shop.close());

  describe('a request object', () => {
    it('is signed by the access key, names it by its hash, and keeps the anchor out', async () => {
      const asked = await shop.ask();
      const answer = await shop.service.call('GET', asked.url);
      expect(answer.headers.get('content-type')).to.equal(MEDIA_TYPE);
      expect(answer.headers.get('cache-control')).to.equal('no-store');
      const { header, payload } = asked;
      expect(header).to.include({ typ: 'oauth-authz-req+jwt', alg: 'ES256' });
      expect(header['x5c'], 'the leaf without its anchor').to.have.length(1);
      const leaf = verifiedByLeaf(asked.text);
      expect(leaf.issuer).to.not.equal(leaf.subject);
      const hash = createHash('sha256').update(Buffer.from(header['x5c'][0], 'base64')).digest('base64url');
      expect(payload['client_id']).to.equal(`x509_hash:${hash}`);
      expect(new URL(asked.uri).searchParams.get('client_id')).to.equal(payload['client_id']);
      const chain = (await shop.call('GET', '/key-chain/access')).body;
      expect(leaf.toString().trim()).to.equal(chain.activeCertificate.trim());
    });

    it('carries what the protocol defines and nothing else', async () => {
      const { payload, session: id, url } = await shop.ask();
      expect(payload).to.include({
        response_type: 'vp_token',
        response_mode: 'direct_post.jwt',
        aud: 'https://self-issued.me/v2',
      });
      expect(payload).to.have.all.keys(
        ...['response_type', 'response_mode', 'client_id', 'response_uri', 'aud', 'nonce', 'state'],
        ...['dcql_query', 'client_metadata', 'iat', 'exp'],
      );
      expect(payload['response_uri']).to.match(
        new RegExp(`^${shop.service.address}/shop/response/[\\w-]{22,}$`),
      );
      expect(payload['dcql_query']).to.deep.equal(QUERY);
      expect(payload['exp'] - payload['iat']).to.equal(300);
      const { client_metadata: metadata, nonce, state } = payload;
      expect(metadata).to.have.all.keys(
        'vp_formats_supported',
        'jwks',
        'encrypted_response_enc_values_supported',
      );
      expect(metadata.encrypted_response_enc_values_supported).to.have.members(['A128GCM', 'A256GCM']);
      const [key] = metadata.jwks.keys;
      expect(key).to.include({ kty: 'EC', crv: 'P-256', use: 'enc', alg: 'ECDH-ES' });
      expect(key).to.not.have.property('d');
      // 256 and 128 bits
      expect(nonce).to.match(/^[\w.~-]{43,}$/);
      expect(state).to.match(/^[\w.~-]{22,}$/);
      expect(new Set([id, nonce, state, url.split('/').at(-1)]).size, 'all differ').to.equal(4);
      expect(JSON.stringify(payload), 'the session id stays with the client').to.not.include(id);
    });

    it('names its signing key by the thumbprint in kid, beside x5c, also for a wallet with a nonce', async () => {
      const asked = await shop.ask();
      const wallet = { form: { wallet_nonce: 'a-nonce' } };
      const again = decode((await shop.service.call('POST', asked.url, wallet)).text);
      for (const { header } of [asked, again]) {
        const leaf = new X509Certificate(Buffer.from(header['x5c'][0], 'base64'));
        const jwk = leaf.publicKey.export({ format: 'jwk' });
        expect(header['kid']).to.equal(await calculateJwkThumbprint(jwk as JWK));
        expect(header).to.have.all.keys('alg', 'typ', 'x5c', 'kid');
      }
    });

    it('has a key, a nonce and a state of its own each time', async () => {
      const all = await Promise.all([1, 2, 3].map(() => shop.ask()));
      const of = (read: (payload: Asked['payload']) => unknown) =>
        new Set(all.map(({ payload }) => read(payload))).size;
      expect(of((payload) => payload['client_metadata'].jwks.keys[0].x)).to.equal(3);
      expect(of((payload) => payload['client_metadata'].jwks.keys[0].kid)).to.equal(3);
      expect([of((payload) => payload['nonce']), of((payload) => payload['state'])]).to.deep.equal([3, 3]);
    });

    it('N29 is served again byte for byte, and N23 not after the answer', async () => {
      const asked = await shop.ask();
      const again = await shop.service.call('GET', asked.url);
      expect([again.status, again.text]).to.deep.equal([200, asked.text]);
      expect((await shop.session(asked.session)).status).to.equal('fetched');
      expect((await shop.present(asked, held)).status).to.equal(200);
      const late = await shop.service.call('GET', asked.url);
      expect([late.status, late.body.error]).to.deep.equal([410, 'invalid_request']);
      expect((await shop.session(asked.session)).status).to.equal('completed');
    });

    it('repeats the nonce of a wallet that posts one, and otherwise stays as it is', async () => {
      const asked = await shop.ask();
      const metadata = JSON.stringify({
        vp_formats_supported: { 'dc+sd-jwt': {}, mso_mdoc: {} },
        client_id_prefixes_supported: ['x509_hash', 'redirect_uri'],
      });
      const form = { wallet_nonce: 'from-the-wallet', wallet_metadata: metadata, unknown: 'ignored' };
      const posted = await shop.service.call('POST', asked.url, { form });
      expect(posted.status, posted.text).to.equal(200);
      expect(posted.headers.get('content-type')).to.equal(MEDIA_TYPE);
      verifiedByLeaf(posted.text);
      const { header, payload } = decode(posted.text);
      expect(header).to.deep.equal(asked.header);
      expect(payload).to.deep.equal({ ...asked.payload, wallet_nonce: 'from-the-wallet' });
      expect((await shop.service.call('POST', asked.url, { form: {} })).text).to.equal(asked.text);
      expect((await shop.present(asked, held)).status).to.equal(200);
    });

    const bad: [string, object, number][] = [
      ['N24 in a JSON body', { json: { wallet_nonce: 'x' } }, 415],
      ['N25 with a nonce that is too long', { form: { wallet_nonce: 'x'.repeat(513) } }, 400],
      ['N25 with control characters in the nonce', { form: { wallet_nonce: 'a\u0000b\n' } }, 400],
      ['N26 with metadata that is not JSON', { form: { wallet_metadata: '{' } }, 400],
      [
        'N27 without a format that we ask for',
        { form: { wallet_metadata: '{"vp_formats_supported":{"mso_mdoc":{}}}' } },
        400,
      ],
      [
        'N28 without our client identifier prefix',
        { form: { wallet_metadata: '{"client_id_prefixes_supported":["redirect_uri"]}' } },
        400,
      ],
    ];
    for (const [what, options, status] of bad) {
      it(`is not given to a wallet that posts ${what}`, async () => {
        const made = await shop.call('POST', '/verifier/offer', { response_type: 'uri', requestId: 'check' });
        const url = new URL(made.body.uri).searchParams.get('request_uri') ?? '';
        const answer = await shop.service.call('POST', url, options);
        expect([answer.status, answer.body.error], answer.text).to.deep.equal([status, 'invalid_request']);
        expect((await shop.session(made.body.session)).status).to.equal('active');
        expect((await shop.service.call('GET', url)).status).to.equal(200);
      });
    }

    it('N21 N30 is unknown under another id, another tenant and a reserved name, without detail', async () => {
      const { url } = await shop.ask();
      const id = url.split('/').at(-1);
      const paths = [`/shop/request/unknown`, `/acme/request/${id}`, `/nobody/request/${id}`];
      const answers = await Promise.all(paths.map((path) => shop.service.call('GET', path)));
      for (const answer of answers) expect(answer.status).to.equal(404);
      expect(new Set(answers.map(({ text }) => text)).size, 'alike').to.equal(1);
      expect(answers[0]?.text).to.not.include('shop');
      const posted = await shop.service.call('POST', `/acme/response/${id}`, {
        form: { error: 'x', state: 'y' },
      });
      expect(posted.status).to.equal(404);
    });

    it('N22 N43 is over after its time', async () => {
      await shop.configure({ id: 'short', lifeTime: 30 });
      const asked = await shop.ask('short');
      const clock = sinon.useFakeTimers({ now: Date.now() + 30_500, toFake: ['Date'] });
      try {
        const fetched = await shop.service.call('GET', asked.url);
        expect([fetched.status, fetched.body.error]).to.deep.equal([410, 'invalid_request']);
        expect((await shop.present(asked, held)).status).to.equal(410);
        expect((await shop.session(asked.session)).status).to.equal('expired');
      } finally {
        clock.restore();
      }
      const tooShort = { id: 'short', dcql_query: QUERY, lifeTime: 0 };
      expect((await shop.call('POST', '/verifier/config', tooShort)).status).to.equal(400);
    });
  });

  describe('trust', () => {
    it('N138 is nobody by default, an anchor by PEM while it is configured, and nobody again', async () => {
      await shop.configure({ id: 'trusting', trustAnchors: undefined });
      const attempt = async () => {
        const asked = await shop.ask('trusting');
        const { status } = await shop.present(asked, held);
        const { status: ended, failure } = await shop.session(asked.session);
        return [status, ended, failure?.message.includes('untrusted_chain')];
      };
      expect(await attempt()).to.deep.equal([400, 'failed', true]);
      const trust = (trustAnchors: unknown) =>
        shop.call('PATCH', '/verifier/config/trusting', { trustAnchors });
      expect((await trust([{ certificate: shop.anchor }])).status).to.equal(200);
      expect(await attempt()).to.deep.equal([200, 'completed', undefined]);
      expect((await trust([{ keyChainId: 'signing' }])).status, 'our own authority').to.equal(200);
      expect(await attempt()).to.deep.equal([400, 'failed', true]);
      expect((await trust(null)).status).to.equal(200);
      expect(await attempt()).to.deep.equal([400, 'failed', true]);
    });

    it('that is taken away counts no more for later requests, and still for those that are under way', async () => {
      await shop.configure({ id: 'withdrawn' });
      const asked = await shop.ask('withdrawn');
      await shop.call('PATCH', '/verifier/config/withdrawn', { trustAnchors: null });
      expect((await shop.present(asked, held)).status).to.equal(200);
      expect((await shop.present(await shop.ask('withdrawn'), held)).status).to.equal(400);
    });
  });
});
