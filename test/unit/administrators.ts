import { NodeCertificates } from '../../adapters/crypto/certificates.ts';
import { NodeSignatures } from '../../adapters/crypto/signatures.ts';
import { InProcessEventBus } from '../../adapters/dispatch/in-process/event-bus.ts';
import { LocalKms } from '../../adapters/kms/local/local-kms.ts';
import { NodeRandom } from '../../adapters/system/random.ts';
import { AjvSchemaValidator } from '../../adapters/system/schema-validator.ts';
import type { ServiceCaller, TenantCaller } from '../../application/caller.ts';
import { OfflineIssuerRegistration, OfflineRegistrationCertificates } from '../../application/configuration-files/offline.ts';
import { Clock } from '../../application/ports/clock.ts';
import type { WakeUp } from '../../application/ports/event-bus.ts';
import { Log } from '../../application/ports/log.ts';
import { Registrar, type RegistrarError } from '../../application/ports/registrar.ts';
import { Remote, RemoteError, type RemoteResponse } from '../../application/ports/remote.ts';
import type { TenantRepositories } from '../../application/ports/repositories.ts';
import { Secrets } from '../../application/ports/secrets.ts';
import type { ServiceSettings } from '../../application/ports/settings.ts';
import { Webhooks } from '../../application/ports/webhooks.ts';
import { FetchedSessions } from '../../application/sessions/fetched-sessions.ts';
import { TenantConfiguration } from '../../application/tenant-cache/tenant-configuration.ts';
import { TenantConfigurations } from '../../application/tenant-cache/tenant-configurations.ts';
import { CreateTenant } from '../../application/tenants/tenants.ts';
import { ListSigners } from '../../application/trust-lists/list-signers.ts';
import { TrustListPublisher } from '../../application/trust-lists/trust-list-publisher.ts';
import type { Role } from '../../domain/clients/role.ts';
import type { IssuedRegistrationCertificate, RelyingParty } from '../../domain/registrar/registrar-api.ts';
import type { Session } from '../../domain/sessions/session.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { PublicId, SessionId, TenantId } from '../../domain/shared/ids.ts';
import { NO_ORGANIZATION } from '../../domain/tenants/organization.ts';
import { firstRevisions } from '../../domain/tenants/revisions.ts';
import { TenantCreation } from '../../domain/tenants/tenant.ts';
import { inlineTrustLists } from '../support/fakes.ts';
import { MemoryStore, TEST_CIPHER } from '../support/memory-store.ts';
import { CachedKmsRegistry, CachedX509Authority } from './cached-keys.ts';

export class TestClock extends Clock {
  time = new Date('2026-06-01T12:00:00Z');

  override now(): Date {
    return this.time;
  }

  forward(milliseconds: number): void {
    this.time = new Date(this.time.getTime() + milliseconds);
  }
}

/** A fast replacement for Argon2, which its contract suite tests. */
class FakeSecrets extends Secrets {
  override async hash(secret: string): Promise<string> {
    return `hash of ${secret}`;
  }
  override async verify(secret: string, hash: string): Promise<boolean> {
    return hash === `hash of ${secret}`;
  }
}

class SilentLog extends Log {
  override info(): void {}
  override warn(): void {}
  override error(): void {}
}

export const ACME = 'acme' as TenantId;
export const MANAGER: ServiceCaller = { tenantId: null, clientId: 'root', roles: ['tenants:manage'] };

/** The account that manages tenants. */
export const ROOT: ServiceCaller = { tenantId: null, clientId: 'root', roles: ['tenants:manage'] };

export function aWorld() {
  const cipher = TEST_CIPHER;
  const random = new NodeRandom();
  const provider = new LocalKms({ name: 'local', cipher, random });
  const kms = new CachedKmsRegistry({ providers: [{ name: 'local', type: 'local', provider }], default: 'local' });
  const certificateAuthority = new CachedX509Authority({ kms, random });
  const store = new MemoryStore();
  const eventBus = new InProcessEventBus();
  const settings = {
    publicUrl: 'https://id.example/base',
    rootClient: { clientId: 'root', secret: 'the secret of the root client' },
    sessionTtlSeconds: 86_400,
    statusDefaults: { capacity: 100_000, bits: 1, ttl: 3600 },
  } as unknown as ServiceSettings;
  const [clock, log] = [new TestClock(), new SilentLog()];
  const tenantConfigurations = new TenantConfigurations({ store, settings, eventBus, clock });
  const world = {
    store,
    kms,
    random,
    cipher,
    settings,
    clock,
    secrets: new FakeSecrets(),
    certificateAuthority,
    eventBus,
    tenantConfigurations,
    fetchedSessions: new FetchedSessions({ store, tenantConfigurations, clock, eventBus, log }),
    log,
  };
  const caller = (roles: readonly Role[], restrictions: Partial<TenantCaller> = {}): TenantCaller => ({
    tenantId: ACME,
    clientId: 'acme-admin',
    roles,
    allowedPresentationConfigs: null,
    allowedIssuanceConfigs: null,
    tenant: new TenantConfiguration(world, {
      id: ACME,
      status: 'active',
      revision: 0,
      revisions: firstRevisions(new Date(0)),
      profile: null,
      ...NO_ORGANIZATION,
    }),
    ...restrictions,
  });
  const createTenant = async (fields: Partial<TenantCreation> = {}) => {
    const body = TenantCreation.parse({ id: 'acme', name: 'Acme', ...fields });
    const step = `tenant ${JSON.stringify(body)} at ${world.clock.now().getTime()}`;
    const { created, keys, certificates } = await store.prepare(step, async () => ({
      created: await new CreateTenant(world).execute(ROOT, body),
      keys: kms.counts,
      certificates: certificateAuthority.counts,
    }));
    kms.counts = keys;
    certificateAuthority.counts = certificates;
    return created;
  };
  /** Adds a second tenant without keys. */
  const addOtherTenant = (id: string) =>
    store.prepare(`tenant ${id} without keys`, () =>
      store.forService(async ({ tenants }) => tenants.add({ ...(await tenants.get(ACME)), id: id as TenantId, name: id }), { by: ROOT }),
    );
  return { ...world, caller, createTenant, addOtherTenant };
}

