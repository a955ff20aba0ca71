import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Environment variables and Node options that `npm start` adds. */
export type StartOptions = { readonly environment: Readonly<Record<string, string>>; readonly nodeOptions: readonly string[] };

const LAUNCHER = 'bootstrap/commands/start-service.mjs';
const require = createRequire(import.meta.url);

/**
 * Reads the options from the launcher, so that measurements use the real ones. Earlier releases have them in a file or in
 * the manifest.
 * @param tree folder of the service; this one by default.
 */
export function startOptions(tree = fileURLToPath(new URL('../../', import.meta.url))): StartOptions {
  const launcher = join(tree, LAUNCHER);
  if (existsSync(launcher)) return (require(launcher) as { START_OPTIONS: StartOptions }).START_OPTIONS;
  const file = join(tree, 'tools/start-options.json');
  if (existsSync(file)) return JSON.parse(readFileSync(file, 'utf8')) as StartOptions;
  const manifest = readFileSync(join(tree, 'package.json'), 'utf8');
  const command = (JSON.parse(manifest) as { scripts: { start: string } }).scripts.start;
  const [envPart = '', nodePart = ''] = command.split('exec node');
  const tokens = (text: string) => text.split(' ').filter((word) => word !== '');
  const assignments = tokens(envPart).filter((word) => /^[A-Z_]+=/.test(word));
  const environment = Object.fromEntries(assignments.map((word) => word.split('=')));
  return { environment, nodeOptions: tokens(nodePart).filter((word) => word.startsWith('--')) };
}

let startedPath: string | undefined;

/** The program that `npm start` runs, built if necessary. It starts in less than half of the time of the sources. */
export function startedProgram(): string {
  const search = fileURLToPath(new URL('../../tools/program.mjs', import.meta.url));
  startedPath ??= execFileSync(process.execPath, [search], { encoding: 'utf8' }).trim();
  return startedPath;
}

/** Another program of `bootstrap/`, from the same build. @param name such as `commands/doctor`. */
export function builtProgram(name: string): string {
  return startedProgram().replace(/main(\.[jt]s)$/, `${name}$1`);
}
