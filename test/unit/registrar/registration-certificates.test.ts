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

/** Issues configured certificates and counts requests. */
class FakeRegistrar extends Registrar {
  readonly #world: World;
  readonly #signer: CertifiedKey;
  lifetimeSeconds = 3 * 3600;
  credentials: readonly object[] = [CREDENTIAL];
  /** Claims of every certificate. */
  claims: object = {};
  fault: RegistrarError | undefined;
  requests = 0;
  /** A lookup waits for this promise, then fails with the fault from its start. */
  blocker: Promise<void> | undefined;

  constructor(world: World, signer: CertifiedKey) {
    super();
    this.#world = world;
    this.#signer = signer;
  }

  #issue(id: string): IssuedRegistrationCertificate {
    this.requests++;
    if (this.fault !== undefined) throw this.fault;
    const iat = this.#world.seconds;
    const header = { alg: 'ES256', typ: 'rc-wrp+jwt', x5c: [this.#signer.certificate] };
    const claims = { sub: 'VATDE-1', iat, exp: iat + this.lifetimeSeconds, credentials: this.credentials };
    const payload = { ...claims, ...this.claims };
    return { id, jwt: makeJwt(this.#signer, header, payload), revoked: false };
  }

  override async logIn(): Promise<void> {}
  override async relyingParties() {
    return [{ id: 'party' }];
  }
  override async issueAccessCertificate(): Promise<never> {
    throw new Error('not used by these tests');
  }
  override async issueRegistrationCertificate(): Promise<IssuedRegistrationCertificate> {
    return this.#issue(`issued-${this.requests}`);
  }
  override async findRegistrationCertificate(_: unknown, id: string): Promise<IssuedRegistrationCertificate> {
    const { blocker: held, fault } = this;
    if (held === undefined) return this.#issue(id);
    this.requests++;
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
    certificates = createChecker();
    checks = 0;
    const now = world.clock.now();
    await world.store.prepare('a login at the registrar', () =>
      world.store.forTenant(
        ACME,
        (claims) =>
          claims.registrarConfiguration.put({
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

  /** The cached state of one process. */
  const createChecker = () => {
    const checker = new RegistrationCertificateVerifier(world);
    const check = checker.verify.bind(checker);
    checker.verify = (...question) => {
      checks++;
      return check(...question);
    };
    return new RegistrationCertificates({ store: world.store, registrar, registrationCertificateVerifier: checker });
  };
  const tenantOf = async () => (await world.caller()).tenant;
  const configuration = (registrationCert: RegistrationCertificateRequest, id = 'check') => ({ id, dcql_query, registrationCert });
  const entryFor = async (request: RegistrationCertificateRequest = { body: {} }) =>
    certificates.entryFor(await tenantOf(), configuration(request), undefined, world.clock.now());
  const failure = async (request?: RegistrationCertificateRequest): Promise<Failure> => {
    const error: unknown = await entryFor(request).then(
      () => undefined,
      (error: unknown) => error,
    );
    if (error instanceof Failure) return error;
    throw new Error('no failure', { cause: error });
  };
  const save = async (request: RegistrationCertificateRequest) => {
    const body = { ...configuration(request), lifeTime: 300 } as Parameters<typeof certificates.assertUsable>[1];
    await certificates.assertUsable(await tenantOf(), body, world.clock.now());
  };
  /** Stores copies of the first certificate, each newer than the previous one. */
  const storeCopies = async (count: number) => {
    const [first] = await storedCopies();
    if (first === undefined) throw new Error('no certificate to copy');
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
  const storedCopies = () => world.store.forTenant(ACME, (claims) => claims.registrationCertificates.list());

  it('are verified once, not for every request', async () => {
    const first = await entryFor();
    for (let round = 0; round < 5; round++) expect(await entryFor()).to.deep.equal(first);
    expect([registrar.requests, checks]).to.deep.equal([1, 1]);
  });

  it('are obtained again a minute before they expire', async () => {
    const first = await entryFor();
    world.clock.time += 3 * HOUR - MINUTE - 1;
    expect(await entryFor()).to.deep.equal(first);
    world.clock.time += 1;
    expect(await entryFor()).to.not.deep.equal(first);
    expect(registrar.requests).to.equal(2);
    expect(await storedCopies()).to.have.length(1);
  });

  it('are not obtained with every request when they have a short lifetime', async () => {
    registrar.lifetimeSeconds = 20;
    const first = await entryFor();
    world.clock.time += 9_999;
    expect(await entryFor()).to.deep.equal(first);
    world.clock.time += 1;
    expect(await entryFor()).to.not.deep.equal(first);
  });

  it('are verified again after an hour, without a request to the registrar', async () => {
    for (const request of [{ body: {} }, { id: 'x' }]) {
      await entryFor(request);
      [registrar.requests, checks] = [0, 0];
      world.clock.time += HOUR;
      await entryFor(request);
      await entryFor(request);
      expect([registrar.requests, checks]).to.deep.equal([0, 1]);
    }
  });

  it('are shared by processes', async () => {
    const first = await entryFor();
    certificates = createChecker();
    expect(await entryFor()).to.deep.equal(first);
    expect(registrar.requests).to.equal(1);
  });

  it('are obtained once for concurrent callers', async () => {
    const current = await tenantOf();
    const now = world.clock.now();
    const registration = configuration({ body: {} });
    await Promise.all([1, 2, 3].map(() => certificates.entryFor(current, registration, undefined, now)));
    expect(registrar.requests).to.equal(1);
  });

  it('are not requested for callers with an outdated configuration', async () => {
    const outdated = await tenantOf();
    await world.configure();
    const pendingEntry = certificates.entryFor(outdated, configuration({ body: {} }), undefined, world.clock.now());
    const error = await pendingEntry.catch((error: unknown) => error);
    expect(error).to.have.property('code', 'unavailable');
    expect([registrar.requests, await storedCopies()]).to.deep.equal([0, []]);
    expect(await entryFor()).to.not.equal(undefined);
  });

  it('are not requested again within 15 seconds if the registrar does not answer', async () => {
    registrar.fault = new RegistrarError('unavailable', 'The registrar is unreachable.');
    expect((await failure()).code).to.equal('unavailable');
    world.clock.time += 14_999;
    await failure();
    expect(registrar.requests).to.equal(1);
    registrar.fault = undefined;
    world.clock.time += 1;
    await entryFor();
    expect(registrar.requests).to.equal(2);
  });

  it('are not requested again within five minutes if the registrar issues an unusable one', async () => {
    registrar.credentials = [];
    expect((await failure()).details.errors?.[0]?.path).to.equal('registrationCert');
    world.clock.time += 5 * MINUTE - 1;
    await failure();
    expect([registrar.requests, await storedCopies()]).to.deep.equal([1, []]);
    world.clock.time += 1;
    await failure();
    expect(registrar.requests).to.equal(2);
  });

  for (const status of [null, 'revoked', [], { status_list: null }, { status_list: { idx: -1, uri: 'urn:x' } }]) {
    it(`are invalid with the status ${JSON.stringify(status)}, which cannot be parsed`, async () => {
      registrar.claims = { status };
      expect((await failure()).details.errors?.[0]?.path).to.equal('registrationCert');
      expect(await storedCopies()).to.deep.equal([]);
    });
  }

  it('are accepted with a status of another mechanism', async () => {
    registrar.claims = { status: { elsewhere: {} } };
    await entryFor();
  });

  it('of another use are added to no request under the profile `eu`, and to no configuration', async () => {
    registrar.claims = { purpose: [{ lang: 'en', content: 'Age check' }] };
    const euro = await tenantOf();
    Object.defineProperty(euro, 'profile', { value: 'eu' });
    const requestWithPurpose = (content: string, request: RegistrationCertificateRequest) => {
      const purpose = [{ lang: 'en', content }];
      return { ...configuration(request, content), purpose };
    };
    const now = world.clock.now();
    const entryWithPurpose = (content: string, request: RegistrationCertificateRequest = { id: 'brought' }) =>
      certificates.entryFor(euro, requestWithPurpose(content, request), undefined, now);
    await entryWithPurpose('Age check');
    for (const getEntry of [
      () => entryWithPurpose('Opening an account'),
      () => certificates.assertUsable(euro, { ...requestWithPurpose('Opening an account', { id: 'brought' }) } as never, now),
    ]) {
      const error = await getEntry().catch((error: unknown) => error as Failure);
      expect((error as Failure).details.errors?.[0]?.path).to.equal('purpose');
    }
    await entryWithPurpose('Opening an account', { body: {} });
  });

  it('are ordered again as soon as the configuration is saved', async () => {
    registrar.fault = new RegistrarError('unavailable', 'The registrar is unreachable.');
    await failure();
    registrar.fault = undefined;
    await save({ body: {} });
    await entryFor();
    expect(registrar.requests).to.equal(2);
  });

  it('stay valid if the configuration cannot be saved', async () => {
    const stored = await entryFor({ id: 'x' });
    registrar.fault = new RegistrarError('unavailable', 'The registrar is unreachable.');
    expect((await save({ id: 'x' }).catch((error: unknown) => error)) as Failure).to.include({ code: 'unavailable' });
    expect(await entryFor({ id: 'x' })).to.deep.equal(stored);
    world.clock.time += HOUR;
    expect(await entryFor({ id: 'x' }), 'and is verified again').to.deep.equal(stored);
  });

  it('are requested again although the last save failed', async () => {
    registrar.fault = new RegistrarError('refused', 'No.');
    expect(await save({ id: 'x' }).catch((error: unknown) => error)).to.be.instanceOf(Failure);
    registrar.fault = undefined;
    expect(await entryFor({ id: 'x' })).to.not.equal(undefined);
  });

  it('stay valid if saving succeeds while a request fails', async () => {
    registrar.fault = new RegistrarError('unavailable', 'The registrar is unreachable.');
    const { promise: blocker, resolve: release } = Promise.withResolvers<void>();
    registrar.blocker = blocker;
    const failedEntry = failure({ id: 'x' });
    while (registrar.requests === 0) await setImmediate();
    registrar.fault = undefined;
    registrar.blocker = undefined;
    await save({ id: 'x' });
    release();
    expect((await failedEntry).code).to.equal('unavailable');
    expect(await entryFor({ id: 'x' })).to.not.equal(undefined);
    expect(registrar.requests).to.equal(2);
  });

  it('are separate for another account', async () => {
    await entryFor();
    await world.store.forTenant(
      ACME,
      async ({ registrarConfiguration: claims }) => claims.put({ ...(await claims.get('default')), password: 'another' }),
      { by: 'system' },
    );
    await entryFor();
    expect(registrar.requests, 'the same account').to.equal(1);
    await world.store.forTenant(
      ACME,
      async ({ registrarConfiguration: claims }) => claims.put({ ...(await claims.get('default')), username: 'another' }),
      { by: 'system' },
    );
    await entryFor();
    expect(registrar.requests).to.equal(2);
    await world.store.forTenant(ACME, ({ registrarConfiguration: claims }) => claims.remove('default'), { by: 'system' });
    expect((await failure()).message).to.include('No registrar is configured');
  });

  it('of one tenant are limited in number: the oldest is removed', async () => {
    const first = (await entryFor({ id: 'first' })) && (await storedCopies())[0]?.id;
    await storeCopies(199);
    expect(await storedCopies()).to.have.length(200);
    const last = configuration({ id: 'last' }, 'another-check');
    await certificates.entryFor(await tenantOf(), last, undefined, world.clock.now());
    const ids = (await storedCopies()).map(({ id }) => id);
    expect(ids).to.have.length(200).and.not.include(first);
  });
});
