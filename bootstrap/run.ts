import { ConsoleTickets } from '../application/console/console-tickets.ts';
import { readSettings, type Settings } from '../config/settings.ts';
import { settleAfterStart } from './start/after-start.ts';
import { type FirstStart, prepareFirstStart } from './start/first-start.ts';
import type { RunningService } from './start/service.ts';
import { startFailureMessage } from './start/start-failure.ts';
import { GRACE_MS, NOTICE_MS, stopOnSignals, stopWithParent } from './start/stopping.ts';

/** Reads the configuration, starts the service, in this process or in workers, and stops it on SIGTERM or SIGINT. */
export async function run(): Promise<void> {
  if (process.argv.length > 2) {
    console.error('Vidimus accepts no arguments; it is configured by the environment variables in docs/reference/settings.md.');
    process.exit(2);
  }
  stopWithParent(process.env);
  let firstStart: FirstStart | undefined;
  try {
    firstStart = prepareFirstStart(process.env);
    const settings = readSettings(firstStart.environment, firstStart.fromFile);
    // The secrets are shown before the start, which may fail: a later start would not show them again.
    printSecrets(firstStart, settings);
    if (settings.WORKERS === 1) await runSingleProcess(settings, firstStart);
    else await runWorkers(settings);
  } catch (error) {
    console.error(startFailureMessage(error, firstStart?.master));
    process.exit(1);
  }
}

async function runSingleProcess(settings: Settings, { environment }: FirstStart): Promise<void> {
  const { startService } = await import('./start/service.ts');
  const service = await startService(settings, environment);
  printConsoleAddress(service, settings);
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
  // This process loads few modules of the service, because the workers load them.
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

/** Prints a link that logs the operator in. It is not printed in production, or where an identity provider issues the tokens. */
function printConsoleAddress({ container }: RunningService, settings: Settings): void {
  if (settings.NODE_ENV === 'production') return;
  // A service that others reach may share its output: every reader of that output could then act as the operator.
  const isLocal = /^https?:\/\/(localhost|127\.0\.0\.1|\[::1\])[:/]/.test(`${settings.PUBLIC_URL}/`);
  const ticket = settings.OIDC === undefined && isLocal ? `#ticket=${container.get(ConsoleTickets).issue()}` : '';
  const note = ticket === '' ? '' : '  (logs in, once, within half an hour)';
  process.stderr.write(`Console: ${settings.PUBLIC_URL}/console${ticket}${note}\n`);
}

function printSecrets({ generated, stored }: FirstStart, settings: Settings): void {
  if (generated !== undefined) {
    process.stderr.write(
      `\nFirst start: secrets were generated and stored in ${generated.file}.\n` +
        `  AUTH_CLIENT_ID=${generated.clientId}\n  AUTH_CLIENT_SECRET=${generated.clientSecret}\n` +
        `This is shown once. The client manages tenants: POST ${settings.PUBLIC_URL}/oauth2/token\n\n`,
    );
  } else if (stored !== undefined) {
    process.stderr.write(`Client "${stored.clientId}"; its secret is stored in ${stored.file}.\n`);
  }
}
