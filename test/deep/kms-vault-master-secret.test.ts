import { inspect } from 'node:util';
import { expect } from 'chai';
import { masterSecretFrom } from '../../adapters/kms/vault/master-secret.ts';
import type { VaultSettings } from '../../adapters/kms/vault/vault-settings.ts';
import { failing } from '../contract/kms-provider.suite.ts';
import { describeWithOpenBao, type OpenBao, startOpenBao } from '../support/openbao.ts';
import { type OpenBaoFront, openBaoFront } from '../support/openbao-front.ts';

describeWithOpenBao('A master secret from Vault', (binary) => {
  let bao: OpenBao;
  let front: OpenBaoFront;
  let settings: VaultSettings;
  let secret: string;
  before(async () => {
    bao = await startOpenBao(binary);
    front = await openBaoFront(bao.address);
    await bao.call('POST', 'transit/keys/sealing', { type: 'aes256-gcm96' });
    settings = await bao.settings();
    secret = await masterSecretFrom(settings, 'sealing', 1);
  });
  beforeEach(() => front.play(() => undefined));
  after(async () => {
    await front?.end();
    await bao?.stop();
  });

  const refusal = async (key: string, version = 1, change: Partial<VaultSettings> = {}) => {
    const error = await failing(() => masterSecretFrom({ ...settings, ...change }, key, version));
    expect(inspect(error, { depth: 10, showHidden: true })).to.not.include(secret);
    return (error as Error | undefined)?.message;
  };

  it('has 64 bytes, and is another one for another key', async () => {
    expect(Buffer.from(secret, 'base64url')).to.have.length(64);
    expect(secret).to.match(/^[\w-]{86}$/);
    await bao.call('POST', 'transit/keys/other', { type: 'aes256-gcm96' });
    expect(await masterSecretFrom(settings, 'other', 1)).to.not.equal(secret);
  });

  it('is what Transit answers to a fixed text', async () => {
    const input = Buffer.from('vidimus/master-secret').toString('base64');
    const { body } = await bao.call('POST', 'transit/hmac/sealing/sha2-512', { input });
    const { hmac } = body['data'] as { hmac: string };
    expect(hmac).to.equal(`vault:v1:${Buffer.from(secret, 'base64url').toString('base64')}`);
  });

  it('stays the same when the key is rotated, and after a restart of Vault', async () => {
    await bao.call('POST', 'transit/keys/rotated', { type: 'aes256-gcm96' });
    const before = await masterSecretFrom(settings, 'rotated', 1);
    await bao.call('POST', 'transit/keys/rotated/rotate');
    const second = await masterSecretFrom(settings, 'rotated', 2);
    expect(second).to.not.equal(before);
    await bao.restart();
    expect(await masterSecretFrom(settings, 'rotated', 1)).to.equal(before);
    expect(await masterSecretFrom(settings, 'rotated', 2)).to.equal(second);
    expect(await masterSecretFrom(settings, 'sealing', 1)).to.equal(secret);
  });

  it('says how the key is made when there is none', async () => {
    expect(await refusal('missing')).to.match(
      /^MASTER_SECRET: Vault at http.*key not found.*`bao write -f transit\/keys\/missing`/,
    );
  });

  it('says when the key has no such version', async () => {
    const message = await refusal('sealing', 7);
    expect(message).to.match(/^MASTER_SECRET: .*version.*check the version/);
    expect(message).to.not.include('bao write');
  });

  it('says what the policy lacks', async () => {
    const auth = { method: 'token', token: await bao.token({ policies: ['default'] }) } as const;
    expect(await refusal('sealing', 1, { auth })).to.match(
      /permission denied.*"update" on transit\/hmac\/sealing/,
    );
  });

  it('says when the mount is missing, the login is refused, or nobody answers', async () => {
    const auth = { method: 'token', token: bao.rootToken } as const;
    expect(await refusal('sealing', 1, { auth, mount: 'transits' })).to.match(/check "mount"/);
    const none = { method: 'token', token: 'none' } as const;
    expect(await refusal('sealing', 1, { auth: none })).to.match(/login by token was refused/);
    front.play(() => new Promise(() => {}));
    const slow = { address: front.address, timeoutSeconds: 0.2 };
    expect(await refusal('sealing', 1, slow)).to.match(/no answer .*within 0\.2 s/);
  });

  it('is no key whose name leads elsewhere', async () => {
    for (const key of ['', '../sys', 'a/b', 'a b', '-a', 'a?b', '.']) {
      expect(await refusal(key), key).to.match(/^MASTER_SECRET: a key in Vault has/);
    }
  });

  it('is no answer of another version or length', async () => {
    const code = Buffer.alloc(64, 1).toString('base64');
    for (const hmac of [`vault:v2:${code}`, 'vault:v1:AAAA', code, `vault:v1:${code} `, '', 7, null]) {
      front.play(({ path }) =>
        path.includes('/hmac/') ? { status: 200, body: { data: { hmac } } } : undefined,
      );
      const message = await refusal('sealing', 1, { address: front.address });
      expect(message, String(hmac)).to.match(/did not answer with version 1|does not have 64 bytes/);
    }
  });
});
