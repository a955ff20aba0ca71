import { expect } from 'chai';
import sinon from 'sinon';
import { MAX_UNDECRYPTED_ATTEMPTS } from '../../application/verification/response-intake.ts';
import { dcApiTranscript, redirectTranscript } from '../../domain/formats/mdoc/session-transcript.ts';
import type { PublicJwk } from '../../domain/shared/jwk.ts';
import { deviceResponse } from '../support/device.ts';
import { withoutIssuers } from '../support/failures.ts';
import { addClient } from '../support/populated.ts';
import { bindToRequest, decode, encryptResponse, type HeldCredential, QUERY, Shop, verifyWithLeaf } from '../support/present.ts';
import type { Answer } from '../support/test-service.ts';

const SHOP = 'https://shop.example';
const KIOSK = 'https://kiosk.example:8443';
const DOC_TYPE = 'org.iso.18013.5.1.mDL';
const NAMESPACE = 'org.iso.18013.5.1';
const MDOC_QUERY = {
  credentials: [{ id: 'licence', format: 'mso_mdoc', meta: { doctype_value: DOC_TYPE }, claims: [{ path: [NAMESPACE, 'family_name'] }] }],
};

// biome-ignore lint/suspicious/noExplicitAny: members of requests
type Members = Record<string, any>;
type OfPage = { readonly session: string; readonly uri: string; readonly payload: Members; readonly data: Members };

