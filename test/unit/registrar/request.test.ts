import { expect } from 'chai';
import { RegistrarError, type RegistrarFault } from '../../../application/ports/registrar.ts';
import {
  DeleteRegistrarConfiguration,
  GetRegistrarConfiguration,
  ReplaceRegistrarConfiguration,
  UpdateRegistrarConfiguration,
} from '../../../application/registrar/registrar-configurations.ts';
import { DcqlQuery } from '../../../domain/dcql/query.ts';
import {
  mergeRegistrarConfiguration,
  type RegistrarConfiguration,
  RegistrarConfigurationBody,
  RegistrarConfigurationUpdate,
} from '../../../domain/registrar/registrar-configuration.ts';
import {
  completeRegistration,
  RegistrationCertificateRequest,
  registrationRequestFor,
  requestedCredentials,
} from '../../../domain/registrar/registration-certificate-request.ts';
import { canonicalJson } from '../../../domain/shared/json.ts';
import { PresentationConfigurationBody } from '../../../domain/verification/configuration.ts';
import { ACME, type AdministrationWorld, anAdministration, endOf } from '../administrators.ts';
import { query } from '../verification/kit.ts';

const QUERY = DcqlQuery.parse({
  credentials: [
    {
      id: 'one',
      format: 'dc+sd-jwt',
      meta: { vct_values: ['a'] },
      multiple: true,
      claims: [{ id: 'x', path: ['name'], values: ['Ada'] }],
      claim_sets: [['x']],
    },
    { id: 'two', format: 'dc+sd-jwt', meta: { vct_values: ['a'] }, claims: [{ path: ['name'] }] },
    { id: 'three', format: 'mso_mdoc', meta: { doctype_value: 'd' } },
  ],
});
const CREDENTIALS = [
  { format: 'dc+sd-jwt', meta: { vct_values: ['a'] }, claims: [{ path: ['name'] }] },
  { format: 'mso_mdoc', meta: { doctype_value: 'd' } },
];
const WHY = {
  privacy_policy: 'https://acme.example/privacy',
  support_uri: 'mailto:help@acme.example',
  purpose: [{ lang: 'en', content: 'Why' }],
};

describe('request for a registration certificate', () => {
  it('registers only formats, types and claims of a query, each once', () => {
    expect(requestedCredentials(QUERY)).to.deep.equal(CREDENTIALS);
  });

  it('contains the purpose of its configuration, unless it has its own purpose or exists already', () => {
    const purpose = [{ lang: 'de', content: 'Warum' }];
    expect(registrationRequestFor({ body: { intermediary: 'x' } }, purpose)).to.deep.equal({ body: { intermediary: 'x', purpose } });
    const own = { body: { purpose: WHY.purpose } };
    for (const request of [own, { id: 'known' }, { jwt: 'a.b.c' }]) expect(registrationRequestFor(request, purpose)).to.equal(request);
    for (const none of [null, undefined]) expect(registrationRequestFor({ body: {} }, none)).to.deep.equal({ body: {} });
  });

  it('is completed from the defaults and the query', () => {
    const purpose = [{ lang: 'de', content: 'Warum' }];
    const complete = { ...WHY, purpose, credentials: CREDENTIALS };
    expect(completeRegistration({ purpose }, WHY, { query: QUERY })).to.deep.equal(complete);
    const credentials = CREDENTIALS.slice(1);
    expect(completeRegistration({ credentials }, WHY, { query: QUERY })).to.deep.equal({ ...WHY, credentials });
  });

  for (const name of Object.keys(WHY)) {
    it(`is incomplete without ${name}`, () => {
      const defaults = Object.fromEntries(Object.entries(WHY).filter(([member]) => member !== name));
      expect(completeRegistration({}, defaults, { query: QUERY })).to.deep.equal({ missing: name });
    });
  }

  it('is incomplete without credentials to request or to provide', () => {
    expect(completeRegistration({}, WHY, {})).to.deep.equal({ missing: 'credentials' });
    const provided_attestations = [{ format: 'dc+sd-jwt', meta: {} }];
    const provided = completeRegistration({ provided_attestations }, WHY, {});
    expect(provided).to.deep.equal({ ...WHY, provided_attestations });
  });

  const withValues = { ...CREDENTIALS[0], claims: [{ path: ['a'], values: [1] }] };
  const everything = { ...WHY, intermediary: 'x', credentials: CREDENTIALS };
  const bodies: [string, object, boolean][] = [
    ['a certificate', { jwt: 'a.b.c' }, true],
    ['an id', { id: 'x' }, true],
    ['a body', { body: {} }, true],
    ['a body with everything', { body: everything }, true],
    ['nothing', {}, false],
    ['two of them', { jwt: 'a.b.c', id: 'x' }, false],
    ['all of them', { jwt: 'a.b.c', id: 'x', body: {} }, false],
    ['something else', { jwt: 'a.b.c', rpId: 'x' }, false],
    ['a relying party', { body: { rpId: 'x' } }, false],
    ['values of claims', { body: { credentials: [withValues] } }, false],
    ['a privacy policy that is a script', { body: { privacy_policy: 'javascript:alert(1)' } }, false],
    ['help at no address', { body: { support_uri: 'call us' } }, false],
    ['a purpose without words', { body: { purpose: [] } }, false],
    ['an id without end', { id: 'x'.repeat(201) }, false],
  ];
  for (const [what, body, good] of bodies) {
    it(`${good ? 'may' : 'must not'} have ${what}`, () => {
      expect(RegistrationCertificateRequest.safeParse(body).success).to.equal(good);
    });
  }

  it('is the same request in any order of its properties', () => {
    const one = { a: [1, { b: 2, c: null }], d: 'x' };
    expect(canonicalJson(one)).to.equal(canonicalJson({ d: 'x', a: [1, { c: null, b: 2 }] }));
    for (const other of [{ ...one, d: 'y' }, { a: [{ b: 2, c: null }, 1], d: 'x' }, { a: one.a }]) {
      expect(canonicalJson(one)).to.not.equal(canonicalJson(other as typeof one));
    }
  });
});

