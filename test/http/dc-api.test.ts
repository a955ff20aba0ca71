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
type JsonObject = Record<string, any>;
type OfPage = { readonly session: string; readonly uri: string; readonly payload: JsonObject; readonly data: JsonObject };

describe('presentation request through the Digital Credentials API', () => {
  let shop: Shop;
  let heldCredential: HeldCredential;
  let licence: HeldCredential;

  before(async () => {
    shop = await Shop.open();
    const config = {
      format: 'mso_mdoc',
      docType: DOC_TYPE,
      display: [{ name: 'Licence', locale: 'en' }],
      claimsByNamespace: { [NAMESPACE]: { family_name: 'Nygård' } },
    };
    const creation = await shop.call('POST', '/issuer/credentials', { id: 'mdl', config }, shop.acme.token);
    expect(creation.status, creation.text).to.equal(201);
    const expectedOrigins = [SHOP, KIOSK];
    await shop.configure({ id: 'signed', expectedOrigins });
    await shop.configure({ id: 'unsigned', expectedOrigins, dcApiRequest: 'unsigned' });
    await shop.configure({ id: 'plain', expectedOrigins, responseMode: 'direct_post' });
    await shop.configure({ id: 'mdoc', expectedOrigins, dcql_query: MDOC_QUERY });
    const webhook = { url: `${shop.backend.url}/hook` };
    await shop.configure({ id: 'told', expectedOrigins, webhook, redirectUri: 'https://shop.example/done' });
    heldCredential = await shop.issue();
    licence = await shop.issue('mdl');
  });
  after(() => shop.close());

  async function createRequest(requestId: string, overrides: object = {}): Promise<OfPage> {
    const creation = await shop.call('POST', '/verifier/offer', { response_type: 'dc-api', requestId, ...overrides });
    expect(creation.status, creation.text).to.equal(201);
    const fetchedRequest = await shop.service.call('GET', creation.body.uri);
    expect(fetchedRequest.status, fetchedRequest.text).to.equal(200);
    expect(fetchedRequest.body).to.deep.equal(creation.body.dcApi);
    expect(fetchedRequest.headers.get('access-control-allow-origin')).to.equal('*');
    const [{ data }] = fetchedRequest.body.requests;
    const payload = data.request === undefined ? data : decode(data.request).payload;
    return { session: creation.body.session, uri: creation.body.uri, payload, data };
  }
  const sendJson = (request: OfPage, json: object): Promise<Answer> => shop.service.call('POST', request.uri, { json });
  const bindTo = (request: OfPage, origin = SHOP) => bindToRequest(request, heldCredential, ['name'], { aud: `origin:${origin}` });
  const sendEncrypted = async (request: OfPage, plaintext: object) =>
    sendJson(request, { response: await encryptResponse(request, plaintext) });
  const present = async (request: OfPage, text: string, id = 'card') => sendEncrypted(request, { vp_token: { [id]: [text] } });
  const encryptionKeyOf = (request: OfPage) => request.payload['client_metadata'].jwks?.keys[0] as unknown as PublicJwk | undefined;
  const transcript = (request: OfPage, origin = SHOP, encryptionKey = encryptionKeyOf(request)) =>
    dcApiTranscript({ origin, nonce: request.payload['nonce'], encryptionKey });
  const presentMdoc = (bytes: Buffer) => deviceResponse({ ...licence, docType: DOC_TYPE }, bytes);
  async function expectRejected(request: OfPage, answer: Answer, reason: RegExp) {
    expect(answer.status, answer.text).to.equal(400);
    const { status, credentials, failure } = await shop.session(request.session);
    expect([status, credentials]).to.deep.equal(['failed', undefined]);
    expect(`${failure.code} ${failure.message}`).to.match(reason);
  }

  describe('that is signed', () => {
    it('uses the access key, names the allowed origins and no address', async () => {
      const { data, payload, session } = await createRequest('signed');
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
      const { payload } = await createRequest('signed', { origin: KIOSK });
      expect(payload['expected_origins']).to.deep.equal([KIOSK]);
    });
  });

  it('names neither client nor origins if it is unsigned', async () => {
    const { data } = await createRequest('unsigned');
    expect(data).to.have.all.keys(...['response_type', 'response_mode', 'nonce', 'dcql_query', 'client_metadata']);
  });

  describe('is answered', () => {
    for (const id of ['signed', 'unsigned']) {
      for (const origin of [SHOP, KIOSK]) {
        it(`with an SD-JWT VC on ${origin}, ${id}`, async () => {
          const request = await createRequest(id);
          const answer = await present(request, bindTo(request, origin));
          expect([answer.status, answer.body]).to.deep.equal([200, {}]);
          const { status, credentials } = await shop.session(request.session);
          expect(status).to.equal('completed');
          expect(withoutIssuers(credentials)).to.deep.equal([{ id: 'card', values: { name: 'Ada' } }]);
        });
      }
    }
    it('by a page that sends an error of null', async () => {
      const plainRequest = await createRequest('plain');
      const vp_token = { card: [bindTo(plainRequest)] };
      expect((await sendJson(plainRequest, { vp_token, error: null })).status).to.equal(200);
      const request = await createRequest('signed');
      const response = await encryptResponse(request, { vp_token: { card: [bindTo(request)] } });
      expect((await sendJson(request, { response, error: null })).status).to.equal(200);
      const openRequest = await createRequest('plain');
      expect((await sendJson(openRequest, { error: null })).body.error).to.equal('invalid_request');
      expect((await shop.session(openRequest.session)).status, 'the session stays open').to.equal('fetched');
      await expectRejected(openRequest, await sendJson(openRequest, { vp_token: null, error: null }), /malformed/);
      for (const error of ['', 0, false, 'access_denied']) {
        const both = await createRequest('plain');
        await expectRejected(both, await sendJson(both, { vp_token: { card: [bindTo(both)] }, error }), /response_mode/);
      }
    });
    it('with an mdoc, on either page', async () => {
      for (const origin of [SHOP, KIOSK]) {
        const request = await createRequest('mdoc');
        const answer = await present(request, presentMdoc(transcript(request, origin)), 'licence');
        expect(answer.status, answer.text).to.equal(200);
        expect(withoutIssuers((await shop.session(request.session))['credentials'])).to.deep.equal([
          { id: 'licence', values: { [NAMESPACE]: { family_name: 'Nygård' } } },
        ]);
      }
    });
    it('in the clear if that was requested', async () => {
      const request = await createRequest('plain');
      expect(request.payload['response_mode']).to.equal('dc_api');
      const answer = await sendJson(request, { vp_token: { card: [bindTo(request)] } });
      expect(answer.status, answer.text).to.equal(200);
      expect((await shop.session(request.session))['status']).to.equal('completed');
    });
    it('and reported to the backend, without a redirect for the page', async () => {
      const request = await createRequest('told');
      expect((await present(request, bindTo(request))).body).to.deep.equal({});
      const call = shop.backend.calls.at(-1);
      const { session, credentials } = (call?.body ?? {}) as JsonObject;
      expect(session).to.equal(request.session);
      expect(withoutIssuers(credentials)).to.deep.equal([{ id: 'card', values: { name: 'Ada' } }]);
    });
    // N153
    it('with an error, which fails the session, encrypted or not', async () => {
      for (const send of [sendJson, sendEncrypted]) {
        const request = await createRequest('signed');
        expect((await send(request, { error: 'access_denied' })).status).to.equal(200);
        const { status, failure } = await shop.session(request.session);
        expect([status, failure.code]).to.deep.equal(['failed', 'access_denied']);
      }
    });
    it('once, also by concurrent responses', async () => {
      const request = await createRequest('signed');
      const data = { response: await encryptResponse(request, { vp_token: { card: [bindTo(request)] } }) };
      const responses = await Promise.all(Array.from({ length: 50 }, () => sendJson(request, data)));
      expect(responses.filter(({ status }) => status === 200)).to.have.length(1);
      expect((await shop.session(request.session))['status']).to.equal('completed');
    });
  });

  describe('rejects', () => {
    // N151
    it('a presentation in the clear if encryption was requested', async () => {
      const request = await createRequest('signed');
      await expectRejected(request, await sendJson(request, { vp_token: { card: [bindTo(request)] } }), /not encrypted/);
    });
    it('a response with further properties, an unrequested encrypted one, and an undecryptable one', async () => {
      const one = await createRequest('signed');
      const response = await encryptResponse(one, { vp_token: { card: [bindTo(one)] } });
      await expectRejected(one, await sendJson(one, { response, error: 'access_denied' }), /response together with other parameters/);
      const plainRequest = await createRequest('plain');
      await expectRejected(plainRequest, await sendJson(plainRequest, { response }), /without being requested/);
      const otherRequest = await createRequest('signed');
      for (let i = 1; i < MAX_UNDECRYPTED_ATTEMPTS; i++) {
        expect((await sendJson(otherRequest, { response })).status).to.equal(400);
        expect((await shop.session(otherRequest.session))['status'], 'the session stays open').to.equal('fetched');
      }
      await expectRejected(otherRequest, await sendJson(otherRequest, { response }), /does not decrypt/);
      const number = await createRequest('signed');
      await expectRejected(number, await sendJson(number, { response: 7 }), /not a string/);
    });
    // N152
    it('a presentation for the page of another verifier', async () => {
      const request = await createRequest('signed');
      await expectRejected(request, await present(request, bindTo(request, 'https://evil.example')), /aud_mismatch/);
      const mdoc = await createRequest('mdoc');
      const text = presentMdoc(transcript(mdoc, 'https://evil.example'));
      await expectRejected(mdoc, await present(mdoc, text, 'licence'), /device_signature/);
    });
    // N152
    it('a presentation for another allowed origin than the calling one', async () => {
      const request = await createRequest('signed', { origin: SHOP });
      await expectRejected(request, await present(request, bindTo(request, KIOSK)), /aud_mismatch/);
    });
    // N83
    it('a presentation for the client id, and one with several audiences', async () => {
      const request = await createRequest('signed');
      const text = bindToRequest(request, heldCredential, ['name'], { aud: request.payload['client_id'] });
      await expectRejected(request, await present(request, text), /aud_mismatch/);
      const severalAudiences = await createRequest('signed');
      const presentation = bindToRequest(severalAudiences, heldCredential, ['name'], { aud: [`origin:${SHOP}`] });
      await expectRejected(severalAudiences, await present(severalAudiences, presentation), /aud_not_string/);
    });
    for (const aud of [SHOP, `web-origin:${SHOP}`, `origin:${SHOP}/`, `origin:${SHOP.toUpperCase()}`]) {
      it(`a presentation for ${aud}`, async () => {
        const request = await createRequest('signed');
        await expectRejected(request, await present(request, bindToRequest(request, heldCredential, ['name'], { aud })), /aud_mismatch/);
      });
    }
    // N122
    it('an mdoc whose origin has a prefix or a slash', async () => {
      for (const origin of [`origin:${SHOP}`, `${SHOP}/`]) {
        const request = await createRequest('mdoc');
        await expectRejected(request, await present(request, presentMdoc(transcript(request, origin)), 'licence'), /device_sig/);
      }
    });
    // N120
    it('an mdoc whose transcript omits the encryption key', async () => {
      const request = await createRequest('mdoc');
      const bytes = dcApiTranscript({ origin: SHOP, nonce: request.payload['nonce'], encryptionKey: undefined });
      await expectRejected(request, await present(request, presentMdoc(bytes), 'licence'), /device_signature/);
    });
    // N121
    it('an mdoc in the transcript of a redirect', async () => {
      const request = await createRequest('mdoc');
      const bytes = redirectTranscript({
        clientId: request.payload['client_id'],
        responseUri: request.uri,
        nonce: request.payload['nonce'],
        encryptionKey: encryptionKeyOf(request),
      });
      await expectRejected(request, await present(request, presentMdoc(bytes), 'licence'), /device_signature/);
    });
    it('another nonce', async () => {
      const request = await createRequest('signed');
      const text = bindToRequest(request, heldCredential, ['name'], { aud: `origin:${SHOP}`, nonce: 'another' });
      await expectRejected(request, await present(request, text), /nonce_mismatch/);
    });
    it('a missing or non-JSON response, and leaves the session unchanged', async () => {
      const request = await createRequest('signed');
      for (const options of [{ json: {} }, { json: { state: 'x' } }, { form: { error: 'access_denied' } }, { json: [] }]) {
        const { status } = await shop.service.call('POST', request.uri, options as { json: object });
        expect(status).to.be.oneOf([400, 415]);
      }
      expect((await shop.session(request.session))['status']).to.equal('fetched');
      expect((await present(request, bindTo(request))).status).to.equal(200);
    });
    it('a response after the expiry, and to an unknown request', async () => {
      const request = await createRequest('signed');
      const text = bindTo(request);
      const clock = sinon.useFakeTimers({ now: Date.now() + 301_000, toFake: ['Date'] });
      try {
        expect((await present(request, text)).status).to.equal(410);
        expect((await shop.service.call('GET', request.uri)).status).to.equal(410);
        expect((await shop.session(request.session))['status']).to.equal('expired');
      } finally {
        clock.restore();
      }
      const unknownUri = `${request.uri.slice(0, request.uri.lastIndexOf('/'))}/nothing`;
      expect((await shop.service.call('GET', unknownUri)).status).to.equal(404);
      expect((await shop.service.call('POST', unknownUri, { json: { error: 'x' } })).status).to.equal(404);
    });
  });

  it('separates requests of pages from requests of wallets', async () => {
    const request = await createRequest('signed');
    const url = new URL(request.uri);
    const id = url.pathname.split('/').at(-1) ?? '';
    const uriOf = (path: string) => `${url.origin}/shop/${path}/${id}`;
    expect((await shop.service.call('GET', uriOf('request'))).status).to.equal(404);
    const form = { error: 'access_denied', state: 'x' };
    expect((await shop.service.call('POST', uriOf('response'), { form })).status).to.equal(404);
    expect((await shop.session(request.session))['status']).to.equal('fetched');

    const wallets = await shop.requestPresentation();
    const otherUri = wallets.url.replace('/request/', '/dc-api/');
    expect((await shop.service.call('GET', otherUri)).status).to.equal(404);
    expect((await shop.service.call('POST', otherUri, { json: { error: 'access_denied' } })).status).to.equal(404);
    expect((await shop.session(wallets.session))['status']).to.equal('fetched');
  });

  it('allows scripts of other origins, and answers their preflight', async () => {
    const request = await createRequest('signed');
    const preflight = await fetch(request.uri, { method: 'OPTIONS', headers: { Origin: SHOP, 'Access-Control-Request-Method': 'POST' } });
    expect(preflight.status).to.equal(204);
    expect(preflight.headers.get('access-control-allow-origin')).to.equal('*');
    expect(preflight.headers.get('access-control-allow-headers')).to.include('Content-Type');
    const rejection = await sendJson(request, {});
    expect([rejection.status, rejection.headers.get('access-control-allow-origin')]).to.deep.equal([400, '*']);
  });

  describe('is configured', () => {
    const offer = (overrides: object) => shop.call('POST', '/verifier/offer', { response_type: 'dc-api', ...overrides });
    const write = (changes: object) => shop.call('POST', '/verifier/config', { id: 'bad', dcql_query: QUERY, ...changes });

    it('only with allowed origins', async () => {
      const rejection = await offer({ requestId: 'signed', origin: 'https://evil.example' });
      expect([rejection.status, rejection.body.errors[0].path]).to.deep.equal([400, 'origin']);
      const uri = { response_type: 'uri', requestId: 'signed', origin: SHOP };
      expect((await offer(uri)).status).to.equal(400);
    });
    it('for the pages of the tenant by default, and without the configured redirect', async () => {
      const ownOrigin = new URL(shop.service.address).origin;
      for (const expectedOrigins of [undefined, null, []]) {
        await shop.configure({ id: 'published', ...(expectedOrigins !== undefined && { expectedOrigins }) });
        const creation = await offer({ requestId: 'published', redirectUri: 'https://shop.example/done' });
        expect(creation.status, creation.text).to.equal(201);
        const { payload } = decode(creation.body.dcApi.requests[0].data.request);
        expect(payload['expected_origins']).to.deep.equal([ownOrigin]);
        const request = { session: creation.body.session, uri: creation.body.uri, payload, data: {} };
        const answer = await present(request, bindTo(request, ownOrigin));
        expect([answer.status, answer.body?.redirect_uri]).to.deep.equal([200, undefined]);
        expect((await shop.session(request.session)).status).to.equal('completed');
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

const FURTHER_KEYS = ['bank', 'state'];

describe('presentation request through the Digital Credentials API with several signing keys', () => {
  let shop: Shop;
  let heldCredential: HeldCredential;

  before(async () => {
    shop = await Shop.open();
    for (const id of FURTHER_KEYS) {
      const body = { id, usageType: 'access', organization: `Shop of the ${id}`, country: 'DE' };
      const creation = await shop.call('POST', '/key-chain', body);
      expect(creation.status, creation.text).to.equal(201);
    }
    await shop.configure({
      id: 'several',
      expectedOrigins: [SHOP],
      dcApiRequest: 'multisigned',
      furtherAccessKeyChainIds: FURTHER_KEYS,
      attached: [{ format: 'jwt', data: 'about-the-shop' }],
    });
    heldCredential = await shop.issue();
  });
  after(() => shop.close());

  const createRequest = async (requestId = 'several') => {
    const creation = await shop.call('POST', '/verifier/offer', { response_type: 'dc-api', requestId });
    expect(creation.status, creation.text).to.equal(201);
    return creation.body as { session: string; uri: string; dcApi: { requests: JsonObject[] } };
  };
  /** The compact serialization of each signature. */
  const compact = ({ payload, signatures }: JsonObject): string[] =>
    signatures.map((one: JsonObject) => `${one['protected']}.${payload}.${one['signature']}`);

  it('has one payload, and the client in the header of each signature (OpenID4VP 1.0 appendix A.3.2)', async () => {
    const { dcApi, uri } = await createRequest();
    expect((await shop.service.call('GET', uri)).body).to.deep.equal(dcApi);
    const [{ protocol, data } = { protocol: '', data: {} }, ...otherRequests] = dcApi.requests as JsonObject[];
    expect([protocol, otherRequests]).to.deep.equal(['openid4vp-v1-multisigned', []]);
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
    const { dcApi, uri, session } = await createRequest();
    const [token = ''] = compact(dcApi.requests[0]?.['data'].request);
    const { payload } = decode(token);
    const vp_token = { card: [bindToRequest({ payload }, heldCredential, ['name'], { aud: `origin:${SHOP}` })] };
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
    const configuration = { expectedOrigins: [SHOP], dcApiRequest: 'multisigned' };
    await shop.configure({ id: 'passing', ...configuration, furtherAccessKeyChainIds: ['passing'] });
    const { uri } = await createRequest('passing');
    expect((await shop.service.call('GET', uri)).status).to.equal(200);
    const change = { furtherAccessKeyChainIds: ['bank'] };
    expect((await shop.call('PATCH', '/verifier/config/passing', change)).status).to.equal(200);
    const deletion = await shop.call('DELETE', '/key-chain/passing');
    expect(deletion.status, deletion.text).to.be.oneOf([200, 204]);
    expect((await shop.service.call('GET', uri)).status).to.equal(410);
  });

  describe('cannot be configured', () => {
    const rejectionReason = async (overrides: object) => {
      const body = { id: 'wrong', expectedOrigins: [SHOP], dcql_query: QUERY, ...overrides };
      const answer = await shop.call('POST', '/verifier/config', body);
      expect(answer.status, answer.text).to.equal(400);
      return answer.text;
    };
    const multisigned = { dcApiRequest: 'multisigned' };
    for (const [description, settings, reason] of [
      ['without further keys', multisigned, /name the additional signing key chains/],
      ['with a repeated key', { ...multisigned, furtherAccessKeyChainIds: ['bank', 'bank'] }, /each of them once/],
      ['with keys of a request without several signatures', { furtherAccessKeyChainIds: ['bank'] }, /only with dcApiRequest multisigned/],
      [
        'with the access key, which always signs',
        { ...multisigned, furtherAccessKeyChainIds: ['access'] },
        /furtherAccessKeyChainIds.0.*already signs/,
      ],
      ['with an unknown key chain', { ...multisigned, furtherAccessKeyChainIds: ['unknown'] }, /furtherAccessKeyChainIds.0/],
      ['with a key chain for another usage', { ...multisigned, furtherAccessKeyChainIds: ['signing'] }, /furtherAccessKeyChainIds.0/],
    ] as const) {
      it(description, async () => expect(await rejectionReason(settings)).to.match(reason));
    }
  });

  it('is not created for a configuration that the client may not use', async () => {
    await shop.configure({ id: 'foreign', accessKeyChainId: 'state', expectedOrigins: [SHOP] });
    const restrictedRoles = { roles: ['presentation:manage'], allowedPresentationConfigs: ['mine'] };
    const token = await addClient({ service: shop.service, token: shop.token }, 'limited', restrictedRoles);
    const body = { id: 'mine', dcql_query: QUERY, dcApiRequest: 'multisigned' };
    const withFurtherKey = (id: string) => ({ ...body, furtherAccessKeyChainIds: [id] });
    const rejection = await shop.call('POST', '/verifier/config', withFurtherKey('state'), token);
    expect(rejection.status, rejection.text).to.equal(403);
    await shop.call('POST', '/key-chain', { id: 'own', usageType: 'access' });
    const creation = await shop.call('POST', '/verifier/config', withFurtherKey('own'), token);
    expect(creation.status, creation.text).to.equal(201);
  });
});
