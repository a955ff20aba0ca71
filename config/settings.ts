import type { z } from 'zod';
import { closestName } from '../domain/shared/closest-name.ts';
import { type KmsConfig, readKmsConfig } from './kms-config.ts';
import { type ListedSetting, listSettings } from './list-settings.ts';
import { workers, wrappedSecret } from './setting-values.ts';
import { SettingsSchema } from './settings-schema.ts';

type Parsed = z.output<typeof SettingsSchema>;

export type Settings = Readonly<
  Omit<
    Parsed,
    | 'PUBLIC_URL'
    | 'DATABASE_URL'
    | 'REQUESTS_AT_ONCE'
    | 'MASTER_SECRET'
    | 'JWT_SECRET'
    | 'AUTH_CLIENT_ID'
    | 'AUTH_CLIENT_SECRET'
    | 'KMS_CONFIG'
  > & {
    PUBLIC_URL: string;
    DATABASE_URL: string;
    REQUESTS_AT_ONCE: number;
    MASTER_SECRET: readonly string[];
    AUTH_CLIENT_ID: string;
    AUTH_CLIENT_SECRET: string;
    KMS: KmsConfig;
    /** Variables with secrets for `KMS`, which nothing else may use. */
    KMS_SECRETS: readonly string[];
    /** All settings as whoever runs the service may see them: no secret. */
    LISTED: readonly ListedSetting[];
  }
>;

/** Everything that is wrong with the configuration, in one message. */
export class SettingsError extends Error {
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    super(`The configuration is not valid:\n${faults.map((fault) => `  - ${fault}`).join('\n')}`);
    this.name = 'SettingsError';
    this.faults = faults;
  }
}

function unknownWrappers(secret: string | undefined, { providers }: KmsConfig): string[] {
  return (secret ?? '').split(',').flatMap((entry) => {
    const wrapped = wrappedSecret(entry.trim());
    if (wrapped === undefined || providers[wrapped.provider]?.type === 'vault') return [];
    return [`MASTER_SECRET: KMS_CONFIG has no provider "${wrapped.provider}" of type vault`];
  });
}

function isMeasured(given: Readonly<Record<string, unknown>>): boolean {
  return given['METRICS_ADDRESS'] !== undefined || given['METRICS_TOKEN'] !== undefined;
}

/** A file of SQLite belongs to one process. */
function workersWithoutServer(given: Readonly<Record<string, string | undefined>>): string[] {
  const { WORKERS = '1', DATABASE_URL = 'sqlite:' } = given;
  const { data: count = 1 } = workers.safeParse(WORKERS);
  if (count === 1 || !DATABASE_URL.startsWith('sqlite:')) return [];
  return [`WORKERS: ${count} processes cannot share an SQLite file; set DATABASE_URL to a PostgreSQL (postgres://…), or WORKERS=1`];
}

/** What others call the settings of key providers and of the broker, by the setting that has them here. */
const OTHER_NAMES: Readonly<Record<string, readonly string[]>> = {
  KMS_CONFIG: ['VAULT_ADDR', 'VAULT_TOKEN', 'KMS_PROVIDER', 'KMS_TYPE', 'HSM_LIBRARY', 'PKCS11_LIBRARY'],
  AMQP_URL: ['RABBITMQ_URL', 'RABBITMQ_HOST', 'RABBIT_URL', 'AMQP_URI', 'AMQP_HOST', 'BROKER_URL'],
};

/** Shorter names are near too many variables of other programs. */
const MIN_MISSPELT = 5;

/**
 * Variables that are probably meant as settings. Not refused at the start, since they may well belong to something else.
 * @param used variables that a configuration names as placeholders.
 * @returns a line for each.
 */
export function misspeltSettings(environment: Readonly<Record<string, string | undefined>>, used: readonly string[] = []): string[] {
  const known = Object.keys(SettingsSchema.shape);
  const others = Object.entries(OTHER_NAMES).flatMap(([setting, names]) =>
    environment[setting] ? [] : names.filter((name) => environment[name] && !used.includes(name)).map((name) => ({ name, setting })),
  );
  const misspelt = Object.keys(environment)
    .filter((name) => name.length >= MIN_MISSPELT && !known.includes(name))
    .flatMap((name) => {
      const meant = closestName(name, known);
      return meant === undefined ? [] : [`${name}: is no setting; did you mean ${meant}?`];
    });
  return [...misspelt, ...others.map(({ name, setting }) => `${name}: is no setting; what it is about is said in ${setting}`)];
}

export function isSetting(name: string): boolean {
  return Object.hasOwn(SettingsSchema.shape, name);
}

