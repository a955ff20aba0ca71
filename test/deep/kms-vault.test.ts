import { generateKeyPairSync } from 'node:crypto';
import { inspect } from 'node:util';
import { expect } from 'chai';
import type { KmsProvider } from '../../adapters/kms/kms-provider.ts';
import { masterSecretFrom } from '../../adapters/kms/vault/master-secret.ts';
import { VaultKms } from '../../adapters/kms/vault/vault-kms.ts';
import type { VaultSettings } from '../../adapters/kms/vault/vault-settings.ts';
import { NodeRandom } from '../../adapters/system/random.ts';
import type { PrivateKeyMaterial } from '../../application/ports/kms.ts';
import { type StoredKey, signingKey } from '../../domain/keys/signing-key.ts';
import { Failure } from '../../domain/shared/failure.ts';
import { SIGNING_ALGORITHMS } from '../../domain/shared/jwk.ts';
import { describeKmsProvider, failing, isSignedBy } from '../contract/kms-provider.suite.ts';
import { describeWithOpenBao, type OpenBao, type OpenBaoProxy, startOpenBao, startOpenBaoProxy, waitUntil } from '../support/openbao.ts';

const random = new NodeRandom();

describeWithOpenBao('keys in Vault', (binary) => {
  let bao: OpenBao;
  let front: OpenBaoProxy;
  let vault: VaultKms;
  const openProviders: KmsProvider[] = [];
  before(async () => {
    bao = await startOpenBao(binary);
    front = await startOpenBaoProxy(bao.address);
    vault = await provider();
    // This call logs in.
    await vault.assertReachable();
  });
  beforeEach(() => {
    front.play(() => undefined);
    front.takeCalls();
  });
  after(async () => {
    await Promise.all(openProviders.map((openProvider) => openProvider.close()));
    await front?.end();
    await bao?.stop();
  });

  async function provider(settings: Parameters<OpenBao['settings']>[0] = {}): Promise<VaultKms> {
    const providerSettings = await bao.settings({ address: front.address, ...settings });
    const kms = new VaultKms({ name: 'house', settings: providerSettings, random });
    openProviders.push(kms);
    return kms;
  }
  const keyName = (key: StoredKey) => key.handle.keyId.replace(/@.*/, '');
  const readVaultKey = (key: StoredKey) => bao.call('GET', `transit/keys/${keyName(key)}`);
  const causeOf = (error: unknown) => (error as Failure).cause as Error;

  function expectUnavailable(error: unknown, reason: RegExp): void {
    expect(error).to.be.instanceOf(Failure).with.property('code', 'unavailable');
    expect(causeOf(error).message).to.match(reason);
  }

  describeKmsProvider('VaultKms', 'house', () => vault);

  describe('a key', () => {
    it('has its tenant and its version in its handle', async () => {
      const { handle } = await vault.generate('acme', 'ES256');
      expect(handle.keyId).to.match(/^acme\.[\w-]{22}\.es256@1$/);
    });

    it('has a name that Vault accepts for every random part', async () => {
      const bytes = (fill: number) => () => Buffer.alloc(16, fill).toString('base64url');
      for (const token of [bytes(0xff), bytes(0xfb), () => '-_-_-_-_-_-_-_-_-_-_--']) {
        const settings = await bao.settings();
        const kms = new VaultKms({ name: 'house', settings, random: Object.assign(new NodeRandom(), { token }) });
        openProviders.push(kms);
        const key = await kms.generate('a-', 'ES256');
        expect(isSignedBy(key.publicJwk, 'data', await kms.sign(signingKey('a-', key), 'data'))).to.equal(true);
        await kms.remove(signingKey('a-', key));
      }
    });

    it('cannot be exported from Vault', async () => {
      for (const key of [await vault.generate('acme', 'ES256'), await vault.import('acme', aPrivateKey())]) {
        for (const path of ['export/signing-key', 'export/hmac-key', 'backup']) {
          const { body } = await bao.call('GET', `transit/${path}/${keyName(key)}`);
          expect(String(body['errors']), path).to.match(/not exportable|exporting is disallowed|backup is disallowed/);
          expect(body['data']).to.equal(undefined);
        }
      }
    });

    it('signs with a stored handle after a restart of the service', async () => {
      const key = await vault.generate('acme', 'ES256');
      const signature = await (await provider()).sign(signingKey('acme', key), 'data');
      expect(isSignedBy(key.publicJwk, 'data', signature)).to.equal(true);
    });

    it('stays the same when it is rotated inside Vault', async () => {
      for (const algorithm of SIGNING_ALGORITHMS) {
        const key = await vault.generate('acme', algorithm);
        expect((await bao.call('POST', `transit/keys/${keyName(key)}/rotate`)).status).to.equal(200);
        const signature = await vault.sign(signingKey('acme', key), 'data');
        expect(isSignedBy(key.publicJwk, 'data', signature)).to.equal(true);
      }
    });

    it('rejects a version that does not exist, and an invalid handle', async () => {
      const { handle } = await vault.generate('acme', 'ES256');
      const sign = (keyId: string) => failing(() => vault.sign({ tenantId: 'acme', handle: { ...handle, keyId } }, 'data'));
      expectUnavailable(await sign(handle.keyId.replace('@1', '@2')), /version/);
      front.takeCalls();
      for (const keyId of [
        handle.keyId.replace('@1', ''),
        handle.keyId.replace('@1', '@0'),
        handle.keyId.replace('@1', '@1/../x'),
        handle.keyId.replace('acme.', 'acme.../'),
        handle.keyId.replace('acme.', 'other.'),
        'acme.x@1',
        '',
      ]) {
        expect(await sign(keyId), keyId).to.be.instanceOf(Error);
      }
      expect(front.takeCalls()).to.deep.equal([]);
    });

    it('signs only with its algorithm, although Transit supports others', async () => {
      for (const [algorithm, otherAlgorithm] of [
        ['EdDSA', 'ES256'],
        ['ES256', 'EdDSA'],
      ] as const) {
        const key = await vault.generate('acme', algorithm);
        const handle = { ...key.handle, algorithm: otherAlgorithm };
        expect(await failing(() => vault.sign({ tenantId: 'acme', handle }, 'data'))).to.be.instanceOf(Error);
        const keyId = handle.keyId.replace(algorithm.toLowerCase(), otherAlgorithm.toLowerCase());
        const alteredHandle = { ...handle, keyId };
        const error = await failing(() => vault.sign({ tenantId: 'acme', handle: alteredHandle }, 'data'));
        expectUnavailable(error, /key not found/);
      }
    });

    it('is removed by its tenant only', async () => {
      const key = await vault.generate('acme', 'ES256');
      expect(await failing(() => vault.remove(signingKey('other', key)))).to.be.instanceOf(Error);
      expect((await readVaultKey(key)).status).to.equal(200);
      await vault.remove(signingKey('acme', key));
      expect((await readVaultKey(key)).status).to.equal(404);
      expectUnavailable(await failing(() => vault.sign(signingKey('acme', key), 'data')), /not found/);
    });

    it('may be removed already when it is removed', async () => {
      const key = await vault.generate('acme', 'ES256');
      await Promise.all([1, 2, 3].map(() => vault.remove(signingKey('acme', key))));
      await vault.remove(signingKey('acme', key));
    });

    it('is removed although Vault rejects one of the simultaneous calls that remove it', async () => {
      const key = await vault.generate('acme', 'ES256');
      let rejections = 0;
      front.play(({ method }) => (method === 'DELETE' && rejections++ === 0 ? { status: 500, body: { errors: ['busy'] } } : undefined));
      await vault.remove(signingKey('acme', key));
      front.play(() => undefined);
      expect(rejections).to.equal(2);
      expectUnavailable(await failing(() => vault.sign(signingKey('acme', key), 'data')), /not found/);
    });

    it('is not removed when the mount is missing, which is reported', async () => {
      const key = await vault.generate('acme', 'ES256');
      const auth = { method: 'token', token: bao.rootToken } as const;
      const otherMount = await provider({ mount: 'transits', auth });
      const error = await failing(() => otherMount.remove(signingKey('acme', key)));
      expectUnavailable(error, /no handler for route.*check "mount"/);
    });

    it('that was removed does not delay another key', async () => {
      const [removedKey, otherKey] = [await vault.generate('acme', 'ES256'), await vault.generate('acme', 'ES256')];
      await vault.remove(signingKey('acme', removedKey));
      for (let i = 0; i < 12; i++) {
        expectUnavailable(await failing(() => vault.sign(signingKey('acme', removedKey), 'data')), /not found/);
      }
      expect(await vault.sign(signingKey('acme', otherKey), 'data')).to.have.length(64);
    });

    it('that the policy forbids does not delay another key, and causes no login', async () => {
      const [forbiddenKey, otherKey] = [await vault.generate('closed', 'ES256'), await vault.generate('acme', 'ES256')];
      await bao.call('POST', 'sys/policies/acl/closed', { policy: `path "transit/sign/closed.*" { capabilities = ["deny"] }` });
      const auth = await bao.appRole({ token_policies: ['vidimus', 'closed'] });
      const restricted = await provider({ auth });
      await restricted.sign(signingKey('acme', otherKey), 'data');
      front.takeCalls();
      for (let i = 0; i < 12; i++) {
        const error = await failing(() => restricted.sign(signingKey('closed', forbiddenKey), 'data'));
        expectUnavailable(error, /permission denied/);
      }
      expect(await restricted.sign(signingKey('acme', otherKey), 'data')).to.have.length(64);
      expect(front.takeCalls().filter((call) => call.includes('login'))).to.deep.equal([]);
    });
  });

  describe('when a key cannot be created', () => {
    const keyNameInPath = (path: string) => /^transit\/keys\/(left\.[\w-]+\.\w+)/.exec(path)?.[1];
    const vaultKeysOf = async (tenantId: string) => {
      const { body } = await bao.call('GET', 'transit/keys?list=true');
      return (body['data'] as { keys: string[] }).keys.filter((name) => name.startsWith(`${tenantId}.`));
    };

    it('removes the keys that were created before the fault', async () => {
      front.play(({ method, path }) => (method === 'GET' && keyNameInPath(path) ? { status: 500, body: { errors: ['x'] } } : undefined));
      expectUnavailable(await failing(() => vault.generate('left', 'ES256')), /answered 500: x/);
      await waitUntil(async () => (await vaultKeysOf('left')).length === 0);
      expect(front.takeCalls()[0]).to.match(/^POST keys\/left/);
    });

    it('rejects an exportable key, and a key of another type', async () => {
      for (const changeResponse of [{ exportable: true }, { allow_plaintext_backup: true }, { type: 'ecdsa-p384' }]) {
        front.play(async ({ method, path }) => {
          const name = keyNameInPath(path);
          if (method !== 'POST' || name === undefined || path.includes('/config')) return undefined;
          await bao.call('POST', `transit/keys/${name}`, { type: 'ecdsa-p256', ...changeResponse });
          return { status: 204, body: '' };
        });
        expectUnavailable(await failing(() => vault.generate('left', 'ES256')), /the created key differs from the request/);
        await waitUntil(async () => (await vaultKeysOf('left')).length === 0);
      }
    });

    it('rejects a key that differs from the imported one', async () => {
      front.play(async ({ method, path }) => {
        const name = keyNameInPath(path);
        if (method !== 'POST' || name === undefined || !path.endsWith('/import')) return undefined;
        await bao.call('POST', `transit/keys/${name}`, { type: 'ecdsa-p256' });
        return { status: 204, body: '' };
      });
      expectUnavailable(await failing(() => vault.import('left', aPrivateKey())), /another key/);
      await waitUntil(async () => (await vaultKeysOf('left')).length === 0);
    });
  });

  describe('import', () => {
    const forms: Record<string, () => { privateKey: ReturnType<typeof aPair>['privateKey'] }> = {
      'P-256': () => aPair('P-256'),
      'P-384': () => aPair('P-384'),
      'P-521': () => aPair('P-521'),
      Ed25519: () => generateKeyPairSync('ed25519'),
    };
    for (const [name, make] of Object.entries(forms)) {
      it(`accepts a ${name} key as JWK and as PKCS#8`, async () => {
        const { privateKey } = make();
        for (const material of [
          privateKey.export({ format: 'jwk' }) as PrivateKeyMaterial,
          privateKey.export({ format: 'der', type: 'pkcs8' }),
        ]) {
          const key = await vault.import('acme', material);
          const { x } = privateKey.export({ format: 'jwk' });
          expect(key.publicJwk).to.include({ x }).and.not.have.any.keys('d');
          const signature = await vault.sign(signingKey('acme', key), 'data');
          expect(isSignedBy(key.publicJwk, 'data', signature)).to.equal(true);
          await vault.remove(signingKey('acme', key));
        }
      });
    }

    const rejectedMaterial: Record<string, () => PrivateKeyMaterial> = {
      'an RSA key': () => generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'der', type: 'pkcs8' }),
      'a secp256k1 key': () => aPair('secp256k1').privateKey.export({ format: 'der', type: 'pkcs8' }),
      'a public key': () => aPair('P-256').publicKey.export({ format: 'jwk' }) as PrivateKeyMaterial,
      'a key with a foreign public half': () => {
        const [firstKey, secondKey] = [aPair('P-256'), aPair('P-256')].map(({ privateKey }) => privateKey.export({ format: 'jwk' }));
        return { ...firstKey, d: secondKey?.d ?? '' } as PrivateKeyMaterial;
      },
      'no key at all': () => Buffer.from('not a key'),
    };
    for (const [name, make] of Object.entries(rejectedMaterial)) {
      it(`rejects ${name} before a call to Vault`, async () => {
        const error = await failing(() => vault.import('acme', make()));
        expect(error).to.be.instanceOf(Failure).with.property('code', 'invalid_input');
        expect(front.takeCalls()).to.deep.equal([]);
      });
    }

    it('sends the key to Vault only under its wrapping key', async () => {
      const material = aPrivateKey();
      const callCount = front.calls.length;
      await vault.import('acme', material);
      const sentBodies = front.calls.slice(callCount).map(({ body }) => body);
      const { d = '' } = { ...(material as { d: string }) };
      const scalar = Buffer.from(d, 'base64url');
      for (const text of sentBodies) {
        expect(text).to.not.include(d).and.not.include(scalar.toString('hex'));
        const { ciphertext = '' } = (text === '' ? {} : JSON.parse(text)) as { ciphertext?: string };
        expect(Buffer.from(ciphertext, 'base64').includes(scalar)).to.equal(false);
      }
      expect(sentBodies.some((text) => text.includes('ciphertext'))).to.equal(true);
    });
  });
});

