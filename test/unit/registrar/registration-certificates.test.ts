import { setImmediate } from 'node:timers/promises';
import { expect } from 'chai';
import { Registrar, RegistrarError } from '../../../application/ports/registrar.ts';
import { RegistrationCertificateVerifier } from '../../../application/registrar/registration-certificate-verifier.ts';
import { RegistrationCertificates } from '../../../application/registrar/registration-certificates.ts';
import { DcqlQuery } from '../../../domain/dcql/query.ts';
import type { IssuedRegistrationCertificate } from '../../../domain/registrar/registrar-api.ts';
import type { RegistrationCertificateRequest } from '../../../domain/registrar/registration-certificate-request.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import { makeJwt } from '../../support/raw-wallet.ts';
import { type CertifiedKey, certify } from '../../support/test-certificates.ts';
import { ACME, World } from '../verification/kit.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const CREDENTIAL = { format: 'dc+sd-jwt', meta: { vct_values: ['a'] }, claim: [{ path: ['name'] }] };
const dcql_query = DcqlQuery.parse({
  credentials: [{ id: 'a', format: 'dc+sd-jwt', meta: { vct_values: ['a'] }, claims: [{ path: ['name'] }] }],
});

/** Issues what it is told to, and counts. */
class FakeRegistrar extends Registrar {
  readonly #world: World;
  readonly #signer: CertifiedKey;
  lifetimeSeconds = 3 * 3600;
  credentials: readonly object[] = [CREDENTIAL];
  /** In every certificate. */
  claims: object = {};
  fault: RegistrarError | undefined;
  asked = 0;
  /** What a lookup waits for before it fails as it would have then. */
  held: Promise<void> | undefined;

  constructor(world: World, signer: CertifiedKey) {
    super();
    this.#world = world;
    this.#signer = signer;
  }

