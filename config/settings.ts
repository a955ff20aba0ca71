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
    /** Variables with secrets in the KMS configuration, which other documents may not use. */
    KMS_SECRETS: readonly string[];
    /** All settings for display, without secrets. */
    LISTED: readonly ListedSetting[];
  }
>;

export class SettingsError extends Error {
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    super(`The configuration is not valid:\n${faults.map((fault) => `  - ${fault}`).join('\n')}`);
    this.name = 'SettingsError';
    this.faults = faults;
  }
}

function findUnknownWrappers(secret: string | undefined, { providers }: KmsConfig): string[] {
  return (secret ?? '').split(',').flatMap((entry) => {
    const wrapped = wrappedSecret(entry.trim());
    if (wrapped === undefined || providers[wrapped.provider]?.type === 'vault') return [];
    return [`MASTER_SECRET: KMS_CONFIG has no provider "${wrapped.provider}" of type vault`];
  });
}

function isMeasured(configured: Readonly<Record<string, unknown>>): boolean {
  return configured['METRICS_ADDRESS'] !== undefined || configured['METRICS_TOKEN'] !== undefined;
}

/** A SQLite file is used by one process only. */
function findWorkerProblem(configured: Readonly<Record<string, string | undefined>>): string[] {
  const { WORKERS = '1', DATABASE_URL = 'sqlite:' } = configured;
  const { data: count = 1 } = workers.safeParse(WORKERS);
  if (count === 1 || !DATABASE_URL.startsWith('sqlite:')) return [];
  return [`WORKERS: ${count} processes cannot share an SQLite file; set DATABASE_URL to a PostgreSQL (postgres://…), or WORKERS=1`];
}

/** Common names in other software by the corresponding setting of this service. */
const ALTERNATIVE_NAMES: Readonly<Record<string, readonly string[]>> = {
  KMS_CONFIG: ['VAULT_ADDR', 'VAULT_TOKEN', 'KMS_PROVIDER', 'KMS_TYPE', 'HSM_LIBRARY', 'PKCS11_LIBRARY'],
  AMQP_URL: ['RABBITMQ_URL', 'RABBITMQ_HOST', 'RABBIT_URL', 'AMQP_URI', 'AMQP_HOST', 'BROKER_URL'],
};

/** Minimum length: shorter names are similar to too many unrelated variables. */
const MIN_MISSPELT_LENGTH = 5;

/**
 * Variables that are probably misspelt settings. The start does not fail, since they may belong to another program.
 * @param used variables that a configuration uses as placeholders.
 * @returns a line for each.
 */
export function misspeltSettings(environment: Readonly<Record<string, string | undefined>>, used: readonly string[] = []): string[] {
  const settingNames = Object.keys(SettingsSchema.shape);
  const alternatives = Object.entries(ALTERNATIVE_NAMES).flatMap(([setting, names]) =>
    environment[setting] ? [] : names.filter((name) => environment[name] && !used.includes(name)).map((name) => ({ name, setting })),
  );
  const misspelt = Object.keys(environment)
    .filter((name) => name.length >= MIN_MISSPELT_LENGTH && !settingNames.includes(name))
    .flatMap((name) => {
      const suggestion = closestName(name, settingNames);
      return suggestion === undefined ? [] : [`${name}: is not a setting; did you mean ${suggestion}?`];
    });
  return [...misspelt, ...alternatives.map(({ name, setting }) => `${name}: is not a setting; use ${setting}`)];
}

export function isSetting(name: string): boolean {
  return Object.hasOwn(SettingsSchema.shape, name);
}

/** Settings that the first start may generate. */
export const GENERATED = ['MASTER_SECRET', 'AUTH_CLIENT_ID', 'AUTH_CLIENT_SECRET'] as const;

/**
 * @param environment variables. White space around a value is removed, since secrets that are read from files often end
 *   in a line break; an empty value counts as absent. @param fileSettings names of settings that come from a file.
 * @throws SettingsError listing every fault.
 */
