import { expect } from 'chai';
import { created, credentialBody, offerBody } from '../support/populated.ts';
import { dpopProof, newKey, RawWallet } from '../support/raw-wallet.ts';
import { certify, pem } from '../support/test-certificates.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

const display = [{ name: 'Acme', locale: 'en' }];
const QUERY = { credentials: [{ id: 'pid', format: 'dc+sd-jwt', meta: { vct_values: ['urn:pid'] } }] };

type Warned = { readonly warnings: readonly { readonly member: string; readonly rule: string }[] };
const warned = ({ warnings }: Warned) => warnings.map(({ member }) => member);

describe('The profile of a tenant', () => {
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

  const call = (method: string, path: string, token: string, json?: object) =>
    service.call(method, path, { token, ...(json && { json }) });
  /** Says which members were refused, and that the rule is named. */
  const refused = async (token: string, path: string, json: object, method = 'POST') => {
    const answer = await call(method, path, token, json);
    expect(answer.status, answer.text).to.equal(400);
    const errors = answer.body.errors as { path: string; message: string }[];
    for (const { message } of errors) expect(message).to.match(/^profile haip \(.+ section/);
    return errors.map(({ path: member }) => member);
  };

  it('is shown, changed and taken away by who manages tenants', async () => {
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

  it('refuses what contradicts it when it is written, with the rule; without a profile, what harms every tenant is a warning', async () => {
    const issuer = {
      ...{ display, dPopRequired: false, dPopNonce: 'off', walletAttestationRequired: false },
      attestationChallenge: 'optional',
    };
    const members = ['walletAttestationRequired', 'attestationChallenge', 'dPopRequired', 'dPopNonce'];
    expect(await refused(strict, '/issuer/config', issuer)).to.deep.equal(members);
    const allowed = await created(service, plain, '/issuer/config', issuer);
    expect(warned(allowed)).to.deep.equal(['attestationChallenge', 'dPopRequired']);

    const request = {
      id: 'age',
      dcql_query: QUERY,
      responseMode: 'direct_post',
      clientIdPrefix: 'x509_san_dns',
    };
    expect(await refused(strict, '/verifier/config', request)).to.deep.equal([
      'responseMode',
      'clientIdPrefix',
    ]);
    expect(
      warned(await created(service, plain, '/verifier/config', { ...request, clientIdPrefix: 'x509_hash' })),
    ).to.deep.equal(['redirectUri']);
    await created(service, strict, '/verifier/config', { id: 'age', dcql_query: QUERY });
    expect(
      await refused(strict, '/verifier/config/age', { responseMode: 'direct_post' }, 'PATCH'),
    ).to.deep.equal(['responseMode']);
  });

  it('refuses certificates from outside that sign themselves', async () => {
    const own = await certify({ name: 'Own' });
    const key = { ...own.privateKey.export({ format: 'jwk' }) };
    const body = { id: 'own', usageType: 'access', key, certificates: [pem(own)] };
    const answer = await call('POST', '/key-chain/import', strict, body);
    expect(answer.status, answer.text).to.equal(400);
    expect(answer.text).to.include('a self-signed certificate is accepted by no wallet');
  });

  it('fills in what is left open, in answers and towards wallets', async () => {
    const { walletAttestationRequired, dPopNonce, warnings } = await created(
      service,
      strict,
      '/issuer/config',
      { display },
    );
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

  it('demands of wallets that they say who made them', async () => {
    await created(service, strict, '/issuer/credentials', credentialBody('pid', 'signing'));
    const { uri } = await created(service, strict, '/issuer/offer', offerBody('pid'));
    const wallet = new RawWallet(service, 'strict');
    const { grants } = (await wallet.offer(uri)) as { grants: Record<string, Record<string, string>> };
    const [[grant_type = '', { 'pre-authorized_code': code = '' } = {}] = []] = Object.entries(grants);
    const form = { grant_type, 'pre-authorized_code': code };
    const headers = { DPoP: dpopProof(newKey(), `${service.address}/strict/token`) };
    const answer = await service.call('POST', '/strict/token', { form, headers });
    expect([answer.status, answer.body.error], answer.text).to.deep.equal([401, 'invalid_client']);
  });

  it('is not taken on while something contradicts it, and all of that is named', async () => {
    const { token } = await createTenant(service, 'loose');
    await created(service, token, '/issuer/config', { display, dPopRequired: false });
    await created(service, token, '/verifier/config', {
      id: 'age',
      dcql_query: QUERY,
      responseMode: 'direct_post',
    });
    const answer = await call('PATCH', '/tenant/loose', root, {
      profile: 'haip',
      description: 'never stored',
    });
    expect(answer.status, answer.text).to.equal(409);
    expect(answer.body.errors.map(({ path }: { path: string }) => path)).to.deep.equal([
      'issuance-configuration/default.dPopRequired',
      'presentation-configuration/age.responseMode',
    ]);
    const kept = (await call('GET', '/tenant/loose', root)).body;
    expect([kept.profile, kept.description]).to.deep.equal([null, null]);
    await created(service, token, '/issuer/config', { display });
    await created(service, token, '/verifier/config', { id: 'age', dcql_query: QUERY });
    expect((await call('PATCH', '/tenant/loose', root, { profile: 'haip' })).status).to.equal(200);
    expect((await call('GET', '/issuer/config', token)).body.dPopNonce).to.equal('required');
  });

  it('wins against a configuration that is written at the same moment, or loses to it', async () => {
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
      await created(service, token, '/issuer/config', { display });
    }
  });

  it('comes with warnings in every answer to a write, and they may be sent back', async () => {
    const written = await created(service, plain, '/issuer/credentials', {
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
