import { expect } from 'chai';
import { Issuer } from '../support/interactive-authorization.ts';
import { addClient } from '../support/populated.ts';
import { decode, QUERY } from '../support/present.ts';
import { TestRegistrar } from '../support/registrar.ts';
import { expectInvalid, expectUnavailable, REGISTERED_CREDENTIALS, RegistrarWorld } from '../support/registrar-world.ts';
import { createTenant } from '../support/test-service.ts';

const ISSUED = '/registration-certificates';

describe('registration certificate that is ordered manually', () => {
  let world: RegistrarWorld;
  let registrar: TestRegistrar;

  before(async () => {
    world = await RegistrarWorld.openRegistered();
    registrar = world.registrar;
  });
  after(() => world.close());
  beforeEach(() => world.clearCaches());

  const order = (json: object, token = world.token) => world.call('POST', '/registrar/registration-certificate', json, token);

  it('is issued for a presentation configuration', async () => {
    const answer = await order({ body: {}, presentationConfigurationId: 'check' });
    expect(answer.status, answer.text).to.equal(201);
    const [call] = registrar.callsTo(ISSUED);
    expect(call?.body).to.deep.include({ credentials: REGISTERED_CREDENTIALS, rpId: 'party-1' });
    const { id, jwt } = [...registrar.issued.values()].at(-1) ?? {};
    const { intendedUseId, issuedAt, expiresAt, ...rest } = answer.body;
    expect(rest).to.deep.equal({ id, jwt, relyingPartyId: 'party-1', subject: 'VATDE-123456789', credentials: REGISTERED_CREDENTIALS });
    expect(intendedUseId).to.be.a('string');
    expect(Date.parse(expiresAt) - Date.parse(issuedAt)).to.equal(30 * 86_400_000);
    const saved = await world.configurePresentation('ordered', { id });
    expect(saved.status, saved.text).to.equal(201);
  });

  it('is newly issued each time', async () => {
    const bodies = await Promise.all([1, 2].map(() => order({ body: { credentials: REGISTERED_CREDENTIALS } })));
    expect(bodies[0]?.body.id).to.be.a('string').and.not.equal(bodies[1]?.body.id);
  });

  it('can be one of an issuer', async () => {
    const provided_attestations = [{ format: 'dc+sd-jwt', meta: { vct_values: ['urn:card:1'] } }];
    expect((await order({ body: { provided_attestations } })).status).to.equal(201);
    expect(registrar.callsTo(ISSUED)[0]?.body).to.deep.include({ provided_attestations });
  });

  it('is looked up or checked as well', async () => {
    const { id, jwt } = registrar.register(REGISTERED_CREDENTIALS);
    const found = await order({ id, presentationConfigurationId: 'check' });
    expect([found.status, found.body.id, found.body.jwt], found.text).to.deep.equal([201, id, jwt]);
    const checked = await order({ jwt, presentationConfigurationId: 'check' });
    expect([checked.status, checked.body.id, checked.body.jwt]).to.deep.equal([201, null, jwt]);
    const { token } = await createTenant(world.service, 'bare');
    expect((await order({ jwt }, token)).status, 'without a registrar').to.equal(201);
    expect((await order({ id }, token)).status).to.equal(409);
  });

  it('is for the purpose of its presentation configuration', async () => {
    const purpose = [{ lang: 'en', content: 'Opening an account' }];
    const saved = await world.configurePresentation('account', null, { purpose });
    expect(saved.status, saved.text).to.equal(201);
    expect((await order({ body: {}, presentationConfigurationId: 'account' })).status).to.equal(201);
    expect(registrar.callsTo(ISSUED).at(-1)?.body).to.deep.include({ purpose });
  });

  it('is rejected when it is ambiguous, incomplete or unusable', async () => {
    expectInvalid(await order({}), '', 'exactly one');
    expectInvalid(await order({ id: 'x', body: {} }), '', 'exactly one');
    expectInvalid(await order({ body: { rpId: 'party-2' } }), 'body.rpId');
    expectInvalid(await order({ body: {} }), 'body.credentials', 'requires credentials');
    expectInvalid(await order({ id: 'nothing' }), 'id', 'with this id');
    const nowhere = { body: {}, presentationConfigurationId: 'nothing' };
    expectInvalid(await order(nowhere), 'presentationConfigurationId', 'There is no');
    const narrow = { jwt: registrar.certificate([]), presentationConfigurationId: 'check' };
    expectInvalid(await order(narrow), 'jwt', 'does not cover the query');
    expectInvalid(await order({ jwt: 'a.b.c' }), 'jwt', 'not a compact JWS');
    expect(registrar.callsTo(ISSUED)).to.deep.equal([]);
    registrar.answers.set('/api', (response) => response.writeHead(200).end('[]'));
    expectUnavailable(await order({ id: 'x' }), 'no registrar says');
  });

  it('is rejected for a presentation configuration that the client may not read', async () => {
    const rights = { roles: ['registrar:manage'], allowedPresentationConfigs: ['other'] };
    const token = await addClient(world, 'restricted', rights);
    const answer = await order({ body: {}, presentationConfigurationId: 'check' }, token);
    expect(answer.status, answer.text).to.equal(404);
    expect(registrar.calls).to.deep.equal([]);
  });
});

