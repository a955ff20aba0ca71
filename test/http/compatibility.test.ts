import { expect } from 'chai';
import { Clock } from '../../application/ports/clock.ts';
import { Store } from '../../application/ports/store.ts';
import { SYSTEM } from '../../domain/audit/audit-entry.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { createResource, offerBody } from '../support/populated.ts';
import { RawWallet } from '../support/raw-wallet.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

const display = [{ name: 'Acme', locale: 'en' }];
const QUERY = { credentials: [{ id: 'pid', format: 'dc+sd-jwt', meta: { vct_values: ['urn:pid:1'] } }] };

describe('requests that release 0.1.0 accepted', () => {
  let service: TestService;
  let token: string;

  before(async () => {
    service = await startTestService({ OUTBOUND_ALLOW: 'my_backend' });
    ({ token } = await createTenant(service, 'acme'));
  });
  after(() => service.close());

  const written = async (method: string, path: string, json: object) => {
    const answer = await service.call(method, path, { token, json });
    expect(answer.status, answer.text).to.be.oneOf([200, 201]);
    return answer.body;
  };
  const credential = (changes: object) => ({ id: 'pid', config: { format: 'dc+sd-jwt', display }, vct: 'urn:pid:1', ...changes });
  /** Writes the resource with an address, by POST and by PATCH, and returns what is stored each time. */
  const addresses: Record<string, (uri: string) => Promise<string[]>> = {
    webhook: async (url) => {
      const made = await written('POST', '/issuer/credentials', credential({ claimsWebhook: { url } }));
      const changed = await written('PATCH', '/issuer/credentials/pid', { notificationWebhook: { url } });
      await service.call('DELETE', '/issuer/credentials/pid', { token });
      return [made.claimsWebhook.url, changed.notificationWebhook.url];
    },
    redirectUri: async (redirectUri) => {
      const made = await written('POST', '/verifier/config', { id: 'q', dcql_query: QUERY, redirectUri });
      const changed = await written('PATCH', '/verifier/config/q', { redirectUri });
      return [made.redirectUri, changed.redirectUri];
    },
    logo: async (uri) => {
      const logo = { uri };
      const config = { format: 'dc+sd-jwt', display: [{ name: 'Acme', locale: 'en', logo }] };
      const made = await written('POST', '/issuer/config', { display: [{ name: 'Acme', logo }] });
      const card = await written('POST', '/issuer/credentials', credential({ config }));
      await service.call('DELETE', '/issuer/credentials/pid', { token });
      return [made.display[0].logo.uri, card.config.display[0].logo.uri];
    },
    authServers: async (uri) => {
      const made = await written('POST', '/issuer/config', { display, authServers: [uri], preferredAuthServer: uri });
      const { body } = await service.call('GET', '/.well-known/openid-credential-issuer/acme');
      return [...made.authServers, made.preferredAuthServer, body.authorization_servers[0]];
    },
    'chainedAs.upstream': async (issuer) => {
      const upstream = { issuer, clientId: 'acme', clientSecret: 'a secret of this client' };
      const made = await written('POST', '/issuer/config', { display, chainedAs: { upstream } });
      return [made.chainedAs.upstream.issuer];
    },
    'info.uri': async (uri) => {
      const info = { name: 'Acme', country: 'DE', streetAddress: 'Weg 1', uri, contactUri: uri };
      const entities = [{ type: 'internal', issuerKeyChainId: 'signing', info }];
      const made = await written('POST', '/trust-list', { id: `l${lists++}`, entities });
      return [made.entityConfig[0].info.uri, made.entityConfig[0].info.contactUri];
    },
  };
  let lists = 0;
  const CASES: [string, string][] = [
    ['https://acme.example/p/{y}', 'https://acme.example/p/%7By%7D'],
    ['https://münchen.example/x', 'https://xn--mnchen-3ya.example/x'],
    ['https://acme.example/a|b', 'https://acme.example/a%7Cb'],
    ['http://my_backend:8080/x', 'http://my_backend:8080/x'],
    [' https://acme.example/x\n', 'https://acme.example/x'],
  ];
  const WITH_QUERY: [string, string][] = [
    ['https://acme.example/?filter[x]=1', 'https://acme.example/?filter%5Bx%5D=1'],
    ['https://acme.example/?x=%zz', 'https://acme.example/?x=%25zz'],
  ];
  for (const [kind, write] of Object.entries(addresses)) {
    const isIssuer = kind === 'authServers' || kind === 'chainedAs.upstream';
    for (const [text, normal] of isIssuer ? CASES : [...CASES, ...WITH_QUERY]) {
      it(`store ${JSON.stringify(text)} as ${kind} in the form ${normal}`, async () => {
        for (const stored of await write(text)) expect(stored).to.equal(normal);
      });
    }
    it(`are still rejected with a password in ${kind}`, async () => {
      const error: unknown = await write('https://u:p@acme.example/x').catch((reason: unknown) => reason);
      expect(String(error)).to.include('400').and.include('credentials');
    });
  }

  it('store a vct with non-URI characters unchanged, with a warning', async () => {
    const made = await written('POST', '/issuer/credentials', credential({ vct: 'Student card' }));
    expect(made.vct).to.equal('Student card');
    expect(made.warnings.map(({ member }: { member: string }) => member)).to.include('vct');
    await service.call('DELETE', '/issuer/credentials/pid', { token });
  });

  it('store a presentation configuration without trusted issuers, with a warning', async () => {
    const made = await written('POST', '/verifier/config', { id: 'none', dcql_query: QUERY, trustAnchors: [] });
    expect(made.trustAnchors).to.deep.equal([]);
    expect(made.warnings.map(({ member }: { member: string }) => member)).to.include('trustAnchors');
  });
});

