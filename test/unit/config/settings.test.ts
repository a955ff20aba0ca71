import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { readKmsConfig } from '../../../config/kms-config.ts';
import { misspeltSettings, readSettings, SettingsError } from '../../../config/settings.ts';
import { SettingsSchema } from '../../../config/settings-schema.ts';
import { describeSettings } from '../../../tools/describe-settings.ts';

const SECRET = 'a master secret for the tests 0123456789';
const PROVIDER = { OIDC: 'https://login.example/realm', OIDC_CLIENT_ID: 'vidimus', OIDC_CLIENT_SECRET: 'secret' };
const VALID = { MASTER_SECRET: SECRET, AUTH_CLIENT_ID: 'root', AUTH_CLIENT_SECRET: 'a-root-secret-of-some-length' };

/** The lines of the error message, or an empty list for valid settings. */
function faultsOf(environment: Record<string, string | undefined>): string[] {
  try {
    readSettings(environment);
    return [];
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    return error.message
      .split('\n')
      .slice(1)
      .map((line) => line.replace(/^ {2}- /, ''));
  }
}

describe('number of concurrent requests', () => {
  const atOnce = (settings: object) => readSettings({ ...VALID, ...settings }).REQUESTS_AT_ONCE;
  const DATABASE_URL = 'postgres://user@localhost/database';

  it('is derived from the size of the connection pool, so that one tenant alone can use the pool fully', () => {
    expect(atOnce({ DATABASE_URL })).to.equal(12);
    expect(atOnce({ DATABASE_URL, DATABASE_POOL: '1' }), 'two connections at least').to.equal(4);
    expect(atOnce({ DATABASE_URL, DATABASE_POOL: '50' })).to.equal(52);
    expect(atOnce({ DATABASE_POOL: '50' }), 'SQLite has one connection').to.equal(6);
  });

  it('may be configured, with a minimum that tenants can share', () => {
    expect(atOnce({ REQUESTS_AT_ONCE: '4' })).to.equal(4);
    expect(faultsOf({ ...VALID, REQUESTS_AT_ONCE: '3' })[0]).to.match(/^REQUESTS_AT_ONCE: /);
  });
});

describe('misspelt settings', () => {
  it('are distinguished from the variables of other programs', () => {
    const foreignVariables = { PATH: '/bin', HOME: '/', HOSTNAME: 'a', LOGNAME: 'a', PORTS: '1', USER: 'a', NODE_OPTIONS: '', SHELL: '' };
    expect(misspeltSettings({ ...VALID, ...foreignVariables, OIDC: 'a' }).filter((line) => !line.startsWith('PORTS'))).to.deep.equal([]);
    expect(misspeltSettings({ RATE_LIMIT_TOKN: '5', 'trust-proxy': '1' })).to.deep.equal([
      'RATE_LIMIT_TOKN: is not a setting; did you mean RATE_LIMIT_TOKEN?',
      'trust-proxy: is not a setting; did you mean TRUST_PROXY?',
    ]);
  });

  it('are named when the start fails', () => {
    const { MASTER_SECRET, ...rest } = VALID;
    expect(faultsOf({ ...rest, MASTER_SECERT: MASTER_SECRET })).to.deep.equal([
      'MASTER_SECRET: is missing',
      'MASTER_SECERT: is not a setting; did you mean MASTER_SECRET?',
    ]);
  });
});

