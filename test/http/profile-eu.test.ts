import { expect } from 'chai';
import { created, credentialBody, offerBody } from '../support/populated.ts';
import { decode } from '../support/present.ts';
import { dpopProof, keyProof, newKey, RawWallet } from '../support/raw-wallet.ts';
import { TestRegistrar } from '../support/registrar.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';
import { WalletProvider } from '../support/wallet-provider.ts';

const display = [{ name: 'Acme', locale: 'en' }];
const QUERY = { credentials: [{ id: 'pid', format: 'dc+sd-jwt', meta: { vct_values: ['urn:pid'] } }] };

describe('The profile of the European wallet', () => {
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

  it('refuses what contradicts HAIP, and what contradicts the ARF, when it is written', async () => {
    const issuer = { display, dPopRequired: false, algorithms: ['EdDSA'] };
    expect(await refused('/issuer/config', issuer)).to.include.members(['dPopRequired', 'algorithms']);
    const credential = { ...credentialBody('pid', 'signing'), proofTypes: ['jwt'] };
    expect(await refused('/issuer/credentials', credential)).to.include('proofTypes');
    const request = { id: 'age', dcql_query: QUERY };
    expect(await refused('/verifier/config', request)).to.deep.equal(['registrationCert']);
    const keys = { id: 'edwards', usages: ['signing'], algorithm: 'EdDSA' };
    expect(await refused('/key-chain', keys)).to.deep.equal(['algorithm']);
  });

  it('is not taken on while something contradicts it, and all of that is named', async () => {
    const { token: loose } = await createTenant(service, 'loose');
    await created(service, loose, '/issuer/config', { display, algorithms: ['EdDSA'] });
    await created(service, loose, '/verifier/config', { id: 'age', dcql_query: QUERY });
    const answer = await call('PATCH', '/tenant/loose', { profile: 'eu' }, root);
    expect(answer.status, answer.text).to.equal(409);
    const paths = answer.body.errors.map(({ path }: { path: string }) => path);
    expect(paths).to.include.members([
      'issuance-configuration/default.algorithms',
      'presentation-configuration/age.registrationCert',
    ]);
    expect((await call('GET', '/tenant/loose', undefined, root)).body.profile).to.equal(null);
  });

  it('is not taken on by an issuer that has not said yet what it is registered for', async () => {
    const { token: late } = await createTenant(service, 'late');
    const options = [{ details: ['once_only'], batch_size: 2, reissue_trigger_unused: 0 }];
    const credentialReusePolicy = { id: 'arf_annex_ii', options };
    await created(service, late, '/issuer/credentials', {
      ...credentialBody('pid', 'signing'),
      credentialReusePolicy,
    });
    const answer = await call('PATCH', '/tenant/late', { profile: 'eu' }, root);
    expect(answer.status, answer.text).to.equal(409);
    const paths = answer.body.errors.map(({ path }: { path: string }) => path);
    expect(paths).to.include('issuance-configuration/default.registrationCert');
  });

  describe('lets a wallet unit', () => {
    let provider: WalletProvider;
    let registrar: TestRegistrar;
    let euro: string;
    const wallet = () => new RawWallet(service, 'euro');

    before(async () => {
      provider = await WalletProvider.start();
      registrar = await TestRegistrar.start();
      ({ token: euro } = await createTenant(service, 'euro', { profile: 'eu' }));
      registrar.payload = {
        credentials: undefined,
        provides_attestations: [{ format: 'dc+sd-jwt', meta: { vct_values: ['urn:pid:1'] } }],
      };
      await created(service, euro, '/issuer/config', {
        ...{ display, ...provider.configuration() },
        registrationCert: { jwt: registrar.certificate(undefined) },
      });
      const options = [{ details: ['once_only'], batch_size: 2, reissue_trigger_unused: 1 }];
      await created(service, euro, '/issuer/credentials', {
        ...{
          id: 'pid',
          vct: 'urn:pid:1',
          claims: { name: 'Ada' },
          lifeTime: 864_000,
          statusManagement: true,
        },
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
      const { uri } = await created(service, euro, '/issuer/offer', offerBody('pid'));
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

    it('read what it demands of an issuer', async () => {
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

    it('have a batch for attested keys, and nothing for others', async () => {
      const issued = await collect(2, true);
      expect(issued.status, issued.text).to.equal(200);
      expect(issued.body.credentials).to.have.length(2);
      const refusedOne = await collect(1, false);
      expect([refusedOne.status, refusedOne.body.error], refusedOne.text).to.deep.equal([
        400,
        'invalid_proof',
      ]);
    });
  });
});
