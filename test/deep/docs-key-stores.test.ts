import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, delimiter, join } from 'node:path';
import { parseEnv } from 'node:util';
import { Pkcs10CertificateRequest } from '@peculiar/x509';
import { expect } from 'chai';
import { VaultKms } from '../../adapters/kms/vault/vault-kms.ts';
import { NodeRandom } from '../../adapters/system/random.ts';
import { readKmsConfig } from '../../config/kms-config.ts';
import { describeKmsConfig } from '../../tools/describe-kms-config.ts';
import { freePort } from '../demo/process.ts';
import { type NamedCodeBlock, namedCodeBlocks, Terminal } from '../support/docs-pages.ts';
import { type Cluster, startCluster } from '../support/kubernetes.ts';
import { describeWithOpenBao, makeTls, type OpenBao, startOpenBao, waitUntil } from '../support/openbao.ts';
import { hasSoftHsm, PIN, SoftHsm } from '../support/softhsm.ts';
import { certify, pem } from '../support/test-certificates.ts';

const PAGE = readFileSync(new URL('../../docs/reference/key-stores.md', import.meta.url), 'utf8');
const FRAMES = namedCodeBlocks(PAGE);
const TENANT_ROLES = ['clients:manage', 'issuance:manage', 'presentation:manage'];
const ORPHANED_KEY = 'acme.left-behind-0123456789.es256';

describe('the page about key stores', () => {
  it('describes every property of the configuration as the schema does', () => {
    const table = PAGE.split('<!-- kms -->')[1]?.split('<!-- /kms -->')[0]?.trim();
    expect(table).to.equal(describeKmsConfig());
  });

  it('shows a configuration that a service starts with', () => {
    const example = FRAMES.find(({ name }) => name === 'kms.json')?.text ?? '';
    const secrets = { VAULT_SECRET_ID: 'a secret id', HSM_PIN: PIN };
    const parsedConfig = readKmsConfig(example, '.', secrets);
    expect(parsedConfig.faults).to.deep.equal([]);
    expect([...parsedConfig.secrets].sort()).to.deep.equal(Object.keys(secrets).sort());
    // The example must contain every property without a default.
    const { hsm, house, local } = JSON.parse(example).providers;
    expect(Object.keys(parsedConfig.config.providers['hsm'] ?? {})).to.have.members(Object.keys(hsm));
    expect(Object.keys({ ...house, ...hsm, ...local })).to.include.members(
      Object.values(parsedConfig.config.providers).flatMap((provider) => Object.keys(provider)),
    );
  });

  it('installs pkcs11js as the message at the start says, since scripts of packages are not run by themselves', () => {
    const address = new URL('../../adapters/kms/pkcs11/cryptoki.ts', import.meta.url);
    const script = `import { registerHooks } from 'node:module';
      registerHooks({
        resolve(name, context, next) {
          if (name === 'pkcs11js') throw new Error('not there');
          return next(name, context);
        },
      });
      const { loadCryptoki } = await import(${JSON.stringify(address.href)});
      await loadCryptoki('any').catch(({ message }) => console.log(message));`;
    const output = execFileSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' });
    const commands = [...PAGE.matchAll(/^npm .*pkcs11js.*$/gm)].map(([line]) => line.replace(/@[\d.]+$/, ''));
    expect(commands).to.have.length(2);
    for (const command of commands) expect(output).to.include(`"${command}"`);
  });
});

/** Programs that the commands of the page need besides Vault and an HSM. */
function hasPrograms(): boolean {
  const missingPrograms = Object.entries({ curl: '--version', jq: '--version', openssl: 'version' }).flatMap(([name, version]) => {
    try {
      execFileSync(name, [version], { stdio: 'ignore' });
      return [];
    } catch {
      return [name];
    }
  });
  if (missingPrograms.length === 0) return true;
  if (process.env['CI'] === 'true') throw new Error(`install what docs/reference/key-stores.md uses: ${missingPrograms.join(' ')}`);
  console.log(`    skipped: the commands of docs/reference/key-stores.md (needs ${missingPrograms.join(' ')})`);
  return false;
}

type Answer = {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  readonly body: any;
};

