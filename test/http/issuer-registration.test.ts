import { expect } from 'chai';
import { addClient } from '../support/populated.ts';
import { decode } from '../support/present.ts';
import { expectInvalid, RegistrarWorld } from '../support/registrar-world.ts';
import { createTenant } from '../support/test-service.ts';

const display = [{ name: 'Acme', locale: 'en' }];
const ADDRESS = '/.well-known/openid-credential-issuer/acme';
const ISSUED = '/registration-certificates';
const PID = { format: 'dc+sd-jwt', meta: { vct_values: ['urn:pid:1'] } };
const MDL = { format: 'mso_mdoc', meta: { doctype_value: 'org.iso.18013.5.1.mDL' } };
const credential = (id: string, vct: string) => ({
  id,
  config: { format: 'dc+sd-jwt', display: [{ name: id, locale: 'en' }] },
  vct,
  claims: { name: 'Ada' },
});

describe('The registration certificate of an issuer', () => {
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

  it('is by value in the metadata, plain and signed', async () => {
    ok(await write('/issuer/credentials', credential('pid', 'urn:pid:1')));
    expect(await info()).to.equal(undefined);
    const jwt = certificate([MDL, PID]);
    ok(await issuer({ jwt }));
    expect(await info()).to.deep.equal([{ format: 'registration_cert', data: jwt }]);
    const signed = await world.service.call('GET', ADDRESS, { headers: { Accept: 'application/jwt' } });
    expect(decode(signed.text).payload['issuer_info']).to.deep.equal([
      { format: 'registration_cert', data: jwt },
    ]);
    ok(await issuer(null));
    expect(await info()).to.equal(undefined);
  });

  it('is refused where it does not cover what is issued, by whatever name it says so', async () => {
    ok(await write('/issuer/credentials', credential('pid', 'urn:pid:1')));
    const wrong = [
      undefined,
      [],
      [{ ...PID, meta: { vct_values: ['urn:pid:2'] } }],
      [{ ...PID, format: 'mso_mdoc' }],
      [{ ...PID, meta: {} }],
    ];
    for (const provides of wrong)
      expectInvalid(await issuer({ jwt: certificate(provides) }), 'registrationCert', 'cover what is issued');
    ok(await issuer({ jwt: certificate([PID], 'provided_attestations') }));
  });

  it('keeps out a type that it does not cover, and lets in all others', async () => {
    ok(await issuer({ jwt: certificate([PID, MDL]) }));
    ok(await write('/issuer/credentials', credential('pid', 'urn:pid:1')));
    expectInvalid(
      await write('/issuer/credentials', credential('card', 'urn:card:1')),
      'vct',
      'cover what is issued',
    );
    const mdoc = { id: 'mdl', config: { format: 'mso_mdoc', docType: 'org.iso.18013.5.1.mDL', display } };
    ok(await write('/issuer/credentials', mdoc));
    const other = { ...mdoc, id: 'other', config: { ...mdoc.config, docType: 'com.acme' } };
    expectInvalid(await write('/issuer/credentials', other), 'config.docType', 'cover what is issued');
    const changed = await world.call('PATCH', '/issuer/credentials/pid', { vct: 'urn:card:1' });
    expectInvalid(changed, 'vct', 'cover what is issued');
    expect((await world.call('PATCH', '/issuer/credentials/pid', { description: 'x' })).status).to.equal(200);
    expect((await world.call('GET', '/issuer/credentials')).body).to.have.length(2);
  });

  it('is issued by the registrar for what is issued, and anew for another type', async () => {
    ok(await issuer({ body: {} }));
    expect(world.registrar.at(ISSUED)).to.have.length(0);
    world.registrar.payload = { provides_attestations: [PID] };
    ok(await write('/issuer/credentials', credential('pid', 'urn:pid:1')));
    const [order, ...more] = world.registrar.at(ISSUED);
    expect(more).to.have.length(0);
    expect(order?.body?.['provided_attestations']).to.deep.equal([PID]);
    const [entry] = await info();
    expect(decode(entry.data).payload['provides_attestations']).to.deep.equal([PID]);
    expect(world.registrar.at(ISSUED)).to.have.length(1);
    world.registrar.payload = {
      provides_attestations: [PID, { ...PID, meta: { vct_values: ['urn:card:1'] } }],
    };
    ok(await write('/issuer/credentials', credential('card', 'urn:card:1')));
    expect(world.registrar.at(ISSUED)).to.have.length(2);
    const [newer] = await info();
    expect(newer.data).to.not.equal(entry.data);
  });

  it('is ordered by who manages the registrar alone', async () => {
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

  it('is not ordered of a registrar that nobody configured, and that is said at once, where it stands', async () => {
    const { token } = await createTenant(world.service, 'lonely', { profile: 'eu' });
    const order = { registrationCert: { body: {} } };
    expectInvalid(
      await write('/issuer/config', { display, ...order }, token),
      'registrationCert',
      'POST /registrar/config',
    );
    await world.configure({}, token);
    ok(await write('/issuer/config', { display, ...order }, token));
  });

  it('is demanded by the profile of the European wallet', async () => {
    const { token } = await createTenant(world.service, 'euro', { profile: 'eu' });
    const refused = await write('/issuer/config', { display }, token);
    expectInvalid(refused, 'registrationCert', 'RPRC_22');
    const shown = await world.call('GET', '/issuer/config', undefined, token);
    expect(shown.status, shown.text).to.equal(200);
    const options = [{ details: ['once_only'], batch_size: 2, reissue_trigger_unused: 0 }];
    const pid = {
      ...credential('pid', 'urn:pid:1'),
      credentialReusePolicy: { id: 'arf_annex_ii', options },
    };
    expectInvalid(await write('/issuer/credentials', pid, token), 'vct', 'RPRC_22');
    ok(await write('/issuer/config', { display, registrationCert: { jwt: certificate([PID]) } }, token));
    ok(await write('/issuer/credentials', pid, token));
  });
});
