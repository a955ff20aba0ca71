import { appendFileSync, existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { collectRoutes } from '../../bootstrap/wiring/routes.ts';
import { describeLimits } from '../../tools/describe-limits.ts';
import { type NamedCodeBlock, namedCodeBlocks } from '../support/docs-pages.ts';
import { hasNginx } from '../support/nginx.ts';
import { findOpenBao, type OpenBao, startOpenBao } from '../support/openbao.ts';
import { OperatedMachine } from '../support/operated-machine.ts';
import { canDump, findServer, rawSql } from '../support/postgres-server.ts';
import { hasPrograms } from '../support/programs.ts';
import { type RabbitMq, startRabbitMq } from '../support/rabbitmq.ts';
import { TestRegistrar } from '../support/registrar.ts';
import { waitUntil } from '../support/standby.ts';
import { startTestService, type TestService } from '../support/test-service.ts';
import { CONFIDENTIAL_CLIENT, startUpstreamProvider, type UpstreamProvider } from '../support/upstream-provider.ts';

const PAGES = [
  'reference/operations.md',
  'guides/without-docker.md',
  'guides/several-machines.md',
  'guides/monitoring.md',
  'guides/backup-and-restore.md',
  'guides/upgrade.md',
  'guides/rotate-secrets.md',
  'guides/incidents.md',
];
const FRAMES = PAGES.flatMap((page) => namedCodeBlocks(readFileSync(new URL(`../../docs/${page}`, import.meta.url), 'utf8'))).filter(
  ({ language }) => language === 'sh',
);
/**
 * Sections that need other servers: the last suite of this file or docs-backup.test.ts runs them, or docs-commands.test.ts
 * checks their commands.
 */
const TESTED_ELSEWHERE = [
  ...['Identity provider client', 'RabbitMQ password', 'Vault login', 'HSM PIN'],
  ...['1. Install the package', 'From 0.2.0 or earlier on Kubernetes', 'The start refuses, and nothing is missing'],
];
const ADMINISTRATOR = `export TOKEN="$(token acme-admin "$ADMIN_SECRET")"`;
const ROLES = '"clients:manage","issuance:manage","issuance:offer","presentation:manage","registrar:manage"';

describe('the commands of the guides for operators', () => {
  const PROGRAMS = ['curl', 'jq', 'openssl', 'psql', 'pg_dump'];

  let machine: OperatedMachine;
  let registrar: TestRegistrar;
  let server: string;
  const typedFrames = new Set<NamedCodeBlock>();

  before(async function () {
    const databaseServer = await findServer();
    if (databaseServer === undefined || !hasNginx() || !hasPrograms('the guides for operators', PROGRAMS)) return this.skip();
    if (!(await canDump(databaseServer))) return this.skip();
    server = databaseServer;
    machine = await OperatedMachine.make(server);
    registrar = await TestRegistrar.start();
  });
  after(async () => {
    await machine?.remove();
    await registrar?.close();
  });

  const type = async (text: string): Promise<string> => {
    const { code, stdout, stderr } = await machine.type(text);
    expect(code, `${text}\n${stdout}${stderr}`).to.equal(0);
    return stdout.trim();
  };
  const framesOfSection = (section: string) => {
    const sectionFrames = FRAMES.filter((frame) => frame.section === section);
    expect(sectionFrames, section).to.not.deep.equal([]);
    return sectionFrames;
  };
  /** Runs the commands of a section. @returns the output of each block. */
  const typeSection = async (section: string, preparation = ''): Promise<readonly string[]> => {
    const outputs: string[] = [];
    for (const frame of framesOfSection(section)) {
      outputs.push(await type(`${preparation}\n${frame.text}`));
      typedFrames.add(frame);
    }
    return outputs;
  };
  const status = (token: string, path = '/tenant') =>
    type(`curl -sS -o /dev/null -w '%{http_code}' "$BASE${path}" -H "Authorization: Bearer ${token}"`);

  it('create the operator shell', async () => {
    const [script, functions, operator] = framesOfSection('Operator shell');
    if (script === undefined || functions === undefined || operator === undefined) throw new Error('three');
    await type(script.text);
    machine.functions = functions.text;
    for (const frame of [script, functions, operator]) typedFrames.add(frame);
  });

  it('lead to a service in production without faults', async () => {
    await typeSection('2. Create database, settings and secrets');
    // The registrar of this test is on this machine.
    appendFileSync(join(machine.folder, 'etc/settings.env'), 'OUTBOUND_ALLOW=127.0.0.1/32\n');
    await typeSection('3. Install the systemd unit');
    expect(existsSync(join(machine.folder, 'system/vidimus.service'))).to.equal(true);
    const [doctor] = await typeSection('5. Start');
    expect(doctor?.split('\n').at(-1)).to.include('0 faults');
    const [, , operator] = framesOfSection('Operator shell');
    await type(operator?.text ?? '');
    await type(`export ADMIN_SECRET="$(call POST /tenant '{"id":"acme","name":"Acme","roles":[${ROLES}]}' | jq -r '.clients[0].secret')"`);
    await type(`${ADMINISTRATOR}
call POST /client '{"clientId":"shop","roles":["issuance:offer"]}'
call POST /issuer/credentials '{"id":"badge","config":{"format":"dc+sd-jwt"},"vct":"urn:acme:badge:1","statusManagement":true,"claims":{"name":"Ada","personal_administrative_number":"1815-12-10"},"subjectClaims":[["personal_administrative_number"]]}'
call POST /issuer/offer '{"response_type":"uri","flow":"pre_authorized_code","credentialConfigurationIds":["badge"],"reference":"order-17"}'
call POST /registrar/config '${JSON.stringify(registrar.login())}'`);
  });

  it('print the size of tables, and make a backup that the doctor accepts', async () => {
    expect((await typeSection('Sizes')).join())
      .to.match(/sessions/)
      .and.to.match(/ kB/);
    const [output] = await typeSection('Make backups');
    expect(output).to.match(/backup/);
    expect(existsSync(join(machine.folder, 'backups/vidimus.dump'))).to.equal(true);
  });

  it('check a release after an upgrade, restart a process, and read its probes', async () => {
    const [doctorOutput] = await typeSection('3. Check');
    expect(doctorOutput)
      .to.include('0 faults')
      .and.to.match(/^_service=\d+:/m);
    await typeSection('3. Restart one after the other');
    const [probes] = await typeSection('Probes');
    expect(probes?.match(/^200$/gm)).to.have.length(2);
    expect(probes).to.match(/"history": \{\s+"status": "up"/);
  });

  it('rotate the master secret: access tokens end, everything opens', async () => {
    const formerSecret = machine.setting('MASTER_SECRET');
    await type(ADMINISTRATOR);
    const token = await type('echo "$TOKEN"');
    expect(await status(token, '/client')).to.equal('200');
    const [rotationOutput, droppedOutput] = await typeSection('Master secret');
    expect(rotationOutput).to.include('All data is sealed under the first secret');
    expect(droppedOutput).to.match(/^acme=\d+:/m);
    expect(machine.setting('MASTER_SECRET'))
      .to.match(/^[0-9a-f]{96}$/)
      .and.to.not.equal(formerSecret);
    expect(await status(token, '/client')).to.equal('401');
    await type(`${ADMINISTRATOR}\ncall GET /key-chain`);
  });

  it('rotate the secret of the operator', async () => {
    const formerSecret = machine.setting('AUTH_CLIENT_SECRET');
    const token = await type(`token operator '${formerSecret}'`);
    expect(await status(token)).to.equal('200');
    const [, output] = await typeSection('Operator secret');
    expect(output).to.match(/"created","tenant","acme"/);
    expect(await status(token), 'a token of before').to.equal('401');
    const rejection = await machine.type(`token operator '${formerSecret}'`);
    expect(rejection.stdout, 'the former secret').to.not.match(/^eyJ/);
  });

  it('rotate secrets of clients, of webhooks, of metrics, of the database', async () => {
    expect(await typeSection('Client secrets', ADMINISTRATOR)).to.satisfy(([text]: string[]) => text && text.length > 20);
    expect(await typeSection('Webhook secrets', ADMINISTRATOR)).to.satisfy(([text]: string[]) => /^whsec_/.test(text ?? ''));
    const metrics = machine.setting('METRICS_TOKEN');
    await typeSection('Metrics token');
    expect((await typeSection('1. Enable metrics')).join()).to.match(/^vidimus_info\{version=/);
    expect(await status(metrics ?? '', '/metrics')).to.equal('401');
    const passwordHash = () => rawSql(server, (run) => run(`select rolpassword from pg_authid where rolname = '${machine.name}'`));
    const [url, password] = [machine.setting('DATABASE_URL'), JSON.stringify(await passwordHash())];
    await typeSection('Database password');
    expect(machine.setting('DATABASE_URL')).to.not.equal(url);
    expect(JSON.stringify(await passwordHash())).to.not.equal(password);
  });

  it('reload the certificate of TLS, rotate keys, and change the login at a registrar', async () => {
    await typeSection('TLS certificate');
    expect((await typeSection('Tenant keys', ADMINISTRATOR)).join()).to.match(/"id":"signing","previousKeyExpiry":"\d{4}-/);
    registrar.password = 'another password of the account';
    machine.set('NEW_PASSWORD', registrar.password);
    expect(await typeSection('Registrar login', ADMINISTRATOR)).to.deep.equal(['true']);
    registrar.password = 'what nobody has told us';
    const [frame] = framesOfSection('Registrar login');
    const rejection = await machine.type(`${ADMINISTRATOR}\n${frame?.text}`);
    expect(rejection.stdout, 'a wrong one').to.equal('null\n');
  });

  it('compare clocks, follow a request, and name the source of a flood', async () => {
    const [clocks = ''] = await typeSection('Clocks');
    expect(clocks.split('\n')).to.have.length(2);
    const [line = ''] = await typeSection('Logs');
    expect(JSON.parse(line)).to.include({ msg: 'request', route: '/session', status: 401 });
    const [count, suspended, active] = await typeSection('Flooding tenant', `TOKEN="$(token operator "$(secret AUTH_CLIENT_SECRET)")"`);
    expect(count).to.match(/^\s*\d+ acme\tacme-admin\t\/\S+$/m);
    expect([suspended, active]).to.deep.equal(['suspended', 'active']);
  });

  it('set the end of a tenant, and cancel it', async () => {
    const operator = `TOKEN="$(token operator "$(secret AUTH_CLIENT_SECRET)")"`;
    const [end = ''] = await typeSection('Temporary tenant', operator);
    expect(new Date(end).getTime() - Date.now()).to.be.within(29.9 * 86_400_000, 30.1 * 86_400_000);
    const remainingTenant = await type(`${operator}\ncall PATCH /tenant/acme '{"endsAt":null}' | jq -r .endsAt`);
    expect(remainingTenant).to.equal('null');
  });

  it('end a client secret that leaked, with its tokens', async () => {
    const secret = await type(`${ADMINISTRATOR}\ncall POST /client/shop/rotate-secret | jq -r .secret`);
    const token = await type(`token shop '${secret}'`);
    expect(await status(token, '/session')).to.equal('200');
    const [newSecretOutput, leakOutput] = await typeSection('Leaked client secret', ADMINISTRATOR);
    expect(newSecretOutput).to.not.equal(secret);
    expect(leakOutput).to.match(/^\["[\w-]+","active"\]$/m);
    expect(await status(token, '/session')).to.equal('401');
  });

  it('retire a compromised key', async () => {
    const keys = () => type('curl -sS "$BASE/acme/.well-known/jwks.json" | jq -r ".keys[] | .x"');
    const keysBefore = (await keys()).split('\n');
    expect(await typeSection('Stolen signing key', ADMINISTRATOR)).to.deep.equal(['{"id":"signing","activeCertificate":true}']);
    expect((await keys()).split('\n')).to.not.include.members(keysBefore);
  });

  it('erase the data of a person', async () => {
    const sessions = () => type(`${ADMINISTRATOR}\ncall GET '/session?q=order-17' | jq length`);
    expect(await sessions()).to.equal('1');
    await typeSection('Erasure request', ADMINISTRATOR);
    expect(await sessions()).to.equal('0');
  });

  it('copy anchors of the audit log by the line for cron, and compare the log with them', async () => {
    const [line, anchorComparison] = framesOfSection('Anchors of the audit log');
    if (line === undefined || anchorComparison === undefined) throw new Error('two');
    await type(line.text);
    const [, command] = /^\S+ \S+ \* \* \* root (.+)$/m.exec(readFileSync(join(machine.folder, 'cron.d/vidimus-anchors'), 'utf8')) ?? [];
    await type(command ?? 'false');
    expect(readFileSync(join(machine.folder, 'far/anchors'), 'utf8')).to.match(/^acme=\d+:\S+$/m);
    await type(anchorComparison.text);
    await type(`sed -i 's/^acme=[0-9]*:/acme=7:/' ${join(machine.folder, 'backups/vidimus/anchors')}`);
    expect((await machine.type(anchorComparison.text)).code, 'another log').to.equal(1);
    for (const frame of [line, anchorComparison]) typedFrames.add(frame);
  });

  it('have all been typed', () => {
    const untypedFrames = FRAMES.filter((frame) => !typedFrames.has(frame) && !TESTED_ELSEWHERE.includes(frame.section));
    expect(untypedFrames.map(({ section, text }) => `${section}: ${text}`)).to.deep.equal([]);
  });
});

const commandsOf = (section: string) => FRAMES.flatMap((frame) => (frame.section === section ? [frame.text] : []));

describe('the commands that rotate secrets of other servers', () => {
  const PROGRAMS = ['curl', 'jq', 'openssl', 'psql'];

  let machine: OperatedMachine;
  let broker: RabbitMq | undefined;
  let vault: OpenBao | undefined;
  let provider: UpstreamProvider | undefined;

  before(async function () {
    const server = await findServer();
    if (server === undefined || !hasNginx() || !hasPrograms('the guides for operators', PROGRAMS)) return this.skip();
    machine = await OperatedMachine.make(server);
    const [script, functions] = commandsOf('Operator shell');
    const [setupCommands] = commandsOf('2. Create database, settings and secrets');
    await type(script);
    await type(setupCommands);
    machine.functions = functions ?? '';
  });
  after(async () => {
    await machine?.remove();
    await broker?.stop();
    await vault?.stop();
    await provider?.close();
  });

  const type = async (text = 'false'): Promise<string> => {
    const { code, stdout, stderr } = await machine.type(text);
    expect(code, `${text}\n${stdout}${stderr}`).to.equal(0);
    return stdout.trim();
  };
  const typeSection = async (section: string): Promise<string> => {
    const [text, ...furtherCommands] = commandsOf(section);
    expect(furtherCommands).to.deep.equal([]);
    return type(text);
  };
  const readHealthPart = (component: string) => type(`curl -sS "$BASE/health" | jq -r '.details["${component}"].status'`);
  const configure = (lines: string) => appendFileSync(join(machine.folder, 'etc/secrets.env'), `${lines}\n`);

  it('give the broker another password, and the service is let in with it alone', async function () {
    broker = await startRabbitMq();
    if (broker === undefined) return this.skip();
    for (const [name, value] of Object.entries(broker.environment)) {
      if (name !== 'PATH' && name !== 'HOME') machine.set(name, value);
    }
    const home = broker.environment['HOME'] ?? '';
    const [control = ''] = (broker.environment['PATH'] ?? '').split(':');
    machine.shim('rabbitmqctl', `HOME='${home}' exec ${control}/rabbitmqctl -q "$@"`);
    await broker.control('add_user', 'vidimus', 'the-former-password');
    await broker.control('set_permissions', 'vidimus', '^vidimus\\.', '^vidimus\\.', '^vidimus\\.');
    const { host } = new URL(broker.url);
    machine.instead.push(['amqps://', 'amqp://'], ['mq.acme.example:5671', host]);
    configure(`AMQP_URL=amqp://vidimus:the-former-password@${host}`);
    await type('systemctl start vidimus');
    await waitUntil(async () => (await readHealthPart('broker')) === 'up');
    await typeSection('RabbitMQ password');
    await waitUntil(async () => (await readHealthPart('broker')) === 'up');
    expect(machine.setting('AMQP_URL')).to.match(/^amqp:\/\/vidimus:[0-9a-f]{48}@/);
    const rejection = await broker.control('authenticate_user', 'vidimus', 'the-former-password').catch(() => 'refused');
    expect(rejection).to.equal('refused');
  });

  it('give the service another secret id of AppRole, and destroy the former', async function () {
    const binary = findOpenBao();
    if (binary === undefined) {
      console.log('    skipped: the login at Vault (needs OpenBao)');
      return this.skip();
    }
    vault = await startOpenBao(binary);
    const role = 'auth/approle/role/vidimus';
    await vault.call('POST', role, { token_policies: ['vidimus'] });
    await vault.call('POST', `${role}/role-id`, { role_id: 'vidimus' });
    const { data } = (await vault.call('POST', `${role}/secret-id`, {})).body as { data: { secret_id: string } };
    symlinkSync(binary, join(machine.folder, 'bin/bao'));
    machine.set('BAO_ADDR', vault.address);
    machine.set('BAO_TOKEN', vault.rootToken);
    configure(`VAULT_SECRET_ID=${data.secret_id}`);
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a placeholder of the configuration
    const auth = { method: 'approle', roleId: 'vidimus', secretId: '${VAULT_SECRET_ID}' };
    const vaultProvider = { type: 'vault', address: vault.address, auth };
    const providers = { local: { type: 'local' }, house: vaultProvider };
    writeFileSync(join(machine.folder, 'data/kms.json'), JSON.stringify({ providers }));
    await type('systemctl restart vidimus');
    expect(await readHealthPart('key-providers')).to.equal('up');
    expect(await typeSection('Vault login')).to.match(/^true$/m);
    expect(machine.setting('VAULT_SECRET_ID')).to.not.equal(data.secret_id);
    const login = { role_id: 'vidimus', secret_id: data.secret_id };
    expect((await vault.call('POST', 'auth/approle/login', login)).status, 'the former').to.equal(400);
    login.secret_id = machine.setting('VAULT_SECRET_ID') ?? '';
    expect((await vault.call('POST', 'auth/approle/login', login)).status, 'the present').to.equal(200);
  });

  it('give the service another secret at the identity provider', async () => {
    provider = await startUpstreamProvider({ clients: [] });
    await type('sed -i /^AUTH_CLIENT/d /etc/vidimus/secrets.env');
    // The provider of this test has no TLS, which production requires.
    configure(
      `NODE_ENV=development\nOIDC=${provider.issuer}\nOIDC_CLIENT_ID=${CONFIDENTIAL_CLIENT.clientId}\nOIDC_CLIENT_SECRET=the former secret`,
    );
    await type('systemctl restart vidimus');
    expect(await readHealthPart('identity-provider')).to.equal('down');
    machine.set('NEW_SECRET', CONFIDENTIAL_CLIENT.clientSecret);
    expect(await typeSection('Identity provider client')).to.equal('true');
  });
});

describe('the table of limits', () => {
  let service: TestService;
  before(async () => {
    service = await startTestService();
  });
  after(() => service.close());

  it('equals the generated table', async () => {
    const text = readFileSync(new URL('../../docs/reference/limits.md', import.meta.url), 'utf8');
    const [, table] = text.split(/<!-- \/?limits -->/);
    const document = (await service.call('GET', '/openapi.json')).body;
    const setupCommands = describeLimits(collectRoutes(service.service.container), document);
    expect(table?.trim(), '`npm run docs:limits` writes it anew').to.equal(setupCommands);
    for (const row of ['`POST /oauth2/token`', '`GET /session?limit`']) expect(setupCommands).to.include(row);
  });
});