describe('registrar login settings', () => {
  const body = {
    registrarUrl: 'https://registrar.example/api',
    oidcUrl: 'https://login.example',
    clientId: 'vidimus',
    clientSecret: 'secret',
    username: 'acme',
    password: 'password',
  };
  const times = { createdAt: new Date(0), updatedAt: new Date(0) };
  const known: RegistrarConfiguration = { ...body, ...times, id: 'default' };

  it('keep secrets that are omitted', () => {
    expect(mergeRegistrarConfiguration(known, {})).to.deep.equal(body);
    const { password: _password, clientSecret: _secret, ...same } = body;
    expect(mergeRegistrarConfiguration(known, same)).to.deep.equal(body);
    expect(mergeRegistrarConfiguration(known, { clientSecret: null }).clientSecret).to.equal(null);
    const open = { ...known, clientSecret: null };
    expect(mergeRegistrarConfiguration(open, { clientId: 'other' }), 'which has none').to.include({ clientId: 'other' });
  });

  const moves: [object, string][] = [
    [{ registrarUrl: 'https://evil.example' }, 'password'],
    [{ oidcUrl: 'https://evil.example' }, 'password'],
    [{ username: 'other' }, 'password'],
    [{ oidcUrl: 'https://evil.example', password: 'x' }, 'clientSecret'],
    [{ clientId: 'other' }, 'clientSecret'],
  ];
  for (const [changes, path] of moves) {
    it(`require ${path} again with another ${Object.keys(changes)[0]}`, () => {
      expect(() => mergeRegistrarConfiguration(known, changes))
        .to.throw()
        .with.nested.property('details.errors[0].path', path);
      const given = { ...changes, password: 'new', clientSecret: 'new' };
      expect(mergeRegistrarConfiguration(known, given)).to.deep.equal({ ...body, ...given });
    });
  }

  for (const [name, value] of [
    ['registrarUrl', 'registrar.example'],
    ['registrarUrl', 'https://user:pass@registrar.example'],
    ['registrarUrl', 'https://registrar.example/?a=b'],
    ['registrarUrl', 'file:///etc/passwd'],
    ['oidcUrl', 'https://login.example#x'],
    ['username', ''],
    ['password', ''],
    ['registrationCertificateAnchors', ['no certificate']],
    ['registrationCertificateDefaults', { rpId: 'x' }],
  ] as const) {
    it(`are rejected with the ${name} ${JSON.stringify(value)}`, () => {
      expect(RegistrarConfigurationBody.safeParse({ ...body, [name]: value }).success).to.equal(false);
    });
  }
});

const LOGIN = {
  registrarUrl: 'https://registrar.example',
  oidcUrl: 'https://login.example',
  clientId: 'vidimus',
  clientSecret: 'the secret of the client',
  username: 'acme',
  password: 'the password',
};

