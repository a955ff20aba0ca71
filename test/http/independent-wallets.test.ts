import { expect } from 'chai';
import { Backend } from '../support/backend.ts';
import { type CredoWallets, findCredoWallets } from '../support/credo.ts';
import { withoutIssuers } from '../support/failures.ts';
import { loadOracles } from '../support/oracles.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';
import { approve } from '../wallets/openid4vc/browser.ts';
import { readableClaims, type StoredCredential } from '../wallets/openid4vc/credentials.ts';
import { Openid4vcWallet, unnotified } from '../wallets/openid4vc/wallet.ts';

const PORTRAIT = Buffer.from('not really a picture').toString('base64url');
/** ISO/IEC 18013-5 section 7.2.1, the mandatory elements. */
const LICENCE = {
  family_name: 'Lovelace',
  given_name: 'Ada',
  birth_date: '1985-12-10',
  issue_date: '2026-01-01',
  expiry_date: '2036-01-01',
  issuing_country: 'GB',
  issuing_authority: 'DVLA',
  document_number: '1234567',
  portrait: PORTRAIT,
  driving_privileges: [{ vehicle_category_code: 'B', issue_date: '2010-01-01', codes: [{ code: '01' }] }],
  un_distinguishing_sign: 'UK',
  age_over_18: true,
  height: 170,
};
const PERSON = {
  given_name: 'Ada',
  family_name: 'Lovelace',
  nationalities: ['GB', 'FR'],
  address: { locality: 'London', street_address: 'Baker Street 1' },
  age_equal_or_over: { 18: true, 21: true },
};

