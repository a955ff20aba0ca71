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
const warned = ({ warnings }: Warned) => warnings.map(({ member }) => member);

describe('The profile of a tenant', () => {
  const QUERY = { credentials: [{ id: 'pid', format: 'dc+sd-jwt', meta: { vct_values: ['urn:pid'] } }] };

  let service: TestService;
  let root: string;
  let plain: string;
  let strict: string;

  before(async () => {
    service = await startTestService();
    root = await service.rootToken();
    ({ token: plain } = await createTenant(service, 'plain'));
    ({ token: strict } = await createTenant(service, 'strict', { profile: 'haip' }));
  });
  after(() => service.close());

  const call = (method: string, path: string, token: string, json?: object) => service.call(method, path, { token, ...(json && { json }) });
  /** Says which members were refused, and that the rule is named. */
  const refused = async (token: string, path: string, json: object, method = 'POST') => {
    const answer = await call(method, path, token, json);
    expect(answer.status, answer.text).to.equal(400);
    const errors = answer.body.errors as { path: string; message: string }[];
    for (const { message } of errors) expect(message).to.match(/^profile haip \(.+ section/);
    return errors.map(({ path: member }) => member);
  };

  it('is shown, changed and removed by clients that manage tenants', async () => {
    expect((await call('GET', '/tenant/strict', root)).body.profile).to.equal('haip');
    const made = await call('POST', '/tenant', root, { id: 'third', name: 'Third', profile: 'haip' });
    expect([made.status, made.body.profile]).to.deep.equal([201, 'haip']);
    // Its issuer demands attestations, and nobody is trusted to make them.
    const [closed] = made.body.warnings;
    expect(closed).to.include({ member: 'profile', concerns: 'every wallet' });
    const changed = await call('PATCH', '/tenant/third', root, { profile: null });
    expect([changed.status, changed.body.profile]).to.deep.equal([200, null]);
    expect((await call('PATCH', '/tenant/third', root, { description: 'x' })).body.profile).to.equal(null);
    const again = await call('PATCH', '/tenant/third', root, { profile: 'haip' });
    expect([again.body.profile, again.body.warnings]).to.deep.equal(['haip', [closed]]);
    expect((await call('PATCH', '/tenant/third', root, { description: 'y' })).body.profile).to.equal('haip');
    expect((await call('PATCH', '/tenant/third', root, { profile: 'hiap' })).status).to.equal(400);
  });

  it('rejects violations in a write, with the rule; without a profile, critical ones are warnings', async () => {
    const issuer = {
      ...{ display, dPopRequired: false, dPopNonce: 'off', walletAttestationRequired: false },
      attestationChallenge: 'optional',
    };
    const members = ['walletAttestationRequired', 'attestationChallenge', 'dPopRequired', 'dPopNonce'];
    expect(await refused(strict, '/issuer/config', issuer)).to.deep.equal(members);
    const allowed = await createResource(service, plain, '/issuer/config', issuer);
    expect(warned(allowed)).to.deep.equal(['attestationChallenge', 'dPopRequired']);

    const request = { id: 'age', dcql_query: QUERY, responseMode: 'direct_post', clientIdPrefix: 'x509_san_dns' };
    expect(await refused(strict, '/verifier/config', request)).to.deep.equal(['responseMode', 'clientIdPrefix']);
    expect(warned(await createResource(service, plain, '/verifier/config', { ...request, clientIdPrefix: 'x509_hash' }))).to.deep.equal([
      'redirectUri',
    ]);
    await createResource(service, strict, '/verifier/config', { id: 'age', dcql_query: QUERY });
    expect(await refused(strict, '/verifier/config/age', { responseMode: 'direct_post' }, 'PATCH')).to.deep.equal(['responseMode']);
  });

  it('rejects self-signed external certificates', async () => {
    const own = await certify({ name: 'Own' });
    const key = { ...own.privateKey.export({ format: 'jwk' }) };
    const body = { id: 'own', usageType: 'access', key, certificates: [pem(own)] };
    const answer = await call('POST', '/key-chain/import', strict, body);
    expect(answer.status, answer.text).to.equal(400);
    expect(answer.text).to.include('no wallet accepts a self-signed certificate');
  });

  it('sets omitted values, in answers and for wallets', async () => {
    const { walletAttestationRequired, dPopNonce, warnings } = await createResource(service, strict, '/issuer/config', { display });
    expect([walletAttestationRequired, dPopNonce]).to.deep.equal([true, 'required']);
    // Nobody may attest yet: that is no matter of the profile.
    expect(warned({ warnings } as never)).to.deep.equal(['walletProviderTrustLists']);
    const read = (await call('GET', '/issuer/config', strict)).body;
    expect([read.walletAttestationRequired, read.dPopNonce]).to.deep.equal([true, 'required']);
    // What was read can be sent back.
    expect((await call('POST', '/issuer/config', strict, read)).status).to.equal(201);
    const metadata = (await service.call('GET', '/strict/.well-known/oauth-authorization-server')).body;
    expect(metadata['pre-authorized_grant_anonymous_access_supported']).to.equal(false);
    expect(metadata.token_endpoint_auth_methods_supported).to.not.include('none');
  });

  it('requires wallet attestations', async () => {
    await createResource(service, strict, '/issuer/credentials', credentialBody('pid', 'signing'));
    const { uri } = await createResource(service, strict, '/issuer/offer', offerBody('pid'));
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
    const kept = (await call('GET', '/tenant/loose', root)).body;
    expect([kept.profile, kept.description]).to.deep.equal([null, null]);
    await createResource(service, token, '/issuer/config', { display });
    await createResource(service, token, '/verifier/config', { id: 'age', dcql_query: QUERY });
    expect((await call('PATCH', '/tenant/loose', root, { profile: 'haip' })).status).to.equal(200);
    expect((await call('GET', '/issuer/config', token)).body.dPopNonce).to.equal('required');
  });

  it('is consistent with a configuration that is written at the same time', async () => {
    const { token } = await createTenant(service, 'racing');
    const bad = { display, dPopRequired: false };
    for (let round = 0; round < 10; round++) {
      const [taken, written] = await Promise.all([
        call('PATCH', '/tenant/racing', root, { profile: 'haip' }),
        call('POST', '/issuer/config', token, bad),
      ]);
      const { profile } = (await call('GET', '/tenant/racing', root)).body;
      expect([taken.status, written.status].filter((status) => status < 300)).to.have.length(1);
      expect(profile).to.equal(taken.status === 200 ? 'haip' : null);
      await call('PATCH', '/tenant/racing', root, { profile: null });
      await createResource(service, token, '/issuer/config', { display });
    }
  });

  it('adds warnings to every answer of a write, and they may be sent back', async () => {
    const written = await createResource(service, plain, '/issuer/credentials', {
      ...credentialBody('card', 'signing'),
      keyBinding: false,
    });
    expect(warned(written as never)).to.include('keyBinding');
    const [{ rule, concerns, message, change }] = written.warnings;
    for (const text of [rule, concerns, message, change]) expect(text).to.be.a('string').and.not.equal('');
    const again = await call('PATCH', '/issuer/credentials/card', plain, written);
    expect(again.status, again.text).to.equal(200);
    expect((await call('GET', '/issuer/credentials/card', plain)).body).to.not.have.property('warnings');
    const rotated = await call('POST', '/key-chain/access/rotate', plain, {});
    expect([rotated.status, rotated.body.warnings]).to.deep.equal([200, []]);
    const lists = await call('PUT', '/status-list-config', plain, { ttl: 864_000, capacity: 100 });
    expect(warned(lists.body)).to.deep.equal(['ttl', 'capacity']);
    expect((await call('PUT', '/session-config', plain, { ttlSeconds: 60 })).body.warnings).to.deep.equal([]);
  });
});

const REDIRECT = 'https://shop.example/done/{sessionId}';

describe('A verifier with the profile haip', () => {
  let shop: Shop;
  let held: HeldCredential;

  before(async () => {
    shop = await Shop.open();
    held = await shop.issue();
    const root = await shop.service.rootToken();
    const taken = await shop.call('PATCH', '/tenant/shop', { profile: 'haip' }, root);
    expect(taken.status, taken.text).to.equal(200);
    await shop.configure({ id: 'back', redirectUri: REDIRECT });
  });
  after(() => shop.close());

  it('sends requests in the modes of HAIP', async () => {
    const { payload, link } = await shop.requestPresentation('back').then((asked) => ({ ...asked, link: new URL(asked.uri) }));
    expect([...link.searchParams.keys()].toSorted()).to.deep.equal(['client_id', 'request_uri']);
    expect(payload['client_id']).to.match(/^x509_hash:/);
    expect(payload).to.include({ response_type: 'vp_token', response_mode: 'direct_post.jwt' });
    const { encrypted_response_enc_values_supported: values, jwks } = payload['client_metadata'];
    expect(values).to.have.members(['A128GCM', 'A256GCM']);
    expect(jwks.keys[0]).to.include({ kty: 'EC', crv: 'P-256', alg: 'ECDH-ES', use: 'enc' });
  });

  it('completes a session after the return of the browser, although its configuration does not require it', async () => {
    const shown = (await shop.call('GET', '/verifier/config/back')).body;
    expect(shown.requireResponseCode, 'as it was written').to.equal(null);
    const asked = await shop.requestPresentation('back');
    const answer = await shop.present(asked, held);
    expect(answer.status, answer.text).to.equal(200);
    expect((await shop.session(asked.session)).status).to.equal('fetched');
    const code = new URL(answer.body.redirect_uri).searchParams.get('response_code');
    const seen = await shop.call('GET', `/session/${asked.session}?response_code=${code}`);
    expect([seen.body.status, seen.body.credentials[0].values.name]).to.deep.equal(['completed', 'Ada']);
  });

  it('returns both links and waits only for the browser of the same device', async () => {
    const calls = shop.backend.calls.length;
    await shop.configure({ id: 'hooked', redirectUri: REDIRECT, webhook: { url: `${shop.backend.url}/presented` } });
    for (const json of [{ requestId: 'back' }, { requestId: 'hooked' }, { requestId: 'check', redirectUri: REDIRECT }]) {
      const made = await shop.call('POST', '/verifier/offer', { response_type: 'uri', ...json });
      expect(made.body, made.text).to.have.all.keys('uri', 'session', 'crossDeviceUri', 'pageUrl');
      const url = new URL(made.body.crossDeviceUri).searchParams.get('request_uri') ?? '';
      const { text } = await shop.service.call('GET', url);
      const asked = { session: made.body.session, uri: made.body.crossDeviceUri, url, text, ...decode(text) };
      const answer = await shop.present(asked, held);
      expect(answer.body, answer.text).to.deep.equal({ redirect_uri: `${shop.service.address}/shop/presented` });
      const events = await shop.service.call('GET', `/session/${asked.session}/events?token=${encodeURIComponent(shop.token)}`);
      expect(events.text).to.include('"status":"completed"');
      expect((await shop.session(asked.session)).credentials[0].values.name).to.equal('Ada');
    }
    expect(shop.backend.calls.length - calls, 'the backend of one of them').to.equal(1);
  });

  it('returns no link for another device with requireResponseCode: true', async () => {
    await shop.configure({ id: 'strict', redirectUri: REDIRECT, requireResponseCode: true });
    const made = await shop.call('POST', '/verifier/offer', { response_type: 'uri', requestId: 'strict' });
    expect(made.body, made.text).to.have.all.keys('uri', 'session');
  });

  it('creates no request without a return of the browser', async () => {
    const json = { response_type: 'uri', requestId: 'check' };
    const refused = await shop.call('POST', '/verifier/offer', json);
    expect([refused.status, refused.body.errors[0].path], refused.text).to.deep.equal([400, 'redirectUri']);
    expect(refused.text).to.include('HAIP 1.0 section 5.1');
    const given = await shop.call('POST', '/verifier/offer', { ...json, redirectUri: REDIRECT });
    expect(given.status, given.text).to.equal(201);
  });

  it('accepts no credential without a proof of its key, and cannot be configured otherwise', async () => {
    const asked = await shop.requestPresentation('back');
    const bare = held.text.endsWith('~') ? held.text : `${held.text}~`;
    expect(decode(bare.split('~')[0] ?? '').payload).to.have.property('cnf');
    const refused = await shop.postResponse(asked, await responseForm(asked, { card: [bare] }));
    expect(refused.status).to.equal(400);
    const [query] = QUERY.credentials;
    const dcql_query = { credentials: [{ ...query, require_cryptographic_holder_binding: false }] };
    const written = await shop.call('POST', '/verifier/config', { id: 'waiving', dcql_query });
    expect([written.status, written.body.errors[0].path]).to.deep.equal([
      400,
      'dcql_query.credentials.0.require_cryptographic_holder_binding',
    ]);
    const good = await shop.requestPresentation('back');
    expect((await shop.postResponse(good, await responseForm(good, { card: [bindToRequest(good, held)] }))).status).to.equal(200);
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
  /** The members that were refused, once the rule is named. */
  const refused = async (path: string, json: object, method = 'POST') => {
    const answer = await call(method, path, json);
    expect(answer.status, answer.text).to.equal(400);
    const errors = answer.body.errors as { path: string; message: string }[];
    for (const { message } of errors) expect(message).to.match(/^profile eu \((ARF|EUDI|HAIP|ETSI) .+\): /);
    return errors.map(({ path: member }) => member);
  };

  it('rejects violations of HAIP and of the ARF in a write', async () => {
    const issuer = { display, dPopRequired: false, algorithms: ['EdDSA'] };
    expect(await refused('/issuer/config', issuer)).to.include.members(['dPopRequired', 'algorithms']);
    const credential = { ...credentialBody('pid', 'signing'), proofTypes: ['jwt'] };
    expect(await refused('/issuer/credentials', credential)).to.include('proofTypes');
    const request = { id: 'age', dcql_query: QUERY };
    expect(await refused('/verifier/config', request)).to.deep.equal(['registrationCert']);
    const keys = { id: 'edwards', usages: ['signing'], algorithm: 'EdDSA' };
    expect(await refused('/key-chain', keys)).to.deep.equal(['algorithm']);
  });

  it('is rejected while a configuration violates it, with all violations', async () => {
    const { token: loose } = await createTenant(service, 'loose');
    await createResource(service, loose, '/issuer/config', { display, algorithms: ['EdDSA'] });
    await createResource(service, loose, '/verifier/config', { id: 'age', dcql_query: QUERY });
    const answer = await call('PATCH', '/tenant/loose', { profile: 'eu' }, root);
    expect(answer.status, answer.text).to.equal(409);
    const paths = answer.body.errors.map(({ path }: { path: string }) => path);
    expect(paths).to.include.members(['issuance-configuration/default.algorithms', 'presentation-configuration/age.registrationCert']);
    expect((await call('GET', '/tenant/loose', undefined, root)).body.profile).to.equal(null);
  });

  it('is rejected for an issuer without a registration', async () => {
    const { token: late } = await createTenant(service, 'late');
    const options = [{ details: ['once_only'], batch_size: 2, reissue_trigger_unused: 0 }];
    const credentialReusePolicy = { id: 'arf_annex_ii', options };
    await createResource(service, late, '/issuer/credentials', { ...credentialBody('pid', 'signing'), credentialReusePolicy });
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

    const redeem = async (by: RawWallet, code: string, dpopNonce?: string) => {
      const asked = await service.call('POST', '/euro/challenge');
      return service.call('POST', '/euro/token', {
        form: {
          grant_type: 'urn:ietf:params:oauth:grant-type:pre-authorized_code',
          'pre-authorized_code': code,
          client_id: provider.clientId,
        },
        headers: {
          DPoP: dpopProof(by.dpopKey, `${by.issuer}/token`, { payload: { nonce: dpopNonce } }),
          ...provider.headers(newKey(), by.issuer, asked.body.attestation_challenge),
        },
      });
    };
    const accessToken = async (by: RawWallet) => {
      const { uri } = await createResource(service, euro, '/issuer/offer', offerBody('pid'));
      const code = await by.code(uri);
      const told = await redeem(by, code);
      expect(told.body.error).to.equal('use_dpop_nonce');
      const answer = await redeem(by, code, told.headers.get('dpop-nonce') ?? '');
      expect(answer.status, answer.text).to.equal(200);
      return answer.body.access_token as string;
    };
    /** Asks for as many copies as there are keys. */
    const collect = async (count: number, isAttested: boolean) => {
      const by = wallet();
      const access = await accessToken(by);
      const { headers: told, body: made } = await service.call('POST', '/euro/nonce');
      const [first = newKey(), ...others] = Array.from({ length: count }, () => newKey());
      const key_attestation = provider.keyAttestation([first, ...others], { nonce: made.c_nonce });
      const header = isAttested ? { jwk: undefined, key_attestation } : {};
      const jwt = [keyProof(first, by.issuer, made.c_nonce, { header })];
      const headers = by.authorization(access, { payload: { nonce: told.get('dpop-nonce') } });
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
      const issued = await collect(2, true);
      expect(issued.status, issued.text).to.equal(200);
      expect(issued.body.credentials).to.have.length(2);
      const refusedOne = await collect(1, false);
      expect([refusedOne.status, refusedOne.body.error], refusedOne.text).to.deep.equal([400, 'invalid_proof']);
    });
  });
});
