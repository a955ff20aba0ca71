import { X509Certificate } from 'node:crypto';
import { expect } from 'chai';
import { compactDecrypt, exportJWK, generateKeyPair } from 'jose';
import {
  bindToRequest,
  decode,
  encryptResponse,
  type HeldCredential,
  QUERY,
  responseForm,
  Shop,
  verifyWithLeaf,
} from '../support/present.ts';
import { certify, pem } from '../support/test-certificates.ts';
import { createTenant } from '../support/test-service.ts';

// biome-ignore lint/suspicious/noExplicitAny: members of requests
type JsonObject = Record<string, any>;

describe('presentation request', () => {
  let shop: Shop;
  let heldCredential: HeldCredential;

  before(async () => {
    shop = await Shop.open();
    heldCredential = await shop.issue();
  });
  after(() => shop.close());

  const offer = async (requestId: string, overrides: object = {}) => {
    const creation = await shop.call('POST', '/verifier/offer', { response_type: 'uri', requestId, ...overrides });
    expect(creation.status, creation.text).to.equal(201);
    return creation.body as { uri: string; session: string; crossDeviceUri?: string };
  };
  const expectRejected = async (changes: object, path: string) => {
    const json = { id: 'bad', dcql_query: QUERY, ...changes };
    const answer = await shop.call('POST', '/verifier/config', json);
    expect(answer.status, answer.text).to.equal(400);
    expect(answer.body.errors[0].path).to.equal(path);
  };

  it('contains the name and logo of the verifier only if its configuration has them', async () => {
    const display = { clientName: 'Acme', logoUri: 'https://acme.example/logo.png' };
    await shop.configure({ id: 'named', ...display });
    const { client_metadata: metadata } = (await shop.requestPresentation('named')).payload;
    expect(metadata).to.include({ client_name: 'Acme', logo_uri: display.logoUri });
    expect((await shop.call('GET', '/verifier/config/named')).body).to.include(display);
    await shop.configure({ id: 'named', ...display, clientName: null, logoUri: null });
    const metadataWithout = (await shop.requestPresentation('named')).payload['client_metadata'];
    expect(metadataWithout).not.to.have.any.keys('client_name', 'logo_uri');
    await expectRejected({ clientName: 'two\nlines' }, 'clientName');
    await expectRejected({ logoUri: 'javascript:alert(1)' }, 'logoUri');
  });

  describe('with x509_san_dns', () => {
    it('contains the host of the access certificate and of the response address', async () => {
      await shop.configure({ id: 'dns', clientIdPrefix: 'x509_san_dns' });
      const request = await shop.requestPresentation('dns');
      const host = new URL(shop.service.address).hostname;
      expect(request.payload['client_id']).to.equal(`x509_san_dns:${host}`);
      const leaf = verifyWithLeaf(request.text);
      expect(leaf.subjectAltName).to.include(`DNS:${host}`);
      expect(new URL(request.payload['response_uri']).hostname).to.equal(host);
      expect(new URL(request.uri).searchParams.get('client_id')).to.equal(request.payload['client_id']);
      expect((await shop.present(request, heldCredential)).status).to.equal(200);
    });
    it('is rejected on creation if the access certificate has another host or none', async () => {
      const { token } = await createTenant(shop.service, 'elsewhere');
      const call = (method: string, path: string, json?: object) => shop.service.call(method, path, { token, ...(json && { json }) });
      const ca = await certify({ name: 'CA', ca: true });
      expect((await call('DELETE', '/key-chain/access')).status).to.equal(200);
      const json = { id: 'dns', dcql_query: QUERY, clientIdPrefix: 'x509_san_dns' };
      for (const [id, dns] of [
        ['other', ['other.example']],
        ['none', []],
      ] as const) {
        const leaf = await certify({ name: id, by: ca, dns });
        const key = leaf.privateKey.export({ type: 'pkcs8', format: 'pem' });
        const body = { id, usageType: 'access', key, certificates: pem(leaf) };
        const creation = await call('POST', '/key-chain/import', body);
        expect(creation.status, creation.text).to.equal(201);
        expect((await call('POST', '/verifier/config', json)).status).to.equal(201);
        const requestResponse = await call('POST', '/verifier/offer', { response_type: 'uri', requestId: 'dns' });
        expect([requestResponse.status, requestResponse.body.errors?.[0].path], requestResponse.text).to.deep.equal([
          400,
          'clientIdPrefix',
        ]);
        await call('DELETE', '/verifier/config/dns');
        await call('DELETE', `/key-chain/${id}`);
      }
    });
    it('is served until its key is deleted, like other requests', async () => {
      const creation = await shop.call('POST', '/key-chain', { id: 'brief', usageType: 'access', usage: 'sign' });
      expect(creation.status, creation.text).to.equal(201);
      await shop.configure({ id: 'brief', clientIdPrefix: 'x509_san_dns', accessKeyChainId: 'brief' });
      const request = await shop.requestPresentation('brief');
      expect((await shop.service.call('GET', request.url)).status).to.equal(200);
      await shop.configure({ id: 'brief', accessKeyChainId: null });
      expect((await shop.call('DELETE', '/key-chain/brief')).status).to.equal(200);
      expect((await shop.service.call('GET', request.url)).status).to.equal(410);
    });
  });

  describe('with redirect_uri', () => {
    before(() => shop.configure({ id: 'unsigned', clientIdPrefix: 'redirect_uri' }));

    it('is contained in the link, unsigned, with the response address as its client id', async () => {
      const { uri, session, crossDeviceUri } = await offer('unsigned');
      expect(crossDeviceUri).to.equal(uri);
      const { searchParams } = new URL(uri);
      const parameters = Object.fromEntries(searchParams) as Record<string, string>;
      expect(parameters).to.have.all.keys(
        ...['response_type', 'response_mode', 'client_id', 'response_uri', 'nonce', 'state'],
        ...['dcql_query', 'client_metadata'],
      );
      expect(parameters['client_id']).to.equal(`redirect_uri:${parameters['response_uri']}`);
      const payload: JsonObject = {
        ...parameters,
        dcql_query: JSON.parse(parameters['dcql_query'] ?? ''),
        client_metadata: JSON.parse(parameters['client_metadata'] ?? ''),
      };
      expect(payload['dcql_query']).to.deep.equal(QUERY);
      const vp_token = { card: [bindToRequest({ payload }, heldCredential)] };
      const response = await encryptResponse({ payload }, { vp_token, state: parameters['state'] });
      const answer = await shop.service.call('POST', parameters['response_uri'] ?? '', { form: { response } });
      expect(answer.status, answer.text).to.equal(200);
      expect((await shop.session(session))['status']).to.equal('completed');
    });
    it('has no request object to fetch', async () => {
      const { session } = await offer('unsigned');
      const { requestUrl, requestObject } = await shop.session(session);
      expect(requestObject).to.equal(undefined);
      expect((await shop.service.call('GET', requestUrl)).status).to.equal(404);
      expect((await shop.session(session))['status']).to.equal('active');
    });
    it('cannot be combined with fetching by POST', () =>
      expectRejected({ clientIdPrefix: 'redirect_uri', requestUriMethod: 'post' }, 'requestUriMethod'));
  });

  describe('with an invocation URI', () => {
    it('starts wallets of a scheme, or one wallet by its address', async () => {
      await shop.configure({ id: 'haip', invocationUri: 'haip-vp://' });
      expect((await offer('haip')).uri).to.match(/^haip-vp:\/\/\?client_id=x509_hash%3A/);
      await shop.configure({ id: 'link', invocationUri: 'https://wallet.example/start?v=1' });
      expect((await offer('link')).uri).to.match(/^https:\/\/wallet\.example\/start\?v=1&client_id=/);
    });
    for (const invocationUri of [...['http://wallet.example', 'javascript://x', 'openid4vp:', 'file:///etc', 'https://w.example/#x', '']]) {
      it(`is rejected for "${invocationUri}"`, () => expectRejected({ invocationUri }, 'invocationUri'));
    }
    it('starts a wallet by a private scheme, with a warning when the service does not know it', async () => {
      const hasWarning = async (invocationUri: string) => {
        const body = { id: 'scheme', dcql_query: QUERY, invocationUri };
        const { warnings } = (await shop.call('POST', '/verifier/config', body)).body;
        return warnings.some(({ member }: { member: string }) => member === 'invocationUri');
      };
      expect(await hasWarning('mine://')).to.equal(true);
      expect((await offer('scheme')).uri).to.match(/^mine:\/\/\?client_id=/);
      for (const knownUri of ['swiyu-verify://', 'av://', 'com.example.wallet://', 'https://wallet.example/'])
        expect(await hasWarning(knownUri), knownUri).to.equal(false);
      const createLink = (invocationUri: string) =>
        shop.call(
          'POST',
          '/issuer/offer',
          { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['card'], invocationUri },
          shop.acme.token,
        );
      const unknownScheme = await createLink('mine://');
      expect(unknownScheme.body.uri).to.match(/^mine:\/\/\?credential_offer_uri=/);
      expect(unknownScheme.body.warnings[0]).to.include({ member: 'invocationUri' });
      expect((await createLink('swiyu://')).body).to.not.have.property('warnings');
      expect((await createLink('ms-word://')).status).to.equal(400);
    });
    it('returns a warning if the link is too long for a QR code, also on the page', async () => {
      const claims = Array.from({ length: 40 }, (_, index) => ({ path: [`some_element_${index}`] }));
      const [credential] = QUERY.credentials;
      const query = { credentials: [{ ...credential, claims }] };
      const creation = await shop.call('POST', '/verifier/config', { id: 'long', dcql_query: query, clientIdPrefix: 'redirect_uri' });
      expect(JSON.stringify(creation.body.warnings)).to.match(/QR code/);
      const { uri, pageUrl } = (await shop.call('POST', '/verifier/offer', { response_type: 'uri', requestId: 'long' })).body;
      expect(uri.length).to.be.greaterThan(1_200);
      const { text } = await shop.service.call('GET', pageUrl, { headers: { 'Accept-Language': 'en' } });
      expect(text).to.include('The link is too long for a QR code').and.not.include('<svg');
      const creationWithoutPrefix = await shop.call('POST', '/verifier/config', { id: 'long', dcql_query: query });
      expect(JSON.stringify(creationWithoutPrefix.body.warnings)).to.not.match(/QR code/);
    });
    it('tells wallets to fetch it by POST', async () => {
      expect((await offer('check')).uri).to.not.include('request_uri_method');
      await shop.configure({ id: 'posting', requestUriMethod: 'post' });
      const { uri } = await offer('posting');
      expect(new URL(uri).searchParams.get('request_uri_method')).to.equal('post');
      const url = new URL(uri).searchParams.get('request_uri') ?? '';
      const { payload } = decode((await shop.service.call('GET', url)).text);
      expect(payload).to.not.have.property('request_uri_method');
    });
  });

  describe('that is fetched by POST', () => {
    const fetchWith = async (wallet_metadata: object, overrides: object = {}) => {
      const request = await shop.requestPresentation();
      const form = { wallet_metadata: JSON.stringify(wallet_metadata), ...overrides };
      return { asked: request, answer: await shop.service.call('POST', request.url, { form }) };
    };

    it('is addressed to the wallet by its name and repeats its nonce', async () => {
      const { asked, answer } = await fetchWith(
        {
          issuer: 'https://wallet.example',
          vp_formats_supported: { 'dc+sd-jwt': {} },
          client_id_prefixes_supported: ['x509_hash'],
          request_object_signing_alg_values_supported: ['ES256'],
          authorization_encryption_alg_values_supported: ['ECDH-ES'],
          authorization_encryption_enc_values_supported: ['A256GCM'],
        },
        { wallet_nonce: 'n-1' },
      );
      expect(answer.status, answer.text).to.equal(200);
      verifyWithLeaf(answer.text);
      const { payload } = decode(answer.text);
      expect(payload).to.deep.equal({ ...asked.payload, aud: 'https://wallet.example', wallet_nonce: 'n-1' });
    });

    it('is encrypted to the key of the wallet', async () => {
      const { publicKey, privateKey } = await generateKeyPair('ECDH-ES', { crv: 'P-256', extractable: true });
      const jwk = { ...(await exportJWK(publicKey)), kid: 'w', use: 'enc', alg: 'ECDH-ES' };
      const { asked, answer } = await fetchWith({
        jwks: { keys: [{ kty: 'RSA', n: 'AQAB', e: 'AQAB' }, jwk] },
        request_object_encryption_enc_values_supported: ['A256GCM'],
      });
      expect(answer.status, answer.text).to.equal(200);
      expect(answer.headers.get('content-type')).to.equal('application/oauth-authz-req+jwt');
      const { plaintext, protectedHeader } = await compactDecrypt(answer.text, privateKey);
      expect(protectedHeader).to.deep.include({ alg: 'ECDH-ES', enc: 'A256GCM', kid: 'w', cty: 'JWT' });
      expect(new TextDecoder().decode(plaintext)).to.equal(asked.text);
    });

    it('is not encrypted for a wallet whose keys have another purpose', async () => {
      const keys = [
        { kty: 'RSA', n: 'AQAB', e: 'AQAB' },
        { kty: 'EC', crv: 'P-384', x: 'AA', y: 'AA' },
      ];
      const { asked, answer } = await fetchWith({ jwks: { keys } });
      expect([answer.status, answer.text]).to.deep.equal([200, asked.text]);
    });

    it('is not encrypted to a signature key', async () => {
      const { publicKey } = await generateKeyPair('ES256', { extractable: true });
      const keys = [{ ...(await exportJWK(publicKey)), use: 'sig' }];
      const { asked, answer } = await fetchWith({ jwks: { keys } });
      expect([answer.status, answer.text]).to.deep.equal([200, asked.text]);
    });

    it('is returned to a wallet that supports more than is requested', async () => {
      const { answer } = await fetchWith({
        vp_formats_supported: { 'dc+sd-jwt': { 'sd-jwt_alg_values': ['RS256', 'EdDSA'], 'kb-jwt_alg_values': ['ES256'] }, mso_mdoc: {} },
        response_modes_supported: ['direct_post.jwt', 'fragment'],
        response_types_supported: ['vp_token', 'code'],
      });
      expect(answer.status, answer.text).to.equal(200);
    });

    const unsupportedMetadata: readonly [string, object][] = [
      ['unsupported formats', { vp_formats_supported: { jwt_vc_json: {} } }],
      ['invalid formats', { vp_formats_supported: 'dc+sd-jwt' }],
      ['unsupported algorithms', { vp_formats_supported: { 'dc+sd-jwt': { 'sd-jwt_alg_values': ['ES256K'] } } }],
      ['unsupported algorithms of the key binding', { vp_formats_supported: { 'dc+sd-jwt': { 'kb-jwt_alg_values': ['RS256'] } } }],
      ['unsupported response modes', { response_modes_supported: ['fragment', 'direct_post'] }],
      ['unsupported response types', { response_types_supported: ['code'] }],
      ['an encryption key of another type', { jwks: { keys: [{ kty: 'OKP', crv: 'X25519', x: 'AA' }] } }],
      ['an encryption key on another curve', { jwks: { keys: [{ kty: 'EC', crv: 'P-384', use: 'enc', x: 'AA', y: 'AA' }] } }],
      ['unsupported client identifier prefixes', { client_id_prefixes_supported: ['x509_san_dns'] }],
      ['unsupported signature algorithms', { request_object_signing_alg_values_supported: ['RS256'] }],
      ['an unsupported key agreement', { authorization_encryption_alg_values_supported: ['RSA-OAEP'] }],
      ['unsupported ciphers', { authorization_encryption_enc_values_supported: ['A128CBC-HS256'] }],
      [
        'a key on another curve',
        { jwks: { keys: [{ kty: 'EC', crv: 'P-384', x: 'AA', y: 'AA' }] }, request_object_encryption_alg_values_supported: ['ECDH-ES'] },
      ],
      ['keys that are not a JWK set', { jwks: [] }],
      [
        'unsupported request encryption',
        { jwks: { keys: [{ kty: 'EC', crv: 'P-256', x: 'AA', y: 'AA' }] }, request_object_encryption_alg_values_supported: ['RSA-OAEP'] },
      ],
      ['an invalid name', { issuer: 7 }],
    ];
    for (const [name, metadata] of unsupportedMetadata) {
      it(`is not returned to a wallet with ${name} and stays unchanged`, async () => {
        const { uri, session } = await offer('check');
        const url = new URL(uri).searchParams.get('request_uri') ?? '';
        const form = { wallet_metadata: JSON.stringify(metadata) };
        const answer = await shop.service.call('POST', url, { form });
        expect([answer.status, answer.body.error], answer.text).to.deep.equal([400, 'invalid_request']);
        expect((await shop.session(session))['status']).to.equal('active');
      });
    }
  });

  it('contains the verifier attestations of the operator as objects and texts', async () => {
    const attachedInfo = [
      { format: 'statement', data: { purpose: 'age' } },
      { format: 'registration_cert', data: 'eyJhbGciOiJFUzI1NiJ9.e30.AAAA', credential_ids: ['card'] },
    ];
    await shop.configure({ id: 'attached', attached: attachedInfo });
    expect((await shop.requestPresentation('attached')).payload['verifier_info']).to.deep.equal(attachedInfo);
  });

  it('omits the anchor from its certificates', async () => {
    const { header } = await shop.requestPresentation();
    for (const certificate of header['x5c']) {
      const { subject, issuer } = new X509Certificate(Buffer.from(certificate, 'base64'));
      expect(subject).to.not.equal(issuer);
    }
  });
});

