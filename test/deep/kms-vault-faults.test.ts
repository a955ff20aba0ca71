import { createServer } from 'node:net';
import { inspect } from 'node:util';
import { expect } from 'chai';
import { MAX_ANSWER_BYTES } from '../../adapters/kms/vault/vault-connection.ts';
import { VaultKms } from '../../adapters/kms/vault/vault-kms.ts';
import type { VaultSettings } from '../../adapters/kms/vault/vault-settings.ts';
import { NodeRandom } from '../../adapters/system/random.ts';
import { type StoredKey, signingKey } from '../../domain/keys/signing-key.ts';
import { Failure } from '../../domain/shared/failure.ts';
import { failing, isSignedBy } from '../contract/kms-provider.suite.ts';
import { freePort } from '../demo/process.ts';
import {
  type CannedResponse,
  describeWithOpenBao,
  type OpenBao,
  type OpenBaoProxy,
  startOpenBao,
  startOpenBaoProxy,
  waitUntil,
} from '../support/openbao.ts';
import { hangingProxy } from '../support/proxies.ts';

describeWithOpenBao('Vault that fails', (binary) => {
  let bao: OpenBao;
  let front: OpenBaoProxy;
  let key: StoredKey;
  const openProviders: VaultKms[] = [];
  before(async () => {
    bao = await startOpenBao(binary);
    front = await startOpenBaoProxy(bao.address);
    key = await (await provider()).generate('acme', 'ES256');
  });
  beforeEach(() => {
    front.play(() => undefined);
    front.takeCalls();
  });
  afterEach(() => Promise.all(openProviders.splice(0).map((openProvider) => openProvider.close())));
  after(async () => {
    await front?.end();
    await bao?.stop();
  });

  async function provider(settings: Partial<VaultSettings> = {}): Promise<VaultKms> {
    const providerSettings = await bao.settings({ address: front.address, ...settings });
    const kms = new VaultKms({ name: 'house', settings: providerSettings, random: new NodeRandom() });
    openProviders.push(kms);
    return kms;
  }
  const sign = (vault: VaultKms) => vault.sign(signingKey('acme', key), 'data');
  const expectSigns = async (vault: VaultKms) => expect(isSignedBy(key.publicJwk, 'data', await sign(vault))).to.equal(true);
  const checked = async (vault: VaultKms) => ((await failing(() => vault.assertReachable())) as Error | undefined)?.message;

  /** Expects a Failure `unavailable` for the wallet, and the reason in the log. */
  function expectUnavailable(error: unknown, reason: RegExp): void {
    expect(error).to.be.instanceOf(Failure).with.property('code', 'unavailable');
    expect((error as Failure).details).to.include({ retryAfterSeconds: 2 });
    expect(((error as Failure).cause as Error).message)
      .to.match(/key provider "house"/)
      .and.match(reason);
  }

  it('does not prevent the start when it is not reachable yet', async () => {
    const address = `http://127.0.0.1:${await freePort(createServer)}`;
    const vault = await provider({ address });
    expectUnavailable(await failing(() => vault.generate('acme', 'ES256')), /no connection \(ECONNREFUSED\)/);
    expect(await checked(vault)).to.equal(
      `Vault at ${address}: no connection (ECONNREFUSED); check the address and that the server is running`,
    );
    const unreachableVault = await provider({ address: 'http://vault.invalid:8200' });
    expect(await checked(unreachableVault)).to.match(/no connection \((ENOTFOUND|EAI_AGAIN)\)/);
  });

  it('works again as soon as it is unsealed', async () => {
    const [cachedVault, uncachedVault] = [await provider(), await provider({ auth: await bao.appRole() })];
    await cachedVault.assertReachable();
    await bao.seal();
    try {
      for (const vault of [cachedVault, uncachedVault]) {
        expectUnavailable(await failing(() => sign(vault)), /it is sealed; unseal it/);
        expect(await checked(vault)).to.match(/it is sealed; unseal it \(`bao operator unseal`\)$/);
      }
    } finally {
      await bao.unseal();
    }
    for (const vault of [cachedVault, uncachedVault]) {
      await vault.assertReachable();
      await expectSigns(vault);
    }
  });

  it('works again with the same keys after it was killed and restarted', async () => {
    const vault = await provider({ address: bao.address });
    await expectSigns(vault);
    await bao.kill();
    expectUnavailable(await failing(() => sign(vault)), /no connection|connection was cut/);
    await bao.restart();
    await vault.assertReachable();
    await expectSigns(vault);
  });

  it('is killed during a signature', async () => {
    const vault = await provider();
    await vault.assertReachable();
    let calls = 0;
    front.play(async () => {
      if (++calls === 2) await bao.kill();
      return undefined;
    });
    const datas = Array.from({ length: 300 }, (_, index) => `${index}`);
    const error = await failing(() => vault.signMany(signingKey('acme', key), datas));
    expectUnavailable(error, /connection was cut/);
    await bao.restart();
    expect(await vault.signMany(signingKey('acme', key), datas)).to.have.length(300);
  });

  it('has a timeout, after which the call is aborted', async () => {
    let isClosed = false;
    const silentServer = createServer((socket) => {
      socket.resume().on('close', () => {
        isClosed = true;
      });
      socket.on('error', () => {});
    });
    await new Promise<void>((resolve) => silentServer.listen(0, '127.0.0.1', resolve));
    try {
      const address = `http://127.0.0.1:${(silentServer.address() as { port: number }).port}`;
      const mutedVault = await provider({ address, timeoutSeconds: 0.3 });
      const start = performance.now();
      expectUnavailable(await failing(() => sign(mutedVault)), /no answer (to the login )?within/);
      expect(performance.now() - start).to.be.within(250, 3_000);
      await waitUntil(() => isClosed);
      expect(await checked(mutedVault)).to.match(/no answer .*within 0\.3 s$/);
    } finally {
      silentServer.close();
    }
  });

  it('does not respond for a while on connections that were in use', async () => {
    const proxy = await hangingProxy(bao.address);
    try {
      const address = proxy.url.replace(/\/$/, '');
      const vault = await provider({ address, timeoutSeconds: 0.5 });
      await expectSigns(vault);
      proxy.hang();
      expectUnavailable(await failing(() => sign(vault)), /no answer within 500 ms/);
      proxy.forward();
      await expectSigns(vault);
      proxy.dropAnswersAfter('batch_input');
      expectUnavailable(await failing(() => sign(vault)), /no answer within 500 ms/);
      proxy.forward();
      await expectSigns(vault);
    } finally {
      await proxy.end();
    }
  });

  const badResponses: Record<string, readonly [CannedResponse, RegExp]> = {
    'cuts the connection': ['cut', /the connection was cut/],
    'answers 500': [{ status: 500, body: { errors: ['internal error'] } }, /answered 500: internal error/],
    'answers 429': [{ status: 429, body: { errors: ['quota exceeded'] } }, /answered 429: quota exceeded/],
    'answers too much': [{ status: 200, body: { data: 'x'.repeat(2 * MAX_ANSWER_BYTES) } }, /more than 1048576 bytes/],
    'answers too much in an error': [{ status: 400, body: { errors: ['x'.repeat(2 * MAX_ANSWER_BYTES)] } }, /more than 1048576 bytes/],
    'is a page': [{ status: 200, body: '<html>' }, /not Vault: its response is not JSON/],
    'is a page that is not found': [{ status: 404, body: '<html>' }, /not Vault: it answered 404/],
    'is another service that rejects the login': [{ status: 403, body: {} }, /not Vault: it answered 403/],
    'answers half of it': [{ status: 200, body: '{"data":{"batch_res' }, /not Vault: its response is not JSON/],
    'answers with a list': [{ status: 200, body: [] }, /not Vault: its response is not JSON/],
    'answers with an empty body': [{ status: 200, body: '' }, /did not answer each/],
    'answers with null': [{ status: 200, body: { data: null } }, /did not answer each/],
  };
  for (const [name, [cannedResponse, reason]] of Object.entries(badResponses)) {
    it(`${name}, five times, and opens the circuit breaker`, async () => {
      const vault = await provider();
      await vault.assertReachable();
      front.play(() => cannedResponse);
      for (let i = 0; i < 5; i++) expectUnavailable(await failing(() => sign(vault)), reason);
      front.takeCalls();
      expectUnavailable(await failing(() => sign(vault)), /several times in a row/);
      expect(front.takeCalls()).to.deep.equal([]);
    });
  }

  it('rejects a text that is too large, and still signs with other keys', async () => {
    const vault = await provider();
    const largeKey = await vault.generate('acme', 'EdDSA');
    const limit = 64 * 1024;
    front.play(({ body }) => (body.length > limit ? { status: 413, body: '<html>too large' } : undefined));
    for (let i = 0; i < 6; i++) {
      const error = await failing(() => vault.sign(signingKey('acme', largeKey), 'x'.repeat(limit)));
      expectUnavailable(error, /too large/);
    }
    await expectSigns(vault);
  });

  it('gets a limited number of simultaneous calls', async () => {
    const vault = await provider({ atOnce: 3 });
    const keys = await Promise.all(Array.from({ length: 12 }, () => vault.generate('acme', 'ES256')));
    let [underWay, maxConcurrent] = [0, 0];
    front.play(async () => {
      maxConcurrent = Math.max(maxConcurrent, ++underWay);
      await new Promise((resolve) => setTimeout(resolve, 10));
      underWay--;
      return undefined;
    });
    await Promise.all(keys.map((storedKey) => vault.sign(signingKey('acme', storedKey), 'data')));
    expect(maxConcurrent).to.equal(3);
  });

  describe('in a health check', () => {
    it('that succeeds', async () => {
      await (await provider()).assertReachable();
      await (await provider({ auth: await bao.appRole() })).assertReachable();
    });

    it('that runs although the circuit breaker is open', async () => {
      const vault = await provider();
      front.play(() => 'cut');
      for (let i = 0; i < 6; i++) await failing(() => sign(vault));
      expect(await checked(vault)).to.match(/connection was cut/);
      front.play(() => undefined);
      await vault.assertReachable();
    });

    it('that runs once for all callers', async () => {
      const vault = await provider();
      await Promise.all(Array.from({ length: 20 }, () => vault.assertReachable()));
      expect(front.takeCalls()).to.have.length(2);
    });

    const faults: Record<string, readonly [() => Promise<Partial<VaultSettings>>, RegExp]> = {
      'a mount that is missing': [
        async () => ({ mount: 'transits', auth: { method: 'token', token: bao.rootToken } }),
        /no handler for route.*check "mount" and "namespace"$/,
      ],
      'a namespace that is missing': [async () => ({ namespace: 'nowhere' }), /login by token was rejected.*namespace/],
      'a policy that does not suffice': [
        async () => ({ auth: { method: 'token', token: await bao.token({ policies: ['default'] }) } }),
        /permission denied; its policy must allow .* on transit\/keys\/\*$/,
      ],
      'a token that is invalid': [
        async () => ({ auth: { method: 'token', token: 'none' } }),
        /login by token was rejected.*set a new token/,
      ],
      'an AppRole that is invalid': [
        async () => ({ auth: { method: 'approle', mount: 'approle', roleId: 'none', secretId: 'none' } }),
        /login by approle was rejected.*check "roleId" and "secretId".*"approle"$/,
      ],
      'a way to log in that is not enabled': [
        async () => ({ auth: { ...(await bao.appRole()), mount: 'approles' } }),
        /login by approle was rejected.*"approles"$/,
      ],
    };
    for (const [name, [settings, message]] of Object.entries(faults)) {
      it(`that fails with ${name}`, async () => {
        expect(await checked(await provider(await settings()))).to.match(message);
      });
    }
  });

  describe('in logs and errors, reveals no secret', () => {
    const errorText = (error: unknown) =>
      inspect(error, { depth: 20, showHidden: true, maxStringLength: null }) +
      (error instanceof Error ? error.message + error.stack + inspect(error.cause, { depth: 20 }) : '');
    const cannedResponses: Record<string, (secrets: readonly string[]) => CannedResponse | undefined> = {
      'when it is cut': () => 'cut',
      'when it fails': () => ({ status: 500, body: { errors: [] } }),
      'when it rejects the call': () => ({ status: 403, body: { errors: ['permission denied'] } }),
      'when it is a page': () => ({ status: 200, body: '<html>' }),
      'when it says too much': () => ({ status: 200, body: 'x'.repeat(2 * MAX_ANSWER_BYTES) }),
      'when Vault repeats it': (secrets) => ({
        status: 400,
        body: { errors: [`not ${secrets.join(' nor ')}\n\u001b[31m`, 'x'.repeat(10_000)] },
      }),
      'when Vault repeats it in its error': (secrets) => ({ status: 500, body: { errors: [...secrets], data: secrets, more: secrets } }),
    };
    for (const [name, cannedResponse] of Object.entries(cannedResponses)) {
      for (const phase of ['login', 'call'] as const) {
        it(`${name}, at the ${phase}`, async () => {
          const auth = await bao.appRole();
          const secrets: string[] = [auth.roleId, auth.secretId];
          const vault = await provider({ auth });
          if (phase === 'call') {
            await vault.assertReachable();
            secrets.push(String(front.calls.at(-1)?.headers['x-vault-token']));
          }
          front.play(() => cannedResponse(phase === 'login' ? secrets : secrets.slice(2)));
          const errors = [
            await failing(() => vault.assertReachable()),
            await failing(() => sign(vault)),
            await failing(() => vault.generate('acme', 'ES256')),
            await failing(() => vault.remove(signingKey('acme', key))),
          ];
          for (const error of errors) {
            expect(error).to.be.instanceOf(Error);
            for (const secret of secrets) expect(errorText(error)).to.not.include(secret);
            const { message, cause } = error as Error;
            const line = `${message}${(cause as Error | undefined)?.message ?? ''}`;
            expect(line).to.have.length.below(1_000);
            expect(line).to.match(/^[\P{C}]*$/u);
          }
        });
      }
    }
  });

  it('has closed connections when the provider is closed, also twice', async () => {
    const vault = await provider();
    await expectSigns(vault);
    await vault.close();
    await vault.close();
    front.takeCalls();
    expectUnavailable(await failing(() => sign(vault)), /no connection|closed|destroyed/);
    expect(front.takeCalls()).to.deep.equal([]);
  });
});