describe('presentation request through the Digital Credentials API', () => {
  let shop: Shop;
  let held: HeldCredential;
  let licence: HeldCredential;

  before(async () => {
    shop = await Shop.open();
    const config = {
      format: 'mso_mdoc',
      docType: DOC_TYPE,
      display: [{ name: 'Licence', locale: 'en' }],
      claimsByNamespace: { [NAMESPACE]: { family_name: 'Nygård' } },
    };
    const written = await shop.call('POST', '/issuer/credentials', { id: 'mdl', config }, shop.acme.token);
    expect(written.status, written.text).to.equal(201);
    const expectedOrigins = [SHOP, KIOSK];
    await shop.configure({ id: 'signed', expectedOrigins });
    await shop.configure({ id: 'unsigned', expectedOrigins, dcApiRequest: 'unsigned' });
    await shop.configure({ id: 'plain', expectedOrigins, responseMode: 'direct_post' });
    await shop.configure({ id: 'mdoc', expectedOrigins, dcql_query: MDOC_QUERY });
    const webhook = { url: `${shop.backend.url}/hook` };
    await shop.configure({ id: 'told', expectedOrigins, webhook, redirectUri: 'https://shop.example/done' });
    held = await shop.issue();
    licence = await shop.issue('mdl');
  });
  after(() => shop.close());

  async function ask(requestId: string, more: object = {}): Promise<OfPage> {
    const made = await shop.call('POST', '/verifier/offer', { response_type: 'dc-api', requestId, ...more });
    expect(made.status, made.text).to.equal(201);
    const fetched = await shop.service.call('GET', made.body.uri);
    expect(fetched.status, fetched.text).to.equal(200);
    expect(fetched.body).to.deep.equal(made.body.dcApi);
    expect(fetched.headers.get('access-control-allow-origin')).to.equal('*');
    const [{ data }] = fetched.body.requests;
    const payload = data.request === undefined ? data : decode(data.request).payload;
    return { session: made.body.session, uri: made.body.uri, payload, data };
  }
  const hand = (asked: OfPage, json: object): Promise<Answer> => shop.service.call('POST', asked.uri, { json });
  const bound = (asked: OfPage, origin = SHOP) => bindToRequest(asked, held, ['name'], { aud: `origin:${origin}` });
  const encrypted = async (asked: OfPage, plaintext: object) => hand(asked, { response: await encryptResponse(asked, plaintext) });
  const present = async (asked: OfPage, text: string, id = 'card') => encrypted(asked, { vp_token: { [id]: [text] } });
  const keyOf = (asked: OfPage) => asked.payload['client_metadata'].jwks?.keys[0] as unknown as PublicJwk | undefined;
  const transcript = (asked: OfPage, origin = SHOP, encryptionKey = keyOf(asked)) =>
    dcApiTranscript({ origin, nonce: asked.payload['nonce'], encryptionKey });
  const show = (bytes: Buffer) => deviceResponse({ ...licence, docType: DOC_TYPE }, bytes);
  async function refused(asked: OfPage, answer: Answer, reason: RegExp) {
    expect(answer.status, answer.text).to.equal(400);
    const { status, credentials, failure } = await shop.session(asked.session);
    expect([status, credentials]).to.deep.equal(['failed', undefined]);
    expect(`${failure.code} ${failure.message}`).to.match(reason);
  }

  describe('that is signed', () => {
    it('uses the access key, names the allowed origins and no address', async () => {
      const { data, payload, session } = await ask('signed');
      verifyWithLeaf(data['request']);
      expect(decode(data['request']).header['typ']).to.equal('oauth-authz-req+jwt');
      expect(payload).to.have.all.keys(
        ...['response_type', 'response_mode', 'nonce', 'dcql_query', 'client_metadata'],
        ...['client_id', 'expected_origins', 'aud', 'iat', 'exp'],
      );
      expect(payload['response_mode']).to.equal('dc_api.jwt');
      expect(payload['expected_origins']).to.deep.equal([SHOP, KIOSK]);
      expect(payload['client_id']).to.match(/^x509_hash:/);
      expect(await shop.session(session)).to.deep.include({ useDcApi: true, status: 'fetched' });
    });
    it('names only the calling origin if that is known', async () => {
      const { payload } = await ask('signed', { origin: KIOSK });
      expect(payload['expected_origins']).to.deep.equal([KIOSK]);
    });
  });

  it('names neither client nor origins if it is unsigned', async () => {
    const { data } = await ask('unsigned');
    expect(data).to.have.all.keys(...['response_type', 'response_mode', 'nonce', 'dcql_query', 'client_metadata']);
  });

  describe('is answered', () => {
    for (const id of ['signed', 'unsigned']) {
      for (const origin of [SHOP, KIOSK]) {
        it(`with an SD-JWT VC on ${origin}, ${id}`, async () => {
          const asked = await ask(id);
          const answer = await present(asked, bound(asked, origin));
          expect([answer.status, answer.body]).to.deep.equal([200, {}]);
          const { status, credentials } = await shop.session(asked.session);
          expect(status).to.equal('completed');
          expect(withoutIssuers(credentials)).to.deep.equal([{ id: 'card', values: { name: 'Ada' } }]);
        });
      }
    }
    it('by a page that sends an error of null', async () => {
      const plain = await ask('plain');
      const vp_token = { card: [bound(plain)] };
      expect((await hand(plain, { vp_token, error: null })).status).to.equal(200);
      const asked = await ask('signed');
      const response = await encryptResponse(asked, { vp_token: { card: [bound(asked)] } });
      expect((await hand(asked, { response, error: null })).status).to.equal(200);
      const nothing = await ask('plain');
      expect((await hand(nothing, { error: null })).body.error).to.equal('invalid_request');
      expect((await shop.session(nothing.session)).status, 'nothing was answered').to.equal('fetched');
      await refused(nothing, await hand(nothing, { vp_token: null, error: null }), /malformed/);
      for (const error of ['', 0, false, 'access_denied']) {
        const both = await ask('plain');
        await refused(both, await hand(both, { vp_token: { card: [bound(both)] }, error }), /response_mode/);
      }
    });
    it('with an mdoc, on either page', async () => {
      for (const origin of [SHOP, KIOSK]) {
        const asked = await ask('mdoc');
        const answer = await present(asked, show(transcript(asked, origin)), 'licence');
        expect(answer.status, answer.text).to.equal(200);
        expect(withoutIssuers((await shop.session(asked.session))['credentials'])).to.deep.equal([
          { id: 'licence', values: { [NAMESPACE]: { family_name: 'Nygård' } } },
        ]);
      }
    });
    it('in the clear if that was requested', async () => {
      const asked = await ask('plain');
      expect(asked.payload['response_mode']).to.equal('dc_api');
      const answer = await hand(asked, { vp_token: { card: [bound(asked)] } });
      expect(answer.status, answer.text).to.equal(200);
      expect((await shop.session(asked.session))['status']).to.equal('completed');
    });
    it('and reported to the backend, without a redirect for the page', async () => {
      const asked = await ask('told');
      expect((await present(asked, bound(asked))).body).to.deep.equal({});
      const call = shop.backend.calls.at(-1);
      const { session, credentials } = (call?.body ?? {}) as Members;
      expect(session).to.equal(asked.session);
      expect(withoutIssuers(credentials)).to.deep.equal([{ id: 'card', values: { name: 'Ada' } }]);
    });
    // N153
    it('with an error, which ends the session, encrypted or not', async () => {
      for (const send of [hand, encrypted]) {
        const asked = await ask('signed');
        expect((await send(asked, { error: 'access_denied' })).status).to.equal(200);
        const { status, failure } = await shop.session(asked.session);
        expect([status, failure.code]).to.deep.equal(['failed', 'access_denied']);
      }
    });
    it('once, also by concurrent responses', async () => {
      const asked = await ask('signed');
      const data = { response: await encryptResponse(asked, { vp_token: { card: [bound(asked)] } }) };
      const answers = await Promise.all(Array.from({ length: 50 }, () => hand(asked, data)));
      expect(answers.filter(({ status }) => status === 200)).to.have.length(1);
      expect((await shop.session(asked.session))['status']).to.equal('completed');
    });
  });

  describe('rejects', () => {
    // N151
    it('a presentation in the clear if encryption was requested', async () => {
      const asked = await ask('signed');
      await refused(asked, await hand(asked, { vp_token: { card: [bound(asked)] } }), /not encrypted/);
    });
    it('a response with further properties, an unrequested encrypted one, and an undecryptable one', async () => {
      const one = await ask('signed');
      const response = await encryptResponse(one, { vp_token: { card: [bound(one)] } });
      await refused(one, await hand(one, { response, error: 'access_denied' }), /response together with other parameters/);
      const plain = await ask('plain');
      await refused(plain, await hand(plain, { response }), /without being requested/);
      const other = await ask('signed');
      for (let i = 1; i < MAX_UNDECRYPTED_ATTEMPTS; i++) {
        expect((await hand(other, { response })).status).to.equal(400);
        expect((await shop.session(other.session))['status'], 'still open').to.equal('fetched');
      }
      await refused(other, await hand(other, { response }), /does not decrypt/);
      const number = await ask('signed');
      await refused(number, await hand(number, { response: 7 }), /not a string/);
    });
    // N152
    it('a presentation for the page of another verifier', async () => {
      const asked = await ask('signed');
      await refused(asked, await present(asked, bound(asked, 'https://evil.example')), /aud_mismatch/);
      const mdoc = await ask('mdoc');
      const text = show(transcript(mdoc, 'https://evil.example'));
      await refused(mdoc, await present(mdoc, text, 'licence'), /device_signature/);
    });
    // N152
    it('a presentation for another allowed origin than the calling one', async () => {
      const asked = await ask('signed', { origin: SHOP });
      await refused(asked, await present(asked, bound(asked, KIOSK)), /aud_mismatch/);
    });
    // N83
    it('a presentation for the client id, and one with several audiences', async () => {
      const asked = await ask('signed');
      const text = bindToRequest(asked, held, ['name'], { aud: asked.payload['client_id'] });
      await refused(asked, await present(asked, text), /aud_mismatch/);
      const several = await ask('signed');
      const many = bindToRequest(several, held, ['name'], { aud: [`origin:${SHOP}`] });
      await refused(several, await present(several, many), /aud_not_string/);
    });
    for (const aud of [SHOP, `web-origin:${SHOP}`, `origin:${SHOP}/`, `origin:${SHOP.toUpperCase()}`]) {
      it(`a presentation for ${aud}`, async () => {
        const asked = await ask('signed');
        await refused(asked, await present(asked, bindToRequest(asked, held, ['name'], { aud })), /aud_mismatch/);
      });
    }
    // N122
    it('an mdoc whose origin has a prefix or a slash', async () => {
      for (const origin of [`origin:${SHOP}`, `${SHOP}/`]) {
        const asked = await ask('mdoc');
        await refused(asked, await present(asked, show(transcript(asked, origin)), 'licence'), /device_sig/);
      }
    });
    // N120
    it('an mdoc whose transcript leaves the encryption out', async () => {
      const asked = await ask('mdoc');
      const bytes = dcApiTranscript({ origin: SHOP, nonce: asked.payload['nonce'], encryptionKey: undefined });
      await refused(asked, await present(asked, show(bytes), 'licence'), /device_signature/);
    });
    // N121
    it('an mdoc in the transcript of a redirect', async () => {
      const asked = await ask('mdoc');
      const bytes = redirectTranscript({
        clientId: asked.payload['client_id'],
        responseUri: asked.uri,
        nonce: asked.payload['nonce'],
        encryptionKey: keyOf(asked),
      });
      await refused(asked, await present(asked, show(bytes), 'licence'), /device_signature/);
    });
    it('another nonce', async () => {
      const asked = await ask('signed');
      const text = bindToRequest(asked, held, ['name'], { aud: `origin:${SHOP}`, nonce: 'another' });
      await refused(asked, await present(asked, text), /nonce_mismatch/);
    });
    it('a missing or non-JSON response, and leaves the session unchanged', async () => {
      const asked = await ask('signed');
      for (const options of [{ json: {} }, { json: { state: 'x' } }, { form: { error: 'access_denied' } }, { json: [] }]) {
        const { status } = await shop.service.call('POST', asked.uri, options as { json: object });
        expect(status).to.be.oneOf([400, 415]);
      }
      expect((await shop.session(asked.session))['status']).to.equal('fetched');
      expect((await present(asked, bound(asked))).status).to.equal(200);
    });
    it('a response after the expiry, and to an unknown request', async () => {
      const asked = await ask('signed');
      const text = bound(asked);
      const clock = sinon.useFakeTimers({ now: Date.now() + 301_000, toFake: ['Date'] });
      try {
        expect((await present(asked, text)).status).to.equal(410);
        expect((await shop.service.call('GET', asked.uri)).status).to.equal(410);
        expect((await shop.session(asked.session))['status']).to.equal('expired');
      } finally {
        clock.restore();
      }
      const nowhere = `${asked.uri.slice(0, asked.uri.lastIndexOf('/'))}/nothing`;
      expect((await shop.service.call('GET', nowhere)).status).to.equal(404);
      expect((await shop.service.call('POST', nowhere, { json: { error: 'x' } })).status).to.equal(404);
    });
  });

  it('separates requests of pages from requests of wallets', async () => {
    const asked = await ask('signed');
    const url = new URL(asked.uri);
    const id = url.pathname.split('/').at(-1) ?? '';
    const at = (path: string) => `${url.origin}/shop/${path}/${id}`;
    expect((await shop.service.call('GET', at('request'))).status).to.equal(404);
    const form = { error: 'access_denied', state: 'x' };
    expect((await shop.service.call('POST', at('response'), { form })).status).to.equal(404);
    expect((await shop.session(asked.session))['status']).to.equal('fetched');

    const wallets = await shop.requestPresentation();
    const other = wallets.url.replace('/request/', '/dc-api/');
    expect((await shop.service.call('GET', other)).status).to.equal(404);
    expect((await shop.service.call('POST', other, { json: { error: 'access_denied' } })).status).to.equal(404);
    expect((await shop.session(wallets.session))['status']).to.equal('fetched');
  });

  it('allows scripts of other origins, and answers their preflight', async () => {
    const asked = await ask('signed');
    const preflight = await fetch(asked.uri, { method: 'OPTIONS', headers: { Origin: SHOP, 'Access-Control-Request-Method': 'POST' } });
    expect(preflight.status).to.equal(204);
    expect(preflight.headers.get('access-control-allow-origin')).to.equal('*');
    expect(preflight.headers.get('access-control-allow-headers')).to.include('Content-Type');
    const refusal = await hand(asked, {});
    expect([refusal.status, refusal.headers.get('access-control-allow-origin')]).to.deep.equal([400, '*']);
  });

  describe('is configured', () => {
    const offer = (more: object) => shop.call('POST', '/verifier/offer', { response_type: 'dc-api', ...more });
    const write = (changes: object) => shop.call('POST', '/verifier/config', { id: 'bad', dcql_query: QUERY, ...changes });

    it('only with allowed origins', async () => {
      const foreign = await offer({ requestId: 'signed', origin: 'https://evil.example' });
      expect([foreign.status, foreign.body.errors[0].path]).to.deep.equal([400, 'origin']);
      const uri = { response_type: 'uri', requestId: 'signed', origin: SHOP };
      expect((await offer(uri)).status).to.equal(400);
    });
    it('for the pages of the tenant by default, and without the configured redirect', async () => {
      const own = new URL(shop.service.address).origin;
      for (const expectedOrigins of [undefined, null, []]) {
        await shop.configure({ id: 'published', ...(expectedOrigins !== undefined && { expectedOrigins }) });
        const made = await offer({ requestId: 'published', redirectUri: 'https://shop.example/done' });
        expect(made.status, made.text).to.equal(201);
        const { payload } = decode(made.body.dcApi.requests[0].data.request);
        expect(payload['expected_origins']).to.deep.equal([own]);
        const asked = { session: made.body.session, uri: made.body.uri, payload, data: {} };
        const answer = await present(asked, bound(asked, own));
        expect([answer.status, answer.body?.redirect_uri]).to.deep.equal([200, undefined]);
        expect((await shop.session(asked.session)).status).to.equal('completed');
      }
    });
    for (const origin of [
      ...['https://shop.example/', 'https://shop.example/path', 'http://shop.example', 'HTTPS://shop.example', 'https://*.shop.example'],
      ...['shop.example', 'ws://shop.example', 'javascript:alert(1)', 'data:,', '', 'https://u@shop.example'],
    ]) {
      it(`not with "${origin}" as an origin`, async () => {
        const answer = await write({ expectedOrigins: [origin] });
        expect(answer.status, answer.text).to.equal(400);
        expect(answer.body.errors[0].path).to.equal('expectedOrigins.0');
      });
    }
    it('with origins of apps and of localhost', async () => {
      const expectedOrigins = ['android:apk-key-hash:pNiP5iKyQ8JwgGOaKA1zGPUPJIS-0H1xKCQcfIoGLck', 'http://localhost:3000'];
      expect((await write({ expectedOrigins })).status).to.equal(201);
    });
  });
});

