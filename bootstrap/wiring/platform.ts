import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { Container } from 'inversify';
import { Argon2Secrets } from '../../adapters/crypto/argon2-secrets.ts';
import { NodeCertificates } from '../../adapters/crypto/certificates.ts';
import { MasterCipher } from '../../adapters/crypto/cipher.ts';
import { NodeEncryption } from '../../adapters/crypto/encryption.ts';
import { NodeSignatures } from '../../adapters/crypto/signatures.ts';
import { X509Authority } from '../../adapters/crypto/x509-authority.ts';
import { InProcessEventBus } from '../../adapters/dispatch/in-process/event-bus.ts';
import { Admission } from '../../adapters/http/limits/admission.ts';
import { OrmStore } from '../../adapters/persistence/orm-store.ts';
import { RemoteAuthorizationServers } from '../../adapters/remote/authorization-servers.ts';
import { Outgoing } from '../../adapters/remote/outgoing.ts';
import { RemoteRegistrar } from '../../adapters/remote/registrar.ts';
import { RemoteWebhooks } from '../../adapters/remote/webhooks.ts';
import { SystemClock } from '../../adapters/system/clock.ts';
import type { Observer } from '../../adapters/system/observed/observer.ts';
import { PinoLog } from '../../adapters/system/pino-log.ts';
import { NodeRandom } from '../../adapters/system/random.ts';
import { AjvSchemaValidator } from '../../adapters/system/schema-validator.ts';
import { ConsoleTickets } from '../../application/console/console-tickets.ts';
import { CheckHealth, CheckReadiness } from '../../application/health/check-health.ts';
import { Draining } from '../../application/health/draining.ts';
import type { Token } from '../../application/needs.ts';
import { AccessTokens } from '../../application/ports/access-tokens.ts';
import { AuditMacs } from '../../application/ports/audit-macs.ts';
import { AuthorizationServers } from '../../application/ports/authorization-servers.ts';
import { CertificateAuthority } from '../../application/ports/certificate-authority.ts';
import { Certificates } from '../../application/ports/certificates.ts';
import { Cipher } from '../../application/ports/cipher.ts';
import { Clock } from '../../application/ports/clock.ts';
import { DryRuns } from '../../application/ports/dry-runs.ts';
import { Encryption } from '../../application/ports/encryption.ts';
import { EventBus } from '../../application/ports/event-bus.ts';
import { EventPublisher } from '../../application/ports/event-publisher.ts';
import { Kms } from '../../application/ports/kms.ts';
import { ListedSettings } from '../../application/ports/listed-settings.ts';
import { Log } from '../../application/ports/log.ts';
import { Metrics } from '../../application/ports/metrics.ts';
import type { Probe } from '../../application/ports/probe.ts';
import { Random } from '../../application/ports/random.ts';
import { Registrar } from '../../application/ports/registrar.ts';
import { Remote } from '../../application/ports/remote.ts';
import { SchemaValidator } from '../../application/ports/schema-validator.ts';
import { Secrets } from '../../application/ports/secrets.ts';
import { ServiceSettings } from '../../application/ports/settings.ts';
import { Signatures } from '../../application/ports/signatures.ts';
import { Store } from '../../application/ports/store.ts';
import { Traces } from '../../application/ports/traces.ts';
import { TrustListReader } from '../../application/ports/trust-list-reader.ts';
import { Webhooks } from '../../application/ports/webhooks.ts';
import { WorkQueue } from '../../application/ports/work-queue.ts';
import { setCacheMemory } from '../../application/tenant-cache/cache-memory.ts';
import { TenantConfigurations } from '../../application/tenant-cache/tenant-configurations.ts';
import { type Settings, SettingsError } from '../../config/settings.ts';
import type { Quotas } from '../../domain/tenants/quotas.ts';
import { clockProbe } from './clock-check.ts';
import type { Closers } from './closers.ts';
import { DryRunsInMemory } from './dry-runs.ts';
import { followedListsProbe } from './followed-lists-check.ts';
import { openIdentity } from './identity.ts';
import { openKeyStores } from './key-stores.ts';
import { watchForRewinds } from './rewind-watch.ts';
import { serviceSettings } from './service-settings.ts';
import { observeStore, type Telemetry } from './telemetry.ts';
import { threadedTrustLists } from './trust-list-reader.ts';
import { trustListsProbe } from './trust-lists-check.ts';
import { identifierOf } from './wire.ts';

