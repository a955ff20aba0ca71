import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { ListSettings, SettingsQuery } from '../../../application/settings/list-settings.ts';
import { readSettings } from '../../../config/settings.ts';
import { SettingsSchema } from '../../../config/settings-schema.ts';
import { type AdministrationWorld, anAdministration } from '../administrators.ts';

const CANARY = 'CanaryOfThisVeryTest0123456789';
const NAMES = Object.keys(SettingsSchema.shape);
/** A value for every setting, with a canary in each place of a secret. */
const ALL_SETTINGS = {
  NODE_ENV: 'production',
  HOST: '0.0.0.0',
  PORT: '8443',
  WORKERS: '2',
  DRAIN_SECONDS: '7',
  PUBLIC_URL: 'https://vidimus.example',
  TRUST_PROXY: '10.0.0.0/8',
  DATA_FOLDER: '/srv/vidimus',
  DATABASE_URL: `postgres://${CANARY}-user:${CANARY}@db.example:5432/main?sslmode=verify-full`,
  ACCEPT_REWIND: '3.44',
  EXPECT_AUDIT_LOG: 'acme=1:hash',
  DATABASE_POOL: '20',
  DATABASE_MIGRATION_URL: `postgres://owner:${CANARY}@db.example:5432/main`,
  DATABASE_TIMEOUT: '20',
  MIGRATE: 'off',
  MASTER_SECRET: `${CANARY} and more of it`,
  JWT_ISSUER: 'issuer',
  JWT_EXPIRES_IN: '12h',
  AUTH_CLIENT_ID: 'root',
  AUTH_CLIENT_SECRET: CANARY,
  SESSION_TTL: '600',
  STATUS_CAPACITY: '1000',
  STATUS_BITS: '2',
  STATUS_TTL: '600',
  OUTBOUND_ALLOW: '10.0.0.0/8',
  RATE_LIMIT_TOKEN: '1',
  RATE_LIMIT_NONCE: '2',
  RATE_LIMIT_LOGIN: '3',
  RATE_LIMIT_OFFER: '4',
  MAX_CONNECTIONS: '500',
  KEEP_ALIVE_SECONDS: '620',
  REQUESTS_AT_ONCE: '9',
  BODY_MEMORY: '80',
  QUOTA_CREDENTIAL_CONFIGS: '5',
  QUOTA_PRESENTATION_CONFIGS: '6',
  QUOTA_KEY_CHAINS: '7',
  QUOTA_CLIENTS: '8',
  QUOTA_CONFIG_BYTES: '70000',
  QUOTA_SESSION_BYTES: '1048576',
  CACHE_MEMORY: '170',
  AUDIT_KEEP_DAYS: '40',
  CONFIG_FOLDER: '/srv/config',
  LOG_LEVEL: 'warn',
  METRICS_ADDRESS: '9464',
  METRICS_TOKEN: CANARY,
  METRICS_TENANTS: '3',
  OTEL_EXPORTER_OTLP_ENDPOINT: `https://${CANARY}:${CANARY}@collector.example/${CANARY}?key=${CANARY}`,
  OTEL_TRACES_SAMPLER_ARG: '0.5',
  KMS_CONFIG: JSON.stringify({
    default: 'local',
    providers: { local: { type: 'local' }, hsm: { type: 'pkcs11', library: '/lib/p11.so', token: 'vidimus', pin: CANARY } },
  }),
  AMQP_URL: `amqps://${CANARY}:${CANARY}@broker.example:5671/events`,
  AMQP_CA: '/srv/broker.pem',
  OIDC: 'https://login.example/realm',
  OIDC_INTERNAL_ISSUER_URL: 'https://login.internal/realm',
  OIDC_CLIENT_ID: 'vidimus',
  OIDC_CLIENT_SECRET: CANARY,
  OIDC_CONSOLE_CLIENT_ID: 'console',
  OIDC_SUB: 'tenant',
  OIDC_ACTOR_CLAIM: 'email',
  OIDC_ROLES: 'roles',
  OIDC_ALGORITHM: 'ES256',
};
const REQUIRED_SETTINGS = { MASTER_SECRET: ALL_SETTINGS.MASTER_SECRET, AUTH_CLIENT_ID: 'root', AUTH_CLIENT_SECRET: CANARY };