const FURTHER = ['bank', 'state'];

describe('presentation request through the Digital Credentials API with several signing keys', () => {
  let shop: Shop;
  let held: HeldCredential;

  before(async () => {
    shop = await Shop.open();
    for (const id of FURTHER) {
      const body = { id, usageType: 'access', organization: `Shop of the ${id}`, country: 'DE' };
      const made = await shop.call('POST', '/key-chain', body);
      expect(made.status, made.text).to.equal(201);
    }
    await shop.configure({
      id: 'several',
      expectedOrigins: [SHOP],
      dcApiRequest: 'multisigned',
      furtherAccessKeyChainIds: FURTHER,
      attached: [{ format: 'jwt', data: 'about-the-shop' }],
    });
    held = await shop.issue();
  });
  after(() => shop.close());

  const offered = async (requestId = 'several') => {
    const made = await shop.call('POST', '/verifier/offer', { response_type: 'dc-api', requestId });
    expect(made.status, made.text).to.equal(201);
    return made.body as { session: string; uri: string; dcApi: { requests: Members[] } };
  };
  /** The compact form of each signature. */
  const compact = ({ payload, signatures }: Members): string[] =>
    signatures.map((one: Members) => `${one['protected']}.${payload}.${one['signature']}`);

  it('has one payload, and the client in the header of each signature (OpenID4VP 1.0 appendix A.3.2)', async () => {
    const { dcApi, uri } = await offered();
    expect((await shop.service.call('GET', uri)).body).to.deep.equal(dcApi);
    const [{ protocol, data } = { protocol: '', data: {} }, ...others] = dcApi.requests as Members[];
    expect([protocol, others]).to.deep.equal(['openid4vp-v1-multisigned', []]);
    expect(data.request).to.have.all.keys('payload', 'signatures');
    const tokens = compact(data.request);
    expect(tokens).to.have.length(3);
    const clientIds = tokens.map((token) => {
      const leaf = verifyWithLeaf(token);
      const { header, payload } = decode(token);
      expect(payload).to.have.all.keys(
        ...['response_type', 'response_mode', 'nonce', 'dcql_query', 'client_metadata'],
        ...['expected_origins', 'aud', 'iat', 'exp'],
      );
      expect(header).to.have.all.keys('alg', 'typ', 'x5c', 'kid', 'client_id', 'verifier_info');
      expect(header['typ']).to.equal('oauth-authz-req+jwt');
      expect(header['verifier_info']).to.deep.equal([{ format: 'jwt', data: 'about-the-shop' }]);
      const hash = Buffer.from(leaf.fingerprint256.replaceAll(':', ''), 'hex').toString('base64url');
      expect(header['client_id']).to.equal(`x509_hash:${hash}`);
      return header['client_id'];
    });
    expect(new Set(clientIds)).to.have.length(3);
  });

  it('is answered like any other', async () => {
    const { dcApi, uri, session } = await offered();
    const [token = ''] = compact(dcApi.requests[0]?.['data'].request);
    const { payload } = decode(token);
    const vp_token = { card: [bindToRequest({ payload }, held, ['name'], { aud: `origin:${SHOP}` })] };
    const json = { response: await encryptResponse({ payload }, { vp_token }) };
    const answer = await shop.service.call('POST', uri, { json });
    expect(answer.status, answer.text).to.equal(200);
    const { status, credentials } = await shop.session(session);
    expect(status).to.equal('completed');
    expect(withoutIssuers(credentials)).to.deep.equal([{ id: 'card', values: { name: 'Ada' } }]);
  });

  it('protects its key chains from deletion', async () => {
    const answer = await shop.call('DELETE', '/key-chain/bank');
    expect(answer.status).to.equal(409);
    expect(answer.text).to.match(/presentation configuration several/);
  });

  it('is not served once one of its keys was removed', async () => {
    await shop.call('POST', '/key-chain', { id: 'passing', usageType: 'access' });
    const configured = { expectedOrigins: [SHOP], dcApiRequest: 'multisigned' };
    await shop.configure({ id: 'passing', ...configured, furtherAccessKeyChainIds: ['passing'] });
    const { uri } = await offered('passing');
    expect((await shop.service.call('GET', uri)).status).to.equal(200);
    const changed = { furtherAccessKeyChainIds: ['bank'] };
    expect((await shop.call('PATCH', '/verifier/config/passing', changed)).status).to.equal(200);
    const removed = await shop.call('DELETE', '/key-chain/passing');
    expect(removed.status, removed.text).to.be.oneOf([200, 204]);
    expect((await shop.service.call('GET', uri)).status).to.equal(410);
  });

  describe('cannot be configured', () => {
    const refusal = async (more: object) => {
      const body = { id: 'wrong', expectedOrigins: [SHOP], dcql_query: QUERY, ...more };
      const answer = await shop.call('POST', '/verifier/config', body);
      expect(answer.status, answer.text).to.equal(400);
      return answer.text;
    };
    const several = { dcApiRequest: 'multisigned' };
    for (const [what, more, reason] of [
      ['without further keys', several, /name the additional signing key chains/],
      ['with one of them twice', { ...several, furtherAccessKeyChainIds: ['bank', 'bank'] }, /each of them once/],
      ['with keys that would not sign', { furtherAccessKeyChainIds: ['bank'] }, /only with dcApiRequest multisigned/],
      ['with the key that signs anyway', { ...several, furtherAccessKeyChainIds: ['access'] }, /furtherAccessKeyChainIds.0.*already signs/],
      ['with a key chain that is not there', { ...several, furtherAccessKeyChainIds: ['nobody'] }, /furtherAccessKeyChainIds.0/],
      ['with one for another usage', { ...several, furtherAccessKeyChainIds: ['signing'] }, /furtherAccessKeyChainIds.0/],
    ] as const) {
      it(what, async () => expect(await refusal(more)).to.match(reason));
    }
  });

  it('is not created for a configuration that the client may not use', async () => {
    await shop.configure({ id: 'foreign', accessKeyChainId: 'state', expectedOrigins: [SHOP] });
    const wanted = { roles: ['presentation:manage'], allowedPresentationConfigs: ['mine'] };
    const token = await addClient({ service: shop.service, token: shop.token }, 'limited', wanted);
    const body = { id: 'mine', dcql_query: QUERY, dcApiRequest: 'multisigned' };
    const named = (id: string) => ({ ...body, furtherAccessKeyChainIds: [id] });
    const foreign = await shop.call('POST', '/verifier/config', named('state'), token);
    expect(foreign.status, foreign.text).to.equal(403);
    await shop.call('POST', '/key-chain', { id: 'own', usageType: 'access' });
    const own = await shop.call('POST', '/verifier/config', named('own'), token);
    expect(own.status, own.text).to.equal(201);
  });
});