  #issue(id: string): IssuedRegistrationCertificate {
    this.asked++;
    if (this.fault !== undefined) throw this.fault;
    const iat = this.#world.seconds;
    const header = { alg: 'ES256', typ: 'rc-wrp+jwt', x5c: [this.#signer.certificate] };
    const own = { sub: 'VATDE-1', iat, exp: iat + this.lifetimeSeconds, credentials: this.credentials };
    const payload = { ...own, ...this.claims };
    return { id, jwt: makeJwt(this.#signer, header, payload), revoked: false };
  }

  override async logIn(): Promise<void> {}
  override async relyingParties() {
    return [{ id: 'party' }];
  }
  override async issueAccessCertificate(): Promise<never> {
    throw new Error('nobody asks for one here');
  }
  override async issueRegistrationCertificate(): Promise<IssuedRegistrationCertificate> {
    return this.#issue(`issued-${this.asked}`);
  }
  override async findRegistrationCertificate(_: unknown, id: string): Promise<IssuedRegistrationCertificate> {
    const { held, fault } = this;
    if (held === undefined) return this.#issue(id);
    this.asked++;
    await held;
    throw fault;
  }
}

describe('registration certificates', () => {
  let signer: CertifiedKey;
  let world: World;
  let registrar: FakeRegistrar;
  let certificates: RegistrationCertificates;
  let checks: number;

  before(async () => {
    signer = await certify({ name: 'Registrar' });
  });
  beforeEach(async () => {
    world = await World.make();
    registrar = new FakeRegistrar(world, signer);
    certificates = make();
    checks = 0;
    const now = world.clock.now();
    await world.store.prepare('a login at the registrar', () =>
      world.store.forTenant(
        ACME,
        (own) =>
          own.registrarConfiguration.put({
            id: 'default',
            registrarUrl: 'https://registrar.example',
            oidcUrl: 'https://login.example',
            clientId: 'vidimus',
            username: 'acme',
            password: 'password',
            registrationCertificateDefaults: {
              privacy_policy: 'https://acme.example/privacy',
              support_uri: 'https://acme.example/help',
              purpose: [{ lang: 'en', content: 'Why' }],
            },
            createdAt: now,
            updatedAt: now,
          }),
        { by: 'system' },
      ),
    );
  });

  /** What one process remembers. */
  const make = () => {
    const checker = new RegistrationCertificateVerifier(world);
    const check = checker.verify.bind(checker);
    checker.verify = (...question) => {
      checks++;
      return check(...question);
    };
    return new RegistrationCertificates({ store: world.store, registrar, registrationCertificateVerifier: checker });
  };
  const configured = async () => (await world.caller()).tenant;
  const configuration = (registrationCert: RegistrationCertificateRequest, id = 'check') => ({ id, dcql_query, registrationCert });
  const entry = async (request: RegistrationCertificateRequest = { body: {} }) =>
    certificates.entryFor(await configured(), configuration(request), undefined, world.clock.now());
  const failure = async (request?: RegistrationCertificateRequest): Promise<Failure> => {
    const thrown: unknown = await entry(request).then(
      () => undefined,
      (error: unknown) => error,
    );
    if (thrown instanceof Failure) return thrown;
    throw new Error('no failure', { cause: thrown });
  };
  const save = async (request: RegistrationCertificateRequest) => {
    const body = { ...configuration(request), lifeTime: 300 } as Parameters<typeof certificates.assertUsable>[1];
    await certificates.assertUsable(await configured(), body, world.clock.now());
  };
  /** Stores copies of the first one, each newer than the one before. */
  const fill = async (count: number) => {
    const [first] = await stored();
    if (first === undefined) throw new Error('nothing to copy');
    await world.store.forTenant(
      ACME,
      async ({ registrationCertificates }) => {
        for (let copy = 0; copy < count; copy++) {
          world.clock.time += 1;
          const updatedAt = world.clock.now();
          await registrationCertificates.put({ ...first, id: `copy-${copy}`, createdAt: updatedAt, updatedAt });
        }
      },
      { by: 'system' },
    );
    world.clock.time += 1;
  };
  const stored = () => world.store.forTenant(ACME, (own) => own.registrationCertificates.list());

  it('are verified once, not for every request', async () => {
    const first = await entry();
    for (let again = 0; again < 5; again++) expect(await entry()).to.deep.equal(first);
    expect([registrar.asked, checks]).to.deep.equal([1, 1]);
  });

  it('are obtained again a minute before they expire', async () => {
    const first = await entry();
    world.clock.time += 3 * HOUR - MINUTE - 1;
    expect(await entry()).to.deep.equal(first);
    world.clock.time += 1;
    expect(await entry()).to.not.deep.equal(first);
    expect(registrar.asked).to.equal(2);
    expect(await stored()).to.have.length(1);
  });

  it('are not obtained with every request when they have a short lifetime', async () => {
    registrar.lifetimeSeconds = 20;
    const first = await entry();
    world.clock.time += 9_999;
    expect(await entry()).to.deep.equal(first);
    world.clock.time += 1;
    expect(await entry()).to.not.deep.equal(first);
  });

  it('are verified again after an hour, without a request to the registrar', async () => {
    for (const request of [{ body: {} }, { id: 'x' }]) {
      await entry(request);
      [registrar.asked, checks] = [0, 0];
      world.clock.time += HOUR;
      await entry(request);
      await entry(request);
      expect([registrar.asked, checks]).to.deep.equal([0, 1]);
    }
  });

  it('are shared by processes', async () => {
    const first = await entry();
    certificates = make();
    expect(await entry()).to.deep.equal(first);
    expect(registrar.asked).to.equal(1);
  });

  it('are obtained once for concurrent callers', async () => {
    const current = await configured();
    const now = world.clock.now();
    const wanted = configuration({ body: {} });
    await Promise.all([1, 2, 3].map(() => certificates.entryFor(current, wanted, undefined, now)));
    expect(registrar.asked).to.equal(1);
  });

  it('are not requested for callers with an outdated configuration', async () => {
    const outdated = await configured();
    await world.configure();
    const asking = certificates.entryFor(outdated, configuration({ body: {} }), undefined, world.clock.now());
    const thrown = await asking.catch((error: unknown) => error);
    expect(thrown).to.have.property('code', 'unavailable');
    expect([registrar.asked, await stored()]).to.deep.equal([0, []]);
    expect(await entry()).to.not.equal(undefined);
  });

  it('are not requested again within 15 seconds if the registrar does not answer', async () => {
    registrar.fault = new RegistrarError('unavailable', 'Nobody is there.');
    expect((await failure()).code).to.equal('unavailable');
    world.clock.time += 14_999;
    await failure();
    expect(registrar.asked).to.equal(1);
    registrar.fault = undefined;
    world.clock.time += 1;
    await entry();
    expect(registrar.asked).to.equal(2);
  });

  it('are not requested again within five minutes if the registrar issues an unusable one', async () => {
    registrar.credentials = [];
    expect((await failure()).details.errors?.[0]?.path).to.equal('registrationCert');
    world.clock.time += 5 * MINUTE - 1;
    await failure();
    expect([registrar.asked, await stored()]).to.deep.equal([1, []]);
    world.clock.time += 1;
    await failure();
    expect(registrar.asked).to.equal(2);
  });

  for (const status of [null, 'revoked', [], { status_list: null }, { status_list: { idx: -1, uri: 'urn:x' } }]) {
    it(`are invalid with the status ${JSON.stringify(status)}, which cannot be parsed`, async () => {
      registrar.claims = { status };
      expect((await failure()).details.errors?.[0]?.path).to.equal('registrationCert');
      expect(await stored()).to.deep.equal([]);
    });
  }

  it('are accepted with a status of another mechanism', async () => {
    registrar.claims = { status: { elsewhere: {} } };
    await entry();
  });

  it('of another use are added to no request under the profile `eu`, and to no configuration', async () => {
    registrar.claims = { purpose: [{ lang: 'en', content: 'Age check' }] };
    const euro = await configured();
    Object.defineProperty(euro, 'profile', { value: 'eu' });
    const of = (content: string, request: RegistrationCertificateRequest) => {
      const purpose = [{ lang: 'en', content }];
      return { ...configuration(request, content), purpose };
    };
    const now = world.clock.now();
    const ask = (content: string, request: RegistrationCertificateRequest = { id: 'brought' }) =>
      certificates.entryFor(euro, of(content, request), undefined, now);
    await ask('Age check');
    for (const work of [
      () => ask('Opening an account'),
      () => certificates.assertUsable(euro, { ...of('Opening an account', { id: 'brought' }) } as never, now),
    ]) {
      const thrown = await work().catch((error: unknown) => error as Failure);
      expect((thrown as Failure).details.errors?.[0]?.path).to.equal('purpose');
    }
    await ask('Opening an account', { body: {} });
  });

  it('are ordered again as soon as the configuration is saved', async () => {
    registrar.fault = new RegistrarError('unavailable', 'Nobody is there.');
    await failure();
    registrar.fault = undefined;
    await save({ body: {} });
    await entry();
    expect(registrar.asked).to.equal(2);
  });

  it('stay valid if the configuration cannot be saved', async () => {
    const good = await entry({ id: 'x' });
    registrar.fault = new RegistrarError('unavailable', 'Nobody is there.');
    expect((await save({ id: 'x' }).catch((error: unknown) => error)) as Failure).to.include({ code: 'unavailable' });
    expect(await entry({ id: 'x' })).to.deep.equal(good);
    world.clock.time += HOUR;
    expect(await entry({ id: 'x' }), 'and is judged again').to.deep.equal(good);
  });

  it('are requested again although the last save failed', async () => {
    registrar.fault = new RegistrarError('refused', 'No.');
    expect(await save({ id: 'x' }).catch((error: unknown) => error)).to.be.instanceOf(Failure);
    registrar.fault = undefined;
    expect(await entry({ id: 'x' })).to.not.equal(undefined);
  });

  it('stay valid if saving succeeds while a request fails', async () => {
    registrar.fault = new RegistrarError('unavailable', 'Nobody is there.');
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    registrar.held = held;
    const failing = failure({ id: 'x' });
    while (registrar.asked === 0) await setImmediate();
    registrar.fault = undefined;
    registrar.held = undefined;
    await save({ id: 'x' });
    release();
    expect((await failing).code).to.equal('unavailable');
    expect(await entry({ id: 'x' })).to.not.equal(undefined);
    expect(registrar.asked).to.equal(2);
  });

  it('are separate for another account', async () => {
    await entry();
    await world.store.forTenant(
      ACME,
      async ({ registrarConfiguration: own }) => own.put({ ...(await own.get('default')), password: 'another' }),
      { by: 'system' },
    );
    await entry();
    expect(registrar.asked, 'the same account').to.equal(1);
    await world.store.forTenant(
      ACME,
      async ({ registrarConfiguration: own }) => own.put({ ...(await own.get('default')), username: 'another' }),
      { by: 'system' },
    );
    await entry();
    expect(registrar.asked).to.equal(2);
    await world.store.forTenant(ACME, ({ registrarConfiguration: own }) => own.remove('default'), { by: 'system' });
    expect((await failure()).message).to.include('No registrar is configured');
  });

  it('of one tenant are limited in number: the oldest is removed', async () => {
    const first = (await entry({ id: 'first' })) && (await stored())[0]?.id;
    await fill(199);
    expect(await stored()).to.have.length(200);
    const last = configuration({ id: 'last' }, 'another-check');
    await certificates.entryFor(await configured(), last, undefined, world.clock.now());
    const ids = (await stored()).map(({ id }) => id);
    expect(ids).to.have.length(200).and.not.include(first);
  });
});