/** Opens the adapters that the configuration selects, and binds each of them to its port. */
export async function openPlatform(
  settings: Settings,
  closers: Closers,
  telemetry: Pick<Telemetry, 'metrics' | 'traces' | 'observer'> = {},
): Promise<Container> {
  setCacheMemory(settings.CACHE_MEMORY);
  const service = serviceSettings(settings);
  const { LOG_LEVEL: level, WORKERS } = settings;
  const log = new PinoLog({ level, version: service.release.version, sharesOutput: WORKERS > 1 });
  closers.add(() => log.close());
  const clock = new SystemClock();
  const random = new NodeRandom();
  const signatures = new NodeSignatures();
  const cipher = new MasterCipher({ masterSecrets: settings.MASTER_SECRET, random });
  const { opened: ormStore, rewinds } = await openDatabase(settings, closers, { cipher, log });
  observeStore(telemetry.metrics, ormStore, settings.DATABASE_POOL);
  const admission = new Admission(settings.REQUESTS_AT_ONCE);
  const outgoing = new Outgoing({ allow: settings.OUTBOUND_ALLOW, requestSlots: admission });
  closers.add(() => outgoing.close());
  const keyStores = await openKeyStores(settings.KMS, { cipher, random, signatures, requestSlots: admission });
  closers.add(() => keyStores.close());
  const ports = { store: ormStore, kms: keyStores.kms, remote: outgoing };
  const { store, kms, remote, webhooks } = await observedPorts(ports, telemetry.observer);
  const secrets = new Argon2Secrets({}, admission);
  const dispatch = await openDispatch(settings, log);
  closers.add(() => dispatch.close());
  const { eventBus } = dispatch;
  const { accessTokens, probe, ...identity } = openIdentity(settings, { clock, random, log });
  closers.add(() => identity.close());
  const draining = new Draining();
  const databaseProbe = { name: 'database', check: () => store.ping() };
  const probes = [
    databaseProbe,
    rewinds.probe,
    clockProbe(store, clock),
    followedListsProbe(store, clock),
    trustListsProbe(store, clock, eventBus),
    ...(probe === undefined ? [] : [probe]),
    ...keyStores.probes,
    ...(dispatch.probe === undefined ? [] : [{ ...dispatch.probe, isPartial: true as const }]),
  ];
  const container = new Container();
  const provide = <T>(token: Token<T>, value: T) => container.bind(identifierOf(token)).toConstantValue(value);
  provide(ServiceSettings, service);
  provide(ListedSettings, { all: settings.LISTED });
  provide(Clock, clock);
  provide(Random, random);
  provide(Log, log);
  provide(Cipher, cipher);
  provide(Store, store);
  provide(Draining, draining);
  provide(ConsoleTickets, new ConsoleTickets(clock, random));
  const { metrics, traces } = telemetry;
  if (metrics !== undefined) provide(Metrics, metrics);
  if (traces !== undefined) provide(Traces, traces);
  provide(CheckHealth, new CheckHealth({ log, draining, probes, metrics }));
  const requiredProbes = [databaseProbe, keyStores.anyProbe];
  provide(CheckReadiness, new CheckReadiness({ log, draining, probes: requiredProbes }));
  provide(AuditMacs, ormStore);
  provide(Admission, admission);
  provide(Remote, remote);
  provide(Webhooks, webhooks(new RemoteWebhooks({ remote, clock, cipher, traces })));
  provide(AuthorizationServers, new RemoteAuthorizationServers({ remote, clock }));
  provide(Registrar, new RemoteRegistrar({ remote, clock }));
  provide(Kms, kms);
  provide(AccessTokens, accessTokens);
  provide(Secrets, secrets);
  provide(DryRuns, new DryRunsInMemory({ kms, random, secrets }, quotasOf(settings)));
  provide(Signatures, signatures);
  const certificates = new NodeCertificates();
  provide(Certificates, certificates);
  provide(TrustListReader, threadedTrustLists({ signatures, certificates }));
  provide(Encryption, new NodeEncryption(service));
  provide(CertificateAuthority, new X509Authority({ kms, random }));
  provide(SchemaValidator, new AjvSchemaValidator());
  provide(EventBus, eventBus);
  if (dispatch.workQueue !== undefined) provide(WorkQueue, dispatch.workQueue);
  if (dispatch.eventPublisher !== undefined) provide(EventPublisher, dispatch.eventPublisher);
  const tenantConfigurations = new TenantConfigurations({ store, settings: service, eventBus, clock });
  tenantConfigurations.sessionCache.onLookUp = ormStore.touched;
  provide(TenantConfigurations, tenantConfigurations);
  return container;
}

async function openDatabase(settings: Settings, closers: Closers, { cipher, log }: { readonly cipher: Cipher; readonly log: PinoLog }) {
  const database = {
    url: settings.DATABASE_URL,
    poolSize: settings.DATABASE_POOL,
    timeoutSeconds: settings.DATABASE_TIMEOUT,
    migrates: settings.MIGRATE === 'on',
    quotas: quotasOf(settings),
    alone: true,
    onCheckpointFault: (error: Error) =>
      log.warn('checkpoints run on the main thread for a minute, since their thread failed', { error: error.message }),
  };
  const file = newFileOf(settings.DATABASE_URL);
  const ormStore = await OrmStore.open(database, cipher);
  refuseOnCluster(ormStore, settings);
  if (file !== undefined) log.info('a new database was created', { file });
  ormStore.touched = (sessionId) => log.note({ sessionId });
  closers.add(() => ormStore.close());
  const rewinds = await watchForRewinds(ormStore, settings, log);
  closers.add(() => rewinds.close());
  await warnOfFormerSecrets(ormStore, cipher, log);
  return { opened: ormStore, rewinds };
}

