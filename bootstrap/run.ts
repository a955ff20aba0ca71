import { ConsoleTickets } from '../application/console/console-tickets.ts';
import { readSettings, type Settings } from '../config/settings.ts';
import { settleAfterStart } from './start/after-start.ts';
import { type FirstStart, prepareFirstStart } from './start/first-start.ts';
import type { RunningService } from './start/service.ts';
import { startFailure } from './start/start-failure.ts';
import { GRACE_MS, NOTICE_MS, stopOnSignals, stopWithParent } from './start/stopping.ts';

/** Reads the configuration, starts the service, in this process or in workers, and stops it on SIGTERM or SIGINT. */
export async function run(): Promise<void> {
  if (process.argv.length > 2) {
    console.error('Vidimus takes no arguments; it is set by environment variables, which docs/settings.md lists.');
    process.exit(2);
  }
  stopWithParent(process.env);
  let firstStart: FirstStart | undefined;
  try {
    firstStart = prepareFirstStart(process.env);
    const settings = readSettings(firstStart.environment, firstStart.fromFile);
    // Before the start, which may fail: a later one would not show the secret again.
    tellOfSecrets(firstStart, settings);
    if (settings.WORKERS === 1) await runAlone(settings, firstStart);
    else await runWorkers(settings);
  } catch (error) {
    console.error(startFailure(error, firstStart?.master));
    process.exit(1);
  }
}

async function runAlone(settings: Settings, { environment }: FirstStart): Promise<void> {
  const { startService } = await import('./start/service.ts');
  const service = await startService(settings, environment);
  tellOfConsole(service, settings);
  settleAfterStart();
  stopOnSignals({
    drainSeconds: settings.DRAIN_SECONDS,
    drain: () => service.drain(),
    async stop() {
      await service.close(GRACE_MS, NOTICE_MS);
      return 0;
    },
  });
}

async function runWorkers(settings: Settings): Promise<void> {
  // It loads little of the service, which its workers have.
  const { Supervisor } = await import('./workers/supervisor.ts');
  const supervisor = new Supervisor(settings);
  await supervisor.start();
  settleAfterStart();
  stopOnSignals({
    drainSeconds: settings.DRAIN_SECONDS,
    drain: () => supervisor.drain(),
    stop: () => supervisor.stop(),
    abandon: () => supervisor.killWorkers(),
  });
}

/** Whoever started a service of its own is logged in by the link; in production, or where a provider gives tokens, nobody is. */
function tellOfConsole({ container }: RunningService, settings: Settings): void {
  if (settings.NODE_ENV === 'production') return;
  // Where others reach it, whoever reads what a start writes would be the operator.
  const isHere = /^https?:\/\/(localhost|127\.0\.0\.1|\[::1\])[:/]/.test(`${settings.PUBLIC_URL}/`);
  const ticket = settings.OIDC === undefined && isHere ? `#ticket=${container.get(ConsoleTickets).issue()}` : '';
  const note = ticket === '' ? '' : '  (logs in, once, within half an hour)';
  process.stderr.write(`Console: ${settings.PUBLIC_URL}/console${ticket}${note}\n`);
}

function tellOfSecrets({ generated, kept }: FirstStart, settings: Settings): void {
  if (generated !== undefined) {
    process.stderr.write(
      `\nFirst start: secrets were generated and kept in ${generated.file}.\n` +
        `  AUTH_CLIENT_ID=${generated.clientId}\n  AUTH_CLIENT_SECRET=${generated.clientSecret}\n` +
        `This is shown once. The client manages tenants: POST ${settings.PUBLIC_URL}/oauth2/token\n\n`,
    );
  } else if (kept !== undefined) {
    process.stderr.write(`Client "${kept.clientId}"; its secret is kept in ${kept.file}.\n`);
  }
}