describe('settings', () => {
  it('require three secrets and have the published defaults for the rest', () => {
    const settings = readSettings(VALID);
    expect(settings).to.deep.include({
      HOST: '127.0.0.1',
      PORT: 3000,
      PUBLIC_URL: 'http://localhost:3000',
      DATABASE_URL: 'sqlite:./data/vidimus.sqlite',
      MASTER_SECRET: [SECRET],
      JWT_ISSUER: 'platform-service',
      JWT_EXPIRES_IN: 86_400,
      SESSION_TTL: 86_400,
      STATUS_CAPACITY: 100_000,
      STATUS_BITS: 1,
      STATUS_TTL: 3600,
      TRUST_PROXY: false,
      OUTBOUND_ALLOW: [],
    });
    expect(Object.isFrozen(settings)).to.equal(true);
  });

  it('list all faults in one message', () => {
    const faults = faultsOf({
      PORT: '70000',
      PUBLIC_URL: 'ftp://x',
      MASTER_SECRET: 'short',
      DATABASE_URL: 'mysql://x',
      SESSION_TTL: '59',
      STATUS_BITS: '3',
      STATUS_CAPACITY: '99',
      STATUS_TTL: '1h',
      JWT_EXPIRES_IN: 'soon',
      LOG_LEVEL: 'loud',
      AUTH_CLIENT_SECRET: 'short',
    });
    const names = new Set(faults.map((fault) => fault.split(':')[0]));
    expect([...names].sort()).to.deep.equal(
      [
        ...['AUTH_CLIENT_ID', 'AUTH_CLIENT_SECRET', 'DATABASE_URL', 'JWT_EXPIRES_IN', 'LOG_LEVEL'],
        ...['MASTER_SECRET', 'PORT', 'PUBLIC_URL', 'SESSION_TTL', 'STATUS_BITS', 'STATUS_CAPACITY'],
        'STATUS_TTL',
      ].sort(),
    );
  });

  it('have surrounding white space removed, so that a secret from a file is correct', () => {
    const padded = Object.fromEntries(Object.entries(VALID).map(([name, value]) => [name, ` ${value}\r\n`]));
    const settings = readSettings({ ...padded, METRICS_TOKEN: 'metrics-token-1234567\n' });
    const { MASTER_SECRET, AUTH_CLIENT_ID, AUTH_CLIENT_SECRET } = readSettings(VALID);
    expect(settings).to.deep.include({ MASTER_SECRET, AUTH_CLIENT_ID, AUTH_CLIENT_SECRET });
    expect(settings.METRICS_TOKEN).to.equal('metrics-token-1234567');
    expect(settings.LISTED.find(({ name }) => name === 'AUTH_CLIENT_ID')?.value).to.equal(AUTH_CLIENT_ID);
  });

  it('are absent when they consist of white space', () => {
    expect(faultsOf({ ...VALID, MASTER_SECRET: ' \n' })).to.deep.equal(['MASTER_SECRET: is missing']);
  });

  for (const KEEP_ALIVE_SECONDS of ['4', '3601', '65s', '1.5'])
    it(`reject KEEP_ALIVE_SECONDS=${KEEP_ALIVE_SECONDS} and say what is allowed`, () => {
      expect(faultsOf({ ...VALID, KEEP_ALIVE_SECONDS }).join()).to.match(
        /^KEEP_ALIVE_SECONDS: a whole number, without a unit, between 5 and 3600$/,
      );
    });

  for (const QUOTA_SESSION_BYTES of ['0', '1048575', '1099511627777', '256MiB'])
    it(`reject QUOTA_SESSION_BYTES=${QUOTA_SESSION_BYTES} and say what is allowed`, () => {
      expect(faultsOf({ ...VALID, QUOTA_SESSION_BYTES })).to.deep.equal([
        'QUOTA_SESSION_BYTES: a whole number, without a unit, between 1048576 and 1099511627776',
      ]);
    });

  for (const DATABASE_URL of ['postgres://u:50%@db/vidimus', 'postgres://u%:p@db/vidimus', 'postgres://u:p@db/a%zz'])
    it(`reject ${DATABASE_URL}, whose percent sign is not encoded, and say how to write it`, () => {
      expect(faultsOf({ ...VALID, DATABASE_URL }).join()).to.match(/^DATABASE_URL: .*write %25 for a percent sign/);
    });

  it('reject a MIGRATE that is neither on nor off', () => {
    expect(faultsOf({ ...VALID, MIGRATE: 'yes' }).join()).to.match(/^MIGRATE: one of on, off$/);
  });

  it('never repeat a secret in a fault', () => {
    const shortSecrets = { ...VALID, MASTER_SECRET: 'hunter2hunter2', AUTH_CLIENT_SECRET: 'hunter3' };
    expect(faultsOf(shortSecrets).join()).to.include('MASTER_SECRET').and.not.include('hunter');
  });

  const rejectedEnvironments: [string, Record<string, string | undefined>, RegExp][] = [
    ['no secret', { MASTER_SECRET: undefined }, /^MASTER_SECRET: is missing/],
    ['an empty secret', { MASTER_SECRET: '' }, /^MASTER_SECRET: is missing/],
    ['31 characters', { MASTER_SECRET: SECRET.slice(0, 31) }, /32 characters/],
    ['one invalid secret of two', { MASTER_SECRET: `${SECRET},${SECRET.slice(0, 31)}` }, /32 characters/],
    ['a repeated character', { MASTER_SECRET: 'x'.repeat(40) }, /random/],
    ['both names of the secret', { JWT_SECRET: SECRET }, /^JWT_SECRET: .*only one/],
    ['no root client', { AUTH_CLIENT_ID: undefined }, /^AUTH_CLIENT_ID: is missing/],
    ['no secret of the root client', { AUTH_CLIENT_SECRET: undefined }, /^AUTH_CLIENT_SECRET: is missing/],
    ['an address with a query', { PUBLIC_URL: 'https://x.example/?a=b' }, /^PUBLIC_URL/],
    ['an address with credentials', { PUBLIC_URL: 'https://a:b@x.example' }, /^PUBLIC_URL/],
    ['a provider without our secret', { ...PROVIDER, OIDC_CLIENT_SECRET: '' }, /^OIDC_CLIENT_SECRET: is missing/],
    ['a provider with a query', { ...PROVIDER, OIDC: 'https://login.example/?a' }, /^OIDC: /],
    ['a symmetric algorithm', { ...PROVIDER, OIDC_ALGORITHM: 'HS256' }, /^OIDC_ALGORITHM: /],
    ['a broker of another kind', { AMQP_URL: 'mqtt://x' }, /^AMQP_URL: amqps:/],
    ['a missing file of key stores', { KMS_CONFIG: './none.json' }, /^KMS_CONFIG: there is no readable file/],
    [
      'key stores with a duplicate property',
      { KMS_CONFIG: '{"providers":{},\n"providers":{}}' },
      /^KMS_CONFIG: has the property "providers" twice in one object \(line 2, column 1\)$/,
    ],
    ['key stores that are not JSON', { KMS_CONFIG: '{' }, /^KMS_CONFIG: is not valid JSON/],
  ];
  for (const [description, change, fault] of rejectedEnvironments) {
    it(`reject ${description}`, () => {
      const faults = faultsOf({ ...VALID, ...change });
      expect(faults).to.have.length(1);
      expect(faults[0]).to.match(fault);
    });
  }

  it('name the setting that replaces a variable of another program, unless it is set', () => {
    const names = { VAULT_ADDR: 'https://vault.internal', RABBITMQ_URL: 'amqp://x' };
    expect(misspeltSettings(names)).to.deep.equal([
      'VAULT_ADDR: is not a setting; use KMS_CONFIG',
      'RABBITMQ_URL: is not a setting; use AMQP_URL',
    ]);
    expect(misspeltSettings({ VAULT_ADDR: 'x' }, ['VAULT_ADDR']), 'a placeholder of kms.json').to.deep.equal([]);
    expect(misspeltSettings({ ...names, KMS_CONFIG: './kms.json', AMQP_URL: 'amqp://x' })).to.deep.equal([]);
  });

  for (const name of ['OIDC_CLIENT_ID', 'OIDC_CLIENT_SECRET', 'OIDC_SUB', 'OIDC_ALGORITHM']) {
    it(`reject ${name}, which would be ignored`, () => {
      expect(faultsOf({ ...VALID, [name]: 'ES256' })).to.deep.equal([`${name}: has no effect without OIDC`]);
    });
  }

  it('need no local client with an external OIDC provider, and have defaults for OIDC_SUB and OIDC_ALGORITHM', () => {
    const { AUTH_CLIENT_ID: _, AUTH_CLIENT_SECRET: __, ...rest } = VALID;
    const read = readSettings({ ...rest, ...PROVIDER });
    expect([read.OIDC, read.OIDC_SUB, read.OIDC_ALGORITHM]).to.deep.equal(['https://login.example/realm', 'tenant_id', 'RS256']);
  });

  it('require https in production', () => {
    const production = { ...VALID, NODE_ENV: 'production' };
    const plain = { ...production, ...PROVIDER, PUBLIC_URL: 'https://id.example', OIDC: 'http://login.example' };
    expect(faultsOf(plain).join()).to.match(/^OIDC: .*https/);
    for (const PUBLIC_URL of [undefined, 'http://id.example', 'HTTP://id.example'])
      expect(faultsOf({ ...production, PUBLIC_URL }).join(), PUBLIC_URL).to.match(/PUBLIC_URL: .*https/);
    expect(faultsOf({ ...production, PUBLIC_URL: 'https://id.example' })).to.deep.equal([]);
    expect(faultsOf({ ...production, PUBLIC_URL: 'HTTPS://Id.Example' })).to.deep.equal([]);
  });

  for (const [text, normalized] of [
    ['https://münchen.example', 'https://xn--mnchen-3ya.example'],
    ['https://MÜNCHEN.example/Base/', 'https://xn--mnchen-3ya.example/Base'],
    ['HTTPS://Id.Example:443', 'https://id.example'],
    ['http://localhost:80/', 'http://localhost'],
    ['https://id.example:8443//', 'https://id.example:8443'],
    ['https://[2001:DB8::1]:443/', 'https://[2001:db8::1]'],
  ] as const) {
    it(`publish PUBLIC_URL=${text} as ${normalized}`, () => {
      expect(readSettings({ ...VALID, PUBLIC_URL: text }).PUBLIC_URL).to.equal(normalized);
    });
  }

  it('accept former names, several secrets, durations, and addresses with a path', () => {
    const { MASTER_SECRET: _, ...rest } = VALID;
    const otherSecret = `${SECRET} another one`;
    const settings = readSettings({
      ...rest,
      JWT_SECRET: `${SECRET}, ${otherSecret}`,
      JWT_EXPIRES_IN: '2h',
      PUBLIC_URL: 'https://id.example/base/',
      DATA_FOLDER: '/var/lib/vidimus',
      OUTBOUND_ALLOW: 'backend.example, 10.0.0.0/8,',
      TRUST_PROXY: '1',
    });
    expect(settings.TRUST_PROXY, 'one proxy').to.equal(1);
    expect(settings.MASTER_SECRET).to.deep.equal([SECRET, otherSecret]);
    expect(settings.JWT_EXPIRES_IN).to.equal(7200);
    expect(settings.PUBLIC_URL).to.equal('https://id.example/base');
    expect(settings.DATABASE_URL).to.equal('sqlite:/var/lib/vidimus/vidimus.sqlite');
    expect(settings.OUTBOUND_ALLOW).to.deep.equal(['backend.example', '10.0.0.0/8']);
    expect(settings).to.not.have.property('JWT_SECRET');
  });

  it('accept numbers and networks of trusted proxies, but not all addresses', () => {
    for (const [text, parsed] of [
      ['0', 0],
      ['16', 16],
      ['false', false],
      ['10.0.0.0/8, fd00::/8', '10.0.0.0/8,fd00::/8'],
      ['127.0.0.1', '127.0.0.1'],
    ] as const) {
      expect(readSettings({ ...VALID, TRUST_PROXY: text }).TRUST_PROXY, text).to.equal(parsed);
    }
    for (const text of ['true', '17', ':', ',', '10.0.0.0/33', '10.0.0.0/8/8', 'loopback', '-1']) {
      expect(faultsOf({ ...VALID, TRUST_PROXY: text }).join(), text).to.match(/^TRUST_PROXY: a number of proxies/);
    }
  });

  it('accept only database addresses whose parameters are all supported, and never quote them', () => {
    for (const text of [
      'sqlite:data/x.sqlite',
      'postgres://u:p%40ss@db.internal/vidimus',
      'postgresql://u@[::1]:5432/x?sslmode=verify-full&sslrootcert=/etc/ca.pem',
      'postgres://u@db/x?sslmode=disable',
    ]) {
      expect(readSettings({ ...VALID, DATABASE_URL: text }).DATABASE_URL).to.equal(text);
    }
    for (const [text, message] of [
      ['postgres://u:hid@den/word@127.0.0.1:5432/x', 'percent-encoded'],
      ['postgres://u:hid#den@127.0.0.1:5432/x', 'percent-encoded'],
      ['postgres://u:hidden@127.0.0.1:5432', 'percent-encoded'],
      ['postgres://u:hidden@127.0.0.1/x?sslmode=require', 'verify-full'],
      ['postgres://u:hidden@127.0.0.1/x?sslmode=disable&sslmode=verify-full', 'twice'],
      ['postgres://u:hidden@127.0.0.1/x?ssl=true', 'sslmode and sslrootcert'],
      ['postgres://u:hidden@127.0.0.1/x?sslrootcert=/etc/ca.pem', 'has no effect'],
      ['mysql://u:hidden@127.0.0.1/x', 'postgres://'],
    ] as const) {
      const [fault = '', ...rest] = faultsOf({ ...VALID, DATABASE_URL: text });
      expect(rest).to.deep.equal([]);
      expect(fault, text)
        .to.include(message)
        .and.to.match(/^DATABASE_URL: /)
        .and.to.not.match(/hid|den/);
    }
  });

  it('treat an empty variable as absent, and ignore variables of other programs', () => {
    expect(faultsOf({ ...VALID, PORT: '', OIDC: '', HOME: '/root' })).to.deep.equal([]);
    expect(readSettings({ ...VALID, HOME: '/root' })).to.not.have.property('HOME');
  });

  it('are all documented, without unknown ones', () => {
    const list = `\n${describeSettings()}`;
    for (const [name, schema] of Object.entries(SettingsSchema.shape))
      expect(new RegExp(`\n- \`${name}\`( \\(|:)`).test(list), name).to.equal(schema.description !== undefined);
    expect(list).to.include('- `SESSION_TTL` (`86400`):').and.include('- `STATUS_CAPACITY` (`100000`):');
  });
});