describe('presentation before an issuance', () => {
  it('is requested with the registration certificate, and never without it', async () => {
    const issuer = await Issuer.open();
    const registrar = await TestRegistrar.start();
    const registered = QUERY.credentials.map(({ id: _id, ...credential }) => credential);
    const certified = async (id: string, more: object = {}) => {
      await issuer.addPresentationConfig(id, { registrationCert: { jwt: registrar.certificate(registered) }, ...more });
      await issuer.addBadge(`badge-${id}`, [{ type: 'openid4vp_presentation', presentationConfigId: id }]);
      const { uri } = await issuer.offer(`badge-${id}`);
      const wallet = issuer.wallet();
      return { wallet, answer: await wallet.begin(uri, { scope: `badge-${id}` }) };
    };
    const plain = await certified('plain-check');
    const [entry] = plain.wallet.expectPresentationStep(plain.answer).request.verifier_info;
    expect(entry.format).to.equal('registration_cert');
    const signed = await certified('signed-check', { accessKeyChainId: 'access' });
    const { request } = signed.wallet.expectPresentationStep(signed.answer).request;
    expect(decode(request).payload['verifier_info']).to.have.length(1);

    const { token } = issuer;
    const json = registrar.login({ registrationCertificateAnchors: [await anchorOf(issuer)] });
    expect((await issuer.service.call('POST', '/registrar/config', { token, json })).status).to.equal(201);
    const { uri } = await issuer.offer('badge-plain-check');
    const refused = await issuer.wallet().begin(uri, { scope: 'badge-plain-check' });
    expect(refused.status, refused.text).to.equal(503);
    expect(refused.text, 'none of the business of the wallet').to.not.include('registration');
    await issuer.close();
    await registrar.close();
  });

  const anchorOf = async ({ service, token }: Issuer): Promise<string> =>
    (await service.call('GET', '/key-chain/signing', { token })).body.rootCertificate;
});

const display = [{ name: 'Acme', locale: 'en' }];
const ADDRESS = '/.well-known/openid-credential-issuer/acme';
const PID = { format: 'dc+sd-jwt', meta: { vct_values: ['urn:pid:1'] } };
const MDL = { format: 'mso_mdoc', meta: { doctype_value: 'org.iso.18013.5.1.mDL' } };
const credential = (id: string, vct: string) => ({
  id,
  config: { format: 'dc+sd-jwt', display: [{ name: id, locale: 'en' }] },
  vct,
  claims: { name: 'Ada' },
});

