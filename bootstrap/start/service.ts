import 'reflect-metadata';
import type { Socket } from 'node:net';
import type { Container } from 'inversify';
import { Admission } from '../../adapters/http/limits/admission.ts';
import { listenerOf } from '../../adapters/http/server/listener.ts';
import { buildRouter } from '../../adapters/http/server/router.ts';
import { dialectOf, urlWithoutCredentials } from '../../adapters/persistence/opening/database.ts';
import { AuthenticateClient } from '../../application/clients/authenticate-client.ts';
import { Draining } from '../../application/health/draining.ts';
import { Log } from '../../application/ports/log.ts';
import { Store } from '../../application/ports/store.ts';
import { FetchedSessions } from '../../application/sessions/fetched-sessions.ts';
import { SessionWatcher } from '../../application/sessions/session-watcher.ts';
import { TenantConfigurations } from '../../application/tenant-cache/tenant-configurations.ts';
import { EditTags } from '../../application/tenants/edit-tags.ts';
import type { Environment } from '../../config/configuration-files/placeholders.ts';
import { misspeltSettings, type Settings, SettingsError } from '../../config/settings.ts';
import { startJobs } from '../jobs/jobs.ts';
import { Closers } from '../wiring/closers.ts';
import { HttpServer } from '../wiring/http-server.ts';
import { openPlatform } from '../wiring/platform.ts';
import { currentRelease } from '../wiring/release.ts';
import { servedRoutes } from '../wiring/routes.ts';
import { type MeasuredProcess, openTelemetry, startObserving } from '../wiring/telemetry.ts';
import { obtain, resolve } from '../wiring/wire.ts';
import { withMasterSecrets } from './master-secrets.ts';
import { openMetricsServer, servedMetrics } from './metrics-address.ts';
import { connectionWarning, effectiveMaxConnections, openFilesLimit, RAISE_OPEN_FILES } from './open-files.ts';
import { startSealingNotes } from './sealing-note.ts';

export type RunningService = {
  readonly port: number;
  readonly container: Container;
  /** Serves a connection that a supervisor accepted. */
  take(connection: Socket): void;
  /** The metrics of this process; empty when metrics are off. */
  measure(): Promise<MeasuredProcess>;
  /** The service reports from now on that it is not ready, and serves as before. */
  drain(): void;
  /**
   * Finishes running requests, for at most `graceMs`, and then releases all resources.
   * @param noticeMs the time in which a response tells clients that their kept connection ends; afterwards idle connections are closed.
   */
  close(graceMs?: number, noticeMs?: number): Promise<void>;
};

/** The tasks of a process that only one process of the service performs. */
export type Role = {
  /** Imports `CONFIG_FOLDER`, and warns of variables that look like settings. */
  readonly isFirst: boolean;
  /** False when connections are handed over to the process. */
  readonly listens: boolean;
  /** False switches periodic maintenance off. Tests use it: the timers follow the clock of the machine. */
  readonly runsJobs?: boolean;
  /** The metrics of all processes of the service, if there are several; otherwise those of this process. */
  readonly readMetrics?: () => Promise<string>;
};

const SINGLE_PROCESS: Role = { isFirst: true, listens: true };
const GRACE_MS = 5_000;
const MEBIBYTE = 1024 * 1024;

/** The account of the operator has no row: a client of the same name could no longer log in. */
async function assertRootClientIsFree(container: Container, settings: Settings): Promise<void> {
  const { AUTH_CLIENT_ID: id } = settings;
  if (id === '') return;
  const existingClient = await container.get(Store).forService(({ clients }) => clients.find(id));
  if (existingClient === undefined) return;
  throw new SettingsError([`AUTH_CLIENT_ID: "${id}" is a client of the tenant ${existingClient.tenantId}; choose another name`]);
}

/** Imports `CONFIG_FOLDER`, if it is set. The address of the service is available as a placeholder. */
async function importFolder(
  container: Container,
  { CONFIG_FOLDER: folder, DATABASE_URL, PUBLIC_URL, KMS_SECRETS }: Settings,
  environment: Environment,
): Promise<void> {
  if (folder === undefined) return;
  // The modules are loaded on demand, because serving needs only few of them.
  const { readFolder } = await import('../../config/configuration-files/read-folder.ts');
  const { ImportFolder } = await import('../../application/configuration-files/import-folder.ts');
  const contents = readFolder(folder, { ...environment, PUBLIC_URL }, KMS_SECRETS);
  // An SQLite file is locked by the one service that uses it.
  const sharing = { isAlone: dialectOf(DATABASE_URL) === 'sqlite' };
  await new ImportFolder(resolve(container, ImportFolder.needs)).execute(folder, contents, sharing);
}

