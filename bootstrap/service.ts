import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Container } from 'inversify';
import { Admission } from '../adapters/http/admission.ts';
import { listenerOf } from '../adapters/http/listener.ts';
import { buildRouter } from '../adapters/http/router.ts';
import { dialectOf, placeOf } from '../adapters/persistence/database.ts';
import { AuthenticateClient } from '../application/clients/authenticate-client.ts';
import { Log } from '../application/ports/log.ts';
import { Store } from '../application/ports/store.ts';
import { SessionWatcher } from '../application/sessions/session-watcher.ts';
import { TenantConfigurations } from '../application/tenant-configurations.ts';
import { EditTags } from '../application/tenants/edit-tags.ts';
import type { Environment } from '../config/import/placeholders.ts';
import { misspeltSettings, type Settings, SettingsError } from '../config/settings.ts';
import { startJobs } from './jobs.ts';
import { withMasterSecrets } from './master-secrets.ts';
import { Closers, openPlatform } from './platform.ts';
import { collectRoutes } from './routes.ts';
import { startSealingNotes } from './sealing-note.ts';
import { obtain, resolve } from './wire.ts';

export type RunningService = {
  readonly port: number;
  readonly container: Container;
  /** Finishes running requests, at most for `graceMs`, then lets go of everything. */
  close(graceMs?: number): Promise<void>;
};

const SWEEP_MS = 25;
const MEBIBYTE = 1024 * 1024;

/** The account of the operator has no row; a client of the same name could no longer log in. */
async function assertRootClientIsFree(container: Container, settings: Settings): Promise<void> {
  const { AUTH_CLIENT_ID: id } = settings;
  if (id === '') return;
  const taken = await container.get(Store).forService(({ clients }) => clients.find(id));
  if (taken === undefined) return;
  throw new SettingsError([
    `AUTH_CLIENT_ID: "${id}" is a client of the tenant ${taken.tenantId}; choose another name`,
  ]);
}

/** Imports `CONFIG_FOLDER`, if there is one; the address of the service can be used as a placeholder. */
async function importFolder(
  container: Container,
  { CONFIG_FOLDER: folder, DATABASE_URL, PUBLIC_URL, KMS_SECRETS }: Settings,
  environment: Environment,
): Promise<void> {
  if (folder === undefined) return;
  // Loaded when it is wanted: most of it is not needed to serve.
  const { readFolder } = await import('../config/import/read-folder.ts');
  const { ImportFolder } = await import('../application/configuration-files/import-folder.ts');
  const contents = readFolder(folder, { PUBLIC_URL, ...environment }, KMS_SECRETS);
  // An SQLite file is locked by the one service that has it.
  const sharing = { isAlone: dialectOf(DATABASE_URL) === 'sqlite' };
  await new ImportFolder(resolve(container, ImportFolder.needs)).execute(folder, contents, sharing);
}

/**
 * Wires and starts the service; throws, with everything released, when something is missing.
 * @param environment what placeholders of configuration files are filled in with.
 */
export async function startService(
  settings: Settings,
  environment: Environment = {},
): Promise<RunningService> {
  const closers = new Closers();
  try {
    const container = await openPlatform(await withMasterSecrets(settings), closers);
    const log = container.get(Log);
    for (const line of misspeltSettings(environment, settings.KMS_SECRETS)) log.warn(line);
    await assertRootClientIsFree(container, settings);
    await importFolder(container, settings, environment);
    const authenticateClient = obtain(container, AuthenticateClient);
    const sessionWatcher = obtain(container, SessionWatcher);
    const app = buildRouter(
      collectRoutes(container),
      {
        authenticateClient,
        editTags: obtain(container, EditTags),
        log,
        admission: container.get(Admission),
        tenants: obtain(container, TenantConfigurations),
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
    const server = createServer(
      { keepAliveTimeout: 65_000, headersTimeout: 20_000, requestTimeout: 60_000, maxHeaderSize: 32_768 },
      listenerOf(app),
    );
    server.maxConnections = settings.MAX_CONNECTIONS;
    tellOfDroppedConnections(server, log);
    await listen(server, settings);
    const stopJobs = startJobs(container);
    const stopNotes = startSealingNotes(container.get(Store), log);
    const { port } = server.address() as AddressInfo;
    log.info('started', {
      host: settings.HOST,
      port,
      publicUrl: settings.PUBLIC_URL,
      database: placeOf(settings.DATABASE_URL),
    });
    return {
      port,
      container,
      async close(graceMs = 5_000) {
        log.info('stopping');
        const closed = new Promise((done) => server.close(done));
        // Event streams would keep their requests open for ever.
        sessionWatcher.close();
        // Clients keep their connections when their answer is complete; nobody waits for those.
        const sweep = setInterval(() => server.closeIdleConnections(), SWEEP_MS);
        const timer = setTimeout(() => server.closeAllConnections(), graceMs);
        await closed;
        clearInterval(sweep);
        clearTimeout(timer);
        await stopJobs();
        await stopNotes();
        log.info('stopped');
        await closers.closeAll();
      },
    };
  } catch (error) {
    await closers.closeAll();
    throw error;
  }
}

const MINUTE_MS = 60_000;

/** Once a minute at most: whoever opens too many connections does not also fill the log. */
function tellOfDroppedConnections(server: Server, log: Log): void {
  let told = -MINUTE_MS;
  server.on('drop', () => {
    if (performance.now() - told < MINUTE_MS) return;
    told = performance.now();
    log.warn(
      `more than MAX_CONNECTIONS (${server.maxConnections}) connections are open; new ones are closed`,
    );
  });
}

function listen(server: Server, settings: Settings): Promise<void> {
  return new Promise((done, failed) => {
    server.once('error', failed);
    server.listen(settings.PORT, settings.HOST, () => done());
  });
}