const TYPE = 'org.example.card';
const STATED = { cryptographic_binding_methods_supported: ['jwk'], credential_signing_alg_values_supported: ['ES256'] };
const CARD = { id: 'card', config: { format: 'dc+sd-jwt' }, vct: 'urn:card:1', claims: { name: 'Ada' } };

describe('minimal input', () => {
  let service: TestService;
  let token: string;
  let wallet: RawWallet;

  before(async () => {
    service = await startTestService();
    ({ token } = await createTenant(service, 'acme'));
    await createResource(service, token, '/issuer/credentials', CARD);
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

  it('without a display is accepted for a credential and an issuer, whose metadata omit it', async () => {
    const { warnings } = await createResource(service, token, '/issuer/config', { display: [] });
    expect(warnings).to.be.an('array');
    const card = await createResource(service, token, '/issuer/credentials', { ...CARD, id: 'plain', vct: null });
    expect(card.warnings.map(({ member }: { member: string }) => member)).to.include('config.display');
    expect(await metadataOf('plain')).to.not.have.property('credential_metadata');
    const metadata = (await service.call('GET', '/.well-known/openid-credential-issuer/acme')).body;
    expect(metadata).to.not.have.property('display');
    const type = (await service.call('GET', '/acme/vct/plain')).body;
    expect(type.vct).to.equal(`${wallet.issuer}/vct/plain`);
    expect(type).to.not.have.any.keys('display', 'name');
    const { uri } = await createResource(service, token, '/issuer/offer', offerBody('plain'));
    expect((await wallet.request(await wallet.accessToken(uri), 'plain')).status).to.equal(200);
    const read = (await service.call('GET', '/issuer/credentials/plain', { token })).body;
    expect((await post('/issuer/credentials', read)).status).to.equal(201);
  });

  it('with empty lists is accepted', async () => {
    const lists = { display: [], claims: [], cryptographic_binding_methods_supported: [], credential_signing_alg_values_supported: [] };
    const empty = { ...CARD, id: 'empty', config: { ...CARD.config, ...lists }, iaeActions: [] };
    await createResource(service, token, '/issuer/credentials', empty);
    expect(await metadataOf('empty')).to.include.keys('credential_signing_alg_values_supported');
    const issuer = { display: [], authServers: [], walletProviderTrustLists: [], walletClients: [], walletProviders: [] };
    await createResource(service, token, '/issuer/config', issuer);
    const nothing = { ...offerBody('card'), credentialConfigurationIds: [] };
    const answer = await post('/issuer/offer', nothing);
    // OpenID4VCI 1.0 section 4.1.1: an offer of nothing is none.
    expect([answer.status, answer.body.errors[0].path]).to.deep.equal([400, 'credentialConfigurationIds']);
  });

  it('with values that the service sets itself is accepted if they are correct', async () => {
    await createResource(service, token, '/issuer/credentials', { ...CARD, config: { ...CARD.config, ...STATED } });
    expect(await metadataOf('card')).to.deep.include(STATED);
    const method = { ...STATED, cryptographic_binding_methods_supported: ['jwk', 'did:key'] };
    expect(await refusedAt({ ...CARD, config: { ...CARD.config, ...method } })).to.equal(
      'config.cryptographic_binding_methods_supported.1',
    );
    // A key of this kind could sign, but the one that does is another.
    const algorithm = { ...STATED, credential_signing_alg_values_supported: ['ES384'] };
    const other = { ...CARD, config: { ...CARD.config, ...algorithm } };
    expect(await refusedAt(other)).to.equal('config.credential_signing_alg_values_supported.0');
    await createResource(service, token, '/key-chain', { id: 'p384', usages: ['signing'], algorithm: 'ES384' });
    await createResource(service, token, '/issuer/credentials', { ...other, keyChainId: 'p384' });
    expect((await metadataOf('card')).credential_signing_alg_values_supported).to.deep.equal(['ES384']);
    const back = await service.call('PATCH', '/issuer/credentials/card', { token, json: { keyChainId: null } });
    expect(back.status, back.text).to.equal(400);
    expect(back.body.errors[0].path).to.equal('config.credential_signing_alg_values_supported.0');
    await createResource(service, token, '/issuer/credentials', CARD);
  });

  it('of an mdoc is accepted with mdoc terms', async () => {
    const config = {
      format: 'mso_mdoc',
      docType: TYPE,
      cryptographic_binding_methods_supported: ['cose_key'],
      credential_signing_alg_values_supported: [-7],
    };
    await createResource(service, token, '/issuer/credentials', { id: 'doc', config, claims: { name: 'Ada' } });
    const bent = { ...config, cryptographic_binding_methods_supported: ['jwk'] };
    expect(await refusedAt({ id: 'doc', config: bent })).to.equal('config.cryptographic_binding_methods_supported.0');
  });

  it('with other properties is rejected as before, with a suggested name', async () => {
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
    it(`with a transaction code of ${what} is accepted, and the wallet redeems the code`, async () => {
      const { uri } = await createResource(service, token, '/issuer/offer', { ...offerBody('card'), tx_code });
      const offer = (await wallet.offer(uri)) as { grants: Record<string, { tx_code: object }> };
      expect(Object.values(offer.grants)[0]?.tx_code).to.deep.equal(told);
      const code = await wallet.code(uri);
      expect((await wallet.redeem(code, { tx_code: `${tx_code}x` })).status).to.equal(400);
      // Another keyboard writes the same letters in more characters.
      expect((await wallet.redeem(code, { tx_code: tx_code.normalize('NFD') })).status).to.equal(200);
    });
  }

  for (const tx_code of ['', ' 1234', '1234 ', '12\n34', '12\u200b34', '1'.repeat(257)]) {
    it(`is rejected with a transaction code that cannot be typed: ${JSON.stringify(tx_code.slice(0, 9))}`, async () => {
      const answer = await post('/issuer/offer', { ...offerBody('card'), tx_code });
      expect([answer.status, answer.body.errors?.[0].path], answer.text).to.deep.equal([400, 'tx_code']);
    });
  }
});

type Json = Readonly<Record<string, unknown>>;

describe('PATCH of a resource with a property that only an earlier release accepted', () => {
  let service: TestService;
  let token: string;

  before(async () => {
    service = await startTestService();
    ({ token } = await createTenant(service, 'acme'));
  });
  after(() => service.close());

  const call = (method: string, path: string, json?: object) => service.call(method, path, { token, ...(json && { json }) });
  /** Changes a stored document past all rules, as an earlier release could have written it. */
  const age = async (kind: 'credentialConfigurations' | 'presentationConfigurations', id: string, change: Json) => {
    const store = service.service.container.get(Store);
    await store.forTenant(
      'acme' as TenantId,
      async (own) => {
        const stored = await own[kind].get(id);
        const now = service.service.container.get(Clock).now();
        await own[kind].put({ ...stored, ...change, updatedAt: now } as never);
      },
      { by: SYSTEM },
    );
  };
  const credential = async (change: Json, written: Json = {}) => {
    const json = {
      ...{ id: 'card', vct: 'urn:card:1', claims: { name: 'Ada' } },
      config: { format: 'dc+sd-jwt', scope: 'card', display: [{ name: 'Card', locale: 'en' }] },
      ...written,
    };
    expect((await call('POST', '/issuer/credentials', json)).status).to.equal(201);
    await age('credentialConfigurations', 'card', change);
  };
  const request = async (change: Json) => {
    const query = { id: 'a', format: 'dc+sd-jwt', meta: { vct_values: ['urn:a'] }, claims: [{ id: 'x', path: ['x'] }] };
    const json = { id: 'q', dcql_query: { credentials: [query] } };
    expect((await call('POST', '/verifier/config', json)).status).to.equal(201);
    await age('presentationConfigurations', 'q', change);
  };
  const patched = async (path: string, json: object, warned: RegExp) => {
    const answer = await call('PATCH', path, json);
    expect(answer.status, answer.text).to.equal(200);
    const members = answer.body.warnings.map(({ member }: { member: string }) => member);
    expect(
      members.filter((member: string) => warned.test(member)),
      members.join(),
    ).to.have.length.above(0);
    return answer.body;
  };
  const refused = async (path: string, json: object, member: string) => {
    const answer = await call('PATCH', path, json);
    expect(answer.status, answer.text).to.equal(400);
    expect(answer.body.errors.map((error: { path: string }) => error.path).join()).to.include(member);
  };
  const CARD = '/issuer/credentials/card';
  const QUERY = '/verifier/config/q';

  it('changes a credential configuration, keeps the property and warns about it', async () => {
    await credential({ vct: 'urn:karte:ä' });
    const body = await patched(CARD, { description: 'Changed' }, /^vct$/);
    expect([body.description, body.vct]).to.deep.equal(['Changed', 'urn:karte:ä']);
    await refused(CARD, { vct: 'urn:andere:ä' }, 'vct');
  });

  it('changes a credential configuration whose webhook may not be called any more', async () => {
    await credential({ claimsWebhook: { url: 'http://10.1.2.3/claims' } });
    expect((await call('PATCH', CARD, { lifeTime: 3600 })).status).to.equal(200);
    await refused(CARD, { claimsWebhook: { url: 'http://10.1.2.3/other' } }, 'claimsWebhook.url');
  });

  it('changes a credential configuration with a webhook header that later became reserved', async () => {
    const config = { headerName: 'webhook-key', value: 'the-key-of-the-webhook' };
    await credential({ claimsWebhook: { url: 'https://a.example', auth: { type: 'apiKey', config } } });
    await patched(CARD, { lifeTime: 3600 }, /^claimsWebhook\.auth\.config\.headerName$/);
  });

  it('is validated for a rule between two properties if it contains one of them', async () => {
    await credential({ oneActiveSet: true, statusManagement: false });
    await patched(CARD, { description: 'Changed' }, /^oneActiveSet$/);
    await refused(CARD, { statusManagement: false }, 'oneActiveSet');
    await refused(CARD, { followWalletStatus: true }, 'followWalletStatus');
    expect((await call('PATCH', CARD, { statusManagement: true })).status).to.equal(200);
  });

  it('is validated for the type metadata if it changes the disclosure frame', async () => {
    const vct = { claims: [{ path: ['name'], sd: 'always' }] };
    await credential({ vct });
    await patched(CARD, { description: 'Changed' }, /^vct\./);
    await refused(CARD, { disclosureFrame: { _sd: [] } }, 'vct.claims.0.sd');
    expect((await call('PATCH', CARD, { disclosureFrame: { _sd: ['name'] } })).status).to.equal(200);
  });

  it('resets a property to its default with null', async () => {
    await credential({ vct: 'urn:karte:ä', lifeTime: 3600, keyBinding: true });
    const body = await patched(CARD, { lifeTime: null, keyBinding: null }, /^vct$/);
    expect([body.lifeTime ?? null, body.keyBinding]).to.deep.equal([null, true]);
    await refused(CARD, { config: null }, 'config');
    await refused(CARD, { other: 1 }, 'other');
  });

  it('changes a presentation configuration, keeps the property and warns about it', async () => {
    await request({ redirectUri: 'custom:/done' });
    const body = await patched(QUERY, { lifeTime: 60 }, /^redirectUri$/);
    expect([body.lifeTime, body.redirectUri]).to.deep.equal([60, 'custom:/done']);
    await refused(QUERY, { redirectUri: 'other:/done' }, 'redirectUri');
  });

  it('changes a presentation configuration whose query or anchors became invalid, but not these properties', async () => {
    const dcql_query = { credentials: [{ id: 'a', format: 'dc+sd-jwt', meta: { vct_values: ['urn:a'] }, claims: [{ path: [0] }] }] };
    await request({ dcql_query, trustAnchors: [{ keyChainId: 'gone' }] });
    await patched(QUERY, { description: 'Changed' }, /^dcql_query\./);
    await refused(QUERY, { dcql_query }, 'dcql_query.credentials.0.claims.0.path.0');
    await refused(QUERY, { trustAnchors: [{ keyChainId: 'gone' }] }, 'trustAnchors.0.keyChainId');
  });

  it('is validated for transaction data against an unchanged query', async () => {
    await request({ transaction_data: [{ type: 't', credential_ids: ['gone'] }] });
    await patched(QUERY, { description: 'Changed' }, /^transaction_data\./);
    await refused(QUERY, { transaction_data: [{ type: 't', credential_ids: ['missing'] }] }, 'transaction_data.0');
  });

  it('signs a trust list again whose scheme became incomplete', async () => {
    const type = 'http://uri.etsi.org/19602/LoTEType/EUPIDProvidersList';
    const json = { id: 'list', entities: [] };
    expect((await call('POST', '/trust-list', json)).status).to.equal(201);
    const store = service.service.container.get(Store);
    await store.forTenant(
      'acme' as TenantId,
      async ({ trustLists }) => {
        const list = await trustLists.get('list');
        const data = { LoTE: { ListAndSchemeInformation: { LoTEType: type } } };
        const older = { ...list, data, sequenceNumber: list.sequenceNumber + 1 };
        await trustLists.replace(older as never, { id: 'version', list });
      },
      { by: SYSTEM, exclusive: true },
    );
    const answer = await call('PATCH', '/trust-list/list', { description: 'Changed' });
    expect(answer.status, answer.text).to.equal(200);
    expect(answer.body.description).to.equal('Changed');
    const data = { LoTE: { ListAndSchemeInformation: { LoTEType: type } } };
    await refused('/trust-list/list', { data }, 'data.LoTE.ListAndSchemeInformation.SchemeName');
  });
});
