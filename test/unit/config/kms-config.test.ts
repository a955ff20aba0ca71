import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { readKmsConfig } from '../../../config/kms-config.ts';
import { readSettings, SettingsError } from '../../../config/settings.ts';

/** A placeholder, as documents write it. */
const from = (name: string) => `\${${name}}`;
const HOUSE = {
  type: 'vault',
  address: 'https://vault.internal:8200',
  auth: { method: 'approle', roleId: 'vidimus', secretId: from('VAULT_SECRET_ID') },
};
const HSM = { type: 'pkcs11', library: '/usr/lib/hsm.so', token: 'vidimus', pin: from('HSM_PIN') };
const LOCAL = { type: 'local' };
const SECRETS = { VAULT_SECRET_ID: 'a-secret-of-the-vault', HSM_PIN: 'pin-of-the-hsm' };

describe('The configuration of key providers', () => {
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'vidimus-kms-'));
  });
  after(() => rmSync(folder, { recursive: true }));

  const read = (value: unknown, environment: object = SECRETS) =>
    readKmsConfig(
      typeof value === 'string' ? value : JSON.stringify(value),
      folder,
      environment as Record<string, string>,
    );
  const good = {
    default: 'local',
    providers: { local: LOCAL, house: HOUSE, hsm: HSM },
    tenants: { acme: 'house' },
  };

  it('is all keys in the database unless something is said', () => {
    const { config, faults } = readKmsConfig(undefined, folder, {});
    expect([config.default, Object.keys(config.providers), faults]).to.deep.equal(['local', ['local'], []]);
  });

  it('is read as JSON, from a file that is named, and from kms.json beside the data', () => {
    const { config, faults, secrets } = read(good);
    expect(faults).to.deep.equal([]);
    expect(config.providers['house']).to.deep.include({
      ...{ mount: 'transit', atOnce: 32, timeoutSeconds: 5 },
      auth: { method: 'approle', mount: 'approle', roleId: 'vidimus', secretId: SECRETS.VAULT_SECRET_ID },
    });
    expect(config.providers['hsm']).to.include({ sessions: 4, timeoutSeconds: 5, pin: SECRETS.HSM_PIN });
    expect([...secrets].sort()).to.deep.equal(['HSM_PIN', 'VAULT_SECRET_ID']);

    const file = join(folder, 'other.json');
    writeFileSync(file, JSON.stringify(good));
    expect(read(file).config).to.deep.equal(config);
    writeFileSync(join(folder, 'kms.json'), JSON.stringify({ ...good, default: 'hsm' }));
    expect(readKmsConfig(undefined, folder, SECRETS).config.default).to.equal('hsm');
    rmSync(join(folder, 'kms.json'));
  });

  const refused: [string, object, RegExp[]][] = [
    ['a provider of no known type', { providers: { a: { type: 'cloud' } } }, [/^KMS_CONFIG: providers\.a/]],
    ['a misspelt member', { ...good, tenant: {} }, [/^KMS_CONFIG: .*"tenant"/]],
    ['a misspelt member of a provider', { providers: { local: { ...LOCAL, onlyfor: [] } } }, [/onlyfor/]],
    [
      'a login without its secret',
      { providers: { house: { ...HOUSE, auth: { method: 'token' } } } },
      [/auth\.token/],
    ],
    ['an unknown login', { providers: { house: { ...HOUSE, auth: { method: 'ldap' } } } }, [/auth/]],
    ['an address that is none', { providers: { house: { ...HOUSE, address: 'vault' } } }, [/address/]],
    [
      'a password in an address',
      { providers: { house: { ...HOUSE, address: 'https://a:pw-in-address@v' } } },
      [/address.*without user/],
    ],
    [
      'a default that there is not',
      { ...good, default: 'housse' },
      [/default: there is no provider "housse"; did you mean "house"/],
    ],
    [
      'a tenant at a provider that there is not',
      { ...good, tenants: { acme: 'cellar' } },
      [/tenants\.acme: there is no provider "cellar"/],
    ],
    [
      'a tenant at a provider of others',
      { providers: { local: LOCAL, a: { ...LOCAL, onlyFor: ['x'] } }, tenants: { acme: 'a' } },
      [/tenants\.acme: the provider "a" is only for: x/],
    ],
    [
      'a default that is not for all',
      { default: 'a', providers: { a: { ...LOCAL, onlyFor: ['x'] } } },
      [/default: .*not for all/],
    ],
    ['a name that keys could not bear', { providers: { 'My Vault': LOCAL } }, [/providers/]],
    [
      'several faults at once',
      { default: 'x', providers: { a: { type: 'pkcs11' }, b: { ...HOUSE, timeoutSeconds: 0 } } },
      [/providers\.a\.library/, /providers\.a\.pin/, /providers\.b\.timeoutSeconds/],
    ],
  ];
  for (const [what, value, words] of refused) {
    it(`refuses ${what}`, () => {
      const { faults } = read(value);
      for (const word of words)
        expect(
          faults.some((fault) => word.test(fault)),
          faults.join('\n'),
        ).to.equal(true);
    });
  }

  it('names variables that are not set, and quotes no value of those that are', () => {
    expect(read(good, { HSM_PIN: 'x' }).faults).to.deep.equal([
      'KMS_CONFIG: providers.house.auth.secretId: the variable VAULT_SECRET_ID is not set',
    ]);
    const odd = {
      providers: {
        house: { ...HOUSE, address: from('VAULT_SECRET_ID'), mount: 5, auth: { method: from('HSM_PIN') } },
      },
    };
    const { faults } = read(odd);
    expect(faults.length).to.be.greaterThan(1);
    for (const secret of Object.values(SECRETS)) expect(faults.join('\n')).to.not.include(secret);
  });

  it('has its faults in the one message of the start, with those of other settings', () => {
    const settings = () =>
      readSettings({
        ...{ PORT: 'x', MASTER_SECRET: 'vault:cellar:vidimus', AUTH_CLIENT_ID: 'root' },
        ...{
          AUTH_CLIENT_SECRET: 'a secret of the root client',
          KMS_CONFIG: JSON.stringify({ providers: {} }),
        },
      });
    expect(settings)
      .to.throw(SettingsError)
      .with.property('message')
      .that.matches(/PORT[\s\S]*KMS_CONFIG: default: there is no provider "local"/);
  });

  it('has the provider of a master secret', () => {
    const withSecret = (MASTER_SECRET: string) =>
      readSettings({
        ...SECRETS,
        ...{ MASTER_SECRET, AUTH_CLIENT_ID: 'root', KMS_CONFIG: JSON.stringify(good) },
        AUTH_CLIENT_SECRET: 'a secret of the root client',
      });
    expect(withSecret('vault:house:vidimus').MASTER_SECRET).to.deep.equal(['vault:house:vidimus']);
    expect(withSecret('vault:house:vidimus:2,vault:house:vidimus').MASTER_SECRET).to.have.length(2);
    expect(() => withSecret('vault:cellar:vidimus')).to.throw('no provider "cellar" of type vault');
    expect(() => withSecret('vault:hsm:vidimus')).to.throw('no provider "hsm" of type vault');
    for (const odd of ['vault:', 'vault:house', 'vault:house:a/b', 'vault:house:vidimus:0']) {
      expect(() => withSecret(odd), odd).to.throw('vault:<provider>:<key>');
    }
  });
});
