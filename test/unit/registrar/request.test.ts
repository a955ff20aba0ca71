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
import { ACME, type AdministrationWorld, anAdministration, outcomeOf } from '../administrators.ts';
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
const PURPOSE = {
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
    const ownRequest = { body: { purpose: PURPOSE.purpose } };
    for (const request of [ownRequest, { id: 'known' }, { jwt: 'a.b.c' }])
      expect(registrationRequestFor(request, purpose)).to.equal(request);
    for (const unset of [null, undefined]) expect(registrationRequestFor({ body: {} }, unset)).to.deep.equal({ body: {} });
  });

  it('is completed from the defaults and the query', () => {
    const purpose = [{ lang: 'de', content: 'Warum' }];
    const complete = { ...PURPOSE, purpose, credentials: CREDENTIALS };
    expect(completeRegistration({ purpose }, PURPOSE, { query: QUERY })).to.deep.equal(complete);
    const credentials = CREDENTIALS.slice(1);
    expect(completeRegistration({ credentials }, PURPOSE, { query: QUERY })).to.deep.equal({ ...PURPOSE, credentials });
  });

  for (const name of Object.keys(PURPOSE)) {
    it(`is incomplete without ${name}`, () => {
      const defaults = Object.fromEntries(Object.entries(PURPOSE).filter(([member]) => member !== name));
      expect(completeRegistration({}, defaults, { query: QUERY })).to.deep.equal({ missing: name });
    });
  }

  it('is incomplete without credentials to request or to provide', () => {
    expect(completeRegistration({}, PURPOSE, {})).to.deep.equal({ missing: 'credentials' });
    const provided_attestations = [{ format: 'dc+sd-jwt', meta: {} }];
    const provided = completeRegistration({ provided_attestations }, PURPOSE, {});
    expect(provided).to.deep.equal({ ...PURPOSE, provided_attestations });
  });

  const withValues = { ...CREDENTIALS[0], claims: [{ path: ['a'], values: [1] }] };
  const fullBody = { ...PURPOSE, intermediary: 'x', credentials: CREDENTIALS };
  const bodies: [string, object, boolean][] = [
    ['a certificate', { jwt: 'a.b.c' }, true],
    ['an id', { id: 'x' }, true],
    ['a body', { body: {} }, true],
    ['a body with everything', { body: fullBody }, true],
    ['nothing', {}, false],
    ['two of them', { jwt: 'a.b.c', id: 'x' }, false],
    ['all of them', { jwt: 'a.b.c', id: 'x', body: {} }, false],
    ['unknown properties', { jwt: 'a.b.c', rpId: 'x' }, false],
    ['a relying party', { body: { rpId: 'x' } }, false],
    ['values of claims', { body: { credentials: [withValues] } }, false],
    ['a privacy policy with a script URL', { body: { privacy_policy: 'javascript:alert(1)' } }, false],
    ['help at no address', { body: { support_uri: 'call us' } }, false],
    ['an empty purpose', { body: { purpose: [] } }, false],
    ['an overlong id', { id: 'x'.repeat(201) }, false],
  ];
  for (const [description, body, isValid] of bodies) {
    it(`${isValid ? 'may' : 'must not'} have ${description}`, () => {
      expect(RegistrationCertificateRequest.safeParse(body).success).to.equal(isValid);
    });
  }

  it('is the same request in any order of its properties', () => {
    const left = { a: [1, { b: 2, c: null }], d: 'x' };
    expect(canonicalJson(left)).to.equal(canonicalJson({ d: 'x', a: [1, { c: null, b: 2 }] }));
    for (const different of [{ ...left, d: 'y' }, { a: [{ b: 2, c: null }, 1], d: 'x' }, { a: left.a }]) {
      expect(canonicalJson(left)).to.not.equal(canonicalJson(different as typeof left));
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
  const timestamps = { createdAt: new Date(0), updatedAt: new Date(0) };
  const configuration: RegistrarConfiguration = { ...body, ...timestamps, id: 'default' };

  it('keep secrets that are omitted', () => {
    expect(mergeRegistrarConfiguration(configuration, {})).to.deep.equal(body);
    const { password: _password, clientSecret: _secret, ...same } = body;
    expect(mergeRegistrarConfiguration(configuration, same)).to.deep.equal(body);
    expect(mergeRegistrarConfiguration(configuration, { clientSecret: null }).clientSecret).to.equal(null);
    const publicClient = { ...configuration, clientSecret: null };
    expect(mergeRegistrarConfiguration(publicClient, { clientId: 'other' }), 'without a purpose').to.include({ clientId: 'other' });
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
      expect(() => mergeRegistrarConfiguration(configuration, changes))
        .to.throw()
        .with.nested.property('details.errors[0].path', path);
      const input = { ...changes, password: 'new', clientSecret: 'new' };
      expect(mergeRegistrarConfiguration(configuration, input)).to.deep.equal({ ...body, ...input });
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

const REGISTRAR_LOGIN = {
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
    new ReplaceRegistrarConfiguration(world).execute(caller(), RegistrarConfigurationBody.parse({ ...REGISTRAR_LOGIN, ...changes }));
  const update = (changes: object) =>
    new UpdateRegistrarConfiguration(world).execute(caller(), RegistrarConfigurationUpdate.parse(changes));
  const remove = () => new DeleteRegistrarConfiguration(world).execute(caller());
  const storedConfiguration = () => world.store.forTenant(ACME, (ownRequest) => ownRequest.registrarConfiguration.find('default'));
  const failRegistrar = (fault: RegistrarFault) => {
    world.registrar.fault = new RegistrarError(fault, 'not today');
  };

  beforeEach(async () => {
    world = await anAdministration();
  });

  it('is absent at first', async () => {
    expect(await outcomeOf(get())).to.equal('not_found');
    expect(await outcomeOf(update({ username: 'other' }))).to.equal('not_found');
    expect(await outcomeOf(remove())).to.equal('not_found');
    expect(world.registrar.calls).to.deep.equal([]);
  });

  it('is tested, stored and replaced entirely', async () => {
    const { createdAt } = await put({ registrationCertificateDefaults: { support_uri: 'https://acme.example' } });
    expect(world.registrar.calls).to.deep.equal(['login']);
    world.clock.forward(1_000);
    const replaced = await put({ clientSecret: null });
    expect(replaced).to.not.have.any.keys('clientSecret', 'registrationCertificateDefaults');
    expect([replaced.createdAt, replaced.updatedAt]).to.deep.equal([createdAt, world.clock.now()]);
    expect(await get()).to.deep.equal(replaced);
  });

  it('changes the given properties, after a test login', async () => {
    await put();
    expect(await update({ password: 'another one' })).to.include({ ...REGISTRAR_LOGIN, password: 'another one' });
    expect(await update({ clientSecret: null })).to.not.have.property('clientSecret');
    expect(world.registrar.calls).to.deep.equal(['login', 'login', 'login']);
  });

  const rejections: [string, () => Promise<unknown>, string][] = [
    ['a registrar at a blocked address', () => put({ registrarUrl: 'https://db.internal' }), 'invalid_input registrarUrl'],
    ['a provider at a blocked address', () => put({ oidcUrl: 'https://db.internal' }), 'invalid_input oidcUrl'],
    ['a change to a blocked address', () => update({ registrarUrl: 'https://db.internal', password: 'p' }), 'invalid_input registrarUrl'],
    ['another registrar without the password', () => update({ registrarUrl: 'https://other.example' }), 'invalid_input password'],
    ['another account without the password', () => update({ username: 'other' }), 'invalid_input password'],
    [
      'another provider without the secret',
      () => update({ oidcUrl: 'https://other.example', password: 'p' }),
      'invalid_input clientSecret',
    ],
    ['another client without its secret', () => update({ clientId: 'other' }), 'invalid_input clientSecret'],
  ];
  for (const [description, attempt, outcome] of rejections) {
    it(`rejects ${description}, and is unchanged: ${outcome}`, async () => {
      const before = await put();
      expect(await outcomeOf(attempt())).to.equal(outcome);
      expect(await storedConfiguration()).to.deep.equal(before);
      expect(world.registrar.calls, 'no request is sent').to.deep.equal(['login']);
    });
  }

  const faults: [RegistrarFault, string][] = [
    ['login_refused', 'invalid_input password'],
    ['bad_provider', 'invalid_input oidcUrl'],
    ['bad_answer', 'unavailable'],
    ['unavailable', 'unavailable'],
  ];
  for (const [fault, outcome] of faults) {
    it(`is not stored when the test login fails with ${fault}: ${outcome}`, async () => {
      const before = await put();
      failRegistrar(fault);
      expect(await outcomeOf(put({ password: 'wrong' }))).to.equal(outcome);
      expect(await outcomeOf(update({ password: 'wrong' }))).to.equal(outcome);
      expect(await storedConfiguration()).to.deep.equal(before);
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
    expect(await outcomeOf(update({ password: 'ours' }))).to.equal('conflict');
    expect(await storedConfiguration()).to.include({ password: 'theirs' });
  });

  it('is removed with its certificates', async () => {
    await put();
    const now = world.clock.now();
    const certificate = { id: 'x', certificateId: 'y', jwt: 'z', createdAt: now, updatedAt: now };
    await world.write((ownRequest) => ownRequest.registrationCertificates.put(certificate));
    await remove();
    expect(await outcomeOf(get())).to.equal('not_found');
    const remaining = await world.store.forTenant(ACME, (ownRequest) => ownRequest.registrationCertificates.list());
    expect(remaining).to.deep.equal([]);
  });

  for (const [registrationCert, outcome] of [
    [{ body: {} }, 'conflict'],
    [{ id: 'x' }, 'conflict'],
    [{ jwt: 'a.b.c' }, 'done'],
  ] as const) {
    it(`${outcome === 'done' ? 'is removed' : 'is kept'} while a presentation has ${JSON.stringify(registrationCert)}`, async () => {
      await put();
      const now = world.clock.now();
      const age = PresentationConfigurationBody.parse({ id: 'age', dcql_query: query({ id: 'pid' }), registrationCert });
      await world.write((ownRequest) => ownRequest.presentationConfigurations.put({ ...age, createdAt: now, updatedAt: now }));
      expect(await outcomeOf(remove())).to.equal(outcome);
    });
  }
});