describe('the number of workers', () => {
  const POSTGRES = { ...VALID, DATABASE_URL: 'postgres://vidimus@127.0.0.1/vidimus' };

  it('is one unless it is configured, and the number of CPUs with auto', () => {
    expect(readSettings(POSTGRES).WORKERS).to.equal(1);
    expect(readSettings({ ...POSTGRES, WORKERS: '3' }).WORKERS).to.equal(3);
    expect(readSettings({ ...POSTGRES, WORKERS: 'auto' }).WORKERS).to.equal(availableParallelism());
    for (const WORKERS of ['0', '129', '-1', '2.5', 'all', 'AUTO'])
      expect(faultsOf({ ...POSTGRES, WORKERS }), WORKERS).to.deep.equal(['WORKERS: a number from 1 to 128, or auto']);
  });

  it('is one with SQLite, whose file belongs to one process, by default and when named', () => {
    const fault = 'WORKERS: 2 processes cannot share an SQLite file; set DATABASE_URL to a PostgreSQL (postgres://…), or WORKERS=1';
    for (const DATABASE_URL of ['', 'sqlite:./data/a.sqlite', 'sqlite::memory:']) {
      expect(faultsOf({ ...VALID, DATABASE_URL, WORKERS: '2' }), DATABASE_URL).to.deep.equal([fault]);
      expect(faultsOf({ ...VALID, DATABASE_URL, WORKERS: '1' }), DATABASE_URL).to.deep.equal([]);
    }
    expect(faultsOf({ ...VALID, WORKERS: '2', PORT: 'abc' }), 'beside others').to.have.length(2);
  });
});

