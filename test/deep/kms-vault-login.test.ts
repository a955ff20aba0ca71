import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import sinon from 'sinon';
import { VaultKms } from '../../adapters/kms/vault/vault-kms.ts';
import type { VaultSettings } from '../../adapters/kms/vault/vault-settings.ts';
import { NodeRandom } from '../../adapters/system/random.ts';
import type { VaultSettings as ConfiguredVault } from '../../config/kms-config.ts';
import { type StoredKey, signingKey } from '../../domain/keys/signing-key.ts';
import { Failure } from '../../domain/shared/failure.ts';
import { failing, isSignedBy } from '../contract/kms-provider.suite.ts';
import {
  describeWithOpenBao,
  type OpenBao,
  type OpenBaoProxy,
  POLICY,
  startOpenBao,
  startOpenBaoProxy,
  waitUntil,
} from '../support/openbao.ts';

/** The settings type of the configuration is that of the provider. */
const _configured = (settings: ConfiguredVault): VaultSettings => settings;

const LOGIN = 'POST auth/approle/login';
const LOOKUP = 'GET auth/token/lookup-self';
const RENEWAL = 'POST auth/token/renew-self';

describeWithOpenBao('Vault login', (binary) => {
  let bao: OpenBao;
  let front: OpenBaoProxy;
  let folder: string;
  let key: StoredKey;
  const openProviders: VaultKms[] = [];
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'vidimus-vault-'));
    bao = await startOpenBao(binary);
    front = await startOpenBaoProxy(bao.address);
    key = await (await provider()).generate('acme', 'ES256');
  });
  beforeEach(() => {
    front.play(() => undefined);
    front.takeCalls();
  });
  afterEach(async () => {
    sinon.restore();
    await Promise.all(openProviders.splice(0).map((one) => one.close()));
  });
  after(async () => {
    await front?.end();
    await bao?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  async function provider(settings: Partial<VaultSettings> = {}): Promise<VaultKms> {
    const providerSettings = await bao.settings({ address: front.address, ...settings });
    const kms = new VaultKms({ name: 'house', settings: providerSettings, random: new NodeRandom() });
    openProviders.push(kms);
    return kms;
  }
  const sign = (vault: VaultKms) => vault.sign(signingKey('acme', key), 'data');
  const signing = () => `POST sign/${key.handle.keyId.replace(/@.*/, '')}/sha2-256`;
  const expectSigns = async (vault: VaultKms) => expect(isSignedBy(key.publicJwk, 'data', await sign(vault))).to.equal(true);
  const count = (call: string, calls: readonly string[]) => calls.filter((one) => one === call).length;
  /** The token of the last call. */
  const lastToken = () => String(front.calls.at(-1)?.headers['x-vault-token']);
  const revoke = (token: string) => bao.call('POST', 'auth/token/revoke', { token });

  function expectUnavailable(error: unknown, reason: RegExp): void {
    expect(error).to.be.instanceOf(Failure).with.property('code', 'unavailable');
    expect(((error as Failure).cause as Error).message).to.match(reason);
  }

  it('makes no call before a key is needed', async () => {
    await provider({ auth: await bao.appRole() });
    expect(front.takeCalls()).to.deep.equal([]);
  });

  it('accepts a token', async () => {
    const vault = await provider();
    await expectSigns(vault);
    await expectSigns(vault);
    expect(front.takeCalls()).to.deep.equal([LOOKUP, signing(), signing()]);
  });

  it('accepts a token without expiry', async () => {
    const vault = await provider({ auth: { method: 'token', token: bao.rootToken } });
    await expectSigns(vault);
  });

  it('accepts an AppRole, at any mount', async () => {
    await expectSigns(await provider({ auth: await bao.appRole() }));
    expect(front.takeCalls()).to.deep.equal([LOGIN, signing()]);
    await bao.call('POST', 'sys/auth/teams/blue', { type: 'approle' });
    const appRole = 'auth/teams/blue/role/vidimus';
    await bao.call('POST', appRole, { token_policies: ['vidimus'] });
    const id = await bao.call('GET', `${appRole}/role-id`);
    const secret = await bao.call('POST', `${appRole}/secret-id`, {});
    const auth = {
      method: 'approle',
      mount: 'teams/blue',
      roleId: (id.body['data'] as { role_id: string }).role_id,
      secretId: (secret.body['data'] as { secret_id: string }).secret_id,
    } as const;
    await expectSigns(await provider({ auth }));
  });

  it('logs in once for all first callers', async () => {
    const vault = await provider({ auth: await bao.appRole() });
    await Promise.all(Array.from({ length: 20 }, () => vault.generate('acme', 'ES256')));
    expect(count(LOGIN, front.takeCalls())).to.equal(1);
  });

  // A real login of this kind needs a cluster that verifies the account. The proxy answers that one call with a token of
  // the real server and forwards all others.
  it('accepts a Kubernetes service account, and reads its file at each login', async () => {
    const tokenFile = join(folder, 'serviceaccount');
    const expectedLogin = { role: 'vidimus', jwt: 'first' };
    front.play(async ({ method, path, body, headers }) => {
      if (`${method} ${path}` !== 'POST auth/clusters/one/login') return undefined;
      if (headers['x-vault-token'] !== undefined || body !== JSON.stringify(expectedLogin)) {
        return { status: 403, body: { errors: ['permission denied'] } };
      }
      const auth = { client_token: await bao.token(), lease_duration: 3600, renewable: true };
      return { status: 200, body: { auth } };
    });
    const auth = { method: 'kubernetes', mount: 'clusters/one', role: 'vidimus', tokenFile } as const;
    const vault = await provider({ auth });
    expectUnavailable(await failing(() => sign(vault)), /service account.*cannot be read.*ENOENT/);
    writeFileSync(tokenFile, 'first\n');
    await expectSigns(vault);
    writeFileSync(tokenFile, 'second');
    expectedLogin.jwt = 'second';
    await revoke(lastToken());
    await expectSigns(vault);
    expectedLogin.jwt = 'third';
    await revoke(lastToken());
    expectUnavailable(await failing(() => sign(vault)), /login by kubernetes was rejected.*service account/);
  });

  it('works in a namespace', async () => {
    const namespaceHeaders = { 'X-Vault-Namespace': 'id' };
    await bao.call('POST', 'sys/namespaces/id', {});
    await bao.call('POST', 'sys/mounts/transit', { type: 'transit' }, namespaceHeaders);
    await bao.call('POST', 'sys/policies/acl/vidimus', { policy: POLICY }, namespaceHeaders);
    const { body } = await bao.call('POST', 'auth/token/create', { policies: ['vidimus'] }, namespaceHeaders);
    const auth = { method: 'token', token: (body['auth'] as { client_token: string }).client_token } as const;
    const callCount = front.calls.length;
    const vault = await provider({ auth, namespace: 'id' });
    const key = await vault.generate('acme', 'ES256');
    const signature = await vault.sign(signingKey('acme', key), 'data');
    expect(isSignedBy(key.publicJwk, 'data', signature)).to.equal(true);
    const namespaces = front.calls.slice(callCount).map(({ headers }) => headers['x-vault-namespace']);
    expect(new Set(namespaces)).to.deep.equal(new Set(['id']));
    const outsideProvider = await provider();
    expectUnavailable(await failing(() => outsideProvider.sign(signingKey('acme', key), 'data')), /not found/);
  });

  describe('renews a token', () => {
    const shortLived = { token_ttl: '2s', token_max_ttl: '1h' };
    type RenewalScene = {
      readonly front: OpenBaoProxy;
      readonly provider: (settings?: Partial<VaultSettings>) => Promise<VaultKms>;
      /** Number of calls of one kind so far. */
      readonly seen: (call: string) => number;
      readonly lastToken: () => string;
    };
    const renewalScenes: Record<string, (renewalScene: RenewalScene) => Promise<void>> = {
      async 'before it ends'(renewalScene) {
        const vault = await renewalScene.provider({ auth: await bao.appRole(shortLived) });
        await expectSigns(vault);
        const token = renewalScene.lastToken();
        await waitUntil(() => renewalScene.seen(RENEWAL) === 2);
        await expectSigns(vault);
        expect(renewalScene.lastToken()).to.equal(token);
        expect(renewalScene.seen(LOGIN)).to.equal(1);
      },
      async 'from the configuration, though nothing is called meanwhile'(renewalScene) {
        const auth = { method: 'token', token: await bao.token({ ttl: '2s' }) } as const;
        const vault = await renewalScene.provider({ auth });
        await vault.assertReachable();
        await waitUntil(() => renewalScene.seen(RENEWAL) === 2);
        await expectSigns(vault);
      },
      async 'by another one when it cannot live on'(renewalScene) {
        const auth = await bao.appRole({ token_ttl: '4s', token_max_ttl: '5s' });
        const vault = await renewalScene.provider({ auth });
        await expectSigns(vault);
        await waitUntil(() => renewalScene.seen(LOGIN) === 2);
        // The token is not renewed repeatedly for ever shorter periods.
        expect(renewalScene.seen(RENEWAL)).to.equal(1);
        await expectSigns(vault);
        expect(renewalScene.seen(LOOKUP)).to.equal(0);
      },
      async 'by another one when it is of a kind that cannot be renewed'(renewalScene) {
        const vault = await renewalScene.provider({ auth: await bao.appRole({ token_ttl: '2s', token_type: 'batch' }) });
        await expectSigns(vault);
        await waitUntil(() => renewalScene.seen(LOGIN) === 2);
        await expectSigns(vault);
        expect(renewalScene.seen(RENEWAL)).to.equal(0);
      },
      async 'again when that failed, as long as there is time'(renewalScene) {
        const auth = await bao.appRole({ token_ttl: '5s', token_max_ttl: '1h' });
        const vault = await renewalScene.provider({ auth });
        await expectSigns(vault);
        const token = renewalScene.lastToken();
        renewalScene.front.play(({ path }) => (path.endsWith('renew-self') && renewalScene.seen(RENEWAL) === 1 ? 'cut' : undefined));
        await waitUntil(() => renewalScene.seen(RENEWAL) === 2);
        await expectSigns(vault);
        expect([renewalScene.lastToken(), renewalScene.seen(LOGIN)]).to.deep.equal([token, 1]);
      },
      async 'no more once it is closed'(renewalScene) {
        const vault = await renewalScene.provider({ auth: await bao.appRole(shortLived) });
        await expectSigns(vault);
        await vault.close();
        const otherVault = await renewalScene.provider({ auth: await bao.appRole(shortLived) });
        await expectSigns(otherVault);
        const token = renewalScene.lastToken();
        await waitUntil(() => renewalScene.seen(RENEWAL) === 1);
        expect(renewalScene.lastToken()).to.equal(token);
        expect(await failing(() => sign(vault))).to.be.instanceOf(Error);
      },
    };
    // The scenes mostly wait, so all run concurrently.
    const played = new Map<string, Promise<void>>();
    before(() => {
      for (const [name, renewalScene] of Object.entries(renewalScenes)) {
        const outcome = playScene(renewalScene);
        outcome.catch(() => {});
        played.set(name, outcome);
      }
    });
    for (const name of Object.keys(renewalScenes)) it(name, () => played.get(name));

    async function playScene(renewalScene: (renewalScene: RenewalScene) => Promise<void>): Promise<void> {
      const proxy = await startOpenBaoProxy(bao.address);
      const createdProviders: VaultKms[] = [];
      try {
        await renewalScene({
          front: proxy,
          async provider(settings = {}) {
            const providerSettings = await bao.settings({ address: proxy.address, ...settings });
            const vault = new VaultKms({ name: 'house', settings: providerSettings, random: new NodeRandom() });
            createdProviders.push(vault);
            return vault;
          },
          seen: (call) => proxy.calls.filter(({ method, path }) => `${method} ${path}` === call).length,
          lastToken: () => String(proxy.calls.at(-1)?.headers['x-vault-token']),
        });
      } finally {
        await Promise.all(createdProviders.map((one) => one.close()));
        await proxy.end();
      }
    }
  });

  describe('with a token that is rejected', () => {
    it('logs in again, once for all callers, and repeats the calls', async () => {
      const vault = await provider({ auth: await bao.appRole() });
      await expectSigns(vault);
      await revoke(lastToken());
      front.takeCalls();
      await expectSigns(vault);
      expect(front.takeCalls()).to.deep.equal([signing(), LOOKUP, LOGIN, signing()]);

      await revoke(lastToken());
      const generatedKeys = await Promise.all(Array.from({ length: 10 }, () => vault.generate('acme', 'ES256')));
      expect(generatedKeys).to.have.length(10);
      expect(count(LOGIN, front.takeCalls())).to.equal(1);
    });

    it('is unavailable when the new login is rejected, and counts that as a failure', async () => {
      const auth = await bao.appRole();
      const vault = await provider({ auth });
      await expectSigns(vault);
      await revoke(lastToken());
      const roles = (await bao.call('GET', 'auth/approle/role?list=true')).body['data'] as { keys: string[] };
      const { secretId: secret_id } = auth;
      for (const appRole of roles.keys) {
        await bao.call('POST', `auth/approle/role/${appRole}/secret-id/destroy`, { secret_id });
      }
      for (let i = 0; i < 5; i++) {
        const error = await failing(() => sign(vault));
        expectUnavailable(error, /login by approle was rejected.*check "roleId" and "secretId"/);
      }
      front.takeCalls();
      expectUnavailable(await failing(() => sign(vault)), /several times in a row/);
      expect(front.takeCalls()).to.deep.equal([]);
    });

    it('reports that a new token is required when the token is configured', async () => {
      const token = await bao.token();
      const vault = await provider({ auth: { method: 'token', token } });
      await expectSigns(vault);
      await revoke(token);
      expectUnavailable(await failing(() => sign(vault)), /login by token was rejected.*set a new token/);
    });

    it('limits the rate of logins when no new token is accepted, also without the right to look up its token', async () => {
      const auth = await bao.appRole({ token_no_default_policy: true, token_policies: ['closed'] });
      const vault = await provider({ auth });
      for (let i = 0; i < 12; i++) expectUnavailable(await failing(() => sign(vault)), /permission denied/);
      expect(count(LOGIN, front.takeCalls())).to.equal(2);
    });
  });

  describe('and its environment', () => {
    it('ignores the environment variables of Vault’s own tools, and a proxy', async () => {
      const auth = await bao.appRole();
      const unusedAddress = 'http://127.0.0.1:9';
      const variables = {
        VAULT_ADDR: unusedAddress,
        VAULT_TOKEN: 'of somebody else',
        VAULT_NAMESPACE: 'elsewhere',
        VAULT_PREFIX: '/elsewhere',
        HTTP_PROXY: unusedAddress,
        http_proxy: unusedAddress,
      };
      const formerValues = Object.keys(variables).map((name) => [name, process.env[name]] as const);
      Object.assign(process.env, variables);
      try {
        const callCount = front.calls.length;
        await expectSigns(await provider({ auth }));
        const [login] = front.calls.slice(callCount);
        expect(login?.path).to.equal('auth/approle/login');
        expect(login?.headers).to.not.have.any.keys('x-vault-token', 'x-vault-namespace');
      } finally {
        for (const [name, value] of formerValues) {
          if (value === undefined) delete process.env[name];
          else process.env[name] = value;
        }
      }
    });

    it('prints no sent data, for any value of DEBUG', async () => {
      const debug = createRequire(createRequire(import.meta.url).resolve('node-vault'))('debug') as {
        enable(names: string): void;
        disable(): void;
      };
      const logOutput = sinon.stub(process.stderr, 'write').returns(true);
      debug.enable('*vault*');
      try {
        await expectSigns(await provider({ auth: await bao.appRole() }));
      } finally {
        debug.disable();
      }
      const { args } = logOutput;
      logOutput.restore();
      expect(args.flat().join('')).to.not.match(/secret_id|hvs|vault/i);
    });

    it('follows no redirect', async () => {
      const otherProxy = await startOpenBaoProxy(bao.address);
      try {
        front.play(({ path }) => ({ status: 307, body: '', headers: { location: `${otherProxy.address}/v1/${path}` } }));
        const vault = await provider();
        expectUnavailable(await failing(() => sign(vault)), /redirect \(307\).*"address"/);
        expect(otherProxy.takeCalls()).to.deep.equal([]);
      } finally {
        await otherProxy.end();
      }
    });
  });

  describe('by TLS', () => {
    let tlsBao: OpenBao;
    const file = (name: string) => join(folder, name);
    before(async () => {
      makeCertificates(folder);
      const tls = { certificate: file('server.pem'), key: file('server.key'), ca: file('ca.pem') };
      tlsBao = await startOpenBao(binary, tls);
    });
    after(() => tlsBao?.stop());

    async function overTls(settings: Partial<VaultSettings>): Promise<VaultKms> {
      const providerSettings = await tlsBao.settings(settings);
      const kms = new VaultKms({ name: 'house', settings: providerSettings, random: new NodeRandom() });
      openProviders.push(kms);
      return kms;
    }
    const outcome = async (settings: Partial<VaultSettings>) => {
      const vault = await overTls(settings);
      return (await failing(() => vault.assertReachable())) as Error | undefined;
    };

    it('trusts the CAs of the configured file', async () => {
      const vault = await overTls({ ca: file('ca.pem') });
      const key = await vault.generate('acme', 'ES256');
      const signature = await vault.sign(signingKey('acme', key), 'data');
      expect(isSignedBy(key.publicJwk, 'data', signature)).to.equal(true);
    });

    it('trusts no other certificate, for any value of VAULT_SKIP_VERIFY', async () => {
      process.env['VAULT_SKIP_VERIFY'] = 'true';
      try {
        expect((await outcome({}))?.message).to.match(/certificate is not trusted.*"ca"/);
        expect((await outcome({ ca: file('other.pem') }))?.message).to.match(/certificate is not trusted.*"ca"/);
      } finally {
        delete process.env['VAULT_SKIP_VERIFY'];
      }
    });

    it('requires the host name in the certificate', async () => {
      const address = tlsBao.address.replace('127.0.0.1', 'localhost');
      expect((await outcome({ ca: file('ca.pem'), address }))?.message).to.match(/not for the name in/);
    });

    it('reports the fault of the file, and accepts it as soon as it is corrected', async () => {
      const vault = await overTls({ ca: file('later.pem') });
      const error = (await failing(() => vault.assertReachable())) as Error;
      expect(error.message).to.match(/later\.pem of "ca" cannot be read \(ENOENT\)/);
      execFileSync('cp', [file('ca.pem'), file('later.pem')]);
      await vault.assertReachable();
    });

    it('reports TLS for an http address, and plain HTTP for an https address', async () => {
      const plainAddress = tlsBao.address.replace('https', 'http');
      expect((await outcome({ address: plainAddress }))?.message).to.match(/not Vault: it answered 400/);
      const tls = bao.address.replace('http', 'https');
      expect((await outcome({ address: tls }))?.message).to.match(/TLS fails.*served by https/);
    });
  });
});

/** Creates a CA, its certificate for 127.0.0.1, and another CA. */
function makeCertificates(folder: string): void {
  const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: folder, stdio: 'ignore' });
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'];
  for (const name of ['ca', 'other']) {
    const files = ['-keyout', `${name}.key`, '-out', `${name}.pem`];
    openssl('req', '-x509', ...newKey, '-subj', `/CN=${name}`, ...files);
  }
  const names = ['-subj', '/CN=vault', '-addext', 'subjectAltName=IP:127.0.0.1'];
  const files = ['-keyout', 'server.key', '-out', 'server.pem'];
  openssl('req', '-x509', '-CA', 'ca.pem', '-CAkey', 'ca.key', ...newKey, ...names, ...files);
}
