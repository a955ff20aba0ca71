import { generateKeyPairSync, type JsonWebKey } from 'node:crypto';
import { expect } from 'chai';
import { MasterCipher } from '../../adapters/crypto/cipher.ts';
import { KmsRegistry } from '../../adapters/kms/kms-registry.ts';
import { LocalKms } from '../../adapters/kms/local/local-kms.ts';
import { NodeRandom } from '../../adapters/system/random.ts';
import type { PrivateKeyMaterial } from '../../application/ports/kms.ts';
import { type StoredKey, signingKey } from '../../domain/keys/signing-key.ts';
import { Failure } from '../../domain/shared/failure.ts';
import { SIGNING_ALGORITHMS } from '../../domain/shared/jwk.ts';
import { describeKmsProvider, failing, isSignedBy } from './kms-provider.suite.ts';

const cipher = new MasterCipher({ masterSecrets: ['a master secret of decent length'] });
const random = new NodeRandom();
const makeLocal = (name = 'local') => new LocalKms({ name, cipher, random });

describeKmsProvider('LocalKms', 'local', () => makeLocal());

describe('LocalKms', () => {
  const local = makeLocal();

  it('signs with a stored key after a restart', async () => {
    const key = await local.generate('acme', 'ES256');
    const signature = makeLocal().sign(signingKey('acme', key), 'data');
    expect(isSignedBy(key.publicJwk, 'data', signature)).to.equal(true);
  });

  it('rejects a sealed key that was copied to another key', async () => {
    const [one, two] = [await local.generate('acme', 'ES256'), await local.generate('acme', 'ES256')];
    local.sign(signingKey('acme', one), 'warm');
    const keyWithForeignSecret: StoredKey = { ...one, sealedKey: two.sealedKey ?? '' };
    expect(() => local.sign(signingKey('acme', keyWithForeignSecret), 'data')).to.throw();
    expect(() => local.sign({ tenantId: 'acme', handle: one.handle }, 'data')).to.throw('private key');
  });

  describe('import', () => {
    for (const namedCurve of ['P-256', 'P-384', 'P-521']) {
      it(`accepts a ${namedCurve} key as JWK and as PKCS#8`, async () => {
        const { privateKey } = generateKeyPairSync('ec', { namedCurve });
        await expectImport(privateKey.export({ format: 'jwk' }) as PrivateKeyMaterial);
        await expectImport(privateKey.export({ format: 'der', type: 'pkcs8' }));
      });
    }

    it('accepts an Ed25519 key as JWK and as PKCS#8', async () => {
      const { privateKey } = generateKeyPairSync('ed25519');
      await expectImport(privateKey.export({ format: 'jwk' }) as PrivateKeyMaterial);
      await expectImport(privateKey.export({ format: 'der', type: 'pkcs8' }));
    });

    async function expectImport(material: PrivateKeyMaterial): Promise<void> {
      const key = await local.import('acme', material);
      expect(isSignedBy(key.publicJwk, 'data', local.sign(signingKey('acme', key), 'data'))).to.equal(true);
    }

    const ecJwk = () => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' });
    const edJwk = () => generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' });
    const invalidKeys: Record<string, () => JsonWebKey | Buffer> = {
      'an RSA key': () => generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'der', type: 'pkcs8' }),
      'a secp256k1 key': () => generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).privateKey.export({ format: 'der', type: 'pkcs8' }),
      'an X25519 key': () => generateKeyPairSync('x25519').privateKey.export({ format: 'jwk' }),
      'a public key': () => generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' }),
      'a key with a foreign public half': () => ({ ...ecJwk(), d: ecJwk().d ?? '' }),
      'an Ed25519 key with a foreign public half': () => ({ ...edJwk(), d: edJwk().d ?? '' }),
      'no key at all': () => Buffer.from('not a key'),
    };
    for (const [name, makeKey] of Object.entries(invalidKeys)) {
      it(`rejects ${name}`, async () => {
        const error = await failing(() => local.import('acme', makeKey() as PrivateKeyMaterial));
        expect(error).to.be.instanceOf(Failure).with.property('code', 'invalid_input');
      });
    }
  });
});

describe('KmsRegistry', () => {
  const providers = ['first', 'second'].map((name) => ({ name, type: 'local', provider: makeLocal(name) }));
  const registry = new KmsRegistry({ providers, default: 'second', tenantDefaults: { acme: 'first' } });

  it('creates keys at the named provider, otherwise at the default of the tenant, otherwise at the default of the service', async () => {
    expect((await registry.generate('other', 'ES256')).handle.kms).to.equal('second');
    expect((await registry.generate('acme', 'ES256')).handle.kms).to.equal('first');
    expect((await registry.generate('acme', 'ES256', 'second')).handle.kms).to.equal('second');
  });

  it('signs at the provider of the key, independent of the present default of the tenant', async () => {
    const key = await registry.generate('acme', 'ES256', 'second');
    const signature = await registry.sign(signingKey('acme', key), 'data');
    expect(isSignedBy(key.publicJwk, 'data', signature)).to.equal(true);
  });

  it('lists the default provider first', () => {
    expect(registry.providers()).to.deep.equal([
      { name: 'second', type: 'local', default: true, algorithms: SIGNING_ALGORITHMS },
      { name: 'first', type: 'local', default: false, algorithms: SIGNING_ALGORITHMS },
    ]);
  });

  it('reports a key of an unconfigured provider as unavailable, and names the provider only in the log', async () => {
    const key = await registry.generate('acme', 'ES256');
    const handle = { ...key.handle, kms: 'vault-eu' };
    const error = await failing(async () => registry.sign(signingKey('acme', { ...key, handle }), 'data'));
    expect(error).to.be.instanceOf(Failure).with.property('code', 'unavailable');
    expect(error).to.have.property('message').that.does.not.contain('vault-eu');
    expect(error).to.have.nested.property('cause.message').that.contains('"vault-eu"');
  });

  it('rejects a new key for an unknown provider name', async () => {
    const error = await failing(() => registry.generate('acme', 'ES256', 'vault-eu'));
    expect(error).to.be.instanceOf(Failure).with.property('code', 'invalid_input');
  });

  it('rejects a default that is not configured and a duplicate provider name at the start', () => {
    expect(() => new KmsRegistry({ providers, default: 'third' })).to.throw('"third"');
    expect(() => new KmsRegistry({ providers, default: 'first', tenantDefaults: { a: 'x' } })).to.throw('"x"');
    expect(() => new KmsRegistry({ providers: [...providers, ...providers], default: 'first' })).to.throw('twice');
  });
});
