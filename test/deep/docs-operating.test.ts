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
/** Sections that need other servers: the last suite of this file or docs-backup.test.ts runs them, or docs-commands.test.ts looks up their names. */
const ELSEWHERE = [
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
  const done = new Set<NamedCodeBlock>();

  before(async function () {
    const found = await findServer();
    if (found === undefined || !hasNginx() || !hasPrograms('the guides for operators', PROGRAMS)) return this.skip();
    if (!(await canDump(found))) return this.skip();
    server = found;
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
  const framesIn = (section: string) => {
    const found = FRAMES.filter((frame) => frame.section === section);
    expect(found, section).to.not.deep.equal([]);
    return found;
  };
  /** Types the commands of a section. @returns the output of each block. */
  const follow = async (section: string, preparation = ''): Promise<readonly string[]> => {
    const written: string[] = [];
    for (const frame of framesIn(section)) {
      written.push(await type(`${preparation}\n${frame.text}`));
      done.add(frame);
    }
    return written;
  };
  const status = (token: string, path = '/tenant') =>
    type(`curl -sS -o /dev/null -w '%{http_code}' "$BASE${path}" -H "Authorization: Bearer ${token}"`);

  it('create the operator shell', async () => {
    const [script, functions, operator] = framesIn('Operator shell');
    if (script === undefined || functions === undefined || operator === undefined) throw new Error('three');
    await type(script.text);
    machine.functions = functions.text;
    for (const frame of [script, functions, operator]) done.add(frame);
  });

  it('lead to a service in production without faults', async () => {
    await follow('2. Create database, settings and secrets');
    // The registrar of this test is on this machine.
    appendFileSync(join(machine.folder, 'etc/settings.env'), 'OUTBOUND_ALLOW=127.0.0.1/32\n');
    await follow('3. Install the systemd unit');
    expect(existsSync(join(machine.folder, 'system/vidimus.service'))).to.equal(true);
    const [doctor] = await follow('5. Start');
    expect(doctor?.split('\n').at(-1)).to.include('0 faults');
    const [, , operator] = framesIn('Operator shell');
    await type(operator?.text ?? '');
    await type(`export ADMIN_SECRET="$(call POST /tenant '{"id":"acme","name":"Acme","roles":[${ROLES}]}' | jq -r '.clients[0].secret')"`);
    await type(`${ADMINISTRATOR}
call POST /client '{"clientId":"shop","roles":["issuance:offer"]}'
call POST /issuer/credentials '{"id":"badge","config":{"format":"dc+sd-jwt"},"vct":"urn:acme:badge:1","statusManagement":true,"claims":{"name":"Ada","personal_administrative_number":"1815-12-10"},"subjectClaims":[["personal_administrative_number"]]}'
call POST /issuer/offer '{"response_type":"uri","flow":"pre_authorized_code","credentialConfigurationIds":["badge"],"reference":"order-17"}'
call POST /registrar/config '${JSON.stringify(registrar.login())}'`);
  });

  it('print the size of tables, and make a backup that the doctor accepts', async () => {
    expect((await follow('Sizes')).join())
      .to.match(/sessions/)
      .and.to.match(/ kB/);
    const [said] = await follow('Make backups');
    expect(said).to.match(/backup/);
    expect(existsSync(join(machine.folder, 'backups/vidimus.dump'))).to.equal(true);
  });

  it('check a release after an upgrade, restart a process, and read its probes', async () => {
    const [looked] = await follow('3. Check');
    expect(looked)
      .to.include('0 faults')
      .and.to.match(/^_service=\d+:/m);
    await follow('3. Restart one after the other');
    const [probes] = await follow('Probes');
    expect(probes?.match(/^200$/gm)).to.have.length(2);
    expect(probes).to.match(/"history": \{\s+"status": "up"/);
  });

  it('rotate the master secret: access tokens end, everything opens', async () => {
    const former = machine.setting('MASTER_SECRET');
    await type(ADMINISTRATOR);
    const token = await type('echo "$TOKEN"');
    expect(await status(token, '/client')).to.equal('200');
    const [first, dropped] = await follow('Master secret');
    expect(first).to.include('All data is sealed under the first secret');
    expect(dropped).to.match(/^acme=\d+:/m);
    expect(machine.setting('MASTER_SECRET'))
      .to.match(/^[0-9a-f]{96}$/)
      .and.to.not.equal(former);
    expect(await status(token, '/client')).to.equal('401');
    await type(`${ADMINISTRATOR}\ncall GET /key-chain`);
  });

  it('rotate the secret of the operator', async () => {
    const former = machine.setting('AUTH_CLIENT_SECRET');
    const token = await type(`token operator '${former}'`);
    expect(await status(token)).to.equal('200');
    const [, said] = await follow('Operator secret');
    expect(said).to.match(/"created","tenant","acme"/);
    expect(await status(token), 'a token of before').to.equal('401');
    const refused = await machine.type(`token operator '${former}'`);
    expect(refused.stdout, 'the former secret').to.not.match(/^eyJ/);
  });

  it('rotate secrets of clients, of webhooks, of metrics, of the database', async () => {
    expect(await follow('Client secrets', ADMINISTRATOR)).to.satisfy(([text]: string[]) => text && text.length > 20);
    expect(await follow('Webhook secrets', ADMINISTRATOR)).to.satisfy(([text]: string[]) => /^whsec_/.test(text ?? ''));
    const metrics = machine.setting('METRICS_TOKEN');
    await follow('Metrics token');
    expect((await follow('1. Enable metrics')).join()).to.match(/^vidimus_info\{version=/);
    expect(await status(metrics ?? '', '/metrics')).to.equal('401');
    const stored = () => rawSql(server, (run) => run(`select rolpassword from pg_authid where rolname = '${machine.name}'`));
    const [url, password] = [machine.setting('DATABASE_URL'), JSON.stringify(await stored())];
    await follow('Database password');
    expect(machine.setting('DATABASE_URL')).to.not.equal(url);
    expect(JSON.stringify(await stored())).to.not.equal(password);
  });

  it('reload the certificate of TLS, rotate keys, and change the login at a registrar', async () => {
    await follow('TLS certificate');
    expect((await follow('Tenant keys', ADMINISTRATOR)).join()).to.match(/"id":"signing","previousKeyExpiry":"\d{4}-/);
    registrar.password = 'another password of the account';
    machine.set('NEW_PASSWORD', registrar.password);
    expect(await follow('Registrar login', ADMINISTRATOR)).to.deep.equal(['true']);
    registrar.password = 'what nobody has told us';
    const [frame] = framesIn('Registrar login');
    const refused = await machine.type(`${ADMINISTRATOR}\n${frame?.text}`);
    expect(refused.stdout, 'a wrong one').to.equal('null\n');
  });

  it('compare clocks, follow a request, and name the source of a flood', async () => {
    const [clocks = ''] = await follow('Clocks');
    expect(clocks.split('\n')).to.have.length(2);
    const [line = ''] = await follow('Logs');
    expect(JSON.parse(line)).to.include({ msg: 'request', route: '/session', status: 401 });
    const [count, suspended, active] = await follow('Flooding tenant', `TOKEN="$(token operator "$(secret AUTH_CLIENT_SECRET)")"`);
    expect(count).to.match(/^\s*\d+ acme\tacme-admin\t\/\S+$/m);
    expect([suspended, active]).to.deep.equal(['suspended', 'active']);
  });

  it('set the end of a tenant, and cancel it', async () => {
    const operator = `TOKEN="$(token operator "$(secret AUTH_CLIENT_SECRET)")"`;
    const [end = ''] = await follow('Temporary tenant', operator);
    expect(new Date(end).getTime() - Date.now()).to.be.within(29.9 * 86_400_000, 30.1 * 86_400_000);
    const stays = await type(`${operator}\ncall PATCH /tenant/acme '{"endsAt":null}' | jq -r .endsAt`);
    expect(stays).to.equal('null');
  });

  it('end a client secret that leaked, with its tokens', async () => {
    const secret = await type(`${ADMINISTRATOR}\ncall POST /client/shop/rotate-secret | jq -r .secret`);
    const token = await type(`token shop '${secret}'`);
    expect(await status(token, '/session')).to.equal('200');
    const [fresh, found] = await follow('Leaked client secret', ADMINISTRATOR);
    expect(fresh).to.not.equal(secret);
    expect(found).to.match(/^\["[\w-]+","active"\]$/m);
    expect(await status(token, '/session')).to.equal('401');
  });

  it('take a compromised key out of use', async () => {
    const keys = () => type('curl -sS "$BASE/acme/.well-known/jwks.json" | jq -r ".keys[] | .x"');
    const before = (await keys()).split('\n');
    expect(await follow('Stolen signing key', ADMINISTRATOR)).to.deep.equal(['{"id":"signing","activeCertificate":true}']);
    expect((await keys()).split('\n')).to.not.include.members(before);
  });

  it('erase the data of a person', async () => {
    const sessions = () => type(`${ADMINISTRATOR}\ncall GET '/session?q=order-17' | jq length`);
    expect(await sessions()).to.equal('1');
    await follow('Erasure request', ADMINISTRATOR);
    expect(await sessions()).to.equal('0');
  });

  it('copy anchors of the audit log by the line for cron, and compare the log with them', async () => {
    const [line, held] = framesIn('Anchors of the audit log');
    if (line === undefined || held === undefined) throw new Error('two');
    await type(line.text);
    const [, command] = /^\S+ \S+ \* \* \* root (.+)$/m.exec(readFileSync(join(machine.folder, 'cron.d/vidimus-anchors'), 'utf8')) ?? [];
    await type(command ?? 'false');
    expect(readFileSync(join(machine.folder, 'far/anchors'), 'utf8')).to.match(/^acme=\d+:\S+$/m);
    await type(held.text);
    await type(`sed -i 's/^acme=[0-9]*:/acme=7:/' ${join(machine.folder, 'backups/vidimus/anchors')}`);
    expect((await machine.type(held.text)).code, 'another log').to.equal(1);
    for (const frame of [line, held]) done.add(frame);
  });

  it('have all been typed', () => {
    const left = FRAMES.filter((frame) => !done.has(frame) && !ELSEWHERE.includes(frame.section));
    expect(left.map(({ section, text }) => `${section}: ${text}`)).to.deep.equal([]);
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
    const [made] = commandsOf('2. Create database, settings and secrets');
    await type(script);
    await type(made);
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
  const follow = async (section: string): Promise<string> => {
    const [text, ...more] = commandsOf(section);
    expect(more).to.deep.equal([]);
    return type(text);
  };
  const partOf = (part: string) => type(`curl -sS "$BASE/health" | jq -r '.details["${part}"].status'`);
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
    await waitUntil(async () => (await partOf('broker')) === 'up');
    await follow('RabbitMQ password');
    await waitUntil(async () => (await partOf('broker')) === 'up');
    expect(machine.setting('AMQP_URL')).to.match(/^amqp:\/\/vidimus:[0-9a-f]{48}@/);
    const refused = await broker.control('authenticate_user', 'vidimus', 'the-former-password').catch(() => 'refused');
    expect(refused).to.equal('refused');
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
    const house = { type: 'vault', address: vault.address, auth };
    const providers = { local: { type: 'local' }, house };
    writeFileSync(join(machine.folder, 'data/kms.json'), JSON.stringify({ providers }));
    await type('systemctl restart vidimus');
    expect(await partOf('key-providers')).to.equal('up');
    expect(await follow('Vault login')).to.match(/^true$/m);
    expect(machine.setting('VAULT_SECRET_ID')).to.not.equal(data.secret_id);
    const login = { role_id: 'vidimus', secret_id: data.secret_id };
    expect((await vault.call('POST', 'auth/approle/login', login)).status, 'the former').to.equal(400);
    login.secret_id = machine.setting('VAULT_SECRET_ID') ?? '';
    expect((await vault.call('POST', 'auth/approle/login', login)).status, 'the present').to.equal(200);
  });

  it('give the service another secret at the identity provider', async () => {
    provider = await startUpstreamProvider({ clients: [] });
    await type('sed -i /^AUTH_CLIENT/d /etc/vidimus/secrets.env');
    // That of this test has no TLS, which production asks for.
    configure(
      `NODE_ENV=development\nOIDC=${provider.issuer}\nOIDC_CLIENT_ID=${CONFIDENTIAL_CLIENT.clientId}\nOIDC_CLIENT_SECRET=the former secret`,
    );
    await type('systemctl restart vidimus');
    expect(await partOf('identity-provider')).to.equal('down');
    machine.set('NEW_SECRET', CONFIDENTIAL_CLIENT.clientSecret);
    expect(await follow('Identity provider client')).to.equal('true');
  });
});

describe('the table of limits', () => {
  let service: TestService;
  before(async () => {
    service = await startTestService();
  });
  after(() => service.close());

  it('is the one that the code makes', async () => {
    const text = readFileSync(new URL('../../docs/reference/limits.md', import.meta.url), 'utf8');
    const [, table] = text.split(/<!-- \/?limits -->/);
    const document = (await service.call('GET', '/openapi.json')).body;
    const made = describeLimits(collectRoutes(service.service.container), document);
    expect(table?.trim(), '`npm run docs:limits` writes it anew').to.equal(made);
    for (const row of ['`POST /oauth2/token`', '`GET /session?limit`']) expect(made).to.include(row);
  });
});
