import { appendFileSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { framesOf } from '../support/docs-walk.ts';
import { hasPrograms } from '../support/has-programs.ts';
import { hasNginx } from '../support/nginx.ts';
import { findOpenBao, type OpenBao, startOpenBao } from '../support/openbao.ts';
import { OperatedMachine } from '../support/operated-machine.ts';
import { findServer } from '../support/postgres-server.ts';
import { type RabbitMq, startRabbitMq } from '../support/rabbitmq.ts';
import { until } from '../support/standby.ts';
import { CONFIDENTIAL, startUpstreamProvider, type UpstreamProvider } from '../support/upstream-provider.ts';

const PAGE = readFileSync(new URL('../../docs/operating.md', import.meta.url), 'utf8');
const PROGRAMS = ['curl', 'jq', 'openssl', 'psql'];
const commandsOf = (section: string) =>
  framesOf(PAGE).flatMap((frame) =>
    frame.language === 'sh' && frame.section === section ? [frame.text] : [],
  );

describe('the commands of the page for operators that exchange secrets of others', () => {
  let machine: OperatedMachine;
  let broker: RabbitMq | undefined;
  let vault: OpenBao | undefined;
  let provider: UpstreamProvider | undefined;

  before(async function () {
    const server = await findServer();
    if (server === undefined || !hasNginx() || !hasPrograms('docs/operating.md', PROGRAMS))
      return this.skip();
    machine = await OperatedMachine.make(server);
    const [script, functions] = commandsOf('What the commands need');
    const [made] = commandsOf('The first start in production');
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
    await until(async () => (await partOf('broker')) === 'up');
    await follow('The password of RabbitMQ');
    await until(async () => (await partOf('broker')) === 'up');
    expect(machine.setting('AMQP_URL')).to.match(/^amqp:\/\/vidimus:[0-9a-f]{48}@/);
    const refused = await broker
      .control('authenticate_user', 'vidimus', 'the-former-password')
      .catch(() => 'refused');
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
    const { data } = (await vault.call('POST', `${role}/secret-id`, {})).body as {
      data: { secret_id: string };
    };
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
    expect(await follow('The login at Vault')).to.match(/^true$/m);
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
      `NODE_ENV=development\nOIDC=${provider.issuer}\nOIDC_CLIENT_ID=${CONFIDENTIAL.clientId}\nOIDC_CLIENT_SECRET=the former secret`,
    );
    await type('systemctl restart vidimus');
    expect(await partOf('identity-provider')).to.equal('down');
    machine.set('NEW_SECRET', CONFIDENTIAL.clientSecret);
    expect(await follow('The client of the identity provider')).to.equal('true');
  });
});
