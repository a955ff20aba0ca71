import type { z } from 'zod';
import type { SettingsSchema } from './settings-schema.ts';

/** Where the value of a setting comes from. `file`: what the first start generated, or `kms.json` beside the data. */
export type SettingSource = 'environment' | 'file' | 'default';

/** One setting as whoever runs the service may see it. */
export type ListedSetting = {
  readonly name: string;
  /** As it was written; null for a secret and for what has no value. */
  readonly value: string | null;
  readonly isSet: boolean;
  readonly isSecret: boolean;
  readonly source: SettingSource;
  readonly description: string;
};

/** What of a value is told: all, none, an address without who logs in, the origin of one, a path but no text. */
type Telling = 'value' | 'secret' | 'address' | 'origin' | 'path';

/** Every setting is named here, so that a new one cannot be shown by accident: without it nothing compiles. */
const TELLING: Readonly<Record<keyof typeof SettingsSchema.shape, Telling>> = {
  NODE_ENV: 'value',
  HOST: 'value',
  PORT: 'value',
  WORKERS: 'value',
  DRAIN_SECONDS: 'value',
  PUBLIC_URL: 'address',
  TRUST_PROXY: 'value',
  DATA_FOLDER: 'value',
  DATABASE_URL: 'address',
  DATABASE_MIGRATION_URL: 'address',
  MIGRATE: 'value',
  ACCEPT_REWIND: 'value',
  EXPECT_AUDIT_LOG: 'value',
  DATABASE_POOL: 'value',
  DATABASE_TIMEOUT: 'value',
  MASTER_SECRET: 'secret',
  JWT_SECRET: 'secret',
  JWT_ISSUER: 'value',
  JWT_EXPIRES_IN: 'value',
  AUTH_CLIENT_ID: 'value',
  AUTH_CLIENT_SECRET: 'secret',
  SESSION_TTL: 'value',
  STATUS_CAPACITY: 'value',
  STATUS_BITS: 'value',
  STATUS_TTL: 'value',
  OUTBOUND_ALLOW: 'value',
  RATE_LIMIT_TOKEN: 'value',
  RATE_LIMIT_NONCE: 'value',
  RATE_LIMIT_LOGIN: 'value',
  RATE_LIMIT_OFFER: 'value',
  MAX_CONNECTIONS: 'value',
  KEEP_ALIVE_SECONDS: 'value',
  REQUESTS_AT_ONCE: 'value',
  BODY_MEMORY: 'value',
  QUOTA_CREDENTIAL_CONFIGS: 'value',
  QUOTA_PRESENTATION_CONFIGS: 'value',
  QUOTA_KEY_CHAINS: 'value',
  QUOTA_CLIENTS: 'value',
  QUOTA_CONFIG_BYTES: 'value',
  QUOTA_SESSION_BYTES: 'value',
  CACHE_MEMORY: 'value',
  AUDIT_KEEP_DAYS: 'value',
  CONFIG_FOLDER: 'value',
  LOG_LEVEL: 'value',
  METRICS_ADDRESS: 'value',
  METRICS_TOKEN: 'secret',
  METRICS_TENANTS: 'value',
  OTEL_EXPORTER_OTLP_ENDPOINT: 'origin',
  OTEL_TRACES_SAMPLER_ARG: 'value',
  KMS_CONFIG: 'path',
  AMQP_URL: 'address',
  AMQP_CA: 'value',
  OIDC: 'address',
  OIDC_INTERNAL_ISSUER_URL: 'address',
  OIDC_CLIENT_ID: 'value',
  OIDC_CLIENT_SECRET: 'secret',
  OIDC_CONSOLE_CLIENT_ID: 'value',
  OIDC_SUB: 'value',
  OIDC_ACTOR_CLAIM: 'value',
  OIDC_ROLES: 'value',
  OIDC_ALGORITHM: 'value',
};

type Given = {
  /** What was set, letter by letter. */
  readonly set: Readonly<Record<string, unknown>>;
  /** What counts where nothing was set. */
  readonly defaults: Readonly<Record<string, unknown>>;
  /** Names of what a file says. */
  readonly fromFiles: ReadonlySet<string>;
};

/** All settings, in the order of the manual. @param shape the schema that parses them, with their descriptions. */
export function listSettings(shape: Readonly<Record<string, z.ZodType>>, { set, defaults, fromFiles }: Given): readonly ListedSetting[] {
  return Object.entries(shape).map(([name, { description = '' }]) => {
    const given = set[name];
    const value = given ?? defaults[name];
    const isFile = fromFiles.has(name);
    const told = TELLING[name as keyof typeof TELLING] ?? 'secret';
    return {
      name,
      value: told === 'secret' || value === undefined || String(value) === '' ? null : textOf(told, value),
      isSet: given !== undefined || isFile,
      isSecret: told === 'secret',
      source: isFile ? 'file' : given === undefined ? 'default' : 'environment',
      description,
    };
  });
}

function textOf(told: Telling, value: unknown): string | null {
  const text = String(value);
  if (told === 'value') return text;
  // Secrets may stand in a text; a file has them in itself.
  if (told === 'path') return text.trimStart().startsWith('{') ? null : text;
  if (text.startsWith('sqlite:')) return text;
  const url = URL.parse(text);
  if (url === null || (told === 'origin' && url.origin === 'null')) return null;
  // What stands before it may be the rest of a password in which nobody wrote a slash as %2F.
  if (`${url.pathname}${url.search}${url.hash}`.includes('@')) return null;
  return told === 'origin' ? url.origin : addressOf(url, text);
}

/** Of the parameters of a database, those that hold no secret. */
const PLAIN_PARAMETERS = ['sslmode', 'sslrootcert'];

function addressOf(url: URL, text: string): string {
  const isAsWritten = url.username === '' && url.password === '' && url.search === '' && url.hash === '';
  if (isAsWritten) return text;
  const plain = PLAIN_PARAMETERS.flatMap((name) => {
    const value = url.searchParams.get(name);
    return value === null ? [] : [`${name}=${value}`];
  });
  const search = plain.length === 0 ? '' : `?${plain.join('&')}`;
  return `${url.protocol}//${url.host}${url.pathname}${search}`;
}