describe('registration certificate of an issuer', () => {
  let world: RegistrarWorld;

  beforeEach(async () => {
    world = await RegistrarWorld.open();
    await world.configure();
  });
  afterEach(() => world.close());

  const write = (path: string, json: object, token?: string) => world.call('POST', path, json, token);
  const issuer = (registrationCert: object | null) => write('/issuer/config', { display, registrationCert });
  const info = async () => (await world.service.call('GET', ADDRESS)).body.issuer_info;
  /** One that names what may be issued. */
  const certificate = (provides: object[] | undefined, name = 'provides_attestations') => {
    world.registrar.payload = { [name]: provides, credentials: undefined };
    const jwt = world.registrar.certificate(undefined);
    world.registrar.payload = {};
    return jwt;
  };
  const ok = ({ status, text }: { status: number; text: string }) => expect(status, text).to.equal(201);

  it('is contained in the metadata, plain and signed', async () => {
    ok(await write('/issuer/credentials', credential('pid', 'urn:pid:1')));
    expect(await info()).to.equal(undefined);
    const jwt = certificate([MDL, PID]);
    ok(await issuer({ jwt }));
    expect(await info()).to.deep.equal([{ format: 'registration_cert', data: jwt }]);
    const signed = await world.service.call('GET', ADDRESS, { headers: { Accept: 'application/jwt' } });
    expect(decode(signed.text).payload['issuer_info']).to.deep.equal([{ format: 'registration_cert', data: jwt }]);
    ok(await issuer(null));
    expect(await info()).to.equal(undefined);
  });

  it('is rejected if it does not cover the issued types, by any of their names', async () => {
    ok(await write('/issuer/credentials', credential('pid', 'urn:pid:1')));
    const wrong = [
      undefined,
      [],
      [{ ...PID, meta: { vct_values: ['urn:pid:2'] } }],
      [{ ...PID, format: 'mso_mdoc' }],
      [{ ...PID, meta: {} }],
    ];
    for (const provides of wrong) expectInvalid(await issuer({ jwt: certificate(provides) }), 'registrationCert', 'cover what is issued');
    ok(await issuer({ jwt: certificate([PID], 'provided_attestations') }));
  });

  it('rejects a type that it does not cover and accepts all others', async () => {
    ok(await issuer({ jwt: certificate([PID, MDL]) }));
    ok(await write('/issuer/credentials', credential('pid', 'urn:pid:1')));
    expectInvalid(await write('/issuer/credentials', credential('card', 'urn:card:1')), 'vct', 'cover what is issued');
    const mdoc = { id: 'mdl', config: { format: 'mso_mdoc', docType: 'org.iso.18013.5.1.mDL', display } };
    ok(await write('/issuer/credentials', mdoc));
    const other = { ...mdoc, id: 'other', config: { ...mdoc.config, docType: 'com.acme' } };
    expectInvalid(await write('/issuer/credentials', other), 'config.docType', 'cover what is issued');
    const changed = await world.call('PATCH', '/issuer/credentials/pid', { vct: 'urn:card:1' });
    expectInvalid(changed, 'vct', 'cover what is issued');
    expect((await world.call('PATCH', '/issuer/credentials/pid', { description: 'x' })).status).to.equal(200);
    expect((await world.call('GET', '/issuer/credentials')).body).to.have.length(2);
  });

  it('is issued by the registrar for the issued types, and again for another type', async () => {
    ok(await issuer({ body: {} }));
    expect(world.registrar.callsTo(ISSUED)).to.have.length(0);
    world.registrar.payload = { provides_attestations: [PID] };
    ok(await write('/issuer/credentials', credential('pid', 'urn:pid:1')));
    const [order, ...more] = world.registrar.callsTo(ISSUED);
    expect(more).to.have.length(0);
    expect(order?.body?.['provided_attestations']).to.deep.equal([PID]);
    const [entry] = await info();
    expect(decode(entry.data).payload['provides_attestations']).to.deep.equal([PID]);
    expect(world.registrar.callsTo(ISSUED)).to.have.length(1);
    world.registrar.payload = { provides_attestations: [PID, { ...PID, meta: { vct_values: ['urn:card:1'] } }] };
    ok(await write('/issuer/credentials', credential('card', 'urn:card:1')));
    expect(world.registrar.callsTo(ISSUED)).to.have.length(2);
    const [newer] = await info();
    expect(newer.data).to.not.equal(entry.data);
  });

  it('is ordered only by a client that manages the registrar', async () => {
    const clerk = await addClient(world, 'clerk', { roles: ['issuance:manage'] });
    const body = { display, registrationCert: { body: {} } };
    const answer = await write('/issuer/config', body, clerk);
    expect([answer.status, answer.body.code], answer.text).to.deep.equal([403, 'forbidden']);
    ok(await issuer({ body: {} }));
    world.registrar.payload = { provides_attestations: [PID] };
    const ordered = await write('/issuer/credentials', credential('pid', 'urn:pid:1'), clerk);
    expect(ordered.status, ordered.text).to.equal(403);
    ok(await write('/issuer/credentials', credential('pid', 'urn:pid:1')));
    // Nothing is ordered by what changes no type.
    ok(await write('/issuer/credentials', { ...credential('pid', 'urn:pid:1'), description: 'x' }, clerk));
    ok(await write('/issuer/config', body, clerk));
  });

  it('cannot be ordered without a configured registrar, which the write reports at once', async () => {
    const { token } = await createTenant(world.service, 'lonely', { profile: 'eu' });
    const order = { registrationCert: { body: {} } };
    expectInvalid(await write('/issuer/config', { display, ...order }, token), 'registrationCert', 'POST /registrar/config');
    await world.configure({}, token);
    ok(await write('/issuer/config', { display, ...order }, token));
  });

  it('is required by the profile of the European wallet', async () => {
    const { token } = await createTenant(world.service, 'euro', { profile: 'eu' });
    const refused = await write('/issuer/config', { display }, token);
    expectInvalid(refused, 'registrationCert', 'RPRC_22');
    const shown = await world.call('GET', '/issuer/config', undefined, token);
    expect(shown.status, shown.text).to.equal(200);
    const options = [{ details: ['once_only'], batch_size: 2, reissue_trigger_unused: 0 }];
    const pid = { ...credential('pid', 'urn:pid:1'), credentialReusePolicy: { id: 'arf_annex_ii', options } };
    expectInvalid(await write('/issuer/credentials', pid, token), 'vct', 'RPRC_22');
    ok(await write('/issuer/config', { display, registrationCert: { jwt: certificate([PID]) } }, token));
    ok(await write('/issuer/credentials', pid, token));
  });
});
