import { expect } from 'chai';
import { RegistrarError, type RegistrarFault } from '../../../application/ports/registrar.ts';
import {
  DeleteRegistrarConfiguration,
  GetRegistrarConfiguration,
  ReplaceRegistrarConfiguration,
  UpdateRegistrarConfiguration,
} from '../../../application/registrar/registrar-configurations.ts';
import {
  RegistrarConfigurationBody,
  RegistrarConfigurationUpdate,
} from '../../../domain/registrar/registrar-configuration.ts';
import { PresentationConfigurationBody } from '../../../domain/verification/configuration.ts';
import { type AdministrationWorld, anAdministration, endOf } from '../administration/kit.ts';
import { ACME } from '../administration/world.ts';
import { query } from '../verification-flow/kit.ts';

const LOGIN = {
  registrarUrl: 'https://registrar.example',
  oidcUrl: 'https://login.example',
  clientId: 'vidimus',
  clientSecret: 'the secret of the client',
  username: 'acme',
  password: 'the password',
};

describe('The login of a tenant at its registrar', () => {
  let world: AdministrationWorld;
  const caller = () => world.caller(['registrar:manage']);
  const get = () => new GetRegistrarConfiguration({}).execute(caller());
  const put = (changes: object = {}) =>
    new ReplaceRegistrarConfiguration(world).execute(
      caller(),
      RegistrarConfigurationBody.parse({ ...LOGIN, ...changes }),
    );
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

  it('is not there at first', async () => {
    expect(await endOf(get())).to.equal('not_found');
    expect(await endOf(update({ username: 'other' }))).to.equal('not_found');
    expect(await endOf(remove())).to.equal('not_found');
    expect(world.registrar.asked).to.deep.equal([]);
  });

  it('is tried, stored and replaced whole', async () => {
    const { createdAt } = await put({
      registrationCertificateDefaults: { support_uri: 'https://acme.example' },
    });
    expect(world.registrar.asked).to.deep.equal(['login']);
    world.clock.forward(1_000);
    const replaced = await put({ clientSecret: null });
    expect(replaced).to.not.have.any.keys('clientSecret', 'registrationCertificateDefaults');
    expect([replaced.createdAt, replaced.updatedAt]).to.deep.equal([createdAt, world.clock.now()]);
    expect(await get()).to.deep.equal(replaced);
  });

  it('changes in what is said, after it was tried', async () => {
    await put();
    expect(await update({ password: 'another one' })).to.include({ ...LOGIN, password: 'another one' });
    expect(await update({ clientSecret: null })).to.not.have.property('clientSecret');
    expect(world.registrar.asked).to.deep.equal(['login', 'login', 'login']);
  });

  const refusals: [string, () => Promise<unknown>, string][] = [
    [
      'a registrar that may not be called',
      () => put({ registrarUrl: 'https://db.internal' }),
      'invalid_input registrarUrl',
    ],
    [
      'a provider that may not be called',
      () => put({ oidcUrl: 'https://db.internal' }),
      'invalid_input oidcUrl',
    ],
    [
      'a change to an address that may not be called',
      () => update({ registrarUrl: 'https://db.internal', password: 'p' }),
      'invalid_input registrarUrl',
    ],
    [
      'another registrar without the password',
      () => update({ registrarUrl: 'https://other.example' }),
      'invalid_input password',
    ],
    ['another account without the password', () => update({ username: 'other' }), 'invalid_input password'],
    [
      'another provider without the secret',
      () => update({ oidcUrl: 'https://other.example', password: 'p' }),
      'invalid_input clientSecret',
    ],
    ['another client without its secret', () => update({ clientId: 'other' }), 'invalid_input clientSecret'],
  ];
  for (const [what, attempt, end] of refusals) {
    it(`refuses ${what}, and is as it was: ${end}`, async () => {
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
    it(`is not stored when the trial ends in ${fault}: ${end}`, async () => {
      const before = await put();
      fails(fault);
      expect(await endOf(put({ password: 'wrong' }))).to.equal(end);
      expect(await endOf(update({ password: 'wrong' }))).to.equal(end);
      expect(await stored()).to.deep.equal(before);
    });
  }

  it('is not changed by who tried it while somebody else changed it', async () => {
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

  it('goes with the certificates that it brought', async () => {
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
    it(`${end === 'done' ? 'goes' : 'stays'} while a presentation has ${JSON.stringify(registrationCert)}`, async () => {
      await put();
      const now = world.clock.now();
      const age = PresentationConfigurationBody.parse({
        id: 'age',
        dcql_query: query({ id: 'pid' }),
        registrationCert,
      });
      await world.write((own) =>
        own.presentationConfigurations.put({ ...age, createdAt: now, updatedAt: now }),
      );
      expect(await endOf(remove())).to.equal(end);
    });
  }
});