export function readSettings(
  environment: Readonly<Record<string, string | undefined>>,
  fileSettings: ReadonlySet<string> = new Set(),
): Settings {
  const configured = Object.fromEntries(
    Object.keys(SettingsSchema.shape).flatMap((name) => {
      const value = environment[name]?.trim();
      return value === undefined || value === '' ? [] : [[name, value]];
    }),
  );
  const faults: string[] = [];
  const parsed = SettingsSchema.safeParse(configured);
  if (!parsed.success) faults.push(...parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`));
  const production = configured['NODE_ENV'] === 'production';
  const address = configured['PUBLIC_URL'];
  if (production && (typeof address !== 'string' || !/^https:/i.test(address))) {
    faults.push('PUBLIC_URL: must be set and begin with https:// in production');
  }
  if (configured['MASTER_SECRET'] !== undefined && configured['JWT_SECRET'] !== undefined) {
    faults.push('JWT_SECRET: is the former name of MASTER_SECRET; set only one of them');
  }
  const secret = configured['MASTER_SECRET'] ?? configured['JWT_SECRET'];
  if (secret === undefined) faults.push('MASTER_SECRET: is missing');
  const withProvider = configured['OIDC'] !== undefined;
  const needed = withProvider ? ['OIDC_CLIENT_ID', 'OIDC_CLIENT_SECRET'] : ['AUTH_CLIENT_ID', 'AUTH_CLIENT_SECRET'];
  for (const name of needed) if (configured[name] === undefined) faults.push(`${name}: is missing`);
  for (const name of Object.keys(configured)) {
    if (!withProvider && name.startsWith('OIDC_')) faults.push(`${name}: has no effect without OIDC`);
  }
  if (configured['AMQP_CA'] !== undefined && !configured['AMQP_URL']?.startsWith('amqps:')) {
    faults.push('AMQP_CA: has no effect without an AMQP_URL that begins with amqps:');
  }
  if (production && withProvider && !configured['OIDC']?.startsWith('https://'))
    faults.push('OIDC: must begin with https:// in production');
  if (configured['METRICS_TENANTS'] !== undefined && !isMeasured(configured)) {
    faults.push('METRICS_TENANTS: has no effect without METRICS_ADDRESS or METRICS_TOKEN');
  }
  faults.push(...findWorkerProblem(configured));
  const kms = readKmsConfig(configured['KMS_CONFIG'], configured['DATA_FOLDER'] ?? './data', environment);
  faults.push(...kms.faults);
  if (kms.faults.length === 0) faults.push(...findUnknownWrappers(secret, kms.config));
  if (faults.length > 0 || !parsed.success) throw new SettingsError([...faults, ...misspeltSettings(environment)]);
  const { JWT_SECRET, MASTER_SECRET, KMS_CONFIG: _text, ...settings } = parsed.data;
  const plain = {
    ...settings,
    PUBLIC_URL: settings.PUBLIC_URL ?? `http://localhost:${settings.PORT}`,
    DATABASE_URL: settings.DATABASE_URL ?? `sqlite:${settings.DATA_FOLDER}/vidimus.sqlite`,
    REQUESTS_AT_ONCE: settings.REQUESTS_AT_ONCE ?? requestsAtOnce(parsed.data),
  };
  const isKmsFile = configured['KMS_CONFIG'] === undefined && kms.file !== undefined;
  return Object.freeze({
    ...plain,
    LISTED: listSettings(SettingsSchema.shape, {
      set: configured,
      defaults: isKmsFile ? { ...plain, KMS_CONFIG: kms.file } : plain,
      fromFiles: isKmsFile ? new Set([...fileSettings, 'KMS_CONFIG']) : fileSettings,
    }),
    MASTER_SECRET: MASTER_SECRET ?? JWT_SECRET ?? [],
    AUTH_CLIENT_ID: settings.AUTH_CLIENT_ID ?? '',
    AUTH_CLIENT_SECRET: settings.AUTH_CLIENT_SECRET ?? '',
    KMS: kms.config,
    KMS_SECRETS: kms.secrets,
  });
}

/** A single tenant can use all connections (see `Admission`); SQLite answers synchronously, one request after the other. */
function requestsAtOnce({ DATABASE_URL, DATABASE_POOL }: Parsed): number {
  const isPostgres = DATABASE_URL?.startsWith('postgres') === true;
  return isPostgres ? Math.max(2, DATABASE_POOL) + 2 : 6;
}
