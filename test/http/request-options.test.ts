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
type Members = Record<string, any>;

describe('presentation request', () => {
  let shop: Shop;
  let held: HeldCredential;

  before(async () => {
    shop = await Shop.open();
    held = await shop.issue();
  });
  after(() => shop.close());

  const offer = async (requestId: string, more: object = {}) => {
    const made = await shop.call('POST', '/verifier/offer', { response_type: 'uri', requestId, ...more });
    expect(made.status, made.text).to.equal(201);
    return made.body as { uri: string; session: string; crossDeviceUri?: string };
  };
  const refusedConfiguration = async (changes: object, path: string) => {
    const json = { id: 'bad', dcql_query: QUERY, ...changes };
    const answer = await shop.call('POST', '/verifier/config', json);
    expect(answer.status, answer.text).to.equal(400);
    expect(answer.body.errors[0].path).to.equal(path);
  };

  it('contains the name and logo of the verifier only if its configuration has them', async () => {
    const shown = { clientName: 'Acme', logoUri: 'https://acme.example/logo.png' };
    await shop.configure({ id: 'named', ...shown });
    const { client_metadata: metadata } = (await shop.requestPresentation('named')).payload;
    expect(metadata).to.include({ client_name: 'Acme', logo_uri: shown.logoUri });
    expect((await shop.call('GET', '/verifier/config/named')).body).to.include(shown);
    await shop.configure({ id: 'named', ...shown, clientName: null, logoUri: null });
    const without = (await shop.requestPresentation('named')).payload['client_metadata'];
    expect(without).not.to.have.any.keys('client_name', 'logo_uri');
    await refusedConfiguration({ clientName: 'two\nlines' }, 'clientName');
    await refusedConfiguration({ logoUri: 'javascript:alert(1)' }, 'logoUri');
  });

  describe('with x509_san_dns', () => {
    it('contains the host of the access certificate and of the response address', async () => {
      await shop.configure({ id: 'dns', clientIdPrefix: 'x509_san_dns' });
      const asked = await shop.requestPresentation('dns');
      const host = new URL(shop.service.address).hostname;
      expect(asked.payload['client_id']).to.equal(`x509_san_dns:${host}`);
      const leaf = verifyWithLeaf(asked.text);
      expect(leaf.subjectAltName).to.include(`DNS:${host}`);
      expect(new URL(asked.payload['response_uri']).hostname).to.equal(host);
      expect(new URL(asked.uri).searchParams.get('client_id')).to.equal(asked.payload['client_id']);
      expect((await shop.present(asked, held)).status).to.equal(200);
    });
    it('is rejected on creation if the access certificate has another host or none', async () => {
      const { token } = await createTenant(shop.service, 'elsewhere');
      const call = (method: string, path: string, json?: object) => shop.service.call(method, path, { token, ...(json && { json }) });
      const authority = await certify({ name: 'CA', ca: true });
      expect((await call('DELETE', '/key-chain/access')).status).to.equal(200);
      const json = { id: 'dns', dcql_query: QUERY, clientIdPrefix: 'x509_san_dns' };
      for (const [id, dns] of [
        ['other', ['other.example']],
        ['none', []],
      ] as const) {
        const leaf = await certify({ name: id, by: authority, dns });
        const key = leaf.privateKey.export({ type: 'pkcs8', format: 'pem' });
        const body = { id, usageType: 'access', key, certificates: pem(leaf) };
        const made = await call('POST', '/key-chain/import', body);
        expect(made.status, made.text).to.equal(201);
        expect((await call('POST', '/verifier/config', json)).status).to.equal(201);
        const asked = await call('POST', '/verifier/offer', { response_type: 'uri', requestId: 'dns' });
        expect([asked.status, asked.body.errors?.[0].path], asked.text).to.deep.equal([400, 'clientIdPrefix']);
        await call('DELETE', '/verifier/config/dns');
        await call('DELETE', `/key-chain/${id}`);
      }
    });
    it('is served until its key is deleted, like others', async () => {
      const made = await shop.call('POST', '/key-chain', { id: 'brief', usageType: 'access', usage: 'sign' });
      expect(made.status, made.text).to.equal(201);
      await shop.configure({ id: 'brief', clientIdPrefix: 'x509_san_dns', accessKeyChainId: 'brief' });
      const asked = await shop.requestPresentation('brief');
      expect((await shop.service.call('GET', asked.url)).status).to.equal(200);
      await shop.configure({ id: 'brief', accessKeyChainId: null });
      expect((await shop.call('DELETE', '/key-chain/brief')).status).to.equal(200);
      expect((await shop.service.call('GET', asked.url)).status).to.equal(410);
    });
  });

  describe('with redirect_uri', () => {
    before(() => shop.configure({ id: 'unsigned', clientIdPrefix: 'redirect_uri' }));

    it('is contained in the link, unsigned, with the response address as its client id', async () => {
      const { uri, session, crossDeviceUri } = await offer('unsigned');
      expect(crossDeviceUri).to.equal(uri);
      const { searchParams } = new URL(uri);
      const members = Object.fromEntries(searchParams) as Record<string, string>;
      expect(members).to.have.all.keys(
        ...['response_type', 'response_mode', 'client_id', 'response_uri', 'nonce', 'state'],
        ...['dcql_query', 'client_metadata'],
      );
      expect(members['client_id']).to.equal(`redirect_uri:${members['response_uri']}`);
      const payload: Members = {
        ...members,
        dcql_query: JSON.parse(members['dcql_query'] ?? ''),
        client_metadata: JSON.parse(members['client_metadata'] ?? ''),
      };
      expect(payload['dcql_query']).to.deep.equal(QUERY);
      const vp_token = { card: [bindToRequest({ payload }, held)] };
      const response = await encryptResponse({ payload }, { vp_token, state: members['state'] });
      const answer = await shop.service.call('POST', members['response_uri'] ?? '', { form: { response } });
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
      refusedConfiguration({ clientIdPrefix: 'redirect_uri', requestUriMethod: 'post' }, 'requestUriMethod'));
  });

  describe('with an invocation URI', () => {
    it('starts wallets of a scheme, or one wallet by its address', async () => {
      await shop.configure({ id: 'haip', invocationUri: 'haip-vp://' });
      expect((await offer('haip')).uri).to.match(/^haip-vp:\/\/\?client_id=x509_hash%3A/);
      await shop.configure({ id: 'link', invocationUri: 'https://wallet.example/start?v=1' });
      expect((await offer('link')).uri).to.match(/^https:\/\/wallet\.example\/start\?v=1&client_id=/);
    });
    for (const invocationUri of [...['http://wallet.example', 'javascript://x', 'openid4vp:', 'file:///etc', 'https://w.example/#x', '']]) {
      it(`is rejected for "${invocationUri}"`, () => refusedConfiguration({ invocationUri }, 'invocationUri'));
    }
    it('starts a wallet by a private scheme, with a warning when the service does not know it', async () => {
      const warned = async (invocationUri: string) => {
        const body = { id: 'scheme', dcql_query: QUERY, invocationUri };
        const { warnings } = (await shop.call('POST', '/verifier/config', body)).body;
        return warnings.some(({ member }: { member: string }) => member === 'invocationUri');
      };
      expect(await warned('mine://')).to.equal(true);
      expect((await offer('scheme')).uri).to.match(/^mine:\/\/\?client_id=/);
      for (const known of ['swiyu-verify://', 'av://', 'com.example.wallet://', 'https://wallet.example/'])
        expect(await warned(known), known).to.equal(false);
      const offered = (invocationUri: string) =>
        shop.call(
          'POST',
          '/issuer/offer',
          { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['card'], invocationUri },
          shop.acme.token,
        );
      const unknown = await offered('mine://');
      expect(unknown.body.uri).to.match(/^mine:\/\/\?credential_offer_uri=/);
      expect(unknown.body.warnings[0]).to.include({ member: 'invocationUri' });
      expect((await offered('swiyu://')).body).to.not.have.property('warnings');
      expect((await offered('ms-word://')).status).to.equal(400);
    });
    it('returns a warning if the link is too long for a QR code, also on the page', async () => {
      const claims = Array.from({ length: 40 }, (_, index) => ({ path: [`some_element_${index}`] }));
      const [credential] = QUERY.credentials;
      const query = { credentials: [{ ...credential, claims }] };
      const written = await shop.call('POST', '/verifier/config', { id: 'long', dcql_query: query, clientIdPrefix: 'redirect_uri' });
      expect(JSON.stringify(written.body.warnings)).to.match(/QR code/);
      const { uri, pageUrl } = (await shop.call('POST', '/verifier/offer', { response_type: 'uri', requestId: 'long' })).body;
      expect(uri.length).to.be.greaterThan(1_200);
      const { text } = await shop.service.call('GET', pageUrl, { headers: { 'Accept-Language': 'en' } });
      expect(text).to.include('The link is too long for a QR code').and.not.include('<svg');
      const short = await shop.call('POST', '/verifier/config', { id: 'long', dcql_query: query });
      expect(JSON.stringify(short.body.warnings)).to.not.match(/QR code/);
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
    const fetched = async (wallet_metadata: object, more: object = {}) => {
      const asked = await shop.requestPresentation();
      const form = { wallet_metadata: JSON.stringify(wallet_metadata), ...more };
      return { asked, answer: await shop.service.call('POST', asked.url, { form }) };
    };

    it('is addressed to the wallet by its name and repeats its nonce', async () => {
      const { asked, answer } = await fetched(
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
      const { asked, answer } = await fetched({
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
      const { asked, answer } = await fetched({ jwks: { keys } });
      expect([answer.status, answer.text]).to.deep.equal([200, asked.text]);
    });

    it('is not encrypted to a signature key', async () => {
      const { publicKey } = await generateKeyPair('ES256', { extractable: true });
      const keys = [{ ...(await exportJWK(publicKey)), use: 'sig' }];
      const { asked, answer } = await fetched({ jwks: { keys } });
      expect([answer.status, answer.text]).to.deep.equal([200, asked.text]);
    });

    it('is returned to a wallet that supports more than is requested', async () => {
      const { answer } = await fetched({
        vp_formats_supported: { 'dc+sd-jwt': { 'sd-jwt_alg_values': ['RS256', 'EdDSA'], 'kb-jwt_alg_values': ['ES256'] }, mso_mdoc: {} },
        response_modes_supported: ['direct_post.jwt', 'fragment'],
        response_types_supported: ['vp_token', 'code'],
      });
      expect(answer.status, answer.text).to.equal(200);
    });

    const unable: readonly [string, object][] = [
      ['other formats', { vp_formats_supported: { jwt_vc_json: {} } }],
      ['formats that are invalid', { vp_formats_supported: 'dc+sd-jwt' }],
      ['other algorithms', { vp_formats_supported: { 'dc+sd-jwt': { 'sd-jwt_alg_values': ['ES256K'] } } }],
      ['other algorithms of its own', { vp_formats_supported: { 'dc+sd-jwt': { 'kb-jwt_alg_values': ['RS256'] } } }],
      ['other ways to answer', { response_modes_supported: ['fragment', 'direct_post'] }],
      ['other answers', { response_types_supported: ['code'] }],
      ['a key for encryption that does not fit', { jwks: { keys: [{ kty: 'OKP', crv: 'X25519', x: 'AA' }] } }],
      ['a key for encryption on another curve', { jwks: { keys: [{ kty: 'EC', crv: 'P-384', use: 'enc', x: 'AA', y: 'AA' }] } }],
      ['other client identifiers', { client_id_prefixes_supported: ['x509_san_dns'] }],
      ['other signatures', { request_object_signing_alg_values_supported: ['RS256'] }],
      ['other key agreement', { authorization_encryption_alg_values_supported: ['RSA-OAEP'] }],
      ['other ciphers', { authorization_encryption_enc_values_supported: ['A128CBC-HS256'] }],
      [
        'a key on another curve',
        { jwks: { keys: [{ kty: 'EC', crv: 'P-384', x: 'AA', y: 'AA' }] }, request_object_encryption_alg_values_supported: ['ECDH-ES'] },
      ],
      ['keys that are not a set', { jwks: [] }],
      [
        'other encryption of requests',
        { jwks: { keys: [{ kty: 'EC', crv: 'P-256', x: 'AA', y: 'AA' }] }, request_object_encryption_alg_values_supported: ['RSA-OAEP'] },
      ],
      ['an invalid name', { issuer: 7 }],
    ];
    for (const [name, metadata] of unable) {
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
    const attached = [
      { format: 'statement', data: { purpose: 'age' } },
      { format: 'registration_cert', data: 'eyJhbGciOiJFUzI1NiJ9.e30.AAAA', credential_ids: ['card'] },
    ];
    await shop.configure({ id: 'attached', attached });
    expect((await shop.requestPresentation('attached')).payload['verifier_info']).to.deep.equal(attached);
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
  let held: HeldCredential;

  before(async () => {
    shop = await Shop.open();
    held = await shop.issue();
  });
  after(() => shop.close());

  const changes: readonly [string, () => Promise<unknown>][] = [
    ['is deleted', () => shop.call('DELETE', '/verifier/config/q')],
    ['gets other trust anchors', () => shop.call('PATCH', '/verifier/config/q', { trustAnchors: [{ ownAuthorities: true }] })],
    ['gets other values', () => shop.call('PATCH', '/verifier/config/q', { values: 'disclosed' })],
    ['enforces type metadata', () => shop.call('PATCH', '/verifier/config/q', { typeMetadata: 'enforced' })],
    ['demands certificate revocation', () => shop.call('PATCH', '/verifier/config/q', { certificateRevocation: 'required' })],
  ];
  for (const [what, change] of changes) {
    it(`is verified by its previous rules when it ${what}`, async () => {
      await shop.configure({ id: 'q' });
      const asked = await shop.requestPresentation('q');
      await change();
      const answer = await shop.present(asked, held);
      expect(answer.status, answer.text).to.equal(200);
      const { status, credentials } = await shop.session(asked.session);
      expect(status).to.equal('completed');
      expect(credentials[0].values, 'values: requested').to.deep.equal({ name: 'Ada' });
    });
  }

  it('applies its new rules to the next request', async () => {
    await shop.configure({ id: 'q' });
    await shop.call('PATCH', '/verifier/config/q', { trustAnchors: [{ ownAuthorities: true }] });
    const asked = await shop.requestPresentation('q');
    expect((await shop.present(asked, held)).status).to.equal(400);
    expect((await shop.session(asked.session))['failure'].message).to.include('untrusted_chain');
  });

  it('is verified by its previous rules through the Digital Credentials API', async () => {
    await shop.configure({ id: 'page', expectedOrigins: ['https://shop.example'], dcApiRequest: 'unsigned' });
    const made = await shop.call('POST', '/verifier/offer', { response_type: 'dc-api', requestId: 'page' });
    const { data } = made.body.dcApi.requests[0];
    await shop.call('DELETE', '/verifier/config/page');
    const payload = { ...data, client_id: 'origin:https://shop.example' };
    const asked = { session: made.body.session, uri: '', url: '', text: '', header: {}, payload };
    const form = await responseForm({ ...asked, payload: { ...payload, state: undefined } }, { card: [bindToRequest(asked, held)] });
    const answer = await shop.service.call('POST', made.body.uri, { json: form });
    expect(answer.status, answer.text).to.equal(200);
    expect((await shop.session(made.body.session))['status']).to.equal('completed');
  });

  it('shows no secret of the former rules in the session', async () => {
    await shop.configure({ id: 'q' });
    const asked = await shop.requestPresentation('q');
    expect(await shop.session(asked.session)).to.not.have.property('policy');
  });
});