const aPair = (namedCurve: string) => generateKeyPairSync('ec', { namedCurve });
const aPrivateKey = () => aPair('P-256').privateKey.export({ format: 'jwk' }) as PrivateKeyMaterial;

describeWithOpenBao('master secret from Vault', (binary) => {
  let bao: OpenBao;
  let front: OpenBaoProxy;
  let settings: VaultSettings;
  let secret: string;
  before(async () => {
    bao = await startOpenBao(binary);
    front = await startOpenBaoProxy(bao.address);
    await bao.call('POST', 'transit/keys/sealing', { type: 'aes256-gcm96' });
    settings = await bao.settings();
    secret = await masterSecretFrom(settings, 'sealing', 1);
  });
  beforeEach(() => front.play(() => undefined));
  after(async () => {
    await front?.end();
    await bao?.stop();
  });

  const refusal = async (key: string, version = 1, changeResponse: Partial<VaultSettings> = {}) => {
    const error = await failing(() => masterSecretFrom({ ...settings, ...changeResponse }, key, version));
    expect(inspect(error, { depth: 10, showHidden: true })).to.not.include(secret);
    return (error as Error | undefined)?.message;
  };

  it('has 64 bytes, and differs for another key', async () => {
    expect(Buffer.from(secret, 'base64url')).to.have.length(64);
    expect(secret).to.match(/^[\w-]{86}$/);
    await bao.call('POST', 'transit/keys/other', { type: 'aes256-gcm96' });
    expect(await masterSecretFrom(settings, 'other', 1)).to.not.equal(secret);
  });

  it('equals the HMAC of a fixed text by Transit', async () => {
    const input = Buffer.from('vidimus/master-secret').toString('base64');
    const { body } = await bao.call('POST', 'transit/hmac/sealing/sha2-512', { input });
    const { hmac } = body['data'] as { hmac: string };
    expect(hmac).to.equal(`vault:v1:${Buffer.from(secret, 'base64url').toString('base64')}`);
  });

  it('stays the same when the key is rotated, and after a restart of Vault', async () => {
    await bao.call('POST', 'transit/keys/rotated', { type: 'aes256-gcm96' });
    const firstSecret = await masterSecretFrom(settings, 'rotated', 1);
    await bao.call('POST', 'transit/keys/rotated/rotate');
    const secondSecret = await masterSecretFrom(settings, 'rotated', 2);
    expect(secondSecret).to.not.equal(firstSecret);
    await bao.restart();
    expect(await masterSecretFrom(settings, 'rotated', 1)).to.equal(firstSecret);
    expect(await masterSecretFrom(settings, 'rotated', 2)).to.equal(secondSecret);
    expect(await masterSecretFrom(settings, 'sealing', 1)).to.equal(secret);
  });

  it('explains how to create the key when it is missing', async () => {
    expect(await refusal('missing')).to.match(/^MASTER_SECRET: Vault at http.*key not found.*`bao write -f transit\/keys\/missing`/);
  });

  it('reports that the key has no such version', async () => {
    const message = await refusal('sealing', 7);
    expect(message).to.match(/^MASTER_SECRET: .*version.*check the version/);
    expect(message).to.not.include('bao write');
  });

  it('reports the missing right of the policy', async () => {
    const auth = { method: 'token', token: await bao.token({ policies: ['default'] }) } as const;
    expect(await refusal('sealing', 1, { auth })).to.match(/permission denied.*"update" on transit\/hmac\/sealing/);
  });

  it('reports a missing mount, a rejected login or no answer', async () => {
    const auth = { method: 'token', token: bao.rootToken } as const;
    expect(await refusal('sealing', 1, { auth, mount: 'transits' })).to.match(/check "mount"/);
    const missingMount = { method: 'token', token: 'none' } as const;
    expect(await refusal('sealing', 1, { auth: missingMount })).to.match(/login by token was rejected/);
    front.play(() => new Promise(() => {}));
    const slowSettings = { address: front.address, timeoutSeconds: 0.2 };
    expect(await refusal('sealing', 1, slowSettings)).to.match(/no answer .*within 0\.2 s/);
  });

  it('rejects a key name that leads to another path', async () => {
    for (const key of ['', '../sys', 'a/b', 'a b', '-a', 'a?b', '.']) {
      expect(await refusal(key), key).to.match(/^MASTER_SECRET: a key in Vault has/);
    }
  });

  it('rejects an answer of another version or length', async () => {
    const code = Buffer.alloc(64, 1).toString('base64');
    for (const hmac of [`vault:v2:${code}`, 'vault:v1:AAAA', code, `vault:v1:${code} `, '', 7, null]) {
      front.play(({ path }) => (path.includes('/hmac/') ? { status: 200, body: { data: { hmac } } } : undefined));
      const message = await refusal('sealing', 1, { address: front.address });
      expect(message, String(hmac)).to.match(/did not answer with version 1|does not have 64 bytes/);
    }
  });
});