export type World = ReturnType<typeof aWorld>;

export function aSession(clock: Clock, number: number, changes: Partial<Session> = {}): Session {
  const createdAt = new Date(clock.now().getTime() + number);
  return {
    tenantId: ACME,
    id: `session-${number}` as SessionId,
    publicId: `public-${number}` as PublicId,
    kind: 'verification',
    status: 'active',
    version: 1,
    createdAt,
    updatedAt: createdAt,
    expiresAt: new Date(createdAt.getTime() + 600_000),
    configurationIds: ['age'],
    useDcApi: false,
    request: null,
    outcome: null,
    issuedMask: 0,
    claimedAt: null,
    ...changes,
  };
}

/** @returns the failure's code, or `undefined` when there was none. */
export async function codeOf(work: Promise<unknown> | (() => unknown)): Promise<string | undefined> {
  try {
    await (typeof work === 'function' ? work() : work);
    return undefined;
  } catch (error) {
    if (error instanceof Failure) return error.code;
    throw error;
  }
}

/** True for addresses that the settings of this service block. */
const isBlocked = (url: string) => new URL(url).hostname.endsWith('.internal');

class OfflineRemote extends Remote {
  override refuses(url: string): boolean {
    return isBlocked(url);
  }
  override async request(): Promise<RemoteResponse> {
    throw new RemoteError('unreachable', 'administration sends no requests');
  }
}

class OfflineWebhooks extends Webhooks {
  override refuses(url: string): boolean {
    return isBlocked(url);
  }
  override async post(): Promise<never> {
    throw new Error('administration sends no requests');
  }
}

/** A registrar with configurable answers. Every call fails with `fault` if it is set. */
export class FakeRegistrar extends Registrar {
  fault: RegistrarError | undefined;
  parties: readonly RelyingParty[] = [{ id: 'party' }, { id: 'second' }];
  accessCertificate = '';
  certificate: IssuedRegistrationCertificate | undefined;
  readonly calls: string[] = [];

  #record(call: string): void {
    this.calls.push(call);
    if (this.fault !== undefined) throw this.fault;
  }

  override async logIn(): Promise<void> {
    this.#record('login');
  }
  override async relyingParties(): Promise<readonly RelyingParty[]> {
    this.#record('parties');
    return this.parties;
  }
  override async issueAccessCertificate(_: unknown, { dns, rpId }: { dns: readonly string[]; rpId: string }) {
    this.#record(`access ${rpId} ${dns.join()}`);
    return { id: 'issued', crt: this.accessCertificate };
  }
  override async issueRegistrationCertificate(_: unknown, { rpId }: { rpId: string }) {
    this.#record(`registration ${rpId}`);
    if (this.certificate === undefined) throw new Error('no certificate is configured');
    return this.certificate;
  }
  override async findRegistrationCertificate(_: unknown, id: string) {
    this.#record(`find ${id}`);
    return this.certificate?.id === id ? this.certificate : undefined;
  }
}

/** Creates the tenant `acme` with its initial keys, and all ports of administrative use cases. */
export async function anAdministration() {
  const world = aWorld();
  await world.createTenant();
  const ports = {
    ...world,
    remote: new OfflineRemote(),
    webhooks: new OfflineWebhooks(),
    schemaValidator: new AjvSchemaValidator(),
    signatures: new NodeSignatures(),
    certificates: new NodeCertificates(),
    trustListReader: inlineTrustLists(),
    registrar: new FakeRegistrar(),
    trustListPublisher: new TrustListPublisher(world),
  };
  const wakeUps: WakeUp[] = [];
  world.eventBus.subscribe((wakeUp) => wakeUps.push(wakeUp));
  /** Writes as the service, not as a client. */
  const write = <T>(work: (repositories: TenantRepositories) => Promise<T>) =>
    world.store.forTenant(ACME, work, { by: 'system', exclusive: true });
  const registrationCertificates = new OfflineRegistrationCertificates(ports);
  return {
    ...ports,
    registrationCertificates,
    issuerRegistration: new OfflineIssuerRegistration({ registrationCertificates }),
    listSigners: new ListSigners(ports),
    wakeUps,
    write,
  };
}

export type AdministrationWorld = Awaited<ReturnType<typeof anAdministration>>;

/** Returns `done`, or the code of the failure with the path of its first error. */
export async function outcomeOf(work: Promise<unknown>): Promise<string> {
  try {
    await work;
    return 'done';
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    const [first] = error.details.errors ?? [];
    return first === undefined ? error.code : `${error.code} ${first.path}`.trim();
  }
}
