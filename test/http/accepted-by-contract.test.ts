import { expect } from 'chai';
import { created, offerBody } from '../support/populated.ts';
import { RawWallet } from '../support/raw-wallet.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

const TYPE = 'org.example.card';
const STATED = {
  cryptographic_binding_methods_supported: ['jwk'],
  credential_signing_alg_values_supported: ['ES256'],
};
const CARD = { id: 'card', config: { format: 'dc+sd-jwt' }, vct: 'urn:card:1', claims: { name: 'Ada' } };

describe('What says little is taken', () => {
  let service: TestService;
  let token: string;
  let wallet: RawWallet;

  before(async () => {
    service = await startTestService();
    ({ token } = await createTenant(service, 'acme'));
    await created(service, token, '/issuer/credentials', CARD);
    wallet = new RawWallet(service, 'acme');
  });
  after(() => service.close());

  const post = (path: string, json: object) => service.call('POST', path, { token, json });
  const metadataOf = async (id: string) => {
    const metadata = (await service.call('GET', '/.well-known/openid-credential-issuer/acme')).body;
    return metadata.credential_configurations_supported[id];
  };
  const refusedAt = async (json: object): Promise<string> => {
    const answer = await post('/issuer/credentials', json);
    expect([answer.status, answer.body.code], answer.text).to.deep.equal([400, 'invalid_input']);
    return answer.body.errors[0].path;
  };

  it('a credential and an issuer without a display, of which wallets are told none', async () => {
    const { warnings } = await created(service, token, '/issuer/config', { display: [] });
    expect(warnings).to.be.an('array');
    const card = await created(service, token, '/issuer/credentials', { ...CARD, id: 'plain', vct: null });
    expect(card.warnings.map(({ member }: { member: string }) => member)).to.include('config.display');
    expect(await metadataOf('plain')).to.not.have.property('credential_metadata');
    const metadata = (await service.call('GET', '/.well-known/openid-credential-issuer/acme')).body;
    expect(metadata).to.not.have.property('display');
    const type = (await service.call('GET', '/acme/vct/plain')).body;
    expect(type.vct).to.equal(`${wallet.issuer}/vct/plain`);
    expect(type).to.not.have.any.keys('display', 'name');
    const { uri } = await created(service, token, '/issuer/offer', offerBody('plain'));
    expect((await wallet.request(await wallet.accessToken(uri), 'plain')).status).to.equal(200);
    const read = (await service.call('GET', '/issuer/credentials/plain', { token })).body;
    expect((await post('/issuer/credentials', read)).status).to.equal(201);
  });

  it('empty lists, which say nothing', async () => {
    const lists = {
      display: [],
      claims: [],
      cryptographic_binding_methods_supported: [],
      credential_signing_alg_values_supported: [],
    };
    const empty = { ...CARD, id: 'empty', config: { ...CARD.config, ...lists }, iaeActions: [] };
    await created(service, token, '/issuer/credentials', empty);
    expect(await metadataOf('empty')).to.include.keys('credential_signing_alg_values_supported');
    const issuer = {
      display: [],
      authServers: [],
      walletProviderTrustLists: [],
      walletClients: [],
      walletProviders: [],
    };
    await created(service, token, '/issuer/config', issuer);
    const nothing = { ...offerBody('card'), credentialConfigurationIds: [] };
    const answer = await post('/issuer/offer', nothing);
    // OpenID4VCI 1.0 section 4.1.1: an offer of nothing is none.
    expect([answer.status, answer.body.errors[0].path]).to.deep.equal([400, 'credentialConfigurationIds']);
  });

  it('what the service says by itself, as long as it is true', async () => {
    await created(service, token, '/issuer/credentials', { ...CARD, config: { ...CARD.config, ...STATED } });
    expect(await metadataOf('card')).to.deep.include(STATED);
    const method = { ...STATED, cryptographic_binding_methods_supported: ['jwk', 'did:key'] };
    expect(await refusedAt({ ...CARD, config: { ...CARD.config, ...method } })).to.equal(
      'config.cryptographic_binding_methods_supported.1',
    );
    // A key of this kind could sign, but the one that does is another.
    const algorithm = { ...STATED, credential_signing_alg_values_supported: ['ES384'] };
    const other = { ...CARD, config: { ...CARD.config, ...algorithm } };
    expect(await refusedAt(other)).to.equal('config.credential_signing_alg_values_supported.0');
    await created(service, token, '/key-chain', { id: 'p384', usages: ['signing'], algorithm: 'ES384' });
    await created(service, token, '/issuer/credentials', { ...other, keyChainId: 'p384' });
    expect((await metadataOf('card')).credential_signing_alg_values_supported).to.deep.equal(['ES384']);
    const back = await service.call('PATCH', '/issuer/credentials/card', {
      token,
      json: { keyChainId: null },
    });
    expect(back.status, back.text).to.equal(400);
    expect(back.body.errors[0].path).to.equal('config.credential_signing_alg_values_supported.0');
    await created(service, token, '/issuer/credentials', CARD);
  });

  it('an mdoc that says so in its own terms', async () => {
    const config = {
      format: 'mso_mdoc',
      docType: TYPE,
      cryptographic_binding_methods_supported: ['cose_key'],
      credential_signing_alg_values_supported: [-7],
    };
    await created(service, token, '/issuer/credentials', { id: 'doc', config, claims: { name: 'Ada' } });
    const bent = { ...config, cryptographic_binding_methods_supported: ['jwk'] };
    expect(await refusedAt({ id: 'doc', config: bent })).to.equal(
      'config.cryptographic_binding_methods_supported.0',
    );
  });

  it('other members are refused as before, with the name that was meant', async () => {
    const config = { ...CARD.config, cryptographic_binding_method_supported: ['jwk'] };
    const answer = await post('/issuer/credentials', { ...CARD, config });
    expect(answer.status).to.equal(400);
    expect(answer.text).to.include('cryptographic_binding_methods_supported');
  });

  const CODES: [string, string, object][] = [
    ['one digit', '7', { input_mode: 'numeric', length: 1 }],
    ['a hundred digits', '1'.repeat(100), { input_mode: 'numeric', length: 100 }],
    ['words', 'korrekt Pferd Batterie Größe', { input_mode: 'text', length: 28 }],
    ['signs beyond the basic plane', '\u{1F511}\u{1F511}', { input_mode: 'text', length: 2 }],
  ];
  for (const [what, tx_code, told] of CODES) {
    it(`a transaction code of ${what}, which the wallet redeems`, async () => {
      const { uri } = await created(service, token, '/issuer/offer', { ...offerBody('card'), tx_code });
      const offer = (await wallet.offer(uri)) as { grants: Record<string, { tx_code: object }> };
      expect(Object.values(offer.grants)[0]?.tx_code).to.deep.equal(told);
      const code = await wallet.code(uri);
      expect((await wallet.redeem(code, { tx_code: `${tx_code}x` })).status).to.equal(400);
      // Another keyboard writes the same letters in more characters.
      expect((await wallet.redeem(code, { tx_code: tx_code.normalize('NFD') })).status).to.equal(200);
    });
  }

  for (const tx_code of ['', ' 1234', '1234 ', '12\n34', '12\u200b34', '1'.repeat(257)]) {
    it(`no transaction code that cannot be entered as it is: ${JSON.stringify(tx_code.slice(0, 9))}`, async () => {
      const answer = await post('/issuer/offer', { ...offerBody('card'), tx_code });
      expect([answer.status, answer.body.errors?.[0].path], answer.text).to.deep.equal([400, 'tx_code']);
    });
  }
});
