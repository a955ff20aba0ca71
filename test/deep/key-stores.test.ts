import { expect } from 'chai';
import type { KmsConfig } from '../../config/kms-config.ts';
import { describeWithOpenBao, type OpenBao, startOpenBao, VaultProxy } from '../support/openbao.ts';
import { loadOracles } from '../support/oracles.ts';
import { hasSoftHsm, PIN, SoftHsm } from '../support/softhsm.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';
import { Openid4vcWallet } from '../wallets/openid4vc/wallet.ts';

const CLAIMS = { given_name: 'Ada', family_name: 'Lovelace' };
const PROVIDERS = ['local', 'house', 'hsm'];

describeWithOpenBao('complete flows with external key providers', (binary) => {
  let vault: OpenBao;
  let proxy: VaultProxy;
  let hsm: SoftHsm | undefined;
  let service: TestService;
  const tokens = new Map<string, string>();
  const anchors = new Map<string, string>();

  before(async () => {
    vault = await startOpenBao(binary);
    proxy = await VaultProxy.startInFrontOf(vault.address);
    const providers: Record<string, KmsConfig['providers'][string]> = {
      local: { type: 'local' },
      house: { ...(await vault.settings({ address: proxy.address })), type: 'vault' },
    };
    if (hasSoftHsm()) {
      hsm = new SoftHsm();
      hsm.addToken('vidimus');
      providers['hsm'] = { ...{ type: 'pkcs11', library: hsm.library, token: 'vidimus', pin: PIN }, ...{ sessions: 4, timeoutSeconds: 5 } };
    }
    const availableProviders = PROVIDERS.filter((name) => name in providers);
    const tenants = Object.fromEntries(availableProviders.map((name) => [`at-${name}`, name]));
    service = await startTestService({ KMS_CONFIG: JSON.stringify({ providers, tenants }) });
    for (const name of availableProviders) await createProviderTenant(name);
  });
  after(async () => {
    await service?.close();
    await proxy?.close();
    await vault?.stop();
    await hsm?.stop();
  });

  /** Creates a tenant with this provider that issues both formats and requests one of them. */
  async function createProviderTenant(provider: string): Promise<void> {
    const { token } = await createTenant(service, `at-${provider}`);
    tokens.set(provider, token);
    await post(provider, '/issuer/config', { display: [{ name: 'Acme', locale: 'en' }], batchSize: 50 });
    // Parsers of mdocs require the country of the issuer.
    await post(provider, '/key-chain', { id: 'issuing', usageType: 'signing', country: 'DE' });
    const keyChainId = 'issuing';
    const display = [{ name: 'Card', locale: 'en' }];
    await post(provider, '/issuer/credentials', {
      id: 'card',
      keyChainId,
      config: { format: 'dc+sd-jwt', display },
      vct: 'urn:card:1',
      claims: CLAIMS,
      disclosureFrame: { _sd: Object.keys(CLAIMS) },
      statusManagement: true,
    });
    const claimsByNamespace = { 'org.example.1': CLAIMS };
    const mdoc = { format: 'mso_mdoc', docType: 'org.example.card', namespace: 'org.example.1', display };
    await post(provider, '/issuer/credentials', { id: 'badge', keyChainId, config: { ...mdoc, claimsByNamespace } });
    const chain = await service.call('GET', '/key-chain/issuing', { token });
    expect(chain.body.kmsProvider).to.equal(provider);
    anchors.set(provider, chain.body.rootCertificate);
    const query = { id: 'card', format: 'dc+sd-jwt', meta: { vct_values: ['urn:card:1'] }, claims: [{ path: ['given_name'] }] };
    await post(provider, '/verifier/config', {
      id: 'who',
      dcql_query: { credentials: [query] },
      trustAnchors: [{ certificate: chain.body.rootCertificate }],
    });
  }

  const post = async (provider: string, path: string, json: object) => {
    const answer = await service.call('POST', path, { token: tokens.get(provider) ?? '', json });
    expect(answer.status, answer.text).to.equal(201);
    return answer.body;
  };
  const issueCredentials = async (provider: string, ids: readonly string[], batch: number) => {
    const offer = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ids };
    const { uri } = await post(provider, '/issuer/offer', offer);
    return new Openid4vcWallet().accept(uri, { batch });
  };

  for (const provider of PROVIDERS) {
    describe(`at ${provider}`, () => {
      before(function () {
        if (!tokens.has(provider)) this.skip();
      });

      for (const batch of [1, 10, 50]) {
        it(`issue both formats in batches of ${batch}, which independent libraries parse`, async () => {
          const receivedCredentials = await issueCredentials(provider, ['card', 'badge'], batch);
          expect(receivedCredentials).to.have.length(2 * batch);
          const oracles = loadOracles();
          if (oracles === undefined) return;
          const anchor = (anchors.get(provider) ?? '').replaceAll(/-----[^-]+-----|\s/g, '');
          // Each check starts a process, so only some credentials are checked.
          for (const { text, configurationId } of [...receivedCredentials.slice(0, 2), ...receivedCredentials.slice(-2)]) {
            if (configurationId === 'card') {
              expect(await oracles.readSdJwtVc(text, anchor)).to.deep.include(CLAIMS);
            } else {
              const { elements } = await oracles.readMdoc(text, [anchor]);
              expect(elements['org.example.1']).to.deep.equal(CLAIMS);
            }
          }
        });
      }

      it('send a signed presentation request, and check its status list', async () => {
        const [credential] = await issueCredentials(provider, ['card'], 1);
        if (credential === undefined) throw new Error('no card');
        const wallet = new Openid4vcWallet();
        const { uri, session } = await post(provider, '/verifier/offer', { response_type: 'uri', requestId: 'who' });
        const presentationResponse = await wallet.present(await wallet.readRequest(uri), credential);
        expect(presentationResponse.status, JSON.stringify(presentationResponse.body)).to.equal(200);
        const sessionResponse = await service.call('GET', `/session/${session}`, { token: tokens.get(provider) ?? '' });
        expect(
          [sessionResponse.body.status, sessionResponse.body.credentials?.[0]?.values?.given_name],
          sessionResponse.text,
        ).to.deep.equal(['completed', 'Ada']);
      });

      it('sign issuer metadata and trust lists, too', async () => {
        const metadata = await service.call('GET', `/.well-known/openid-credential-issuer/at-${provider}`, {
          headers: { Accept: 'application/jwt' },
        });
        expect([metadata.status, metadata.text.split('.')], metadata.text).to.have.nested.property('1.length', 3);
        const list = await post(provider, '/trust-list', {
          id: 'list',
          entities: [
            {
              type: 'internal',
              issuerKeyChainId: 'signing',
              revocationKeyChainId: 'status-list',
              info: { name: 'Acme', country: 'DE', locality: 'Bonn', streetAddress: 'Weg 1' },
            },
          ],
        });
        expect(list.sequenceNumber, JSON.stringify(list)).to.equal(1);
      });
    });
  }

  it('serve tenants of all providers simultaneously', async () => {
    const providerNames = [...tokens.keys()];
    const receivedCredentials = await Promise.all(
      providerNames.flatMap((provider) => [1, 2, 3, 4].map(() => issueCredentials(provider, ['card', 'badge'], 5))),
    );
    expect(receivedCredentials.map(({ length }) => length)).to.deep.equal(receivedCredentials.map(() => 10));
  });

  it('call Vault once for a credential, and once for a batch of fifty', async () => {
    await issueCredentials('house', ['card'], 1);
    for (const batch of [1, 50]) {
      proxy.takeCalls();
      await issueCredentials('house', ['card'], batch);
      // One call for the access token, one for all credentials.
      const signing = proxy.takeCalls().map((call) => call.replace(/at-house\.\S+?\//, '…/'));
      expect(signing).to.deep.equal(['POST /v1/transit/sign/…/sha2-256', 'POST /v1/transit/sign/…/sha2-256']);
    }
  });

  it('leave no key at Vault when a key chain or tenant is removed, or a creation fails', async () => {
    const names = async () => ((await vault.call('LIST', 'transit/keys')).body['data'] as { keys: string[] }).keys;
    const namesBefore = await names();
    const chainResponse = await post('house', '/key-chain', { id: 'brief', usageType: 'signing' });
    expect(chainResponse.externalKeyId).to.be.a('string');
    expect((await names()).length).to.equal(namesBefore.length + 2);
    const token = tokens.get('house') ?? '';
    expect((await service.call('DELETE', '/key-chain/brief', { token })).status).to.equal(200);
    expect(await names()).to.have.members(namesBefore);

    await post('house', '/key-chain', { id: 'twice', usageType: 'signing' });
    const namesAfter = await names();
    const failedCreations = await Promise.all(
      [1, 2, 3, 4].map(() => service.call('POST', '/key-chain', { token, json: { id: 'taken', usageType: 'signing' } })),
    );
    expect(failedCreations.map(({ status }) => status).sort()).to.deep.equal([201, 409, 409, 409]);
    expect((await names()).length).to.equal(namesAfter.length + 2);

    const root = await service.rootToken();
    const tenantResponse = await service.call('POST', '/tenant', { token: root, json: { id: 'passing', name: 'P', kms: 'house' } });
    expect(tenantResponse.status, tenantResponse.text).to.equal(201);
    expect((await names()).some((name) => name.startsWith('passing.'))).to.equal(true);
    await service.call('DELETE', '/tenant/passing', { token: root });
    expect((await names()).filter((name) => name.startsWith('passing.'))).to.deep.equal([]);
  });
});
