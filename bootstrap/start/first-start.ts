import { randomBytes } from 'node:crypto';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import type { Environment } from '../../config/configuration-files/placeholders.ts';
import { GENERATED, isSetting, readSettings, SettingsError } from '../../config/settings.ts';
import { closestName } from '../../domain/shared/closest-name.ts';

export type FirstStart = {
  readonly environment: Environment;
  /** Names of what in `environment` stands in `secrets.env` alone. */
  readonly fromFile: ReadonlySet<string>;
  /** What was generated just now and is shown once; undefined at later starts. */
  readonly generated?: { readonly file: string; readonly clientId: string; readonly clientSecret: string };
  /** The client whose generated secret an earlier start left in `file`. */
  readonly kept?: { readonly file: string; readonly clientId: string };
  /** Where the master secret stands, unless the environment has it; new with nothing else beside it but what is new, too. */
  readonly master?: { readonly file: string; readonly isNew: boolean };
};

/**
 * Zero configuration: what is missing is generated once into `DATA_FOLDER/secrets.env` (mode 0600). In production
 * nothing is generated, and a missing secret stops the start.
 * @throws SettingsError when a database is there whose master secret is lost: a new one would open nothing in it.
 */
export function prepareFirstStart(environment: Environment): FirstStart {
  if (environment['NODE_ENV'] === 'production') return { environment, fromFile: new Set() };
  const found = withKept(environment);
  if (missingOf(found.merged).length === 0) return keptStart(environment, found);
  assertStartable(environment, found.merged);
  mkdirSync(found.folder, { recursive: true, mode: 0o700 });
  return alone(`${found.file}.lock`, () => complete(environment));
}

/**
 * Checks the settings before anything is written: a start that fails for another reason shows no secret.
 * @throws SettingsError with all faults, misspelt names of secrets included.
 */
function assertStartable(environment: Environment, merged: Environment): void {
  const missing = missingOf(merged);
  const misspelt = findMisspeltSecrets(environment, missing);
  try {
    readSettings({ ...merged, ...generate(missing) });
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    throw new SettingsError([...misspelt, ...error.faults]);
  }
  if (misspelt.length > 0) throw new SettingsError(misspelt);
}

/** Whoever misspells a secret has one, and believes that it counts. */
function findMisspeltSecrets(environment: Environment, missing: readonly Name[]): readonly string[] {
  return Object.keys(present(environment)).flatMap((name) => {
    const meant = isSetting(name) ? undefined : missing.find((other) => closestName(name, [other]) === other);
    if (meant === undefined) return [];
    return [`${name}: is no setting; did you mean ${meant}? It would be generated otherwise`];
  });
}

type Name = (typeof GENERATED)[number];

/** What no setting and no earlier start says. */
function missingOf(merged: Environment): readonly Name[] {
  // With an external provider nobody logs in with a client of this service.
  const needed = merged['OIDC'] === undefined ? GENERATED : (['MASTER_SECRET'] as const);
  return needed.filter((name) => merged[name] === undefined && !(name === 'MASTER_SECRET' && merged['JWT_SECRET'] !== undefined));
}

function keptStart(environment: Environment, { file, known, merged }: ReturnType<typeof withKept>): FirstStart {
  // With an external provider that secret opens nothing.
  const isUsed = merged['OIDC'] === undefined;
  const kept = isUsed && known['AUTH_CLIENT_SECRET'] !== undefined && !environment['AUTH_CLIENT_SECRET'];
  const clientId = merged['AUTH_CLIENT_ID'] ?? '';
  const fromFile = namesFromFile(environment, merged);
  return {
    environment: merged,
    fromFile,
    ...(kept && { kept: { file, clientId } }),
    ...(fromFile.has('MASTER_SECRET') && { master: { file, isNew: false } }),
  };
}