describe('independent wallets and verifiers', () => {
  let service: TestService;
  let tenant: { id: string; token: string };
  let anchor: string;
  let wallets: CredoWallets | undefined;

  before(async () => {
    wallets = findCredoWallets();
    service = await startTestService();
    tenant = await createTenant(service, 'acme');
    await post('/key-chain', { id: 'gb', usageType: 'signing', country: 'GB', organization: 'A, B "and" C' });
    const status = { keyChainId: 'gb', statusManagement: true, lifeTime: 31_536_000 };
    await post('/issuer/credentials', {
      id: 'pid',
      config: { format: 'dc+sd-jwt', scope: 'pid', display: [{ name: 'Person', locale: 'en' }] },
      vct: 'urn:eudi:pid:1',
      claims: PERSON,
      disclosureFrame: {
        _sd: ['given_name', 'family_name', 'nationalities', 'age_equal_or_over'],
        _sd_decoy: 2,
        nationalities: { _sd: [0, 1] },
        address: { _sd: ['locality', 'street_address'] },
      },
      ...status,
    });
    await post('/issuer/credentials', {
      id: 'mdl',
      config: {
        format: 'mso_mdoc',
        scope: 'mdl',
        docType: 'org.iso.18013.5.1.mDL',
        namespace: 'org.iso.18013.5.1',
        display: [{ name: 'Licence', locale: 'en' }],
        claimsByNamespace: { 'org.iso.18013.5.1': LICENCE },
      },
      ...status,
    });
    const chains = await service.call('GET', '/key-chain', { token: tenant.token });
    const chain = chains.body.find(({ id }: { id: string }) => id === 'gb');
    anchor = String(chain.rootCertificate).replaceAll(/-----[^-]+-----|\s/g, '');
  });
  after(async () => {
    await wallets?.close();
    await service.close();
  });

  const post = async (path: string, json: object) => {
    const answer = await service.call('POST', path, { token: tenant.token, json });
    expect(answer.status, answer.text).to.equal(201);
    return answer.body;
  };
  const offer = (flow: string, ids: readonly string[]) =>
    post('/issuer/offer', { response_type: 'uri', flow, credentialConfigurationIds: ids });
  const flows: readonly [string, (uri: string, wallet: Openid4vcWallet) => Promise<readonly StoredCredential[]>][] = [
    ['pre_authorized_code', (uri, wallet) => wallet.accept(uri)],
    ['authorization_code', (uri, wallet) => wallet.acceptByCode(uri, approve)],
  ];
  for (const [flow, accept] of flows) {
    it(`receive both formats by ${flow} and report it`, async () => {
      const { uri, session } = await offer(flow, ['pid', 'mdl']);
      const received = await accept(uri, new Openid4vcWallet());
      expect(received.map(({ configurationId }) => configurationId)).to.deep.equal(['pid', 'mdl']);
      const seen = await service.call('GET', `/session/${session}`, { token: tenant.token });
      expect(seen.body.status).to.equal('completed');
      expect(seen.body.notifications.map(({ event }: { event: string }) => event)).to.deep.equal([
        'credential_accepted',
        'credential_accepted',
      ]);
    });

    it(`agree on the issued data by ${flow}`, async function () {
      const oracles = loadOracles();
      if (oracles === undefined) return this.skip();
      const { uri } = await offer(flow, ['pid', 'mdl']);
      const [pid, mdl] = await accept(uri, new Openid4vcWallet());
      const payload = await oracles.readSdJwtVc(pid?.text ?? '', anchor);
      expect(payload).to.deep.include({ vct: 'urn:eudi:pid:1', ...PERSON });
      expect((payload['cnf'] as { jwk: object }).jwk).to.include({ x: pid?.holder.publicJwk['x'] });

      const licence = await oracles.readMdoc(mdl?.text ?? '', [anchor]);
      expect(licence.docType).to.equal('org.iso.18013.5.1.mDL');
      expect(licence.checks).to.be.greaterThan(5);
      expect(licence.deviceKey['x']).to.equal(mdl?.holder.publicJwk['x']);
      const elements = licence.elements['org.iso.18013.5.1'] ?? {};
      expect(Object.keys(elements)).to.have.members(Object.keys(LICENCE));
      expect(elements['family_name']).to.equal('Lovelace');
      expect(elements['height']).to.equal(170);
      expect(elements['age_over_18']).to.equal(true);
      expect(Buffer.from(String(elements['portrait']), 'base64url').toString()).to.equal('not really a picture');
      expect(JSON.stringify(elements['birth_date'])).to.include('1985-12-10');
    });
  }

  for (const [flow] of flows) {
    it(`receive both formats by ${flow} in a second wallet, which verifies them itself`, async function () {
      if (wallets === undefined) return this.skip();
      const { uri, session } = await offer(flow, ['pid', 'mdl']);
      const { credentials: received } = await wallets.serve({ offer: uri, flow, anchors: [anchor] });
      expect(received.map(({ configurationId, format }) => [configurationId, format])).to.deep.equal([
        ['pid', 'dc+sd-jwt'],
        ['mdl', 'mso_mdoc'],
      ]);
      expect(received.every(({ notified }) => notified)).to.equal(true);
      expect(received[0]?.claims).to.deep.include({ vct: 'urn:eudi:pid:1', ...PERSON });
      const elements = received[1]?.claims['org.iso.18013.5.1'];
      expect(elements).to.deep.include({ family_name: 'Lovelace', height: 170 });
      const seen = await service.call('GET', `/session/${session}`, { token: tenant.token });
      expect(seen.body.status).to.equal('completed');
    });
  }

  it('receive the requested credential of a page with other credentials that require an interaction', async function () {
    if (wallets === undefined) return this.skip();
    await post('/verifier/config', {
      id: 'first',
      dcql_query: { credentials: [{ id: 'pid', format: 'dc+sd-jwt', meta: { vct_values: ['urn:eudi:pid:1'] } }] },
      trustAnchors: [{ keyChainId: 'gb' }],
    });
    await post('/issuer/credentials', {
      id: 'badge',
      config: { format: 'dc+sd-jwt', scope: 'badge', display: [{ name: 'Badge', locale: 'en' }] },
      vct: 'urn:badge:1',
      claims: { role: 'friend' },
      iaeActions: [{ type: 'openid4vp_presentation', presentationConfigId: 'first' }],
    });
    const flow = 'authorization_code';
    const { uri } = await offer(flow, ['pid']);
    const { credentials: received } = await wallets.serve({ offer: uri, flow, anchors: [anchor] });
    expect(received.map(({ configurationId }) => configurationId)).to.deep.equal(['pid']);
  });

  describe('wait for a deferred credential', () => {
    let backend: Backend;
    before(async () => {
      backend = await Backend.start();
      backend.on('/claims', { json: { deferred: true, interval: 1 } });
      await post('/issuer/credentials', {
        id: 'later',
        config: { format: 'dc+sd-jwt', scope: 'later', display: [{ name: 'Later', locale: 'en' }] },
        vct: 'urn:later:1',
        keyChainId: 'gb',
        claimsWebhook: { url: `${backend.url}/claims` },
      });
    });
    after(() => backend.close());

    const waiting = async (session: string) => {
      const answer = await service.call('GET', `/issuer/deferred?session=${session}`, { token: tenant.token });
      return answer.body as { transactionId: string; status: string }[];
    };
    const complete = async (transactionId: string) => {
      const json = { claims: { given_name: 'Ada' } };
      const path = `/issuer/deferred/${transactionId}/complete`;
      const answer = await service.call('POST', path, { token: tenant.token, json });
      expect(answer.status, answer.text).to.equal(200);
    };
    const expectCompleted = async (session: string) => {
      const seen = await service.call('GET', `/session/${session}`, { token: tenant.token });
      expect(seen.body.status).to.equal('completed');
    };

    it('and retrieve it once it is available', async () => {
      const { uri, session } = await offer('pre_authorized_code', ['later']);
      const wallet = new Openid4vcWallet(unnotified);
      expect(await wallet.accept(uri)).to.deep.equal([]);
      const [{ transactionId = '' } = {}, ...others] = await waiting(session);
      expect(others).to.deep.equal([]);
      expect(wallet.promised.map((promised) => promised.transactionId)).to.deep.equal([transactionId]);
      expect(await wallet.fetchPromised(), 'not yet').to.deep.equal([]);
      await complete(transactionId);
      const [received] = await wallet.fetchPromised();
      expect(readableClaims(received?.text ?? '')).to.deep.equal({});
      expect(received?.text).to.match(/^ey[^~]+~$/);
      await expectCompleted(session);
    });

    it('and show a known fault of the library, which still exists', async () => {
      const { uri, session } = await offer('pre_authorized_code', ['later']);
      const wallet = new Openid4vcWallet();
      await wallet.accept(uri);
      expect(await wallet.fetchPromised(), 'not yet').to.deep.equal([]);
      await complete((await waiting(session))[0]?.transactionId ?? '');
      const refused = await wallet.fetchPromised().catch((error: unknown) => error);
      expect(refused).to.be.instanceOf(Error);
    });

    it('and verify it in a second wallet', async function () {
      if (wallets === undefined) return this.skip();
      const { uri, session } = await offer('pre_authorized_code', ['later']);
      const serving = wallets.serve({ offer: uri, flow: 'pre_authorized_code', anchors: [anchor] });
      let promised = await waiting(session);
      for (let tries = 0; tries < 100 && promised.length === 0; tries++) {
        await new Promise((resolve) => setTimeout(resolve, 100));
        promised = await waiting(session);
      }
      await complete(promised[0]?.transactionId ?? '');
      const { credentials } = await serving;
      expect(credentials.map(({ configurationId, format }) => [configurationId, format])).to.deep.equal([['later', 'dc+sd-jwt']]);
      expect(credentials[0]?.claims).to.deep.include({ vct: 'urn:later:1', given_name: 'Ada' });
      await expectCompleted(session);
    });
  });

  describe('present their credentials', () => {
    const ORIGIN = 'https://shop.example';
    const NAMESPACE = 'org.iso.18013.5.1';
    const QUERY = {
      credentials: [
        {
          id: 'person',
          format: 'dc+sd-jwt',
          meta: { vct_values: ['urn:eudi:pid:1'] },
          claims: [{ path: ['family_name'] }, { path: ['address', 'locality'] }, { path: ['age_equal_or_over', '18'], values: [true] }],
        },
        {
          id: 'licence',
          format: 'mso_mdoc',
          meta: { doctype_value: 'org.iso.18013.5.1.mDL' },
          claims: [{ path: [NAMESPACE, 'family_name'] }, { path: [NAMESPACE, 'age_over_18'], values: [true] }],
        },
      ],
    };
    const SHOWN = [
      { id: 'person', values: { family_name: 'Lovelace', address: { locality: 'London' }, age_equal_or_over: { 18: true } } },
      { id: 'licence', values: { [NAMESPACE]: { family_name: 'Lovelace', age_over_18: true } } },
    ];
    const PAYMENT = { type: 'urn:example:payment', credential_ids: ['person'], amount: '12.50 EUR' };
    let verifier: string;

    before(async () => {
      const chain = await service.call('GET', '/key-chain/access', { token: tenant.token });
      verifier = String(chain.body.rootCertificate).replaceAll(/-----[^-]+-----|\s/g, '');
      const shared = { dcql_query: QUERY, trustAnchors: [{ keyChainId: 'gb' }], expectedOrigins: [ORIGIN], values: 'requested' };
      await post('/verifier/config', { id: 'sealed', ...shared });
      await post('/verifier/config', { id: 'plain', responseMode: 'direct_post', ...shared });
      await post('/verifier/config', { id: 'unsigned', dcApiRequest: 'unsigned', ...shared });
      await post('/verifier/config', { id: 'paid', transaction_data: [PAYMENT], ...shared });
    });

    const ask = (requestId: string, response_type = 'uri') => post('/verifier/offer', { response_type, requestId });
    const expectShown = async (session: string) => {
      const seen = (await service.call('GET', `/session/${session}`, { token: tenant.token })).body;
      expect(seen.status, JSON.stringify(seen.report)).to.equal('completed');
      expect(withoutIssuers(seen.credentials)).to.deep.equal(SHOWN);
    };

    it('to an address, encrypted and unencrypted, and confirm a transaction', async function () {
      if (wallets === undefined) return this.skip();
      const { uri } = await offer('pre_authorized_code', ['pid', 'mdl']);
      const asked = [await ask('sealed'), await ask('plain'), await ask('paid')];
      const requests = asked.map(({ uri: request }) => ({ request }));
      const flow = 'pre_authorized_code';
      const { presented } = await wallets.serve({ offer: uri, flow, anchors: [anchor, verifier], requests });
      expect(presented.map(({ status }) => status)).to.deep.equal([200, 200, 200]);
      // HAIP 1.0 section 5.1: where the wallet sends the user back to
      for (const answer of presented) {
        expect(answer).to.have.nested.property('body.redirect_uri').that.includes('/presented?response_code=');
      }
      for (const { session } of asked) await expectShown(session);
    });

    it('to a page, by a signed request and by an unsigned one', async function () {
      if (wallets === undefined) return this.skip();
      const { uri } = await offer('pre_authorized_code', ['pid', 'mdl']);
      const asked = [];
      for (const id of ['sealed', 'unsigned', 'plain']) asked.push(await ask(id, 'dc-api'));
      const requests = asked.map(({ dcApi }) => ({ request: dcApi.requests[0].data, origin: ORIGIN }));
      const flow = 'pre_authorized_code';
      const { presented } = await wallets.serve({ offer: uri, flow, anchors: [anchor, verifier], requests });
      for (const [at, { uri: address, session }] of asked.entries()) {
        const answer = await service.call('POST', address, { json: presented[at]?.data });
        expect([answer.status, answer.body], answer.text).to.deep.equal([200, {}]);
        await expectShown(session);
      }
    });

    it('to another page, which is rejected', async function () {
      if (wallets === undefined) return this.skip();
      const { uri } = await offer('pre_authorized_code', ['pid', 'mdl']);
      const { dcApi, uri: address, session } = await ask('unsigned', 'dc-api');
      const requests = [{ request: dcApi.requests[0].data, origin: 'https://evil.example' }];
      const flow = 'pre_authorized_code';
      const { presented } = await wallets.serve({ offer: uri, flow, anchors: [anchor, verifier], requests });
      const answer = await service.call('POST', address, { json: presented[0]?.data });
      expect(answer.status, answer.text).to.equal(400);
      const seen = (await service.call('GET', `/session/${session}`, { token: tenant.token })).body;
      expect(seen.status).to.equal('failed');
      expect(seen.failure.message).to.include('aud_mismatch').and.include('device_signature');
    });
  });

  it('detect a modified credential', async function () {
    const oracles = loadOracles();
    if (oracles === undefined) return this.skip();
    const { uri } = await offer('pre_authorized_code', ['pid', 'mdl']);
    const [pid, mdl] = await new Openid4vcWallet().accept(uri);
    const bytes = Buffer.from(mdl?.text ?? '', 'base64url');
    bytes[bytes.indexOf('Lovelace')] = 'D'.charCodeAt(0);
    const changed = await oracles.readMdoc(bytes.toString('base64url'), [anchor]).catch((error: unknown) => error);
    expect(changed).to.be.instanceOf(Error);
    const [jwt = '', ...rest] = (pid?.text ?? '').split('~');
    const [header, payload = '', signature] = jwt.split('.');
    const bent = Buffer.from(payload, 'base64url').toString().replace('urn:eudi:pid:1', 'urn:eudi:pid:2');
    const text = [[header, Buffer.from(bent).toString('base64url'), signature].join('.'), ...rest].join('~');
    const refused = await oracles.readSdJwtVc(text, anchor).catch((error: unknown) => error);
    expect(refused).to.be.instanceOf(Error);
  });
});