/** Each machine of a cluster numbers its own transactions, so published events cannot be told from unpublished ones. */
function refuseOnCluster({ isCluster }: OrmStore, { AMQP_URL }: Settings): void {
  if (!isCluster || AMQP_URL === undefined) return;
  throw new SettingsError([
    'AMQP_URL: the events of a database that is distributed over several machines (Citus) have no order; remove this setting, see docs/reference/scale.md',
  ]);
}

/** Former secrets are needed only until all data are sealed under the present secret. */
async function warnOfFormerSecrets(store: OrmStore, { keyIds }: Cipher, log: Log): Promise<void> {
  const [, ...formerKeyIds] = keyIds;
  if (formerKeyIds.length === 0) return;
  const resealed = await store.maintenance.resealedKeys();
  const neededCount = formerKeyIds.filter((id) => !resealed.includes(id)).length;
  if (neededCount === 0) log.info('no data is sealed under the former secrets any more; remove them from MASTER_SECRET');
  else
    log.warn('data is sealed under former secrets; `npx vidimus reseal` (in a clone `npm run reseal`) reseals it', { former: neededCount });
}

type Dispatch = {
  readonly eventBus: EventBus;
  /** Undefined when the process that holds the lease of a job does all of its work. */
  readonly workQueue: WorkQueue | undefined;
  readonly eventPublisher: EventPublisher | undefined;
  /** A failing probe is a warning: the service continues without the broker. */
  readonly probe: Probe | undefined;
  close(): Promise<void>;
};

/**
 * Dispatches within this process, or through the broker, which is called in the background.
 * @throws Error when `AMQP_CA` cannot be read.
 */
async function openDispatch({ AMQP_URL: address, AMQP_CA: ca, PUBLIC_URL: publicUrl }: Settings, log: Log): Promise<Dispatch> {
  if (address === undefined) {
    return {
      eventBus: new InProcessEventBus(),
      workQueue: undefined,
      eventPublisher: undefined,
      probe: undefined,
      close: () => Promise.resolve(),
    };
  }
  // The modules are loaded on demand.
  const { RabbitConnection } = await import('../../adapters/dispatch/rabbitmq/connection.ts');
  const { RabbitEventBus } = await import('../../adapters/dispatch/rabbitmq/event-bus.ts');
  const { RabbitEventPublisher } = await import('../../adapters/dispatch/rabbitmq/event-publisher.ts');
  const { RabbitWorkQueue } = await import('../../adapters/dispatch/rabbitmq/work-queue.ts');
  const connection = new RabbitConnection({ address, ca }, log);
  const dispatch = {
    eventBus: new RabbitEventBus(connection, log),
    workQueue: new RabbitWorkQueue(connection, log),
    eventPublisher: new RabbitEventPublisher(connection, { publicUrl }, log),
    probe: { name: 'broker', check: () => connection.assertReachable() },
    close: () => connection.close(),
  };
  await connection.open();
  return dispatch;
}

/**
 * A mistyped `DATABASE_URL` starts with an empty service, so the log names a new SQLite file.
 * @returns the path of an SQLite file that does not exist yet; undefined when it exists, and for other databases.
 */
export function newFileOf(url: string): string | undefined {
  const file = url.startsWith('sqlite:') && url !== 'sqlite::memory:' ? url.slice('sqlite:'.length) : '';
  return file === '' || existsSync(file) ? undefined : resolve(file);
}

type Ports = { readonly store: Store; readonly kms: Kms; readonly remote: Remote };

type ObservedPorts = Ports & { readonly webhooks: (webhooks: Webhooks) => Webhooks };

/** @returns the ports with observation of their calls, or unchanged when there is no observer. */
async function observedPorts(ports: Ports, observer: Observer | undefined): Promise<ObservedPorts> {
  if (observer === undefined) return { ...ports, webhooks: (webhooks) => webhooks };
  const [{ ObservedStore }, { ObservedKms }, { ObservedRemote }, { ObservedWebhooks }] = await Promise.all([
    import('../../adapters/system/observed/observed-store.ts'),
    import('../../adapters/system/observed/observed-kms.ts'),
    import('../../adapters/system/observed/observed-remote.ts'),
    import('../../adapters/system/observed/observed-webhooks.ts'),
  ]);
  return {
    store: new ObservedStore(ports.store, observer),
    kms: new ObservedKms(ports.kms, observer),
    remote: new ObservedRemote(ports.remote, observer),
    webhooks: (webhooks) => new ObservedWebhooks(webhooks, observer),
  };
}

function quotasOf(settings: Settings): Quotas {
  return {
    'credential-configuration': settings.QUOTA_CREDENTIAL_CONFIGS,
    'presentation-configuration': settings.QUOTA_PRESENTATION_CONFIGS,
    'key-chain': settings.QUOTA_KEY_CHAINS,
    client: settings.QUOTA_CLIENTS,
    bytes: settings.QUOTA_CONFIG_BYTES,
    sessionBytes: settings.QUOTA_SESSION_BYTES,
  };
}
