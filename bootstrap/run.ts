import 'reflect-metadata';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { readSettings, SettingsError } from '../config/settings.ts';
import { prepareFirstStart } from './first-start.ts';
import { startService } from './service.ts';

/** Milliseconds that running requests get to finish after a signal. */
const GRACE_MS = 10_000;

/** Reads the configuration, starts the service and stops it on SIGTERM or SIGINT. */
export async function run(): Promise<void> {
  if (process.argv.length > 2) {
    console.error('Vidimus takes no arguments; it is set by environment variables, which the README lists.');
    process.exit(2);
  }
  try {
    const { environment, generated, kept } = prepareFirstStart(process.env);
    const settings = readSettings(environment);
    // Before the start, which may fail: a later one would not show the secret again.
    if (generated !== undefined) {
      process.stderr.write(
        `\nFirst start: secrets were generated and kept in ${generated.file}.\n` +
          `  AUTH_CLIENT_ID=${generated.clientId}\n  AUTH_CLIENT_SECRET=${generated.clientSecret}\n` +
          `This is shown once. The client manages tenants: POST ${settings.PUBLIC_URL}/oauth2/token\n\n`,
      );
    } else if (kept !== undefined) {
      process.stderr.write(`Client "${kept.clientId}"; its secret is kept in ${kept.file}.\n`);
    }
    const service = await startService(settings, environment);
    releaseStartMemory();
    let stopping = false;
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.on(signal, () => {
        if (stopping) process.exit(1);
        stopping = true;
        service.close(GRACE_MS).then(
          () => process.exit(0),
          () => process.exit(1),
        );
      });
    }
  } catch (error) {
    const message =
      error instanceof SettingsError ? error.message : `Vidimus could not start: ${explain(error)}`;
    console.error(message);
    process.exit(1);
  }
}

type Collect = (options: { type: 'major'; execution: 'sync'; flavor: 'last-resort' }) => void;

/** Loading the modules leaves 30 MB behind that an idle process would keep; only this kind of collection returns them. */
function releaseStartMemory(): void {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as Collect;
  setFlagsFromString('--no-expose-gc');
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}

function explain(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { code } = error as { code?: unknown };
  if (code === 'EADDRINUSE') {
    return `port ${(error as { port?: unknown }).port} is taken; set PORT to another one`;
  }
  if (code === 'ENOTFOUND' || code === 'EADDRNOTAVAIL') {
    return `${error.message}; check HOST`;
  }
  if (code === 'EEXIST' || code === 'ENOTDIR' || code === 'EACCES' || code === 'EROFS') {
    return `${error.message}; check DATA_FOLDER`;
  }
  return error.message;
}
