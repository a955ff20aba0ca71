import { createHash, X509Certificate } from 'node:crypto';
import { expect } from 'chai';
import { calculateJwkThumbprint, type JWK } from 'jose';
import sinon from 'sinon';
import {
  bindToRequest,
  decode,
  type FetchedRequest,
  type HeldCredential,
  issue,
  present,
  QUERY,
  requestPresentation,
  responseForm,
  Shop,
  verifyWithLeaf,
} from '../support/present.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

const MEDIA_TYPE = 'application/oauth-authz-req+jwt';

describe('Verifying through HTTP', () => {
  let shop: Shop;
  let held: HeldCredential;

  before(async () => {
    shop = await Shop.open();
    held = await shop.issue();
  });
  after(() => shop.close());

  describe('a request object', () => {
    it('is signed by the access key, contains its hash and omits the anchor', async () => {
      const asked = await shop.requestPresentation();
      const answer = await shop.service.call('GET', asked.url);
      expect(answer.headers.get('content-type')).to.equal(MEDIA_TYPE);
      expect(answer.headers.get('cache-control')).to.equal('no-store');
      const { header, payload } = asked;
      expect(header).to.include({ typ: 'oauth-authz-req+jwt', alg: 'ES256' });
      expect(header['x5c'], 'the leaf without its anchor').to.have.length(1);
      const leaf = verifyWithLeaf(asked.text);
      expect(leaf.issuer).to.not.equal(leaf.subject);
      const hash = createHash('sha256').update(Buffer.from(header['x5c'][0], 'base64')).digest('base64url');
      expect(payload['client_id']).to.equal(`x509_hash:${hash}`);
      expect(new URL(asked.uri).searchParams.get('client_id')).to.equal(payload['client_id']);
      const chain = (await shop.call('GET', '/key-chain/access')).body;
      expect(leaf.toString().trim()).to.equal(chain.activeCertificate.trim());
    });

    it('contains only what the protocol defines', async () => {
      const { payload, session: id, url } = await shop.requestPresentation();
      expect(payload).to.include({ response_type: 'vp_token', response_mode: 'direct_post.jwt', aud: 'https://self-issued.me/v2' });
      expect(payload).to.have.all.keys(
        ...['response_type', 'response_mode', 'client_id', 'response_uri', 'aud', 'nonce', 'state'],
        ...['dcql_query', 'client_metadata', 'iat', 'exp'],
      );
      expect(payload['response_uri']).to.match(new RegExp(`^${shop.service.address}/shop/response/[\\w-]{22,}$`));
      expect(payload['dcql_query']).to.deep.equal(QUERY);
      expect(payload['exp'] - payload['iat']).to.equal(300);
      const { client_metadata: metadata, nonce, state } = payload;
      expect(metadata).to.have.all.keys('vp_formats_supported', 'jwks', 'encrypted_response_enc_values_supported');
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

    it('references its signing key by the thumbprint in kid, with x5c, also for a wallet with a nonce', async () => {
      const asked = await shop.requestPresentation();
      const wallet = { form: { wallet_nonce: 'a-nonce' } };
      const again = decode((await shop.service.call('POST', asked.url, wallet)).text);
      for (const { header } of [asked, again]) {
        const leaf = new X509Certificate(Buffer.from(header['x5c'][0], 'base64'));
        const jwk = leaf.publicKey.export({ format: 'jwk' });
        expect(header['kid']).to.equal(await calculateJwkThumbprint(jwk as JWK));
        expect(header).to.have.all.keys('alg', 'typ', 'x5c', 'kid');
      }
    });

    it('has its own key, nonce and state each time', async () => {
      const all = await Promise.all([1, 2, 3].map(() => shop.requestPresentation()));
      const of = (read: (payload: FetchedRequest['payload']) => unknown) => new Set(all.map(({ payload }) => read(payload))).size;
      expect(of((payload) => payload['client_metadata'].jwks.keys[0].x)).to.equal(3);
      expect(of((payload) => payload['client_metadata'].jwks.keys[0].kid)).to.equal(3);
      expect([of((payload) => payload['nonce']), of((payload) => payload['state'])]).to.deep.equal([3, 3]);
    });

    // N29, N23
    it('is served again byte for byte, and not after the answer', async () => {
      const asked = await shop.requestPresentation();
      const again = await shop.service.call('GET', asked.url);
      expect([again.status, again.text]).to.deep.equal([200, asked.text]);
      expect((await shop.session(asked.session)).status).to.equal('fetched');
      expect((await shop.present(asked, held)).status).to.equal(200);
      const late = await shop.service.call('GET', asked.url);
      expect([late.status, late.body.error]).to.deep.equal([410, 'invalid_request']);
      expect((await shop.session(asked.session)).status).to.equal('completed');
    });

    it('repeats the nonce of a wallet that posts one, and is otherwise unchanged', async () => {
      const asked = await shop.requestPresentation();
      const metadata = JSON.stringify({
        vp_formats_supported: { 'dc+sd-jwt': {}, mso_mdoc: {} },
        client_id_prefixes_supported: ['x509_hash', 'redirect_uri'],
      });
      const form = { wallet_nonce: 'from-the-wallet', wallet_metadata: metadata, unknown: 'ignored' };
      const posted = await shop.service.call('POST', asked.url, { form });
      expect(posted.status, posted.text).to.equal(200);
      expect(posted.headers.get('content-type')).to.equal(MEDIA_TYPE);
      verifyWithLeaf(posted.text);
      const { header, payload } = decode(posted.text);
      expect(header).to.deep.equal(asked.header);
      expect(payload).to.deep.equal({ ...asked.payload, wallet_nonce: 'from-the-wallet' });
      expect((await shop.service.call('POST', asked.url, { form: {} })).text).to.equal(asked.text);
      expect((await shop.present(asked, held)).status).to.equal(200);
    });

    const bad: [string, object, number][] = [
      // N24
      ['in a JSON body', { json: { wallet_nonce: 'x' } }, 415],
      // N25
      ['with a nonce that is too long', { form: { wallet_nonce: 'x'.repeat(513) } }, 400],
      // N25
      ['with control characters in the nonce', { form: { wallet_nonce: 'a\u0000b\n' } }, 400],
      // N26
      ['with metadata that is not JSON', { form: { wallet_metadata: '{' } }, 400],
      // N27
      ['without a format that we ask for', { form: { wallet_metadata: '{"vp_formats_supported":{"mso_mdoc":{}}}' } }, 400],
      // N28
      ['without our client identifier prefix', { form: { wallet_metadata: '{"client_id_prefixes_supported":["redirect_uri"]}' } }, 400],
    ];
    for (const [what, options, status] of bad) {
      it(`is not returned to a wallet that posts ${what}`, async () => {
        const made = await shop.call('POST', '/verifier/offer', { response_type: 'uri', requestId: 'check' });
        const url = new URL(made.body.uri).searchParams.get('request_uri') ?? '';
        const answer = await shop.service.call('POST', url, options);
        expect([answer.status, answer.body.error], answer.text).to.deep.equal([status, 'invalid_request']);
        expect((await shop.session(made.body.session)).status).to.equal('active');
        expect((await shop.service.call('GET', url)).status).to.equal(200);
      });
    }

    // N21, N30
    it('answers 404 without detail for an unknown id, another tenant and a reserved name', async () => {
      const { url } = await shop.requestPresentation();
      const id = url.split('/').at(-1);
      const paths = [`/shop/request/unknown`, `/acme/request/${id}`, `/nobody/request/${id}`];
      const answers = await Promise.all(paths.map((path) => shop.service.call('GET', path)));
      for (const answer of answers) expect(answer.status).to.equal(404);
      expect(new Set(answers.map(({ text }) => text)).size, 'alike').to.equal(1);
      expect(answers[0]?.text).to.not.include('shop');
      const posted = await shop.service.call('POST', `/acme/response/${id}`, { form: { error: 'x', state: 'y' } });
      expect(posted.status).to.equal(404);
    });

    // N22, N43
    it('answers 404 after its expiry', async () => {
      await shop.configure({ id: 'short', lifeTime: 30 });
      const asked = await shop.requestPresentation('short');
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
    // N138
    it('is missing by default, exists while an anchor is configured by PEM, and is missing again after its removal', async () => {
      await shop.configure({ id: 'trusting', trustAnchors: undefined });
      const attempt = async () => {
        const asked = await shop.requestPresentation('trusting');
        const { status } = await shop.present(asked, held);
        const { status: ended, failure } = await shop.session(asked.session);
        return [status, ended, failure?.message.includes('untrusted_chain')];
      };
      expect(await attempt()).to.deep.equal([400, 'failed', true]);
      const trust = (trustAnchors: unknown) => shop.call('PATCH', '/verifier/config/trusting', { trustAnchors });
      expect((await trust([{ certificate: shop.anchor }])).status).to.equal(200);
      expect(await attempt()).to.deep.equal([200, 'completed', undefined]);
      expect((await trust([{ keyChainId: 'signing' }])).status, 'our own authority').to.equal(200);
      expect(await attempt()).to.deep.equal([400, 'failed', true]);
      expect((await trust(null)).status).to.equal(200);
      expect(await attempt()).to.deep.equal([400, 'failed', true]);
    });

    it('that is removed is invalid for later requests, but still valid for open ones', async () => {
      await shop.configure({ id: 'withdrawn' });
      const asked = await shop.requestPresentation('withdrawn');
      await shop.call('PATCH', '/verifier/config/withdrawn', { trustAnchors: null });
      expect((await shop.present(asked, held)).status).to.equal(200);
      expect((await shop.present(await shop.requestPresentation('withdrawn'), held)).status).to.equal(400);
    });
  });
});

describe('the disclosed data of a wallet', () => {
  let shop: Shop;
  let held: HeldCredential;

  before(async () => {
    shop = await Shop.open();
    held = await shop.issue('card-status');
    const webhook = { url: `${shop.backend.url}/hook` };
    await shop.configure({ id: 'all', values: undefined, webhook });
    await shop.configure({ id: 'asked', values: 'requested', webhook });
  });
  after(() => shop.close());
  beforeEach(() => shop.backend.clearCalls());

  const presented = async (configuration: string, names?: readonly string[]) => {
    const asked = await shop.requestPresentation(configuration);
    const answer = await shop.postResponse(asked, await responseForm(asked, { card: [bindToRequest(asked, held, names)] }));
    expect(answer.status, answer.text).to.equal(200);
    const [{ values }] = (await shop.session(asked.session)).credentials;
    expect(shop.backend.calls[0]?.body.credentials[0].values).to.deep.equal(values);
    return values;
  };

  it('reach the backend completely, without the holder binding and the status', async () => {
    const values = await presented('all');
    expect(values).to.deep.include({ name: 'Ada', age: 36, vct: 'urn:card:1' });
    expect(values).to.not.have.any.keys('cnf', 'status', '_sd', '_sd_alg');
  });
  it('are the disclosed claims without the withheld ones', async () => {
    expect(await presented('all', ['name']))
      .to.deep.include({ name: 'Ada' })
      .and.not.have.property('age');
  });
  it('are reduced to the requested claims if the configuration requires it', async () => {
    expect(await presented('asked')).to.deep.equal({ name: 'Ada' });
  });

  it('can be read for longer than the retention of sessions', async () => {
    expect((await shop.call('PUT', '/session-config', { ttlSeconds: 60 })).status).to.equal(200);
    await shop.configure({ id: 'patient', lifeTime: 100_000 });
    const asked = await shop.requestPresentation('patient');
    const { createdAt, expiresAt } = await shop.session(asked.session);
    expect(Date.parse(expiresAt) - Date.parse(createdAt)).to.equal(100_000_000);
    expect(asked.payload['exp'] - asked.payload['iat']).to.equal(100_000);
    await shop.call('DELETE', '/session-config');
  });
});

describe('status of a presented credential', () => {
  describe('issued and verified by one service', () => {
    let shop: Shop;

    before(async () => {
      shop = await Shop.open({ statusListConfig: { bits: 2 } });
    });
    after(() => shop.close());

    const change = async (held: HeldCredential, status: number) => {
      const json = { sessionId: held.session, status };
      const answer = await shop.call('POST', '/session/revoke', json, shop.acme.token);
      expect(answer.status, answer.text).to.equal(201);
      expect(answer.body).to.deep.equal({ ...json, changed: 1 });
    };
    const attempt = async (held: HeldCredential) => {
      const asked = await shop.requestPresentation();
      const { status, text } = await shop.present(asked, held);
      expect(text, 'the wallet learns no reason').to.not.match(/revoked|suspended/);
      const seen = await shop.session(asked.session);
      return [status, seen['status'], seen['failure']?.message ?? ''];
    };

    // N140, N141
    it('applies at once, and a suspended credential can be reinstated', async () => {
      const held = await shop.issue('card-status');
      expect((await attempt(held)).slice(0, 2)).to.deep.equal([200, 'completed']);
      await change(held, 2);
      expect(await attempt(held)).to.satisfy(refusedFor('status_suspended'));
      await change(held, 0);
      expect((await attempt(held)).slice(0, 2)).to.deep.equal([200, 'completed']);
      await change(held, 1);
      expect(await attempt(held)).to.satisfy(refusedFor('status_revoked'));
    });

    it('is independent of other credentials in the same list', async () => {
      const [one, other] = [await shop.issue('card-status'), await shop.issue('card-status')];
      const uri = (held: HeldCredential) => decode(held.text).payload['status'].status_list.uri;
      expect(uri(one)).to.equal(uri(other));
      await change(one, 1);
      expect(await attempt(one)).to.satisfy(refusedFor('status_revoked'));
      expect((await attempt(other)).slice(0, 2)).to.deep.equal([200, 'completed']);
    });

    it('cannot be changed by another tenant, nor without a status', async () => {
      const held = await shop.issue('card-status');
      const foreign = await shop.call('POST', '/session/revoke', { sessionId: held.session, status: 1 });
      expect([foreign.status, foreign.body.code]).to.deep.equal([404, 'not_found']);
      expect((await attempt(held))[0]).to.equal(200);
      const plain = { sessionId: (await shop.issue('card')).session, status: 1 };
      expect((await shop.call('POST', '/session/revoke', plain, shop.acme.token)).status).to.equal(409);
    });
  });

  describe('issued by another service', () => {
    let issuer: TestService;
    let verifier: TestService;
    let guarded: TestService;
    let acme: { id: string; token: string };
    let held: HeldCredential;
    const tokens = new Map<TestService, string>();

    before(async () => {
      [issuer, verifier, guarded] = await Promise.all([
        startTestService(),
        startTestService({ OUTBOUND_ALLOW: 'localhost' }),
        startTestService({ OUTBOUND_ALLOW: '' }),
      ]);
      acme = await createTenant(issuer, 'acme');
      await issuer.call('POST', '/issuer/config', { token: acme.token, json: { display: [{ name: 'Acme', locale: 'en' }] } });
      const card = {
        id: 'card',
        config: { format: 'dc+sd-jwt', display: [{ name: 'Card', locale: 'en' }] },
        vct: 'urn:card:1',
        claims: { name: 'Ada' },
        disclosureFrame: { _sd: ['name'] },
        statusManagement: true,
      };
      await issuer.call('POST', '/issuer/credentials', { token: acme.token, json: card });
      held = await issue(issuer, acme, 'card');
      const chain = await issuer.call('GET', '/key-chain/signing', { token: acme.token });
      const trustAnchors = [{ certificate: chain.body.rootCertificate }];
      for (const service of [verifier, guarded]) {
        const { token } = await createTenant(service, 'shop');
        tokens.set(service, token);
        const json = { id: 'check', dcql_query: QUERY, trustAnchors };
        const written = await service.call('POST', '/verifier/config', { token, json });
        expect(written.status, written.text).to.equal(201);
      }
    });
    after(async () => {
      await Promise.all([verifier.close(), guarded.close()]);
    });

    const attempt = async (service: TestService) => {
      const token = tokens.get(service) ?? '';
      const asked = await requestPresentation(service, token, 'check');
      const { status } = await present(service, asked, held);
      const seen = (await service.call('GET', `/session/${asked.session}`, { token })).body;
      return [status, seen.status, seen.failure?.message ?? ''];
    };

    it('is fetched from that service and accepted under the anchor of the credential', async () => {
      const [status, ended, message] = await attempt(verifier);
      expect([status, ended], String(message)).to.deep.equal([200, 'completed']);
    });

    // N147
    it('is not fetched from a disallowed address', async () => {
      expect(await attempt(guarded)).to.satisfy(refusedFor('status_unavailable'));
    });

    // N145
    it('rejects the presentation while it cannot be fetched', async () => {
      await issuer.close();
      const late = await startTestService({ OUTBOUND_ALLOW: 'localhost' });
      try {
        const { token } = await createTenant(late, 'shop');
        tokens.set(late, token);
        const { body } = await verifier.call('GET', '/verifier/config/check', { token: tokens.get(verifier) ?? '' });
        const json = { id: 'check', dcql_query: QUERY, trustAnchors: body.trustAnchors };
        await late.call('POST', '/verifier/config', { token, json });
        expect(await attempt(late)).to.satisfy(refusedFor('status_unavailable'));
      } finally {
        await late.close();
      }
      expect((await attempt(verifier))[0], 'who has a copy uses it for its ttl').to.equal(200);
    });
  });
});

/** The answer to the wallet, the session's status and the reason for the operator. */
function refusedFor(reason: string): (result: unknown[]) => boolean {
  return ([status, ended, message]) => {
    expect([status, ended]).to.deep.equal([400, 'failed']);
    expect(message).to.include(reason);
    return true;
  };
}