describe('service settings', () => {
  let world: AdministrationWorld;
  const list = (environment: Record<string, string>, query: object = {}, keptNames: readonly string[] = []) =>
    new ListSettings({ listedSettings: { all: readSettings(environment, new Set(keptNames)).LISTED } }).execute(
      world.caller(['tenants:manage']),
      SettingsQuery.parse(query),
    );
  const findSetting = async (name: string, ...parameters: Parameters<typeof list>) =>
    (await list(...parameters)).find((setting) => setting.name === name);

  beforeEach(async () => {
    world = await anAdministration();
  });

  it('are listed completely, in the order of the manual, with a description', async () => {
    const all = await list(ALL_SETTINGS);
    expect(all.map(({ name }) => name)).to.deep.equal(NAMES);
    for (const { name, description } of all) expect(description, name).not.to.equal('');
    const unset = all.filter(({ isSet }) => !isSet).map(({ name }) => name);
    expect(unset, 'the former name of another setting').to.deep.equal(['JWT_SECRET']);
    for (const { isSet, source } of all) expect(source).to.equal(isSet ? 'environment' : 'default');
  });

  it('hide every secret, whichever setting contains it', async () => {
    const { MASTER_SECRET, ...passwordStart } = ALL_SETTINGS;
    for (const environment of [ALL_SETTINGS, { ...passwordStart, JWT_SECRET: MASTER_SECRET }]) {
      const all = await list(environment);
      expect(JSON.stringify(all)).not.to.include(CANARY);
    }
    const secret = (await list(ALL_SETTINGS)).filter(({ isSecret }) => isSecret);
    expect(secret.map(({ name, value }) => [name, value])).to.deep.equal(
      ['MASTER_SECRET', 'JWT_SECRET', 'AUTH_CLIENT_SECRET', 'METRICS_TOKEN', 'OIDC_CLIENT_SECRET'].map((name) => [name, null]),
    );
  });

  const expectedValues: [string, string | null][] = [
    ['DATABASE_URL', 'postgres://db.example:5432/main?sslmode=verify-full'],
    ['AMQP_URL', 'amqps://broker.example:5671/events'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'https://collector.example'],
    ['KMS_CONFIG', null],
    ['JWT_EXPIRES_IN', '12h'],
    ['TRUST_PROXY', '10.0.0.0/8'],
    ['PUBLIC_URL', 'https://vidimus.example'],
  ];
  for (const [name, value] of expectedValues)
    it(`show for ${name} ${value === null ? 'only that it is set' : `“${value}”`}`, async () => {
      expect(await findSetting(name, ALL_SETTINGS)).to.include({ value, isSet: true, isSecret: false });
    });

  it('hide an address with an unescaped slash or question mark in its password', async () => {
    for (const passwordStart of ['12/', '12?']) {
      const AMQP_URL = `amqps://vidimus:${passwordStart}${CANARY}@broker.example/events`;
      expect(await findSetting('AMQP_URL', { ...REQUIRED_SETTINGS, AMQP_URL })).to.include({ value: null, isSet: true });
    }
  });

  it('have their defaults if nothing is set', async () => {
    expect(await findSetting('PUBLIC_URL', REQUIRED_SETTINGS)).to.include({
      value: 'http://localhost:3000',
      isSet: false,
      source: 'default',
    });
    expect(await findSetting('DATABASE_URL', REQUIRED_SETTINGS)).to.include({ value: 'sqlite:./data/vidimus.sqlite' });
    expect(await findSetting('REQUESTS_AT_ONCE', REQUIRED_SETTINGS)).to.include({ value: '6' });
    expect(await findSetting('CONFIG_FOLDER', REQUIRED_SETTINGS)).to.include({ value: null, isSet: false });
    expect(await findSetting('OUTBOUND_ALLOW', REQUIRED_SETTINGS)).to.include({ value: null, isSet: false });
  });

  it('show that a value comes from a file', async () => {
    expect(await findSetting('AUTH_CLIENT_ID', REQUIRED_SETTINGS, {}, ['AUTH_CLIENT_ID'])).to.include({
      value: 'root',
      source: 'file',
      isSet: true,
    });
    const DATA_FOLDER = mkdtempSync(join(tmpdir(), 'vidimus-settings-'));
    try {
      const file = join(DATA_FOLDER, 'kms.json');
      writeFileSync(file, JSON.stringify({ providers: { local: { type: 'local' } } }));
      expect(await findSetting('KMS_CONFIG', { ...REQUIRED_SETTINGS, DATA_FOLDER })).to.include({ value: file, source: 'file' });
      const withKeyStoreFile = { ...REQUIRED_SETTINGS, KMS_CONFIG: file };
      expect(await findSetting('KMS_CONFIG', withKeyStoreFile)).to.include({ value: file, source: 'environment' });
    } finally {
      rmSync(DATA_FOLDER, { recursive: true });
    }
  });

  const searched: [object, string[]][] = [
    [{ q: 'RATE_limit_t' }, ['RATE_LIMIT_TOKEN']],
    [{ q: 'former name' }, ['JWT_SECRET']],
    [{ q: 'collector.example' }, ['OTEL_EXPORTER_OTLP_ENDPOINT']],
    [{ q: CANARY }, []],
    [{ source: 'default' }, ['JWT_SECRET']],
    [{ source: 'file' }, []],
    [{ q: 'QUOTA_K', source: 'environment' }, ['QUOTA_KEY_CHAINS']],
  ];
  for (const [query, names] of searched)
    it(`found by ${JSON.stringify(query)} are ${names.join(', ') || 'none'}`, async () => {
      expect((await list(ALL_SETTINGS, query)).map(({ name }) => name)).to.deep.equal(names);
    });
});