function generate(names: readonly Name[]): Partial<Record<Name, string>> {
  const values: Record<Name, string> = {
    MASTER_SECRET: randomBytes(48).toString('base64url'),
    AUTH_CLIENT_ID: 'root',
    AUTH_CLIENT_SECRET: randomBytes(24).toString('base64url'),
  };
  return Object.fromEntries(names.map((name) => [name, values[name]]));
}

/** Another process may have completed the file since it was looked at; what it generated counts. */
function complete(environment: Environment): FirstStart {
  const found = withKept(environment);
  const { folder, file, known, merged } = found;
  const missing = missingOf(merged);
  if (missing.length === 0) return keptStart(environment, found);
  const database = join(folder, 'vidimus.sqlite');
  if (missing.includes('MASTER_SECRET') && !environment['DATABASE_URL'] && existsSync(database)) {
    throw new SettingsError([
      `MASTER_SECRET: is missing from ${file}, and without it nothing in ${database} opens; restore the file or set ` +
        'MASTER_SECRET. To begin anew, remove the database',
    ]);
  }
  const values = generate(missing);
  Object.assign(merged, values);
  const text = Object.entries({ ...known, ...values }).map(([name, value]) => `${name}=${value}\n`);
  // Whole or not at all; and the mode of one that was copied here may be another.
  const fresh = `${file}.new`;
  rmSync(fresh, { force: true });
  writeFileSync(fresh, text.join(''), { mode: 0o600, flush: true });
  renameSync(fresh, file);
  const fromFile = namesFromFile(environment, merged);
  const isNew = missing.includes('MASTER_SECRET') && Object.keys(known).length === 0;
  const start = {
    environment: merged,
    fromFile,
    ...(fromFile.has('MASTER_SECRET') && { master: { file, isNew } }),
  };
  if (!missing.includes('AUTH_CLIENT_SECRET')) return start;
  return {
    ...start,
    generated: { file, clientId: merged['AUTH_CLIENT_ID'] ?? '', clientSecret: merged['AUTH_CLIENT_SECRET'] ?? '' },
  };
}

const PAUSE_MS = 20;
/** What is done alone takes milliseconds; a process that takes longer has died of it. */
const STALE_MS = 3_000;

/** Lets one process of this machine at a time do its work. */
function alone<T>(lock: string, work: () => T): T {
  while (!take(lock)) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS);
  try {
    return work();
  } finally {
    rmSync(lock, { force: true });
  }
}

function take(lock: string): boolean {
  try {
    closeSync(openSync(lock, 'wx', 0o600));
    return true;
  } catch (error) {
    if ((error as { code?: string }).code !== 'EEXIST') throw error;
    const { mtimeMs } = statSync(lock, { throwIfNoEntry: false }) ?? { mtimeMs: Date.now() };
    if (Date.now() - mtimeMs > STALE_MS) rmSync(lock, { force: true });
    return false;
  }
}

/** The environment of a service that was started before: with what its first start generated. Nothing is written. */
export function keptEnvironment(environment: Environment): Environment {
  return environment['NODE_ENV'] === 'production' ? environment : withKept(environment).merged;
}

/** @param merged what `keptEnvironment` made of `environment`. @returns names of settings that the file has and it has not. */
export function namesFromFile(environment: Environment, merged: Environment): ReadonlySet<string> {
  return new Set(Object.keys(merged).filter((name) => merged[name] && !environment[name]));
}

function withKept(environment: Environment) {
  const folder = environment['DATA_FOLDER'] || './data';
  const file = join(folder, 'secrets.env');
  const known = existsSync(file) ? parseEnv(readFileSync(file, 'utf8')) : {};
  const merged: Record<string, string | undefined> = { ...known, ...present(environment) };
  if (merged['JWT_SECRET'] !== undefined && environment['MASTER_SECRET'] === undefined) delete merged['MASTER_SECRET'];
  return { folder, file, known, merged };
}

function present(environment: Environment): Record<string, string> {
  return Object.fromEntries(Object.entries(environment).filter((entry): entry is [string, string] => (entry[1] ?? '') !== ''));
}