/**
 * Wires and starts the service. When something is missing, it throws after it released everything.
 * @param environment the values of placeholders in configuration files.
 */
export async function startService(
  settings: Settings,
  environment: Environment = {},
  { isFirst, listens, runsJobs = true, readMetrics }: Role = SINGLE_PROCESS,
): Promise<RunningService> {
  const closers = new Closers();
  try {
    const telemetry = await openTelemetry(settings);
    closers.add(() => telemetry.close());
    const container = await openPlatform(await withMasterSecrets(settings), closers, telemetry);
    const log = container.get(Log);
    const misspelt = isFirst ? misspeltSettings(environment, settings.KMS_SECRETS) : [];
    for (const line of misspelt) log.warn(line);
    await assertRootClientIsFree(container, settings);
    if (isFirst) await importFolder(container, settings, environment);
    const authenticateClient = obtain(container, AuthenticateClient);
    const sessionWatcher = obtain(container, SessionWatcher);
    const router = buildRouter(
      servedRoutes(container, servedMetrics(settings, readMetrics ?? telemetry.metricsText)),
      {
        authenticateClient,
        editTags: obtain(container, EditTags),
        log,
        admission: container.get(Admission),
        tenants: obtain(container, TenantConfigurations),
        metrics: telemetry.metrics,
        traces: telemetry.traces,
      },
      {
        trustProxy: settings.TRUST_PROXY,
        publicUrl: settings.PUBLIC_URL,
        rateLimits: {
          token: settings.RATE_LIMIT_TOKEN,
          nonce: settings.RATE_LIMIT_NONCE,
          login: settings.RATE_LIMIT_LOGIN,
          offer: settings.RATE_LIMIT_OFFER,
        },
        bodyMemory: settings.BODY_MEMORY * MEBIBYTE,
      },
    );
    const filesLimit = openFilesLimit();
    const filesWarning = connectionWarning(settings.MAX_CONNECTIONS, filesLimit);
    if (filesWarning !== undefined) log.warn(`${filesWarning}; ${RAISE_OPEN_FILES}`);
    const connectionLimits = {
      maxConnections: effectiveMaxConnections(settings.MAX_CONNECTIONS, filesLimit),
      keepAliveSeconds: settings.KEEP_ALIVE_SECONDS,
    };
    const server = new HttpServer(listenerOf(router), connectionLimits, log);
    if (!listens) server.expectConnections();
    const port = listens ? await server.listen(settings.PORT, settings.HOST) : settings.PORT;
    if (listens) await openMetricsServer(settings, telemetry.metricsText, closers);
    const stopWatching = startObserving(container, server);
    const stopJobs = startJobs(container, { isScheduled: runsJobs });
    const stopNotes = startSealingNotes(container.get(Store), log);
    const database = urlWithoutCredentials(settings.DATABASE_URL);
    const { commit } = currentRelease();
    if (listens) log.info('started', { host: settings.HOST, port, publicUrl: settings.PUBLIC_URL, database, commit });
    else log.info('worker started', { pid: process.pid, database, commit });
    // Several workers write the same message.
    const processFields = listens ? undefined : { pid: process.pid };
    return {
      port,
      container,
      take: (connection) => server.take(connection),
      measure: async () => (await telemetry.measure?.()) ?? [],
      drain() {
        log.info('draining', processFields);
        container.get(Draining).begin();
      },
      async close(graceMs = GRACE_MS, noticeMs = 0) {
        log.info('stopping', processFields);
        // Otherwise event streams would keep their requests open forever.
        sessionWatcher.close();
        await server.close(graceMs, noticeMs);
        stopWatching();
        await obtain(container, FetchedSessions).flush();
        await stopJobs();
        await stopNotes();
        log.info('stopped', processFields);
        await closers.closeAll();
      },
    };
  } catch (error) {
    await closers.closeAll();
    throw error;
  }
}