describe('registrar login of a tenant', () => {
  let world: AdministrationWorld;
  const caller = () => world.caller(['registrar:manage']);
  const get = () => new GetRegistrarConfiguration({}).execute(caller());
  const put = (changes: object = {}) =>
    new ReplaceRegistrarConfiguration(world).execute(caller(), RegistrarConfigurationBody.parse({ ...LOGIN, ...changes }));
  const update = (changes: object) =>
    new UpdateRegistrarConfiguration(world).execute(caller(), RegistrarConfigurationUpdate.parse(changes));
  const remove = () => new DeleteRegistrarConfiguration(world).execute(caller());
  const stored = () => world.store.forTenant(ACME, (own) => own.registrarConfiguration.find('default'));
  const fails = (fault: RegistrarFault) => {
    world.registrar.fault = new RegistrarError(fault, 'not today');
  };

  beforeEach(async () => {
    world = await anAdministration();
  });

  it('is absent at first', async () => {
    expect(await endOf(get())).to.equal('not_found');
    expect(await endOf(update({ username: 'other' }))).to.equal('not_found');
    expect(await endOf(remove())).to.equal('not_found');
    expect(world.registrar.asked).to.deep.equal([]);
  });

  it('is tested, stored and replaced entirely', async () => {
    const { createdAt } = await put({ registrationCertificateDefaults: { support_uri: 'https://acme.example' } });
    expect(world.registrar.asked).to.deep.equal(['login']);
    world.clock.forward(1_000);
    const replaced = await put({ clientSecret: null });
    expect(replaced).to.not.have.any.keys('clientSecret', 'registrationCertificateDefaults');
    expect([replaced.createdAt, replaced.updatedAt]).to.deep.equal([createdAt, world.clock.now()]);
    expect(await get()).to.deep.equal(replaced);
  });

  it('changes the given properties, after a test login', async () => {
    await put();
    expect(await update({ password: 'another one' })).to.include({ ...LOGIN, password: 'another one' });
    expect(await update({ clientSecret: null })).to.not.have.property('clientSecret');
    expect(world.registrar.asked).to.deep.equal(['login', 'login', 'login']);
  });

  const refusals: [string, () => Promise<unknown>, string][] = [
    ['a registrar that may not be called', () => put({ registrarUrl: 'https://db.internal' }), 'invalid_input registrarUrl'],
    ['a provider that may not be called', () => put({ oidcUrl: 'https://db.internal' }), 'invalid_input oidcUrl'],
    [
      'a change to an address that may not be called',
      () => update({ registrarUrl: 'https://db.internal', password: 'p' }),
      'invalid_input registrarUrl',
    ],
    ['another registrar without the password', () => update({ registrarUrl: 'https://other.example' }), 'invalid_input password'],
    ['another account without the password', () => update({ username: 'other' }), 'invalid_input password'],
    [
      'another provider without the secret',
      () => update({ oidcUrl: 'https://other.example', password: 'p' }),
      'invalid_input clientSecret',
    ],
    ['another client without its secret', () => update({ clientId: 'other' }), 'invalid_input clientSecret'],
  ];
  for (const [what, attempt, end] of refusals) {
    it(`rejects ${what}, and is unchanged: ${end}`, async () => {
      const before = await put();
      expect(await endOf(attempt())).to.equal(end);
      expect(await stored()).to.deep.equal(before);
      expect(world.registrar.asked, 'nobody is called').to.deep.equal(['login']);
    });
  }

  const faults: [RegistrarFault, string][] = [
    ['login_refused', 'invalid_input password'],
    ['bad_provider', 'invalid_input oidcUrl'],
    ['bad_answer', 'unavailable'],
    ['unavailable', 'unavailable'],
  ];
  for (const [fault, end] of faults) {
    it(`is not stored when the test login fails with ${fault}: ${end}`, async () => {
      const before = await put();
      fails(fault);
      expect(await endOf(put({ password: 'wrong' }))).to.equal(end);
      expect(await endOf(update({ password: 'wrong' }))).to.equal(end);
      expect(await stored()).to.deep.equal(before);
    });
  }

  it('is not changed by a test of the credentials if it was changed concurrently', async () => {
    await put();
    const { logIn } = world.registrar;
    world.registrar.logIn = async () => {
      world.registrar.logIn = logIn;
      world.clock.forward(1_000);
      await put({ password: 'theirs' });
    };
    expect(await endOf(update({ password: 'ours' }))).to.equal('conflict');
    expect(await stored()).to.include({ password: 'theirs' });
  });

  it('is removed with its certificates', async () => {
    await put();
    const now = world.clock.now();
    const certificate = { id: 'x', certificateId: 'y', jwt: 'z', createdAt: now, updatedAt: now };
    await world.write((own) => own.registrationCertificates.put(certificate));
    await remove();
    expect(await endOf(get())).to.equal('not_found');
    const left = await world.store.forTenant(ACME, (own) => own.registrationCertificates.list());
    expect(left).to.deep.equal([]);
  });

  for (const [registrationCert, end] of [
    [{ body: {} }, 'conflict'],
    [{ id: 'x' }, 'conflict'],
    [{ jwt: 'a.b.c' }, 'done'],
  ] as const) {
    it(`${end === 'done' ? 'is removed' : 'is kept'} while a presentation has ${JSON.stringify(registrationCert)}`, async () => {
      await put();
      const now = world.clock.now();
      const age = PresentationConfigurationBody.parse({ id: 'age', dcql_query: query({ id: 'pid' }), registrationCert });
      await world.write((own) => own.presentationConfigurations.put({ ...age, createdAt: now, updatedAt: now }));
      expect(await endOf(remove())).to.equal(end);
    });
  }
});