/** Names that the service reads, and which of them may be generated at the first start. */
export const GENERATED = ['MASTER_SECRET', 'AUTH_CLIENT_ID', 'AUTH_CLIENT_SECRET'] as const;

/**
 * @param environment variables. White space around a value is removed, since secrets that are read from files often end
 *   in a line break; an empty value counts as absent. @param kept those of them that a file has.
 * @throws SettingsError listing every fault.
 */
export function readSettings(environment: Readonly<Record<string, string | undefined>>, kept: ReadonlySet<string> = new Set()): Settings {
  const given = Object.fromEntries(
    Object.keys(SettingsSchema.shape).flatMap((name) => {
      const value = environment[name]?.trim();
      return value === undefined || value === '' ? [] : [[name, value]];
    }),
  );
  const faults: string[] = [];
  const parsed = SettingsSchema.safeParse(given);
  if (!parsed.success) faults.push(...parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`));
  const production = given['NODE_ENV'] === 'production';
  const address = given['PUBLIC_URL'];
  if (production && (typeof address !== 'string' || !/^https:/i.test(address))) {
    faults.push('PUBLIC_URL: must be set and begin with https:// in production');
  }
  if (given['MASTER_SECRET'] !== undefined && given['JWT_SECRET'] !== undefined) {
    faults.push('JWT_SECRET: is the older name of MASTER_SECRET; set only one of them');
  }
  const secret = given['MASTER_SECRET'] ?? given['JWT_SECRET'];
  if (secret === undefined) faults.push('MASTER_SECRET: is missing');
  const withProvider = given['OIDC'] !== undefined;
  const needed = withProvider ? ['OIDC_CLIENT_ID', 'OIDC_CLIENT_SECRET'] : ['AUTH_CLIENT_ID', 'AUTH_CLIENT_SECRET'];
  for (const name of needed) if (given[name] === undefined) faults.push(`${name}: is missing`);
  for (const name of Object.keys(given)) {
    if (!withProvider && name.startsWith('OIDC_')) faults.push(`${name}: means nothing without OIDC`);
  }
  if (given['AMQP_CA'] !== undefined && !given['AMQP_URL']?.startsWith('amqps:')) {
    faults.push('AMQP_CA: means nothing without an AMQP_URL that begins with amqps:');
  }
  if (production && withProvider && !given['OIDC']?.startsWith('https://')) faults.push('OIDC: must begin with https:// in production');
  if (given['METRICS_TENANTS'] !== undefined && !isMeasured(given)) {
    faults.push('METRICS_TENANTS: means nothing without METRICS_ADDRESS or METRICS_TOKEN');
  }
  faults.push(...workersWithoutServer(given));
  const kms = readKmsConfig(given['KMS_CONFIG'], given['DATA_FOLDER'] ?? './data', environment);
  faults.push(...kms.faults);
  if (kms.faults.length === 0) faults.push(...unknownWrappers(secret, kms.config));
  if (faults.length > 0 || !parsed.success) throw new SettingsError([...faults, ...misspeltSettings(environment)]);
  const { JWT_SECRET, MASTER_SECRET, KMS_CONFIG: _text, ...rest } = parsed.data;
  const plain = {
    ...rest,
    PUBLIC_URL: rest.PUBLIC_URL ?? `http://localhost:${rest.PORT}`,
    DATABASE_URL: rest.DATABASE_URL ?? `sqlite:${rest.DATA_FOLDER}/vidimus.sqlite`,
    REQUESTS_AT_ONCE: rest.REQUESTS_AT_ONCE ?? requestsAtOnce(parsed.data),
  };
  const isKmsFile = given['KMS_CONFIG'] === undefined && kms.file !== undefined;
  return Object.freeze({
    ...plain,
    LISTED: listSettings(SettingsSchema.shape, {
      set: given,
      defaults: isKmsFile ? { ...plain, KMS_CONFIG: kms.file } : plain,
      fromFiles: isKmsFile ? new Set([...kept, 'KMS_CONFIG']) : kept,
    }),
    MASTER_SECRET: MASTER_SECRET ?? JWT_SECRET ?? [],
    AUTH_CLIENT_ID: rest.AUTH_CLIENT_ID ?? '',
    AUTH_CLIENT_SECRET: rest.AUTH_CLIENT_SECRET ?? '',
    KMS: kms.config,
    KMS_SECRETS: kms.secrets,
  });
}

/** One tenant alone keeps all connections busy (see `Admission`); SQLite answers on the thread itself, one after the other. */
function requestsAtOnce({ DATABASE_URL, DATABASE_POOL }: Parsed): number {
  const isPostgres = DATABASE_URL?.startsWith('postgres') === true;
  return isPostgres ? Math.max(2, DATABASE_POOL) + 2 : 6;
}