describe('presentation configuration that changes while a request is open', () => {
  let shop: Shop;
  let heldCredential: HeldCredential;

  before(async () => {
    shop = await Shop.open();
    heldCredential = await shop.issue();
  });
  after(() => shop.close());

  const changes: readonly [string, () => Promise<unknown>][] = [
    ['is deleted', () => shop.call('DELETE', '/verifier/config/q')],
    ['gets other trust anchors', () => shop.call('PATCH', '/verifier/config/q', { trustAnchors: [{ ownAuthorities: true }] })],
    ['gets other values', () => shop.call('PATCH', '/verifier/config/q', { values: 'disclosed' })],
    ['enforces type metadata', () => shop.call('PATCH', '/verifier/config/q', { typeMetadata: 'enforced' })],
    ['requires certificate revocation', () => shop.call('PATCH', '/verifier/config/q', { certificateRevocation: 'required' })],
  ];
  for (const [description, change] of changes) {
    it(`is verified by its previous rules when it ${description}`, async () => {
      await shop.configure({ id: 'q' });
      const request = await shop.requestPresentation('q');
      await change();
      const answer = await shop.present(request, heldCredential);
      expect(answer.status, answer.text).to.equal(200);
      const { status, credentials } = await shop.session(request.session);
      expect(status).to.equal('completed');
      expect(credentials[0].values, 'values: requested').to.deep.equal({ name: 'Ada' });
    });
  }

  it('applies its new rules to the next request', async () => {
    await shop.configure({ id: 'q' });
    await shop.call('PATCH', '/verifier/config/q', { trustAnchors: [{ ownAuthorities: true }] });
    const request = await shop.requestPresentation('q');
    expect((await shop.present(request, heldCredential)).status).to.equal(400);
    expect((await shop.session(request.session))['failure'].message).to.include('untrusted_chain');
  });

  it('is verified by its previous rules through the Digital Credentials API', async () => {
    await shop.configure({ id: 'page', expectedOrigins: ['https://shop.example'], dcApiRequest: 'unsigned' });
    const creation = await shop.call('POST', '/verifier/offer', { response_type: 'dc-api', requestId: 'page' });
    const { data } = creation.body.dcApi.requests[0];
    await shop.call('DELETE', '/verifier/config/page');
    const payload = { ...data, client_id: 'origin:https://shop.example' };
    const request = { session: creation.body.session, uri: '', url: '', text: '', header: {}, payload };
    const form = await responseForm(
      { ...request, payload: { ...payload, state: undefined } },
      { card: [bindToRequest(request, heldCredential)] },
    );
    const answer = await shop.service.call('POST', creation.body.uri, { json: form });
    expect(answer.status, answer.text).to.equal(200);
    expect((await shop.session(creation.body.session))['status']).to.equal('completed');
  });

  it('shows no secret of the former rules in the session', async () => {
    await shop.configure({ id: 'q' });
    const request = await shop.requestPresentation('q');
    expect(await shop.session(request.session)).to.not.have.property('policy');
  });
});
