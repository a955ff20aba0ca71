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

const ISSUED = '/registration-certificates';
const [PID] = REGISTERED_CREDENTIALS;
const wider = { credentials: [{ ...REGISTERED_QUERY.credentials[0], claims: [{ path: ['given_name'] }, { path: ['family_name'] }] }] };

describe('registration certificate of a request', () => {
  let world: RegistrarWorld;
  let registrar: TestRegistrar;
  let count = 0;
  const fresh = () => `check-${++count}`;

  before(async () => {
    world = await RegistrarWorld.open();
    registrar = world.registrar;
    await world.configure();
  });
  after(() => world.close());
  beforeEach(() => world.clearCaches());
  afterEach(() => sinon.restore());
  const passTime = (milliseconds: number) => sinon.useFakeTimers({ now: Date.now() + milliseconds, toFake: ['Date'] });

  /** Saves a configuration and asks by it. */
  const sent = async (registrationCert: object, changes: object = {}) => {
    const id = fresh();
    const saved = await world.configurePresentation(id, registrationCert, changes);
    expect(saved.status, saved.text).to.equal(201);
    expect(saved.body.registrationCert).to.deep.equal(registrationCert);
    return { id, info: (await world.request(id)).payload['verifier_info'] };
  };
  const refused = async (registrationCert: object, path: string, message: string, changes: object = {}) => {
    const id = fresh();
    expectInvalid(await world.configurePresentation(id, registrationCert, changes), path, message);
    expect((await world.call('GET', `/verifier/config/${id}`)).status, 'nothing is stored').to.equal(404);
  };

  describe('that the registrar issues', () => {
    it('is obtained when the configuration is saved and causes no call afterwards', async () => {
      const attached = [{ format: 'other', data: { a: 1 } }];
      const { id, info } = await sent({ body: {} }, { attached });
      const [call, ...more] = registrar.callsTo(ISSUED);
      expect(more).to.deep.equal([]);
      const { registrationCertificateDefaults: defaults } = registrar.login();
      expect(call?.body).to.deep.equal({ ...defaults, credentials: REGISTERED_CREDENTIALS, rpId: 'party-1' });
      const [issued] = [...registrar.issued.values()].slice(-1);
      expect(info).to.deep.equal([{ format: 'registration_cert', data: issued?.['jwt'] }, ...attached]);

      registrar.calls.length = 0;
      for (let again = 0; again < 3; again++) await world.request(id);
      const saved = await world.configurePresentation(id, { body: {} }, { lifeTime: 600 });
      expect(saved.status, saved.text).to.equal(201);
      expect(registrar.calls).to.deep.equal([]);
    });

    it('contains the values of the configuration, and those of the query unless they are configured, too', async () => {
      const credentials = [...REGISTERED_CREDENTIALS, { format: 'mso_mdoc', meta: { doctype_value: 'x' } }];
      const purpose = [{ lang: 'de', content: 'Kontoeröffnung' }];
      await sent({ body: { purpose, credentials, intermediary: 'party-9' } });
      const [call] = registrar.callsTo(ISSUED);
      expect(call?.body).to.deep.include({ purpose, credentials, intermediary: 'party-9', rpId: 'party-1' });
    });

    it('contains the purpose of the configuration and is renewed when it changes', async () => {
      const purpose = [
        { lang: 'de', content: 'Kontoeröffnung' },
        { lang: 'en', content: 'Opening an account' },
      ];
      const { id, info } = await sent({ body: {} }, { purpose });
      expect(registrar.callsTo(ISSUED)[0]?.body).to.deep.include({ purpose });
      const shown = await world.call('GET', `/verifier/config/${id}`);
      expect([shown.body.purpose, shown.body.registrationCert]).to.deep.equal([purpose, { body: {} }]);

      const changed = [{ lang: 'en', content: 'A loan' }];
      const answer = await world.call('PATCH', `/verifier/config/${id}`, { purpose: changed });
      expect(answer.status, answer.text).to.equal(200);
      expect(registrar.callsTo(ISSUED)[1]?.body).to.deep.include({ purpose: changed });
      const { payload } = await world.request(id);
      expect(payload['verifier_info'][0].data).to.not.equal(info[0].data);
      expect(registrar.callsTo(ISSUED)).to.have.length(2);

      const own = [{ lang: 'en', content: 'Of the order' }];
      await sent({ body: { purpose: own } }, { purpose });
      expect(registrar.callsTo(ISSUED)[2]?.body).to.deep.include({ purpose: own });
    });

    it('is accepted at one place of a request, and rejected at any other', async () => {
      const purpose = [{ lang: 'en', content: 'Opening an account' }];
      const certificate = registrar.certificate(REGISTERED_CREDENTIALS);
      for (const registrationCert of [null, { jwt: certificate }]) {
        const id = fresh();
        const saved = await world.configurePresentation(id, registrationCert, { purpose });
        expect([saved.status, saved.body.purpose], saved.text).to.deep.equal([201, purpose]);
        const { payload } = await world.request(id);
        expect(JSON.stringify(payload)).to.not.include('Opening an account').and.not.include('purpose');
      }
      const odd = await world.configurePresentation(fresh(), null, { purpose: [{ lang: 'en', value: 'x' }] });
      expectInvalid(odd, 'purpose.0.content');
    });

    it('needs a purpose, a privacy policy and a support contact', async () => {
      await world.configure({ registrationCertificateDefaults: undefined });
      await refused({ body: {} }, 'registrationCert.body.privacy_policy', 'requires privacy_policy');
      await world.configure();
      expect(registrar.callsTo(ISSUED)).to.deep.equal([]);
    });

    const less: [string, object[] | undefined, string][] = [
      ['nothing', undefined, 'the format dc+sd-jwt with this meta'],
      ['another type', [{ ...PID, claims: undefined, meta: { vct_values: ['urn:other'] }, claim: PID?.claims }], 'the format dc+sd-jwt'],
      ['another claim', [{ ...PID, claims: undefined, claim: [{ path: ['age'] }] }], '["given_name"]'],
      ['no claim', [{ ...PID, claims: undefined, claim: [] }], 'the format dc+sd-jwt'],
    ];
    for (const [what, credentials, message] of less) {
      it(`is rejected when it covers ${what}`, async () => {
        registrar.payload = { credentials };
        await refused({ body: { intermediary: what } }, 'registrationCert', message);
      });
    }

    it('is rejected when one of two credentials is missing', async () => {
      const second = { id: 'mdl', format: 'mso_mdoc', meta: { doctype_value: 'mdl' } };
      const dcql_query = { credentials: [...REGISTERED_QUERY.credentials, second] };
      await sent({ body: {} }, { dcql_query });
      registrar.payload = { credentials: [{ ...PID, claims: undefined, claim: PID?.claims }] };
      await refused({ body: { intermediary: 'x' } }, 'registrationCert', '"mdl"', { dcql_query });
    });

    it('is checked again when the query changes', async () => {
      const { id } = await sent({ body: { credentials: REGISTERED_CREDENTIALS } });
      const path = `/verifier/config/${id}`;
      expectInvalid(await world.call('PATCH', path, { dcql_query: wider }), 'registrationCert', '["family_name"]');
      expect((await world.call('GET', path)).body.dcql_query).to.deep.equal(REGISTERED_QUERY);
      registrar.answers.set('/', (response) => response.destroy());
      expect((await world.call('PATCH', path, { lifeTime: 60 })).status, 'something else').to.equal(200);
    });

    it('is renewed before it expires, once for all concurrent requests', async () => {
      registrar.payload = { exp: now() + 5 };
      const { id, info } = await sent({ body: { intermediary: 'short' } });
      registrar.payload = {};
      passTime(3_000);
      registrar.calls.length = 0;
      const requests = await Promise.all([1, 2, 3, 4, 5].map(() => world.request(id)));
      expect(registrar.callsTo(ISSUED)).to.have.length(1);
      for (const { payload } of requests) {
        expect(payload['verifier_info'][0].data).to.not.equal(info[0].data);
      }
    });

    it('is never omitted: without a registrar, no request is created', async () => {
      registrar.payload = { exp: now() + 2 };
      const { id } = await sent({ body: { intermediary: 'shorter' } });
      passTime(1_500);
      registrar.calls.length = 0;
      registrar.answers.set('/api', (response) => response.writeHead(500).end());
      expectUnavailable(await world.requestPresentation(id), 'status 500');
      expect(registrar.calls, 'once, although the call is tried twice').to.have.length(1);
      registrar.answers.clear();
      expectUnavailable(await world.requestPresentation(id), 'status 500');
      expect(registrar.calls, 'and not again at once').to.have.length(1);
      const { lifeTime, dcql_query } = (await world.call('GET', `/verifier/config/${id}`)).body;
      registrar.payload = {};
      const saved = await world.configurePresentation(id, { body: { intermediary: 'shorter' } }, { lifeTime, dcql_query });
      expect(saved.status, 'unless somebody saves it again').to.equal(201);
      expect((await world.requestPresentation(id)).status).to.equal(201);
    });

    it('has its error shown to clients that manage configurations, and in the log', async () => {
      registrar.payload = { exp: now() + 2 };
      const { id: short } = await sent({ body: { intermediary: 'secretive' } });
      registrar.payload = { exp: now() - 57 };
      const { id: ended } = await sent({ jwt: registrar.certificate(REGISTERED_CREDENTIALS) });
      passTime(3_100);
      registrar.answers.set('/api', (response) => response.writeHead(500).end());
      const token = await addClient(world, 'asker', { roles: ['presentation:request'] });
      const log = sinon.spy(world.service.service.container.get(Log), 'warn');
      for (const [id, status, code, why] of [
        [short, 503, 'unavailable', `${registrar.url}/api/relying-parties answered with status 500`],
        [ended, 400, 'invalid_input', 'it expired'],
      ] as const) {
        log.resetHistory();
        const { body: manager } = await world.requestPresentation(id);
        expect(manager.detail).to.include(why);
        const { text, headers, body: problem } = await world.requestPresentation(id, token);
        expect([problem.status, problem.code], text).to.deep.equal([status, code]);
        expect(problem.detail).to.match(/^the registration certificate of this request cannot be used/);
        expect(problem).to.not.have.property('errors');
        expect(headers.get('retry-after')).to.equal(status === 503 ? '15' : null);
        const { requestId } = problem;
        const lines = log.args.map(([, fields]) => fields);
        const told = lines.map((fields) => ({ ...fields, route: undefined }));
        expect(told).to.deep.include({ requestId, code, reason: manager.detail, route: undefined });
      }
      log.restore();
    });

    it('is not requested repeatedly when the registrar issues unusable ones', async () => {
      registrar.payload = { exp: now() + 2 };
      const { id } = await sent({ body: { intermediary: 'useless' } });
      passTime(1_500);
      registrar.payload = { credentials: [] };
      registrar.calls.length = 0;
      for (let again = 0; again < 3; again++) expectInvalid(await world.requestPresentation(id), 'registrationCert', 'cover');
      expect(registrar.callsTo(ISSUED)).to.have.length(1);
    });

    it('is rejected if no registrar is configured or it does not answer', async () => {
      const { token } = await createTenant(world.service, 'bare');
      const bare = await world.configurePresentation('x', { body: {} }, {}, token);
      expectInvalid(bare, 'registrationCert', 'No registrar is configured');
      registrar.answers.set('/api', (response) => response.destroy());
      expectUnavailable(await world.configurePresentation(fresh(), { body: { intermediary: 'down' } }), 'could not be reached');
      registrar.answers.set('/api', (response) => response.writeHead(422).end());
      expectInvalid(await world.configurePresentation(fresh(), { body: { intermediary: 'no' } }), 'registrationCert', '422');
    });

    it('belongs to the tenant, also if another tenant requests the same', async () => {
      const { token } = await createTenant(world.service, 'twin');
      await world.configure({}, token);
      const { info } = await sent({ body: { intermediary: 'twins' } });
      await world.configurePresentation('check', { body: { intermediary: 'twins' } }, {}, token);
      const other = (await world.request('check', token)).payload['verifier_info'];
      expect(other[0].data).to.not.equal(info[0].data);
      const tokens = registrar.callsTo(ISSUED).map((call) => call.token);
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
      await sent({ jwt: registrar.certificate(REGISTERED_CREDENTIALS) });
    });

    it('is sent through the Digital Credentials API, too', async () => {
      const jwt = registrar.certificate(REGISTERED_CREDENTIALS);
      const expectedOrigins = ['https://shop.example'];
      for (const dcApiRequest of ['signed', 'unsigned']) {
        const { id } = await sent({ jwt }, { expectedOrigins, dcApiRequest });
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
      await refused({ jwt }, 'registrationCert', '["family_name"]', { dcql_query: wider });
    });

    const bent: [string, () => void, string][] = [
      ['has expired', () => (registrar.payload = { exp: now() - 61 }), 'it expired'],
      ['is not valid yet', () => (registrar.payload = { nbf: now() + 90 }), 'not valid yet'],
      ['is for several uses', () => (registrar.payload = { intended_use_id: ['a', 'b'] }), 'several intended uses'],
      ['is of another kind', () => (registrar.header = { typ: 'rc-rp+jwt' }), 'its type'],
      ['names no signer', () => (registrar.header = { x5c: undefined }), 'x5c'],
      ['names another signer', () => (registrar.header = { x5c: [registrar.ca.certificate] }), 'signer'],
      ['contains an invalid certificate chain', () => (registrar.signedBy = registrar.ca), 'signer'],
      ['is not signed', () => (registrar.header = { alg: 'none' }), 'algorithm'],
    ];
    for (const [what, bend, message] of bent) {
      it(`is rejected when it ${what}`, async () => {
        bend();
        await refused({ jwt: registrar.certificate(REGISTERED_CREDENTIALS) }, 'registrationCert', message);
      });
    }

    it('is rejected when another registrar signed it', async () => {
      const [header, , signature] = registrar.certificate(REGISTERED_CREDENTIALS).split('.');
      const [, payload] = registrar.certificate([...REGISTERED_CREDENTIALS, { format: 'x', meta: {} }]).split('.');
      await refused({ jwt: `${header}.${payload}.${signature}` }, 'registrationCert', 'its signature');
    });

    // V18
    it('is rejected once it has expired', async () => {
      registrar.payload = { exp: now() - 57 };
      const { id } = await sent({ jwt: registrar.certificate(REGISTERED_CREDENTIALS) });
      passTime(3_100);
      expectInvalid(await world.requestPresentation(id), 'registrationCert', 'it expired');
    });

    it('must be signed under the configured anchors', async () => {
      const jwt = registrar.certificate(REGISTERED_CREDENTIALS);
      const { id } = await sent({ jwt });
      const stranger = await certify({ name: 'Somebody else', ca: true });
      await world.configure({ registrationCertificateAnchors: [pem(stranger)] });
      expectInvalid(await world.requestPresentation(id), 'registrationCert', 'its signer is not accepted');
      for (const anchor of [registrar.ca, registrar.signer]) {
        await world.configure({ registrationCertificateAnchors: [pem(stranger), pem(anchor)] });
        expect((await world.requestPresentation(id)).status, anchor.name).to.equal(201);
      }
      await world.configure();
    });

    it('must be signed by a certificate with the right usage', async () => {
      registrar.signedBy = await certify({ name: 'Web', by: registrar.ca, purposes: [WEB_SERVER] });
      const jwt = registrar.certificate(REGISTERED_CREDENTIALS);
      await world.configure({ registrationCertificateAnchors: [pem(registrar.ca)] });
      await refused({ jwt }, 'registrationCert', 'its signer is not accepted');
      await world.configure();
      await refused({ jwt }, 'registrationCert', 'its signer is not accepted');
    });

    it('must be for the organization of the access certificate', async () => {
      const { id } = await sent({ jwt: registrar.certificate(REGISTERED_CREDENTIALS) });
      const order = { keyChainId: 'access' };
      expect((await world.call('POST', '/registrar/access-certificate', order)).status).to.equal(201);
      expect((await world.requestPresentation(id)).status, 'the same').to.equal(201);
      registrar.payload = { sub: 'VATDE-9' };
      await refused({ jwt: registrar.certificate(REGISTERED_CREDENTIALS) }, 'registrationCert', 'VATDE-123456789');
      registrar.payload = { sub: 'VATDE-9', intermediary: { sub: 'VATDE-123456789' } };
      await sent({ jwt: registrar.certificate(REGISTERED_CREDENTIALS) });
      registrar.organizationIdentifier = 'VATDE-9';
      expect((await world.call('POST', '/registrar/access-certificate', order)).status).to.equal(201);
      expectInvalid(await world.requestPresentation(id), 'registrationCert', 'VATDE-9');
      registrar.organizationIdentifier = undefined;
      await world.call('POST', '/registrar/access-certificate', order);
      expect((await world.requestPresentation(id)).status, 'one that names nobody').to.equal(201);
    });
  });

  describe('that the registrar issued earlier', () => {
    it('is looked up', async () => {
      const { id, jwt } = registrar.register(REGISTERED_CREDENTIALS);
      const { info } = await sent({ id });
      expect(info).to.deep.equal([{ format: 'registration_cert', data: jwt }]);
      expect(registrar.callsTo(ISSUED), 'nothing is issued').to.deep.equal([]);
    });

    it('is rejected when it is unknown, revoked or another one', async () => {
      // `.` and `..` would name the folder itself and the one above.
      for (const id of ['nothing', '.', '..']) {
        await refused({ id }, 'registrationCert.id', 'no registration certificate with this id');
      }
      const addresses = registrar.calls.map(({ path }) => path);
      expect(addresses).to.deep.equal(['/registration-certificates/nothing']);
      for (const revoked of [true, '2026-01-01T00:00:00Z', { at: 1 }]) {
        const { id } = registrar.register(REGISTERED_CREDENTIALS);
        registrar.issued.set(id, { ...registrar.issued.get(id), revoked });
        await refused({ id }, 'registrationCert.id', 'revoked');
      }
      const { id } = registrar.register(REGISTERED_CREDENTIALS);
      registrar.issued.set(id, { ...registrar.issued.get(id), id: 'other' });
      expectUnavailable(await world.configurePresentation(fresh(), { id }), 'another certificate');
      await refused({ id: registrar.register([]).id }, 'registrationCert', 'does not cover');
    });

    it('is looked up again each time the configuration is saved', async () => {
      const { id } = registrar.register(REGISTERED_CREDENTIALS);
      const saved = await sent({ id });
      registrar.issued.set(id, { ...registrar.issued.get(id), revoked: true });
      expectInvalid(await world.configurePresentation(saved.id, { id }), 'registrationCert.id', 'revoked');
    });
  });

  describe('with a status', () => {
    const serve = (status: number, signer = registrar.signer) => {
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
      await sent({ jwt: serve(0) });
    });

    it('is rejected when it is revoked or suspended, or when its status is unknown', async () => {
      await refused({ jwt: serve(1) }, 'registrationCert', 'it is revoked');
      await refused({ jwt: serve(2) }, 'registrationCert', 'it is suspended');
      const stranger = await certify({ name: 'Somebody else' });
      await refused({ jwt: serve(0, stranger) }, 'registrationCert', 'status_invalid');
      registrar.payload = { status: { status_list: { idx: 3, uri: `${registrar.url}/api/none` } } };
      const jwt = registrar.certificate(REGISTERED_CREDENTIALS);
      expectUnavailable(await world.configurePresentation(fresh(), { jwt }), 'status_unavailable');
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
    const again = await startTestService({ DATABASE_URL: database.url });
    const json = { response_type: 'uri', requestId: 'check' };
    const made = await again.call('POST', '/verifier/offer', { token, json });
    expect(made.status, made.text).to.equal(201);
    await again.close();
    await registrar.close();
    await database.drop();
  });
});