/** A placeholder in the syntax of documents. */
const placeholder = (name: string) => `\${${name}}`;
const VAULT = {
  type: 'vault',
  address: 'https://vault.internal:8200',
  auth: { method: 'approle', roleId: 'vidimus', secretId: placeholder('VAULT_SECRET_ID') },
};
const HSM = { type: 'pkcs11', library: '/usr/lib/hsm.so', token: 'vidimus', pin: placeholder('HSM_PIN') };
const LOCAL = { type: 'local' };
const SECRETS = { VAULT_SECRET_ID: 'a-secret-of-the-vault', HSM_PIN: 'pin-of-the-hsm' };

describe('key provider configuration', () => {
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'vidimus-kms-'));
  });
  after(() => rmSync(folder, { recursive: true }));

  const read = (value: unknown, environment: object = SECRETS) =>
    readKmsConfig(typeof value === 'string' ? value : JSON.stringify(value), folder, environment as Record<string, string>);
  const valid = { default: 'local', providers: { local: LOCAL, house: VAULT, hsm: HSM }, tenants: { acme: 'house' } };

  it('stores all keys in the database by default', () => {
    const { config, faults } = readKmsConfig(undefined, folder, {});
    expect([config.default, Object.keys(config.providers), faults]).to.deep.equal(['local', ['local'], []]);
  });

  it('is read as JSON, from a named file, and from kms.json beside the data', () => {
    const { config, faults, secrets } = read(valid);
    expect(faults).to.deep.equal([]);
    expect(config.providers['house']).to.deep.include({
      ...{ mount: 'transit', atOnce: 32, timeoutSeconds: 5 },
      auth: { method: 'approle', mount: 'approle', roleId: 'vidimus', secretId: SECRETS.VAULT_SECRET_ID },
    });
    expect(config.providers['hsm']).to.include({ sessions: 4, timeoutSeconds: 5, pin: SECRETS.HSM_PIN });
    expect([...secrets].sort()).to.deep.equal(['HSM_PIN', 'VAULT_SECRET_ID']);

    const file = join(folder, 'other.json');
    writeFileSync(file, JSON.stringify(valid));
    expect(read(file).config).to.deep.equal(config);
    writeFileSync(join(folder, 'kms.json'), JSON.stringify({ ...valid, default: 'hsm' }));
    expect(readKmsConfig(undefined, folder, SECRETS).config.default).to.equal('hsm');
    rmSync(join(folder, 'kms.json'));
  });

  const rejectedKeyStores: [string, object, RegExp[]][] = [
    ['a provider of an unknown type', { providers: { a: { type: 'cloud' } } }, [/^KMS_CONFIG: providers\.a/]],
    ['a misspelt property', { ...valid, tenant: {} }, [/^KMS_CONFIG: .*"tenant"/]],
    ['a misspelt property of a provider', { providers: { local: { ...LOCAL, onlyfor: [] } } }, [/onlyfor/]],
    ['a login without its secret', { providers: { house: { ...VAULT, auth: { method: 'token' } } } }, [/auth\.token/]],
    ['an unknown login', { providers: { house: { ...VAULT, auth: { method: 'ldap' } } } }, [/auth/]],
    ['an address that is invalid', { providers: { house: { ...VAULT, address: 'vault' } } }, [/address/]],
    ['a password in an address', { providers: { house: { ...VAULT, address: 'https://a:pw-in-address@v' } } }, [/address.*without user/]],
    ['an unknown default provider', { ...valid, default: 'housse' }, [/default: there is no provider "housse"; did you mean "house"/]],
    ['a tenant with an unknown provider', { ...valid, tenants: { acme: 'cellar' } }, [/tenants\.acme: there is no provider "cellar"/]],
    [
      'a tenant at a provider of others',
      { providers: { local: LOCAL, a: { ...LOCAL, onlyFor: ['x'] } }, tenants: { acme: 'a' } },
      [/tenants\.acme: the provider "a" is only for: x/],
    ],
    [
      'a default that not all tenants may use',
      { default: 'a', providers: { a: { ...LOCAL, onlyFor: ['x'] } } },
      [/default: .*not for all/],
    ],
    ['a name that is invalid in key ids', { providers: { 'My Vault': LOCAL } }, [/providers/]],
    [
      'several faults at once',
      { default: 'x', providers: { a: { type: 'pkcs11' }, b: { ...VAULT, timeoutSeconds: 0 } } },
      [/providers\.a\.library/, /providers\.a\.pin/, /providers\.b\.timeoutSeconds/],
    ],
  ];
  for (const [description, value, patterns] of rejectedKeyStores) {
    it(`rejects ${description}`, () => {
      const { faults } = read(value);
      for (const pattern of patterns)
        expect(
          faults.some((fault) => pattern.test(fault)),
          faults.join('\n'),
        ).to.equal(true);
    });
  }

  it('names variables that are not set, and quotes no value of those that are', () => {
    expect(read(valid, { HSM_PIN: 'x' }).faults).to.deep.equal([
      'KMS_CONFIG: providers.house.auth.secretId: the variable VAULT_SECRET_ID is not set',
    ]);
    const configuration = {
      providers: { house: { ...VAULT, address: placeholder('VAULT_SECRET_ID'), mount: 5, auth: { method: placeholder('HSM_PIN') } } },
    };
    const { faults } = read(configuration);
    expect(faults.length).to.be.greaterThan(1);
    for (const secret of Object.values(SECRETS)) expect(faults.join('\n')).to.not.include(secret);
  });

  it('has its faults in one message at the start, together with those of other settings', () => {
    const settings = () =>
      readSettings({
        ...{ PORT: 'x', MASTER_SECRET: 'vault:cellar:vidimus', AUTH_CLIENT_ID: 'root' },
        ...{ AUTH_CLIENT_SECRET: 'a secret of the root client', KMS_CONFIG: JSON.stringify({ providers: {} }) },
      });
    expect(settings)
      .to.throw(SettingsError)
      .with.property('message')
      .that.matches(/PORT[\s\S]*KMS_CONFIG: default: there is no provider "local"/);
  });

  it('contains the provider of a master secret', () => {
    const withSecret = (MASTER_SECRET: string) =>
      readSettings({
        ...SECRETS,
        ...{ MASTER_SECRET, AUTH_CLIENT_ID: 'root', KMS_CONFIG: JSON.stringify(valid) },
        AUTH_CLIENT_SECRET: 'a secret of the root client',
      });
    expect(withSecret('vault:house:vidimus').MASTER_SECRET).to.deep.equal(['vault:house:vidimus']);
    expect(withSecret('vault:house:vidimus:2,vault:house:vidimus').MASTER_SECRET).to.have.length(2);
    expect(() => withSecret('vault:cellar:vidimus')).to.throw('no provider "cellar" of type vault');
    expect(() => withSecret('vault:hsm:vidimus')).to.throw('no provider "hsm" of type vault');
    for (const reference of ['vault:', 'vault:house', 'vault:house:a/b', 'vault:house:vidimus:0']) {
      expect(() => withSecret(reference), reference).to.throw('vault:<provider>:<key>');
    }
  });
});
