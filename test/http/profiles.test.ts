import { expect } from 'chai';
import { createResource, credentialBody, offerBody } from '../support/populated.ts';
import { bindToRequest, decode, type HeldCredential, QUERY, responseForm, Shop } from '../support/present.ts';
import { dpopProof, keyProof, newKey, RawWallet } from '../support/raw-wallet.ts';
import { TestRegistrar } from '../support/registrar.ts';
import { certify, pem } from '../support/test-certificates.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';
import { WalletProvider } from '../support/wallet-provider.ts';

const display = [{ name: 'Acme', locale: 'en' }];

type Warned = { readonly warnings: readonly { readonly member: string; readonly rule: string }[] };
const propertiesWithWarning = ({ warnings }: Warned) => warnings.map(({ member }) => member);

describe('The profile of a tenant', () => {
  const QUERY = { credentials: [{ id: 'pid', format: 'dc+sd-jwt', meta: { vct_values: ['urn:pid'] } }] };

  let service: TestService;
  let root: string;
  let plainToken: string;
  let strictToken: string;

  before(async () => {
    service = await startTestService();
    root = await service.rootToken();
    ({ token: plainToken } = await createTenant(service, 'plain'));
    ({ token: strictToken } = await createTenant(service, 'strict', { profile: 'haip' }));
  });
  after(() => service.close());

  const call = (method: string, path: string, token: string, json?: object) => service.call(method, path, { token, ...(json && { json }) });
  /** Expects a rejection that names the rule. @returns the rejected properties. */
  const rejectedProperties = async (token: string, path: string, json: object, method = 'POST') => {
    const answer = await call(method, path, token, json);
    expect(answer.status, answer.text).to.equal(400);
    const errors = answer.body.errors as { path: string; message: string }[];
    for (const { message } of errors) expect(message).to.match(/^profile haip \(.+ section/);
    return errors.map(({ path: member }) => member);
  };

  it('is shown, changed and removed by clients that manage tenants', async () => {
    expect((await call('GET', '/tenant/strict', root)).body.profile).to.equal('haip');
    const creation = await call('POST', '/tenant', root, { id: 'third', name: 'Third', profile: 'haip' });
    expect([creation.status, creation.body.profile]).to.deep.equal([201, 'haip']);
    // The issuer requires attestations, and no provider of attestations is trusted.
    const [warning] = creation.body.warnings;
    expect(warning).to.include({ member: 'profile', concerns: 'every wallet' });
    const change = await call('PATCH', '/tenant/third', root, { profile: null });
    expect([change.status, change.body.profile]).to.deep.equal([200, null]);
    expect((await call('PATCH', '/tenant/third', root, { description: 'x' })).body.profile).to.equal(null);
    const secondChange = await call('PATCH', '/tenant/third', root, { profile: 'haip' });
    expect([secondChange.body.profile, secondChange.body.warnings]).to.deep.equal(['haip', [warning]]);
    expect((await call('PATCH', '/tenant/third', root, { description: 'y' })).body.profile).to.equal('haip');
    expect((await call('PATCH', '/tenant/third', root, { profile: 'hiap' })).status).to.equal(400);
  });

  it('rejects violations in a write, with the rule; without a profile, critical ones are warnings', async () => {
    const issuer = {
      ...{ display, dPopRequired: false, dPopNonce: 'off', walletAttestationRequired: false },
      attestationChallenge: 'optional',
    };
    const properties = ['walletAttestationRequired', 'attestationChallenge', 'dPopRequired', 'dPopNonce'];
    expect(await rejectedProperties(strictToken, '/issuer/config', issuer)).to.deep.equal(properties);
    const allowed = await createResource(service, plainToken, '/issuer/config', issuer);
    expect(propertiesWithWarning(allowed)).to.deep.equal(['attestationChallenge', 'dPopRequired']);

    const request = { id: 'age', dcql_query: QUERY, responseMode: 'direct_post', clientIdPrefix: 'x509_san_dns' };
    expect(await rejectedProperties(strictToken, '/verifier/config', request)).to.deep.equal(['responseMode', 'clientIdPrefix']);
    expect(
      propertiesWithWarning(await createResource(service, plainToken, '/verifier/config', { ...request, clientIdPrefix: 'x509_hash' })),
    ).to.deep.equal(['redirectUri']);
    await createResource(service, strictToken, '/verifier/config', { id: 'age', dcql_query: QUERY });
    expect(await rejectedProperties(strictToken, '/verifier/config/age', { responseMode: 'direct_post' }, 'PATCH')).to.deep.equal([
      'responseMode',
    ]);
  });

  it('rejects self-signed external certificates', async () => {
    const ownCertificate = await certify({ name: 'Own' });
    const key = { ...ownCertificate.privateKey.export({ format: 'jwk' }) };
    const body = { id: 'own', usageType: 'access', key, certificates: [pem(ownCertificate)] };
    const answer = await call('POST', '/key-chain/import', strictToken, body);
    expect(answer.status, answer.text).to.equal(400);
    expect(answer.text).to.include('no wallet accepts a self-signed certificate');
  });

  it('sets omitted values, in responses and for wallets', async () => {
    const { walletAttestationRequired, dPopNonce, warnings } = await createResource(service, strictToken, '/issuer/config', { display });
    expect([walletAttestationRequired, dPopNonce]).to.deep.equal([true, 'required']);
    // No provider of attestations is trusted yet; that is not a matter of the profile.
    expect(propertiesWithWarning({ warnings } as never)).to.deep.equal(['walletProviderTrustLists']);
    const stored = (await call('GET', '/issuer/config', strictToken)).body;
    expect([stored.walletAttestationRequired, stored.dPopNonce]).to.deep.equal([true, 'required']);
    // The configuration can be sent back as it was read.
    expect((await call('POST', '/issuer/config', strictToken, stored)).status).to.equal(201);
    const metadata = (await service.call('GET', '/strict/.well-known/oauth-authorization-server')).body;
    expect(metadata['pre-authorized_grant_anonymous_access_supported']).to.equal(false);
    expect(metadata.token_endpoint_auth_methods_supported).to.not.include('none');
  });

  it('requires wallet attestations', async () => {
    await createResource(service, strictToken, '/issuer/credentials', credentialBody('pid', 'signing'));
    const { uri } = await createResource(service, strictToken, '/issuer/offer', offerBody('pid'));
    const wallet = new RawWallet(service, 'strict');
    const { grants } = (await wallet.offer(uri)) as { grants: Record<string, Record<string, string>> };
    const [[grant_type = '', { 'pre-authorized_code': code = '' } = {}] = []] = Object.entries(grants);
    const form = { grant_type, 'pre-authorized_code': code };
    const headers = { DPoP: dpopProof(newKey(), `${service.address}/strict/token`) };
    const answer = await service.call('POST', '/strict/token', { form, headers });
    expect([answer.status, answer.body.error], answer.text).to.deep.equal([401, 'invalid_client']);
  });

  it('is rejected while a configuration violates it, with all violations', async () => {
    const { token } = await createTenant(service, 'loose');
    await createResource(service, token, '/issuer/config', { display, dPopRequired: false });
    await createResource(service, token, '/verifier/config', { id: 'age', dcql_query: QUERY, responseMode: 'direct_post' });
    const answer = await call('PATCH', '/tenant/loose', root, { profile: 'haip', description: 'never stored' });
    expect(answer.status, answer.text).to.equal(409);
    expect(answer.body.errors.map(({ path }: { path: string }) => path)).to.deep.equal([
      'issuance-configuration/default.dPopRequired',
      'presentation-configuration/age.responseMode',
    ]);
    const tenant = (await call('GET', '/tenant/loose', root)).body;
    expect([tenant.profile, tenant.description]).to.deep.equal([null, null]);
    await createResource(service, token, '/issuer/config', { display });
    await createResource(service, token, '/verifier/config', { id: 'age', dcql_query: QUERY });
    expect((await call('PATCH', '/tenant/loose', root, { profile: 'haip' })).status).to.equal(200);
    expect((await call('GET', '/issuer/config', token)).body.dPopNonce).to.equal('required');
  });

  it('is consistent with a configuration that is written at the same time', async () => {
    const { token } = await createTenant(service, 'racing');
    const invalidConfiguration = { display, dPopRequired: false };
    for (let round = 0; round < 10; round++) {
      const [profileChange, configurationChange] = await Promise.all([
        call('PATCH', '/tenant/racing', root, { profile: 'haip' }),
        call('POST', '/issuer/config', token, invalidConfiguration),
      ]);
      const { profile } = (await call('GET', '/tenant/racing', root)).body;
      expect([profileChange.status, configurationChange.status].filter((status) => status < 300)).to.have.length(1);
      expect(profile).to.equal(profileChange.status === 200 ? 'haip' : null);
      await call('PATCH', '/tenant/racing', root, { profile: null });
      await createResource(service, token, '/issuer/config', { display });
    }
  });

  it('adds warnings to every answer of a write, and they may be sent back', async () => {
    const creation = await createResource(service, plainToken, '/issuer/credentials', {
      ...credentialBody('card', 'signing'),
      keyBinding: false,
    });
    expect(propertiesWithWarning(creation as never)).to.include('keyBinding');
    const [{ rule, concerns, message, change }] = creation.warnings;
    for (const text of [rule, concerns, message, change]) expect(text).to.be.a('string').and.not.equal('');
    const updated = await call('PATCH', '/issuer/credentials/card', plainToken, creation);
    expect(updated.status, updated.text).to.equal(200);
    expect((await call('GET', '/issuer/credentials/card', plainToken)).body).to.not.have.property('warnings');
    const rotation = await call('POST', '/key-chain/access/rotate', plainToken, {});
    expect([rotation.status, rotation.body.warnings]).to.deep.equal([200, []]);
    const lists = await call('PUT', '/status-list-config', plainToken, { ttl: 864_000, capacity: 100 });
    expect(propertiesWithWarning(lists.body)).to.deep.equal(['ttl', 'capacity']);
    expect((await call('PUT', '/session-config', plainToken, { ttlSeconds: 60 })).body.warnings).to.deep.equal([]);
  });
});

const REDIRECT = 'https://shop.example/done/{sessionId}';

describe('A verifier with the profile haip', () => {
  let shop: Shop;
  let heldCredential: HeldCredential;

  before(async () => {
    shop = await Shop.open();
    heldCredential = await shop.issue();
    const root = await shop.service.rootToken();
    const change = await shop.call('PATCH', '/tenant/shop', { profile: 'haip' }, root);
    expect(change.status, change.text).to.equal(200);
    await shop.configure({ id: 'back', redirectUri: REDIRECT });
  });
  after(() => shop.close());

  it('sends requests in the modes of HAIP', async () => {
    const { payload, link } = await shop.requestPresentation('back').then((request) => ({ ...request, link: new URL(request.uri) }));
    expect([...link.searchParams.keys()].toSorted()).to.deep.equal(['client_id', 'request_uri']);
    expect(payload['client_id']).to.match(/^x509_hash:/);
    expect(payload).to.include({ response_type: 'vp_token', response_mode: 'direct_post.jwt' });
    const { encrypted_response_enc_values_supported: values, jwks } = payload['client_metadata'];
    expect(values).to.have.members(['A128GCM', 'A256GCM']);
    expect(jwks.keys[0]).to.include({ kty: 'EC', crv: 'P-256', alg: 'ECDH-ES', use: 'enc' });
  });

  it('completes a session after the return of the browser, although its configuration does not require it', async () => {
    const storedConfiguration = (await shop.call('GET', '/verifier/config/back')).body;
    expect(storedConfiguration.requireResponseCode, 'the written value is shown').to.equal(null);
    const request = await shop.requestPresentation('back');
    const answer = await shop.present(request, heldCredential);
    expect(answer.status, answer.text).to.equal(200);
    expect((await shop.session(request.session)).status).to.equal('fetched');
    const code = new URL(answer.body.redirect_uri).searchParams.get('response_code');
    const sessionResponse = await shop.call('GET', `/session/${request.session}?response_code=${code}`);
    expect([sessionResponse.body.status, sessionResponse.body.credentials[0].values.name]).to.deep.equal(['completed', 'Ada']);
  });

  it('returns both links and waits only for the browser of the same device', async () => {
    const calls = shop.backend.calls.length;
    await shop.configure({ id: 'hooked', redirectUri: REDIRECT, webhook: { url: `${shop.backend.url}/presented` } });
    for (const json of [{ requestId: 'back' }, { requestId: 'hooked' }, { requestId: 'check', redirectUri: REDIRECT }]) {
      const creation = await shop.call('POST', '/verifier/offer', { response_type: 'uri', ...json });
      expect(creation.body, creation.text).to.have.all.keys('uri', 'session', 'crossDeviceUri', 'pageUrl');
      const url = new URL(creation.body.crossDeviceUri).searchParams.get('request_uri') ?? '';
      const { text } = await shop.service.call('GET', url);
      const request = { session: creation.body.session, uri: creation.body.crossDeviceUri, url, text, ...decode(text) };
      const answer = await shop.present(request, heldCredential);
      expect(answer.body, answer.text).to.deep.equal({ redirect_uri: `${shop.service.address}/shop/presented` });
      const events = await shop.service.call('GET', `/session/${request.session}/events?token=${encodeURIComponent(shop.token)}`);
      expect(events.text).to.include('"status":"completed"');
      expect((await shop.session(request.session)).credentials[0].values.name).to.equal('Ada');
    }
    expect(shop.backend.calls.length - calls, 'the backend gets one of the results').to.equal(1);
  });

  it('returns no link for another device with requireResponseCode: true', async () => {
    await shop.configure({ id: 'strict', redirectUri: REDIRECT, requireResponseCode: true });
    const creation = await shop.call('POST', '/verifier/offer', { response_type: 'uri', requestId: 'strict' });
    expect(creation.body, creation.text).to.have.all.keys('uri', 'session');
  });

  it('creates no request without a return of the browser', async () => {
    const json = { response_type: 'uri', requestId: 'check' };
    const rejection = await shop.call('POST', '/verifier/offer', json);
    expect([rejection.status, rejection.body.errors[0].path], rejection.text).to.deep.equal([400, 'redirectUri']);
    expect(rejection.text).to.include('HAIP 1.0 section 5.1');
    const requestWithRedirect = await shop.call('POST', '/verifier/offer', { ...json, redirectUri: REDIRECT });
    expect(requestWithRedirect.status, requestWithRedirect.text).to.equal(201);
  });

  it('accepts no credential without a proof of its key, and cannot be configured otherwise', async () => {
    const request = await shop.requestPresentation('back');
    const withoutKeyBinding = heldCredential.text.endsWith('~') ? heldCredential.text : `${heldCredential.text}~`;
    expect(decode(withoutKeyBinding.split('~')[0] ?? '').payload).to.have.property('cnf');
    const rejection = await shop.postResponse(request, await responseForm(request, { card: [withoutKeyBinding] }));
    expect(rejection.status).to.equal(400);
    const [query] = QUERY.credentials;
    const dcql_query = { credentials: [{ ...query, require_cryptographic_holder_binding: false }] };
    const creation = await shop.call('POST', '/verifier/config', { id: 'waiving', dcql_query });
    expect([creation.status, creation.body.errors[0].path]).to.deep.equal([
      400,
      'dcql_query.credentials.0.require_cryptographic_holder_binding',
    ]);
    const validRequest = await shop.requestPresentation('back');
    expect(
      (await shop.postResponse(validRequest, await responseForm(validRequest, { card: [bindToRequest(validRequest, heldCredential)] })))
        .status,
    ).to.equal(200);
  });
});

describe('The profile of the European wallet', () => {
  const QUERY = { credentials: [{ id: 'pid', format: 'dc+sd-jwt', meta: { vct_values: ['urn:pid'] } }] };

  let service: TestService;
  let root: string;
  let token: string;

  before(async () => {
    service = await startTestService();
    root = await service.rootToken();
    ({ token } = await createTenant(service, 'acme', { profile: 'eu' }));
  });
  after(() => service.close());

  const call = (method: string, path: string, json?: object, by = token) =>
    service.call(method, path, { token: by, ...(json && { json }) });
  /** Expects a rejection that names the rule. @returns the rejected properties. */
  const rejectedProperties = async (path: string, json: object, method = 'POST') => {
    const answer = await call(method, path, json);
    expect(answer.status, answer.text).to.equal(400);
    const errors = answer.body.errors as { path: string; message: string }[];
    for (const { message } of errors) expect(message).to.match(/^profile eu \((ARF|EUDI|HAIP|ETSI) .+\): /);
    return errors.map(({ path: property }) => property);
  };

  it('rejects violations of HAIP and of the ARF in a write', async () => {
    const issuer = { display, dPopRequired: false, algorithms: ['EdDSA'] };
    expect(await rejectedProperties('/issuer/config', issuer)).to.include.members(['dPopRequired', 'algorithms']);
    const credential = { ...credentialBody('pid', 'signing'), proofTypes: ['jwt'] };
    expect(await rejectedProperties('/issuer/credentials', credential)).to.include('proofTypes');
    const request = { id: 'age', dcql_query: QUERY };
    expect(await rejectedProperties('/verifier/config', request)).to.deep.equal(['registrationCert']);
    const keys = { id: 'edwards', usages: ['signing'], algorithm: 'EdDSA' };
    expect(await rejectedProperties('/key-chain', keys)).to.deep.equal(['algorithm']);
  });

  it('is rejected while a configuration violates it, with all violations', async () => {
    const { token: looseToken } = await createTenant(service, 'loose');
    await createResource(service, looseToken, '/issuer/config', { display, algorithms: ['EdDSA'] });
    await createResource(service, looseToken, '/verifier/config', { id: 'age', dcql_query: QUERY });
    const answer = await call('PATCH', '/tenant/loose', { profile: 'eu' }, root);
    expect(answer.status, answer.text).to.equal(409);
    const paths = answer.body.errors.map(({ path }: { path: string }) => path);
    expect(paths).to.include.members(['issuance-configuration/default.algorithms', 'presentation-configuration/age.registrationCert']);
    expect((await call('GET', '/tenant/loose', undefined, root)).body.profile).to.equal(null);
  });

  it('is rejected for an issuer without a registration', async () => {
    const { token: lateToken } = await createTenant(service, 'late');
    const options = [{ details: ['once_only'], batch_size: 2, reissue_trigger_unused: 0 }];
    const credentialReusePolicy = { id: 'arf_annex_ii', options };
    await createResource(service, lateToken, '/issuer/credentials', { ...credentialBody('pid', 'signing'), credentialReusePolicy });
    const answer = await call('PATCH', '/tenant/late', { profile: 'eu' }, root);
    expect(answer.status, answer.text).to.equal(409);
    const paths = answer.body.errors.map(({ path }: { path: string }) => path);
    expect(paths).to.include('issuance-configuration/default.registrationCert');
  });

  describe('for a wallet unit', () => {
    let provider: WalletProvider;
    let registrar: TestRegistrar;
    let euro: string;
    const wallet = () => new RawWallet(service, 'euro');

    before(async () => {
      provider = await WalletProvider.start();
      registrar = await TestRegistrar.start();
      ({ token: euro } = await createTenant(service, 'euro', { profile: 'eu' }));
      registrar.payload = { credentials: undefined, provides_attestations: [{ format: 'dc+sd-jwt', meta: { vct_values: ['urn:pid:1'] } }] };
      await createResource(service, euro, '/issuer/config', {
        ...{ display, ...provider.configuration() },
        registrationCert: { jwt: registrar.certificate(undefined) },
      });
      const options = [{ details: ['once_only'], batch_size: 2, reissue_trigger_unused: 1 }];
      await createResource(service, euro, '/issuer/credentials', {
        ...{ id: 'pid', vct: 'urn:pid:1', claims: { name: 'Ada' }, lifeTime: 864_000, statusManagement: true },
        config: { format: 'dc+sd-jwt', display },
        credentialReusePolicy: { id: 'arf_annex_ii', options },
      });
    });
    after(async () => {
      await provider.close();
      await registrar.close();
    });

    const redeemWith = async (wallet: RawWallet, code: string, dpopNonce?: string) => {
      const challengeResponse = await service.call('POST', '/euro/challenge');
      return service.call('POST', '/euro/token', {
        form: {
          grant_type: 'urn:ietf:params:oauth:grant-type:pre-authorized_code',
          'pre-authorized_code': code,
          client_id: provider.clientId,
        },
        headers: {
          DPoP: dpopProof(wallet.dpopKey, `${wallet.issuer}/token`, { payload: { nonce: dpopNonce } }),
          ...provider.headers(newKey(), wallet.issuer, challengeResponse.body.attestation_challenge),
        },
      });
    };
    const accessToken = async (by: RawWallet) => {
      const { uri } = await createResource(service, euro, '/issuer/offer', offerBody('pid'));
      const code = await by.code(uri);
      const rejection = await redeemWith(by, code);
      expect(rejection.body.error).to.equal('use_dpop_nonce');
      const answer = await redeemWith(by, code, rejection.headers.get('dpop-nonce') ?? '');
      expect(answer.status, answer.text).to.equal(200);
      return answer.body.access_token as string;
    };
    /** Requests a credential for each of `count` keys. */
    const collect = async (count: number, isAttested: boolean) => {
      const by = wallet();
      const access = await accessToken(by);
      const { headers: nonceHeaders, body: nonceBody } = await service.call('POST', '/euro/nonce');
      const [first = newKey(), ...otherKeys] = Array.from({ length: count }, () => newKey());
      const key_attestation = provider.keyAttestation([first, ...otherKeys], { nonce: nonceBody.c_nonce });
      const header = isAttested ? { jwk: undefined, key_attestation } : {};
      const jwt = [keyProof(first, by.issuer, nonceBody.c_nonce, { header })];
      const headers = by.authorization(access, { payload: { nonce: nonceHeaders.get('dpop-nonce') } });
      const body = { credential_configuration_id: 'pid', proofs: { jwt } };
      return by.request(access, 'pid', { headers, body });
    };

    it('publishes the requirements of the issuer', async () => {
      const { body } = await service.call('GET', '/.well-known/openid-credential-issuer/euro');
      expect(body.issuer_info[0].format).to.equal('registration_cert');
      const { pid } = body.credential_configurations_supported;
      expect(Object.keys(pid.proof_types_supported).sort()).to.deep.equal(['attestation', 'jwt']);
      for (const type of Object.values(pid.proof_types_supported) as Record<string, unknown>[]) {
        expect(type['key_attestations_required']).to.deep.equal({});
        expect(type['proof_signing_alg_values_supported']).to.deep.equal(['ES256', 'ES384', 'ES512']);
      }
      expect(pid.credential_metadata.credential_reuse_policy.id).to.equal('arf_annex_ii');
      const { issuer_info, credential_configurations_supported } = decode(body.signed_metadata).payload;
      expect(issuer_info).to.deep.equal(body.issuer_info);
      expect(credential_configurations_supported).to.deep.equal(body.credential_configurations_supported);
    });

    it('issues a batch for attested keys, and nothing for other keys', async () => {
      const credentialResponse = await collect(2, true);
      expect(credentialResponse.status, credentialResponse.text).to.equal(200);
      expect(credentialResponse.body.credentials).to.have.length(2);
      const rejection = await collect(1, false);
      expect([rejection.status, rejection.body.error], rejection.text).to.deep.equal([400, 'invalid_proof']);
    });
  });
});
