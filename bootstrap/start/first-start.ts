import { randomBytes } from 'node:crypto';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import type { Environment } from '../../config/configuration-files/placeholders.ts';
import { GENERATED, isSetting, readSettings, SettingsError } from '../../config/settings.ts';
import { closestName } from '../../domain/shared/closest-name.ts';

export type FirstStart = {
  readonly environment: Environment;
  /** The names of the variables in `environment` that only `secrets.env` contains. */
  readonly fromFile: ReadonlySet<string>;
  /** The secrets that this start generated, which are shown once; undefined at later starts. */
  readonly generated?: { readonly file: string; readonly clientId: string; readonly clientSecret: string };
  /** The client whose secret an earlier start generated into `file`. */
  readonly stored?: { readonly file: string; readonly clientId: string };
  /** The file with the master secret, unless the environment contains it. `isNew`: this start generated the whole file. */
  readonly master?: { readonly file: string; readonly isNew: boolean };
};

/**
 * Generates missing secrets once into `DATA_FOLDER/secrets.env` (mode 0600), so that a first start needs no configuration. In production
 * nothing is generated, and a missing secret stops the start.
 * @throws SettingsError when a database exists whose master secret is lost: a new secret could not open its data.
 */
export function prepareFirstStart(environment: Environment): FirstStart {
  if (environment['NODE_ENV'] === 'production') return { environment, fromFile: new Set() };
  const stored = withStoredSecrets(environment);
  if (missingNamesOf(stored.merged).length === 0) return laterStart(environment, stored);
  assertStartable(environment, stored.merged);
  mkdirSync(stored.folder, { recursive: true, mode: 0o700 });
  return exclusively(`${stored.file}.lock`, () => complete(environment));
}

/**
 * Checks the settings before a file is written: a start that fails for another reason shows no secret.
 * @throws SettingsError with all faults, including misspelt names of secrets.
 */
function assertStartable(environment: Environment, merged: Environment): void {
  const missingNames = missingNamesOf(merged);
  const misspelt = findMisspeltSecrets(environment, missingNames);
  try {
    readSettings({ ...merged, ...generate(missingNames) });
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    throw new SettingsError([...misspelt, ...error.faults]);
  }
  if (misspelt.length > 0) throw new SettingsError(misspelt);
}

/** A misspelt secret is reported, because the operator expects the service to use it. */
function findMisspeltSecrets(environment: Environment, missingNames: readonly Name[]): readonly string[] {
  return Object.keys(nonEmpty(environment)).flatMap((name) => {
    const intendedName = isSetting(name) ? undefined : missingNames.find((candidate) => closestName(name, [candidate]) === candidate);
    if (intendedName === undefined) return [];
    return [`${name}: is not a setting; did you mean ${intendedName}? Otherwise it would be generated`];
  });
}

type Name = (typeof GENERATED)[number];

/** @returns the secrets that neither the environment nor an earlier start provides. */
function missingNamesOf(merged: Environment): readonly Name[] {
  // With an identity provider no operator logs in with a client of this service.
  const needed = merged['OIDC'] === undefined ? GENERATED : (['MASTER_SECRET'] as const);
  return needed.filter((name) => merged[name] === undefined && !(name === 'MASTER_SECRET' && merged['JWT_SECRET'] !== undefined));
}

function laterStart(environment: Environment, { file, fileValues, merged }: ReturnType<typeof withStoredSecrets>): FirstStart {
  // With an identity provider that secret is not used.
  const isUsed = merged['OIDC'] === undefined;
  const hasStoredSecret = isUsed && fileValues['AUTH_CLIENT_SECRET'] !== undefined && !environment['AUTH_CLIENT_SECRET'];
  const clientId = merged['AUTH_CLIENT_ID'] ?? '';
  const fromFile = namesFromFile(environment, merged);
  return {
    environment: merged,
    fromFile,
    ...(hasStoredSecret && { stored: { file, clientId } }),
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

/** Another process may have completed the file meanwhile; its secrets count. */
function complete(environment: Environment): FirstStart {
  const stored = withStoredSecrets(environment);
  const { folder, file, fileValues, merged } = stored;
  const missingNames = missingNamesOf(merged);
  if (missingNames.length === 0) return laterStart(environment, stored);
  const database = join(folder, 'vidimus.sqlite');
  if (missingNames.includes('MASTER_SECRET') && !environment['DATABASE_URL'] && existsSync(database)) {
    throw new SettingsError([
      `MASTER_SECRET: is missing from ${file}, and without it the data in ${database} cannot be opened; restore the file or set ` +
        'MASTER_SECRET. To start over, remove the database',
    ]);
  }
  const values = generate(missingNames);
  Object.assign(merged, values);
  const text = Object.entries({ ...fileValues, ...values }).map(([name, value]) => `${name}=${value}\n`);
  // The file is replaced atomically, and the mode of a file that was copied here may be another.
  const newFile = `${file}.new`;
  rmSync(newFile, { force: true });
  writeFileSync(newFile, text.join(''), { mode: 0o600, flush: true });
  renameSync(newFile, file);
  const fromFile = namesFromFile(environment, merged);
  const isNew = missingNames.includes('MASTER_SECRET') && Object.keys(fileValues).length === 0;
  const start = { environment: merged, fromFile, ...(fromFile.has('MASTER_SECRET') && { master: { file, isNew } }) };
  if (!missingNames.includes('AUTH_CLIENT_SECRET')) return start;
  return { ...start, generated: { file, clientId: merged['AUTH_CLIENT_ID'] ?? '', clientSecret: merged['AUTH_CLIENT_SECRET'] ?? '' } };
}

const PAUSE_MS = 20;
/** The exclusive work takes milliseconds; a process that takes longer has ended during it. */
const STALE_MS = 3_000;

/** Only one process of this machine at a time runs `work`. */
function exclusively<T>(lock: string, work: () => T): T {
  while (!takeLock(lock)) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS);
  try {
    return work();
  } finally {
    rmSync(lock, { force: true });
  }
}

function takeLock(lock: string): boolean {
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

/** @returns the environment with the secrets that the first start generated. No file is written. */
export function environmentWithSecrets(environment: Environment): Environment {
  return environment['NODE_ENV'] === 'production' ? environment : withStoredSecrets(environment).merged;
}

/** @param merged the result of `storedEnvironment` for `environment`. @returns the names of the settings that only the file contains. */
export function namesFromFile(environment: Environment, merged: Environment): ReadonlySet<string> {
  return new Set(Object.keys(merged).filter((name) => merged[name] && !environment[name]));
}

function withStoredSecrets(environment: Environment) {
  const folder = environment['DATA_FOLDER'] || './data';
  const file = join(folder, 'secrets.env');
  const fileValues = existsSync(file) ? parseEnv(readFileSync(file, 'utf8')) : {};
  const merged: Record<string, string | undefined> = { ...fileValues, ...nonEmpty(environment) };
  if (merged['JWT_SECRET'] !== undefined && environment['MASTER_SECRET'] === undefined) delete merged['MASTER_SECRET'];
  return { folder, file, fileValues, merged };
}

function nonEmpty(environment: Environment): Record<string, string> {
  return Object.fromEntries(Object.entries(environment).filter((entry): entry is [string, string] => (entry[1] ?? '') !== ''));
}
