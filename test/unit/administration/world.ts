import { InProcessEventBus } from '../../../adapters/dispatch/in-process/event-bus.ts';
import { LocalKms } from '../../../adapters/kms/local/local-kms.ts';
import { NodeRandom } from '../../../adapters/system/random.ts';
import type { ServiceCaller, TenantCaller } from '../../../application/caller.ts';
import { Clock } from '../../../application/ports/clock.ts';
import { Log } from '../../../application/ports/log.ts';
import { Secrets } from '../../../application/ports/secrets.ts';
import type { ServiceSettings } from '../../../application/ports/settings.ts';
import { FetchedSessions } from '../../../application/sessions/fetched-sessions.ts';
import { TenantConfiguration } from '../../../application/tenant-configuration.ts';
import { TenantConfigurations } from '../../../application/tenant-configurations.ts';
import { CreateTenant } from '../../../application/tenants/tenants.ts';
import type { Role } from '../../../domain/clients/role.ts';
import type { Session } from '../../../domain/sessions/session.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { PublicId, SessionId, TenantId } from '../../../domain/shared/ids.ts';
import { NO_ORGANIZATION } from '../../../domain/tenants/organization.ts';
import { firstRevisions } from '../../../domain/tenants/revisions.ts';
import { TenantCreation } from '../../../domain/tenants/tenant.ts';
import { TEST_CIPHER } from '../../support/memory-databases.ts';
import { MemoryStore } from '../../support/memory-store.ts';
import { CertificatesMadeOnce, KeysMadeOnce } from './made-once.ts';

export class TestClock extends Clock {
  time = new Date('2026-06-01T12:00:00Z');

  override now(): Date {
    return this.time;
  }

  forward(milliseconds: number): void {
    this.time = new Date(this.time.getTime() + milliseconds);
  }
}

/** Argon2 is proved by its contract suite; here its slowness would prove nothing. */
class QuickSecrets extends Secrets {
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

/** Every port of the administrative use cases, on memory. */
/** The account that manages tenants. */
export const ROOT: ServiceCaller = { tenantId: null, clientId: 'root', roles: ['tenants:manage'] };

export function aWorld() {
  const cipher = TEST_CIPHER;
  const random = new NodeRandom();
  const provider = new LocalKms({ name: 'local', cipher, random });
  const kms = new KeysMadeOnce({ providers: [{ name: 'local', type: 'local', provider }], default: 'local' });
  const certificateAuthority = new CertificatesMadeOnce({ kms, random });
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
    secrets: new QuickSecrets(),
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
    configured: new TenantConfiguration(world, {
      id: ACME,
      status: 'active',
      revision: 0,
      revisions: firstRevisions(new Date(0)),
      profile: null,
      ...NO_ORGANIZATION,
    }),
    ...restrictions,
  });
  const createTenant = async (wanted: Partial<TenantCreation> = {}) => {
    const body = TenantCreation.parse({ id: 'acme', name: 'Acme', ...wanted });
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
  /** Another one, without keys. */
  const hasStranger = (id: string) =>
    store.prepare(`stranger ${id}`, () =>
      store.forService(
        async ({ tenants }) => tenants.add({ ...(await tenants.get(ACME)), id: id as TenantId, name: id }),
        { by: ROOT },
      ),
    );
  return { ...world, caller, createTenant, hasStranger };
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
