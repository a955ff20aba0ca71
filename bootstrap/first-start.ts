import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { GENERATED, readSettings, SettingsError } from '../config/settings.ts';

export type FirstStart = {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** What was generated just now and is shown once; undefined at later starts. */
  readonly generated?: { readonly file: string; readonly clientId: string; readonly clientSecret: string };
  /** The client whose generated secret an earlier start left in `file`. */
  readonly kept?: { readonly file: string; readonly clientId: string };
};

/**
 * Zero configuration: what is missing is generated once into `DATA_FOLDER/secrets.env` (mode 0600). In production
 * nothing is generated, and a missing secret stops the start.
 * @throws SettingsError when a database is there whose master secret is lost: a new one would open nothing in it.
 */
export function prepareFirstStart(environment: Readonly<Record<string, string | undefined>>): FirstStart {
  if (environment['NODE_ENV'] === 'production') return { environment };
  const { folder, file, known, merged } = withKept(environment);
  // With an external provider nobody logs in with a client of ours.
  const needed = merged['OIDC'] === undefined ? GENERATED : (['MASTER_SECRET'] as const);
  const missing = needed.filter(
    (name) => merged[name] === undefined && !(name === 'MASTER_SECRET' && merged['JWT_SECRET'] !== undefined),
  );
  if (missing.length === 0) {
    const kept = known['AUTH_CLIENT_SECRET'] !== undefined && !environment['AUTH_CLIENT_SECRET'];
    const clientId = merged['AUTH_CLIENT_ID'] ?? '';
    return { environment: merged, ...(kept ? { kept: { file, clientId } } : {}) };
  }
  const database = join(folder, 'vidimus.sqlite');
  if (missing.includes('MASTER_SECRET') && !environment['DATABASE_URL'] && existsSync(database)) {
    throw new SettingsError([
      `MASTER_SECRET: is missing from ${file}, and without it nothing in ${database} opens; restore the file or set ` +
        'MASTER_SECRET. To begin anew, remove the database',
    ]);
  }
  const values: Record<(typeof GENERATED)[number], string> = {
    MASTER_SECRET: randomBytes(48).toString('base64url'),
    AUTH_CLIENT_ID: 'root',
    AUTH_CLIENT_SECRET: randomBytes(24).toString('base64url'),
  };
  for (const name of missing) merged[name] = values[name];
  const lines = { ...known, ...Object.fromEntries(missing.map((name) => [name, values[name]])) };
  // Before anything is written: a start that fails for another reason shows nothing.
  readSettings(merged);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const text = Object.entries(lines).map(([name, value]) => `${name}=${value}\n`);
  // The mode counts for a new file only; one that was copied here may be open to others.
  if (existsSync(file)) chmodSync(file, 0o600);
  writeFileSync(file, text.join(''), { mode: 0o600 });
  if (!missing.includes('AUTH_CLIENT_SECRET')) return { environment: merged };
  return {
    environment: merged,
    generated: {
      file,
      clientId: merged['AUTH_CLIENT_ID'] ?? '',
      clientSecret: merged['AUTH_CLIENT_SECRET'] ?? '',
    },
  };
}

/** The environment of a service that was started before: with what its first start generated. Nothing is written. */
export function keptEnvironment(
  environment: Readonly<Record<string, string | undefined>>,
): Readonly<Record<string, string | undefined>> {
  return environment['NODE_ENV'] === 'production' ? environment : withKept(environment).merged;
}

function withKept(environment: Readonly<Record<string, string | undefined>>) {
  const folder = environment['DATA_FOLDER'] || './data';
  const file = join(folder, 'secrets.env');
  const known = existsSync(file) ? parseEnv(readFileSync(file, 'utf8')) : {};
  const merged: Record<string, string | undefined> = { ...known, ...present(environment) };
  if (merged['JWT_SECRET'] !== undefined && environment['MASTER_SECRET'] === undefined)
    delete merged['MASTER_SECRET'];
  return { folder, file, known, merged };
}

function present(environment: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(environment).filter((entry): entry is [string, string] => (entry[1] ?? '') !== ''),
  );
}
