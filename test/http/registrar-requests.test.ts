import { expect } from 'chai';
import sinon from 'sinon';
import { Log } from '../../application/ports/log.ts';
import { packEntries } from '../../domain/status-lists/bits.ts';
import { compressList } from '../support/compress-list.ts';
import { databases } from '../support/databases.ts';
import { addClient } from '../support/populated.ts';
import { decode } from '../support/present.ts';
import { makeJwt, now } from '../support/raw-wallet.ts';
import type { TestRegistrar } from '../support/registrar.ts';
import { expectInvalid, expectUnavailable, REGISTERED_CREDENTIALS, REGISTERED_QUERY, RegistrarWorld } from '../support/registrar-world.ts';
import { certify, pem, WEB_SERVER } from '../support/test-certificates.ts';
import { createTenant, startTestService } from '../support/test-service.ts';

const ISSUE_PATH = '/registration-certificates';
const [PID] = REGISTERED_CREDENTIALS;
const widerQuery = { credentials: [{ ...REGISTERED_QUERY.credentials[0], claims: [{ path: ['given_name'] }, { path: ['family_name'] }] }] };

describe('registration certificate of a request', () => {
  let world: RegistrarWorld;
  let registrar: TestRegistrar;
  let count = 0;
  const newId = () => `check-${++count}`;

  before(async () => {
    world = await RegistrarWorld.open();
    registrar = world.registrar;
    await world.configure();
  });
  after(() => world.close());
  beforeEach(() => world.clearCaches());
  afterEach(() => sinon.restore());
  const passTime = (milliseconds: number) => sinon.useFakeTimers({ now: Date.now() + milliseconds, toFake: ['Date'] });

  /** Saves a configuration and creates a request with it. */
  const createRequest = async (registrationCert: object, changes: object = {}) => {
    const id = newId();
    const configurationResponse = await world.configurePresentation(id, registrationCert, changes);
    expect(configurationResponse.status, configurationResponse.text).to.equal(201);
    expect(configurationResponse.body.registrationCert).to.deep.equal(registrationCert);
    return { id, info: (await world.request(id)).payload['verifier_info'] };
  };
  const expectRejected = async (registrationCert: object, path: string, message: string, changes: object = {}) => {
    const id = newId();
    expectInvalid(await world.configurePresentation(id, registrationCert, changes), path, message);
    expect((await world.call('GET', `/verifier/config/${id}`)).status, 'no configuration is stored').to.equal(404);
  };

  describe('that the registrar issues', () => {
    it('is obtained when the configuration is saved and causes no call afterwards', async () => {
      const attachedInfo = [{ format: 'other', data: { a: 1 } }];
      const { id, info } = await createRequest({ body: {} }, { attached: attachedInfo });
      const [call, ...otherCalls] = registrar.callsTo(ISSUE_PATH);
      expect(otherCalls).to.deep.equal([]);
      const { registrationCertificateDefaults: defaults } = registrar.login();
      expect(call?.body).to.deep.equal({ ...defaults, credentials: REGISTERED_CREDENTIALS, rpId: 'party-1' });
      const [certificate] = [...registrar.issued.values()].slice(-1);
      expect(info).to.deep.equal([{ format: 'registration_cert', data: certificate?.['jwt'] }, ...attachedInfo]);

      registrar.calls.length = 0;
      for (let index = 0; index < 3; index++) await world.request(id);
      const configurationResponse = await world.configurePresentation(id, { body: {} }, { lifeTime: 600 });
      expect(configurationResponse.status, configurationResponse.text).to.equal(201);
      expect(registrar.calls).to.deep.equal([]);
    });

    it('contains the values of the configuration, and those of the query unless they are configured, too', async () => {
      const credentials = [...REGISTERED_CREDENTIALS, { format: 'mso_mdoc', meta: { doctype_value: 'x' } }];
      const purpose = [{ lang: 'de', content: 'Kontoeröffnung' }];
      await createRequest({ body: { purpose, credentials, intermediary: 'party-9' } });
      const [call] = registrar.callsTo(ISSUE_PATH);
      expect(call?.body).to.deep.include({ purpose, credentials, intermediary: 'party-9', rpId: 'party-1' });
    });

    it('contains the purpose of the configuration and is renewed when it changes', async () => {
      const purpose = [
        { lang: 'de', content: 'Kontoeröffnung' },
        { lang: 'en', content: 'Opening an account' },
      ];
      const { id, info } = await createRequest({ body: {} }, { purpose });
      expect(registrar.callsTo(ISSUE_PATH)[0]?.body).to.deep.include({ purpose });
      const storedConfiguration = await world.call('GET', `/verifier/config/${id}`);
      expect([storedConfiguration.body.purpose, storedConfiguration.body.registrationCert]).to.deep.equal([purpose, { body: {} }]);

      const changedPurpose = [{ lang: 'en', content: 'A loan' }];
      const answer = await world.call('PATCH', `/verifier/config/${id}`, { purpose: changedPurpose });
      expect(answer.status, answer.text).to.equal(200);
      expect(registrar.callsTo(ISSUE_PATH)[1]?.body).to.deep.include({ purpose: changedPurpose });
      const { payload } = await world.request(id);
      expect(payload['verifier_info'][0].data).to.not.equal(info[0].data);
      expect(registrar.callsTo(ISSUE_PATH)).to.have.length(2);

      const ownPurpose = [{ lang: 'en', content: 'Of the order' }];
      await createRequest({ body: { purpose: ownPurpose } }, { purpose });
      expect(registrar.callsTo(ISSUE_PATH)[2]?.body).to.deep.include({ purpose: ownPurpose });
    });

    it('has no purpose in the request when the registrar does not issue it; an invalid purpose is rejected', async () => {
      const purpose = [{ lang: 'en', content: 'Opening an account' }];
      const certificate = registrar.certificate(REGISTERED_CREDENTIALS);
      for (const registrationCert of [null, { jwt: certificate }]) {
        const id = newId();
        const configurationResponse = await world.configurePresentation(id, registrationCert, { purpose });
        expect([configurationResponse.status, configurationResponse.body.purpose], configurationResponse.text).to.deep.equal([
          201,
          purpose,
        ]);
        const { payload } = await world.request(id);
        expect(JSON.stringify(payload)).to.not.include('Opening an account').and.not.include('purpose');
      }
      const rejection = await world.configurePresentation(newId(), null, { purpose: [{ lang: 'en', value: 'x' }] });
      expectInvalid(rejection, 'purpose.0.content');
    });

    it('needs a purpose, a privacy policy and a support contact', async () => {
      await world.configure({ registrationCertificateDefaults: undefined });
      await expectRejected({ body: {} }, 'registrationCert.body.privacy_policy', 'requires privacy_policy');
      await world.configure();
      expect(registrar.callsTo(ISSUE_PATH)).to.deep.equal([]);
    });

    const narrowerQueries: [string, object[] | undefined, string][] = [
      ['nothing', undefined, 'the format dc+sd-jwt with this meta'],
      ['another type', [{ ...PID, claims: undefined, meta: { vct_values: ['urn:other'] }, claim: PID?.claims }], 'the format dc+sd-jwt'],
      ['another claim', [{ ...PID, claims: undefined, claim: [{ path: ['age'] }] }], '["given_name"]'],
      ['no claim', [{ ...PID, claims: undefined, claim: [] }], 'the format dc+sd-jwt'],
    ];
    for (const [description, credentials, message] of narrowerQueries) {
      it(`is rejected when it covers ${description}`, async () => {
        registrar.payload = { credentials };
        await expectRejected({ body: { intermediary: description } }, 'registrationCert', message);
      });
    }

    it('is rejected when one of two credentials is missing', async () => {
      const second = { id: 'mdl', format: 'mso_mdoc', meta: { doctype_value: 'mdl' } };
      const dcql_query = { credentials: [...REGISTERED_QUERY.credentials, second] };
      await createRequest({ body: {} }, { dcql_query });
      registrar.payload = { credentials: [{ ...PID, claims: undefined, claim: PID?.claims }] };
      await expectRejected({ body: { intermediary: 'x' } }, 'registrationCert', '"mdl"', { dcql_query });
    });

    it('is checked again when the query changes', async () => {
      const { id } = await createRequest({ body: { credentials: REGISTERED_CREDENTIALS } });
      const path = `/verifier/config/${id}`;
      expectInvalid(await world.call('PATCH', path, { dcql_query: widerQuery }), 'registrationCert', '["family_name"]');
      expect((await world.call('GET', path)).body.dcql_query).to.deep.equal(REGISTERED_QUERY);
      registrar.answers.set('/', (response) => response.destroy());
      expect((await world.call('PATCH', path, { lifeTime: 60 })).status, 'a change of another property').to.equal(200);
    });

    it('is renewed before it expires, once for all concurrent requests', async () => {
      registrar.payload = { exp: now() + 5 };
      const { id, info } = await createRequest({ body: { intermediary: 'short' } });
      registrar.payload = {};
      passTime(3_000);
      registrar.calls.length = 0;
      const requests = await Promise.all([1, 2, 3, 4, 5].map(() => world.request(id)));
      expect(registrar.callsTo(ISSUE_PATH)).to.have.length(1);
      for (const { payload } of requests) {
        expect(payload['verifier_info'][0].data).to.not.equal(info[0].data);
      }
    });

    it('is never omitted: without a registrar, no request is created', async () => {
      registrar.payload = { exp: now() + 2 };
      const { id } = await createRequest({ body: { intermediary: 'shorter' } });
      passTime(1_500);
      registrar.calls.length = 0;
      registrar.answers.set('/api', (response) => response.writeHead(500).end());
      expectUnavailable(await world.requestPresentation(id), 'status 500');
      expect(registrar.calls, 'only the first call was made').to.have.length(1);
      registrar.answers.clear();
      expectUnavailable(await world.requestPresentation(id), 'status 500');
      expect(registrar.calls, 'no immediate retry').to.have.length(1);
      const { lifeTime, dcql_query } = (await world.call('GET', `/verifier/config/${id}`)).body;
      registrar.payload = {};
      const configurationResponse = await world.configurePresentation(id, { body: { intermediary: 'shorter' } }, { lifeTime, dcql_query });
      expect(configurationResponse.status, 'saving the configuration again retries').to.equal(201);
      expect((await world.requestPresentation(id)).status).to.equal(201);
    });

    it('has its error shown to clients that manage configurations, and in the log', async () => {
      registrar.payload = { exp: now() + 2 };
      const { id: shortId } = await createRequest({ body: { intermediary: 'secretive' } });
      registrar.payload = { exp: now() - 57 };
      const { id: expiredId } = await createRequest({ jwt: registrar.certificate(REGISTERED_CREDENTIALS) });
      passTime(3_100);
      registrar.answers.set('/api', (response) => response.writeHead(500).end());
      const token = await addClient(world, 'asker', { roles: ['presentation:request'] });
      const log = sinon.spy(world.service.service.container.get(Log), 'warn');
      for (const [id, status, code, expectedReason] of [
        [shortId, 503, 'unavailable', `${registrar.url}/api/relying-parties answered with status 500`],
        [expiredId, 400, 'invalid_input', 'it expired'],
      ] as const) {
        log.resetHistory();
        const { body: manager } = await world.requestPresentation(id);
        expect(manager.detail).to.include(expectedReason);
        const { text, headers, body: problem } = await world.requestPresentation(id, token);
        expect([problem.status, problem.code], text).to.deep.equal([status, code]);
        expect(problem.detail).to.match(/^the registration certificate of this request cannot be used/);
        expect(problem).to.not.have.property('errors');
        expect(headers.get('retry-after')).to.equal(status === 503 ? '15' : null);
        const { requestId } = problem;
        const lines = log.args.map(([, fields]) => fields);
        const loggedFields = lines.map((fields) => ({ ...fields, route: undefined }));
        expect(loggedFields).to.deep.include({ requestId, code, reason: manager.detail, route: undefined });
      }
      log.restore();
    });

    it('is not requested repeatedly when the registrar issues unusable ones', async () => {
      registrar.payload = { exp: now() + 2 };
      const { id } = await createRequest({ body: { intermediary: 'useless' } });
      passTime(1_500);
      registrar.payload = { credentials: [] };
      registrar.calls.length = 0;
      for (let index = 0; index < 3; index++) expectInvalid(await world.requestPresentation(id), 'registrationCert', 'cover');
      expect(registrar.callsTo(ISSUE_PATH)).to.have.length(1);
    });

    it('is rejected if no registrar is configured or it does not answer', async () => {
      const { token } = await createTenant(world.service, 'bare');
      const rejection = await world.configurePresentation('x', { body: {} }, {}, token);
      expectInvalid(rejection, 'registrationCert', 'No registrar is configured');
      registrar.answers.set('/api', (response) => response.destroy());
      expectUnavailable(await world.configurePresentation(newId(), { body: { intermediary: 'down' } }), 'could not be reached');
      registrar.answers.set('/api', (response) => response.writeHead(422).end());
      expectInvalid(await world.configurePresentation(newId(), { body: { intermediary: 'no' } }), 'registrationCert', '422');
    });

    it('belongs to the tenant, also if another tenant requests the same', async () => {
      const { token } = await createTenant(world.service, 'twin');
      await world.configure({}, token);
      const { info } = await createRequest({ body: { intermediary: 'twins' } });
      await world.configurePresentation('check', { body: { intermediary: 'twins' } }, {}, token);
      const otherInfo = (await world.request('check', token)).payload['verifier_info'];
      expect(otherInfo[0].data).to.not.equal(info[0].data);
      const tokens = registrar.callsTo(ISSUE_PATH).map((call) => call.token);
      expect(new Set(tokens).size).to.equal(2);
    });
  });

  describe('in the configuration', () => {
    it('is sent unchanged and needs no registrar', async () => {
      const { token } = await createTenant(world.service, 'importer');
      const jwt = registrar.certificate([...REGISTERED_CREDENTIALS, { format: 'mso_mdoc', meta: {} }]);
      expect((await world.configurePresentation('check', { jwt }, {}, token)).status).to.equal(201);
      const { payload } = await world.request('check', token);
      expect(payload['verifier_info']).to.deep.equal([{ format: 'registration_cert', data: jwt }]);
    });

    it('may omit the CA of its signer', async () => {
      registrar.header = { x5c: [registrar.signer.certificate] };
      await createRequest({ jwt: registrar.certificate(REGISTERED_CREDENTIALS) });
    });

    it('is sent through the Digital Credentials API, too', async () => {
      const jwt = registrar.certificate(REGISTERED_CREDENTIALS);
      const expectedOrigins = ['https://shop.example'];
      for (const dcApiRequest of ['signed', 'unsigned']) {
        const { id } = await createRequest({ jwt }, { expectedOrigins, dcApiRequest });
        const json = { response_type: 'dc-api', requestId: id };
        const { status, text, body } = await world.call('POST', '/verifier/offer', json);
        expect(status, text).to.equal(201);
        const [{ data }] = body.dcApi.requests;
        const parameters = dcApiRequest === 'signed' ? decode(data.request).payload : data;
        expect(parameters.verifier_info).to.deep.equal([{ format: 'registration_cert', data: jwt }]);
      }
    });

    // V18
    it('is rejected when it does not cover the query', async () => {
      const jwt = registrar.certificate(REGISTERED_CREDENTIALS);
      await expectRejected({ jwt }, 'registrationCert', '["family_name"]', { dcql_query: widerQuery });
    });

    const invalidCertificates: [string, () => void, string][] = [
      ['has expired', () => (registrar.payload = { exp: now() - 61 }), 'it expired'],
      ['is not valid yet', () => (registrar.payload = { nbf: now() + 90 }), 'not valid yet'],
      ['is for several uses', () => (registrar.payload = { intended_use_id: ['a', 'b'] }), 'several intended uses'],
      ['is of another kind', () => (registrar.header = { typ: 'rc-rp+jwt' }), 'its type'],
      ['has no signer', () => (registrar.header = { x5c: undefined }), 'x5c'],
      ['names another signer', () => (registrar.header = { x5c: [registrar.ca.certificate] }), 'signer'],
      ['contains an invalid certificate chain', () => (registrar.signedBy = registrar.ca), 'signer'],
      ['is not signed', () => (registrar.header = { alg: 'none' }), 'algorithm'],
    ];
    for (const [description, change, message] of invalidCertificates) {
      it(`is rejected when it ${description}`, async () => {
        change();
        await expectRejected({ jwt: registrar.certificate(REGISTERED_CREDENTIALS) }, 'registrationCert', message);
      });
    }

    it('is rejected when its payload was changed after signing', async () => {
      const [header, , signature] = registrar.certificate(REGISTERED_CREDENTIALS).split('.');
      const [, payload] = registrar.certificate([...REGISTERED_CREDENTIALS, { format: 'x', meta: {} }]).split('.');
      await expectRejected({ jwt: `${header}.${payload}.${signature}` }, 'registrationCert', 'its signature');
    });

    // V18
    it('is rejected once it has expired', async () => {
      registrar.payload = { exp: now() - 57 };
      const { id } = await createRequest({ jwt: registrar.certificate(REGISTERED_CREDENTIALS) });
      passTime(3_100);
      expectInvalid(await world.requestPresentation(id), 'registrationCert', 'it expired');
    });

    it('must be signed under the configured anchors', async () => {
      const jwt = registrar.certificate(REGISTERED_CREDENTIALS);
      const { id } = await createRequest({ jwt });
      const untrustedCa = await certify({ name: 'Unknown CA', ca: true });
      await world.configure({ registrationCertificateAnchors: [pem(untrustedCa)] });
      expectInvalid(await world.requestPresentation(id), 'registrationCert', 'its signer is not accepted');
      for (const anchor of [registrar.ca, registrar.signer]) {
        await world.configure({ registrationCertificateAnchors: [pem(untrustedCa), pem(anchor)] });
        expect((await world.requestPresentation(id)).status, anchor.name).to.equal(201);
      }
      await world.configure();
    });

    it('must be signed by a certificate with the right usage', async () => {
      registrar.signedBy = await certify({ name: 'Web', by: registrar.ca, purposes: [WEB_SERVER] });
      const jwt = registrar.certificate(REGISTERED_CREDENTIALS);
      await world.configure({ registrationCertificateAnchors: [pem(registrar.ca)] });
      await expectRejected({ jwt }, 'registrationCert', 'its signer is not accepted');
      await world.configure();
      await expectRejected({ jwt }, 'registrationCert', 'its signer is not accepted');
    });

    it('must be for the organization of the access certificate', async () => {
      const { id } = await createRequest({ jwt: registrar.certificate(REGISTERED_CREDENTIALS) });
      const order = { keyChainId: 'access' };
      expect((await world.call('POST', '/registrar/access-certificate', order)).status).to.equal(201);
      expect((await world.requestPresentation(id)).status, 'the same certificate').to.equal(201);
      registrar.payload = { sub: 'VATDE-9' };
      await expectRejected({ jwt: registrar.certificate(REGISTERED_CREDENTIALS) }, 'registrationCert', 'VATDE-123456789');
      registrar.payload = { sub: 'VATDE-9', intermediary: { sub: 'VATDE-123456789' } };
      await createRequest({ jwt: registrar.certificate(REGISTERED_CREDENTIALS) });
      registrar.organizationIdentifier = 'VATDE-9';
      expect((await world.call('POST', '/registrar/access-certificate', order)).status).to.equal(201);
      expectInvalid(await world.requestPresentation(id), 'registrationCert', 'VATDE-9');
      registrar.organizationIdentifier = undefined;
      await world.call('POST', '/registrar/access-certificate', order);
      expect((await world.requestPresentation(id)).status, 'a certificate without a party').to.equal(201);
    });
  });

  describe('that the registrar issued earlier', () => {
    it('is looked up', async () => {
      const { id, jwt } = registrar.register(REGISTERED_CREDENTIALS);
      const { info } = await createRequest({ id });
      expect(info).to.deep.equal([{ format: 'registration_cert', data: jwt }]);
      expect(registrar.callsTo(ISSUE_PATH), 'no certificate is issued').to.deep.equal([]);
    });

    it('is rejected when it is unknown, revoked or another one', async () => {
      // `.` and `..` would refer to the folder itself and its parent.
      for (const id of ['nothing', '.', '..']) {
        await expectRejected({ id }, 'registrationCert.id', 'no registration certificate with this id');
      }
      const addresses = registrar.calls.map(({ path }) => path);
      expect(addresses).to.deep.equal(['/registration-certificates/nothing']);
      for (const revoked of [true, '2026-01-01T00:00:00Z', { at: 1 }]) {
        const { id } = registrar.register(REGISTERED_CREDENTIALS);
        registrar.issued.set(id, { ...registrar.issued.get(id), revoked });
        await expectRejected({ id }, 'registrationCert.id', 'revoked');
      }
      const { id } = registrar.register(REGISTERED_CREDENTIALS);
      registrar.issued.set(id, { ...registrar.issued.get(id), id: 'other' });
      expectUnavailable(await world.configurePresentation(newId(), { id }), 'another certificate');
      await expectRejected({ id: registrar.register([]).id }, 'registrationCert', 'does not cover');
    });

    it('is looked up again each time the configuration is saved', async () => {
      const { id } = registrar.register(REGISTERED_CREDENTIALS);
      const configurationResponse = await createRequest({ id });
      registrar.issued.set(id, { ...registrar.issued.get(id), revoked: true });
      expectInvalid(await world.configurePresentation(configurationResponse.id, { id }), 'registrationCert.id', 'revoked');
    });
  });

  describe('with a status', () => {
    const serveCertificate = (status: number, signer = registrar.signer) => {
      const uri = `${registrar.url}/status-${++count}`;
      registrar.payload = { status: { status_list: { idx: 3, uri } } };
      const list = { bits: 2, lst: compressList(packEntries(2, 100, [{ index: 3, status }])) };
      const header = { alg: 'ES256', typ: 'statuslist+jwt', x5c: [signer.certificate] };
      const token = makeJwt(signer, header, { sub: uri, iat: now(), exp: now() + 600, status_list: list });
      registrar.answers.set(new URL(uri).pathname, (response) =>
        response.writeHead(200, { 'Content-Type': 'application/statuslist+jwt' }).end(token),
      );
      return registrar.certificate(REGISTERED_CREDENTIALS);
    };

    it('is sent while it is valid', async () => {
      await createRequest({ jwt: serveCertificate(0) });
    });

    it('is rejected when it is revoked or suspended, or when its status is unknown', async () => {
      await expectRejected({ jwt: serveCertificate(1) }, 'registrationCert', 'it is revoked');
      await expectRejected({ jwt: serveCertificate(2) }, 'registrationCert', 'it is suspended');
      const untrustedSigner = await certify({ name: 'Unknown CA' });
      await expectRejected({ jwt: serveCertificate(0, untrustedSigner) }, 'registrationCert', 'status_invalid');
      registrar.payload = { status: { status_list: { idx: 3, uri: `${registrar.url}/api/none` } } };
      const jwt = registrar.certificate(REGISTERED_CREDENTIALS);
      expectUnavailable(await world.configurePresentation(newId(), { jwt }), 'status_unavailable');
    });
  });
});

describe('A registration certificate of the registrar', () => {
  it('is kept across a restart', async () => {
    const database = await databases()[0]?.open();
    if (database === undefined) throw new Error('SQLite is always there');
    const world = await RegistrarWorld.open({ DATABASE_URL: database.url });
    const { registrar, token } = world;
    await world.configure();
    await world.configurePresentation('check', { body: {} });
    await world.service.close();
    registrar.answers.set('/', (response) => response.destroy());
    const restarted = await startTestService({ DATABASE_URL: database.url });
    const json = { response_type: 'uri', requestId: 'check' };
    const creation = await restarted.call('POST', '/verifier/offer', { token, json });
    expect(creation.status, creation.text).to.equal(201);
    await restarted.close();
    await registrar.close();
    await database.drop();
  });
});