describeWithOpenBao('the commands of the page about key stores', (binary) => {
  let bao: OpenBao;
  let hsm: SoftHsm;
  let cluster: Cluster;
  let terminal: Terminal;
  let folder: string | undefined;
  let address: string;
  let secrets: (name: string) => string;
  /** Access tokens become invalid when the master secret changes. */
  let tokens = new Map<string, string>();
  const clients = new Map<string, string>();
  const typedFrames = new Set<NamedCodeBlock>();

  before(async function () {
    if (!hasSoftHsm() || !hasPrograms()) return this.skip();
    const secretsFolder = mkdtempSync(join(tmpdir(), 'vidimus-docs-secrets-'));
    folder = secretsFolder;
    secrets = (name) => join(secretsFolder, name);
    const tls = makeTls(secretsFolder);
    bao = await startOpenBao(binary, tls);
    // The page starts with an empty Vault.
    await bao.call('DELETE', 'sys/mounts/transit');
    await bao.call('DELETE', 'sys/auth/approle');
    await bao.call('DELETE', 'sys/policies/acl/vidimus');
    cluster = await startCluster(tls);
    hsm = new SoftHsm();
    writeFileSync(secrets('hsm-pin'), PIN);
    writeFileSync(secrets('hsm-so-pin'), 'so-of-the-page');
    const programs = secrets('bin');
    mkdirSync(programs);
    symlinkSync(binary, join(programs, 'bao'));
    address = `http://localhost:${await freePort(createServer)}`;
    terminal = new Terminal({
      instead: {
        'https://vault.internal:8200': bao.address,
        'https://kubernetes.default.svc': cluster.address,
        '/etc/ssl/house.pem': tls.ca,
        '/etc/ssl/cluster.pem': tls.ca,
        '/usr/lib/softhsm/libsofthsm2.so': hsm.library,
        '/run/secrets': secretsFolder,
        'localhost:3000': new URL(address).host,
        ...(basename(binary) === 'vault' && { BAO_: 'VAULT_' }),
      },
      environment: {
        PATH: [programs, process.env['PATH']].join(delimiter),
        [basename(binary) === 'vault' ? 'VAULT_TOKEN' : 'BAO_TOKEN']: bao.rootToken,
        SOFTHSM2_CONF: process.env['SOFTHSM2_CONF'] ?? '',
      },
    });
  });
  after(async () => {
    await terminal?.close();
    await hsm?.stop();
    await cluster?.end();
    await bao?.stop();
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  });

  const storedSecrets = () => parseEnv(readFileSync(join(terminal.folder, 'data/secrets.env'), 'utf8'));
  const send = async (method: string, path: string, token?: string, json?: unknown): Promise<Answer> => {
    const answer = await fetch(address + path, {
      method,
      headers: { 'Content-Type': 'application/json', ...(token !== undefined && { Authorization: `Bearer ${token}` }) },
      ...(json !== undefined && { body: JSON.stringify(json) }),
    });
    const text = await answer.text();
    return { status: answer.status, headers: answer.headers, body: text === '' ? undefined : JSON.parse(text) };
  };
  const accessTokenFor = async (clientId: string) => {
    const cachedToken = tokens.get(clientId);
    if (cachedToken !== undefined) return cachedToken;
    const secret = clientId === 'root' ? storedSecrets()['AUTH_CLIENT_SECRET'] : clients.get(clientId);
    const login = { grant_type: 'client_credentials', client_id: clientId, client_secret: secret };
    const { status, body } = await send('POST', '/oauth2/token', undefined, login);
    expect(status, JSON.stringify(body)).to.equal(200);
    tokens.set(clientId, body.access_token);
    return body.access_token as string;
  };
  /** Calls the API as the administrator of a tenant or as the operator. */
  const call = async (tenant: string, method: string, path: string, json?: unknown) =>
    send(method, path, await accessTokenFor(path.startsWith('/tenant') ? 'root' : `${tenant}-admin`), json);
  const createTenant = async (json: { id: string }) => {
    const tenantResponse = await call(json.id, 'POST', '/tenant', json);
    expect(tenantResponse.status, JSON.stringify(tenantResponse.body)).to.equal(201);
    clients.set(`${json.id}-admin`, tenantResponse.body.clients[0].secret);
  };
  const listKeyChains = async (tenant: string) =>
    (await call(tenant, 'GET', '/key-chain')).body as {
      id: string;
      kmsProvider: string;
      rootCertificate: string;
      previousKeys: object[];
      externalKeyId: string;
    }[];
  const listProviders = async (tenant: string) => [...new Set((await listKeyChains(tenant)).map(({ kmsProvider }) => kmsProvider))];
  /** Signs with the key. @returns the status of the response. */
  const sign = async (tenant: string, id = 'signing') => {
    const { status, headers, body } = await call(tenant, 'POST', `/key-chain/${id}/csr`, {});
    if (status === 200) expect(await new Pkcs10CertificateRequest(body.csr).verify()).to.equal(true);
    return { status, retryAfter: headers.get('retry-after') };
  };
  const health = () => send('GET', '/health');
  /** The log is written with a delay. */
  const logged = (line: RegExp) => waitUntil(() => line.test(terminal.log));
  const keysInVault = async () => ((await bao.call('LIST', 'transit/keys')).body['data'] as { keys: string[] }).keys;

  const framesOfSection = (section: string) => FRAMES.filter((frame) => frame.section === section);
  /** Runs the commands of a section. @returns their output, limited to what the page shows. */
  async function typeSection(section: string): Promise<string> {
    let output = '';
    for (const frame of framesOfSection(section)) {
      const { name, language, text } = frame;
      if (language === 'sh') output = await type(text);
      if (language === 'text') for (const line of text.split('\n')) expect(output).to.include(line);
      if (name.endsWith('.json')) terminal.write(name, text);
      if (/^(POST|PATCH) /.test(name)) await request(name, text);
      if (name.startsWith('GET ')) {
        expect((await call('acme', 'GET', name.slice(4))).body).to.deep.equal(JSON.parse(text));
      }
      typedFrames.add(frame);
    }
    return output;
  }
  async function type(text: string): Promise<string> {
    const lines = text.split('\n');
    // The command would change the packages of the project. The HSM tests show that the package is installed.
    const typedText = lines.filter((line) => !/^npm .*pkcs11js/.test(line)).join('\n');
    const { code, stdout, stderr } = await terminal.type(typedText, address);
    expect(code, stdout + stderr).to.equal(0);
    if (typedText.endsWith('npm start')) tokens = new Map();
    return stdout;
  }
  async function request(name: string, text: string): Promise<void> {
    const [method = '', path = ''] = name.split(' ');
    if (path === '/tenant') return createTenant(JSON.parse(text));
    const answer = await call('acme', method, path, JSON.parse(text));
    expect(answer.status, `${name}: ${JSON.stringify(answer.body)}`).to.equal(200);
  }
  /** Logs in with the `auth` settings of a section. */
  async function testLogin(section: string, extraSettings: object = {}, secret: Record<string, string> = {}): Promise<void> {
    const auth = JSON.parse(framesOfSection(section).find(({ name }) => name === 'auth')?.text ?? '');
    const file = JSON.parse(readFileSync(join(terminal.folder, 'data/kms.json'), 'utf8'));
    file.providers.house.auth = { ...auth, ...extraSettings };
    const { config, faults } = readKmsConfig(JSON.stringify(file), '.', { VAULT_SECRET_ID: '-', ...secret });
    expect(faults).to.deep.equal([]);
    const settings = config.providers['house'];
    if (settings?.type !== 'vault') throw new Error('no Vault');
    const vault = new VaultKms({ name: 'house', settings, random: new NodeRandom() });
    try {
      await vault.assertReachable();
    } finally {
      await vault.close();
    }
  }

  it('lead to a tenant whose keys are in Vault', async () => {
    const vaultOutput = await typeSection('Vault or OpenBao');
    await createTenant({ id: 'acme', ...{ name: 'Acme', roles: TENANT_ROLES } });
    const { status, body } = await health();
    expect([status, body.status]).to.deep.equal([200, 'ok']);
    expect(body.info['key-providers']).to.deep.equal({ status: 'up' });
    expect(await listProviders('acme')).to.deep.equal(['local']);
    expect(await listProviders('bank')).to.deep.equal(['house']);
    const names = vaultOutput.match(/^bank\.[\w-]+\.es256$/gm) ?? [];
    expect(names).to.have.members(await keysInVault());
    const [name] = names;
    expect((await bao.call('GET', `transit/export/signing-key/${name}`)).status).to.equal(400);
    // A rotation inside Vault changes nothing.
    for (const each of names) await bao.call('POST', `transit/keys/${each}/rotate`);
    expect((await sign('bank')).status).to.equal(200);
  });

  it('log in by a service account or a token, and trust the CAs of the file', async () => {
    await typeSection('Login by Kubernetes');
    writeFileSync(secrets('account'), cluster.token);
    await testLogin('Login by Kubernetes', { tokenFile: secrets('account') });
    await typeSection('Login by a token');
    const HOUSE_TOKEN = readFileSync(secrets('vault-token'), 'utf8').trim();
    await testLogin('Login by a token', {}, { HOUSE_TOKEN });
  });

  it('lead to a tenant whose keys are in an HSM', async () => {
    await typeSection('HSM');
    expect((await health()).body.info['key-providers']).to.deep.equal({ status: 'up' });
    expect(await listProviders('mint')).to.deep.equal(['hsm']);
    expect((await sign('mint')).status).to.equal(200);
    const [{ externalKeyId } = { externalKeyId: '' }] = await listKeyChains('mint');
    expect(externalKeyId).to.match(/^[0-9a-f]{32}$/);
    const wrongPinKms = await hsm.open('other', 'vidimus', { pin: 'not the PIN' });
    const loginError = await wrongPinKms.assertReachable().then(
      () => '',
      (error: Error) => error.message,
    );
    expect(loginError).to.match(/PIN was rejected.*not retried; correct it and restart/);
  });

  it('show a tenant the providers that it may use, and its own', async () => {
    await typeSection('Which tenant uses what');
    expect(await listProviders('acme')).to.deep.equal(['local']);
  });

  it('move one key chain', async () => {
    const chainBefore = (await listKeyChains('acme')).find(({ id }) => id === 'signing');
    await typeSection('Move one key chain');
    const chainAfter = (await listKeyChains('acme')).find(({ id }) => id === 'signing');
    expect(chainAfter?.kmsProvider).to.equal('house');
    expect(chainAfter?.rootCertificate).to.equal(chainBefore?.rootCertificate);
    expect(chainAfter?.previousKeys).to.have.length(1);
    expect((await sign('acme')).status).to.equal(200);
  });

  it('move a tenant, and say what stays', async () => {
    await typeSection('Move a tenant');
    expect(await listProviders('acme')).to.deep.equal(['house']);
    const root = await certify({ name: 'Root', ca: true });
    const leaf = await certify({ name: 'Leaf', by: root });
    const importedChain = await call('bank', 'POST', '/key-chain/import', {
      id: 'certified',
      usages: ['signing'],
      key: leaf.privateKey.export({ format: 'pem', type: 'pkcs8' }),
      certificates: pem(leaf) + pem(root),
    });
    expect(importedChain.status, JSON.stringify(importedChain.body)).to.equal(201);
    const restoredChain = await terminal.type('npm run -s kms:migrate -- bank local', address);
    expect(restoredChain.code, restoredChain.stderr).to.equal(1);
    expect(restoredChain.stdout).to.match(/certified: stays where it is: .*come from an external authority/);
    expect(restoredChain.stdout).to.match(/signing: has a new key at local; the key of its authority cannot be exported/);
  });

  it('recover without an operator when Vault does not answer', async () => {
    await bao.seal();
    try {
      expect(await sign('acme')).to.deep.equal({ status: 503, retryAfter: '2' });
      expect((await sign('mint')).status).to.equal(200);
      expect((await sign('bank')).status).to.equal(200);
      await waitUntil(async () => (await health()).body.status === 'degraded');
      const { status, body } = await health();
      expect([status, body.error]).to.deep.equal([200, { 'key-providers': { status: 'down' } }]);
      const providers = (await call('acme', 'GET', '/key-chain/providers')).body as { status: string }[];
      expect(providers.map((provider) => provider.status)).to.deep.equal(['up', 'down']);
      await logged(/"dependency":"key-provider\/house".*it is sealed; unseal it/);
    } finally {
      await bao.unseal();
    }
    await waitUntil(async () => (await sign('acme')).status === 200);
  });

  it('find a key that was left behind', async () => {
    const keysBefore = await keysInVault();
    const brief = await call('acme', 'POST', '/key-chain', { id: 'brief', usageType: 'signing' });
    expect(brief.status).to.equal(201);
    expect(await keysInVault()).to.have.length(keysBefore.length + 2);
    expect((await call('acme', 'DELETE', '/key-chain/brief')).status).to.equal(200);
    expect(await keysInVault()).to.have.members(keysBefore);

    await call('acme', 'POST', '/key-chain', { id: 'edwards', usageType: 'signing', algorithm: 'EdDSA' });
    await bao.call('POST', `transit/keys/${ORPHANED_KEY}`, { type: 'ecdsa-p256' });
    // An unreadable response must not list keys: an operator would destroy all of them.
    await type('export TOKEN=none');
    expect(await typeSection('Deletion')).to.equal('');
    await type(`export TOKEN=${await accessTokenFor('acme-admin')}`);
    expect(await typeSection('Deletion')).to.equal(`${ORPHANED_KEY}\n`);
  });

  it('back up Vault; without the backup, a key chain can only be rotated', async () => {
    await typeSection('Backup and restore');
    expect(existsSync(join(terminal.folder, 'vault.snap'))).to.equal(true);
    const access = (await listKeyChains('acme')).find(({ id }) => id === 'access');
    const [name] = access?.externalKeyId.split('@') ?? [];
    await bao.call('POST', `transit/keys/${name}/config`, { deletion_allowed: true });
    await bao.call('DELETE', `transit/keys/${name}`);
    expect((await sign('acme', 'access')).status).to.equal(503);
    expect((await sign('acme')).status).to.equal(200);
    const rotationResponse = await call('acme', 'POST', '/key-chain/access/rotate', {});
    expect(rotationResponse.status, JSON.stringify(rotationResponse.body)).to.equal(200);
    expect((await sign('acme', 'access')).status).to.equal(200);
  });

  it('read the master secret from Vault, and rotate it', async () => {
    const formerToken = await accessTokenFor('acme-admin');
    await typeSection('The master secret in Vault');
    await logged(/data is sealed under former secrets; `npx vidimus reseal` \(in a clone `npm run reseal`\) reseals it/);
    expect((await send('GET', '/key-chain', formerToken)).status).to.equal(401);
    expect((await sign('acme')).status).to.equal(200);
    await typeSection('Rotate it');
    await logged(/"msg":"started"/);
    expect(terminal.log).to.not.include('former secrets');
    expect((await sign('acme')).status).to.equal(200);
    expect((await sign('mint')).status).to.equal(200);

    const login = { role_id: 'vidimus', secret_id: readFileSync(secrets('vault-secret-id'), 'utf8').trim() };
    const { body } = await bao.call('POST', 'auth/approle/login', login);
    const token = { 'X-Vault-Token': (body['auth'] as { client_token: string }).client_token };
    for (const [method, path] of [
      ['DELETE', 'transit/keys/vidimus'],
      ['POST', 'transit/keys/vidimus/config'],
      ['POST', 'transit/keys/vidimus/rotate'],
    ] as const) {
      expect((await bao.call(method, path, {}, token)).status, `${method} ${path}`).to.equal(403);
    }
    const olderVersion = 'env -u MASTER_SECRET JWT_SECRET=vault:house:vidimus:2 npm run -s audit:verify';
    expect((await terminal.type(olderVersion, address)).code, 'by its older name').to.equal(0);
    const derive = async () => (await bao.call('POST', 'transit/hmac/vidimus/sha2-512', { input: 'AAAA', key_version: 1 })).status;
    expect(await derive()).to.equal(200);
    for (const setting of ['min_decryption_version', 'min_encryption_version']) {
      await bao.call('POST', 'transit/keys/vidimus/config', { [setting]: 2 });
      expect(await derive(), setting).to.equal(400);
      await bao.call('POST', 'transit/keys/vidimus/config', { [setting]: 1 });
    }
  });

  it('were all of the page', () => {
    const commands = FRAMES.filter(({ language, name }) => language === 'sh' || /^[A-Z]+ /.test(name));
    expect(commands.filter((frame) => !typedFrames.has(frame))).to.deep.equal([]);
  });
});
