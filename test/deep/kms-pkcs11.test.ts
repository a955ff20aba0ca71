import { generateKeyPairSync, type JsonWebKey } from 'node:crypto';
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { CKA } from '../../adapters/kms/pkcs11/cryptoki.ts';
import type { Pkcs11Kms } from '../../adapters/kms/pkcs11/pkcs11-kms.ts';
import type { PrivateKeyMaterial } from '../../application/ports/kms.ts';
import { type StoredKey, signingKey } from '../../domain/keys/signing-key.ts';
import { Failure } from '../../domain/shared/failure.ts';
import { SIGNING_ALGORITHMS } from '../../domain/shared/jwk.ts';
import { describeKmsProvider, failing, isSignedBy } from '../contract/kms-provider.suite.ts';
import { expectSigns, hasSoftHsm, SoftHsm } from '../support/softhsm.ts';

if (hasSoftHsm()) {
  describe('keys in an HSM', () => {
    let hsm: SoftHsm;
    let kms: Pkcs11Kms;

    before(async () => {
      hsm = new SoftHsm();
      hsm.addToken('one');
      hsm.addToken('two');
      kms = await hsm.open('hsm', 'one');
    });
    after(() => hsm.stop());

    describeKmsProvider('Pkcs11Kms', 'hsm', () => hsm.open('hsm', 'one'));

    const objectsOf = (token: string, { handle }: StoredKey) =>
      hsm.beside(token, (other, session) => {
        const id = Buffer.from(handle.keyId, 'hex');
        other.C_FindObjectsInit(session, [{ type: CKA.id, value: id }]);
        const found = other.C_FindObjects(session, 10);
        other.C_FindObjectsFinal(session);
        return found;
      });
    it('offers what the token can do', () => {
      expect(kms.algorithms).to.deep.equal(SIGNING_ALGORITHMS);
    });

    it('keeps the private half where it is, for signing alone, under the name of its tenant', async () => {
      const key = await kms.generate('acme', 'ES256');
      const shown = hsm.beside('one', (other, session) => {
        const show = (object: Buffer, type: number) => {
          try {
            return other.C_GetAttributeValue(session, object, [{ type }])[0]?.value.toString('hex');
          } catch (error) {
            return (error as Error).message;
          }
        };
        return objectsOf('one', key).map((object) =>
          Object.fromEntries(Object.entries(CKA).map(([name, type]) => [name, show(object, type)])),
        );
      });
      expect(shown).to.have.length(2);
      expect(shown.find((half) => half['class']?.startsWith('03'))).to.include({
        ...{ token: '01', private: '01', sensitive: '01', extractable: '00', sign: '01' },
        ...{ decrypt: '00', unwrap: '00', derive: '00', signRecover: '00' },
        value: 'CKR_ATTRIBUTE_SENSITIVE',
        label: Buffer.from(`acme.${key.handle.keyId}`).toString('hex'),
      });
    });

    it('signs two hundred at once with four sessions', async () => {
      const keys = await Promise.all(SIGNING_ALGORITHMS.map((algorithm) => kms.generate('acme', algorithm)));
      const signed = await Promise.all(
        Array.from({ length: 200 }, async (_, index) => {
          const key = keys[index % keys.length] as StoredKey;
          const signature = await kms.sign(signingKey('acme', key), `data ${index}`);
          return isSignedBy(key.publicJwk, `data ${index}`, signature);
        }),
      );
      expect(signed.filter((isRight) => isRight)).to.have.length(200);
    });

    for (const count of [0, 1, 7, 50, 300]) {
      it(`signs a batch of ${count} in its order`, async () => {
        const key = await kms.generate('acme', 'ES256');
        const datas = Array.from({ length: count }, (_, index) => `data ${index}`);
        const signatures = await kms.signMany(signingKey('acme', key), datas);
        expect(signatures).to.have.length(count);
        for (const [index, data] of datas.entries())
          expect(isSignedBy(key.publicJwk, data, signatures[index] ?? Buffer.alloc(0))).to.equal(true);
      });
    }

    it('signs no batch for another tenant or a key that is gone, not in part either', async () => {
      const key = await kms.generate('acme', 'ES256');
      const datas = Array.from({ length: 100 }, (_, index) => `data ${index}`);
      expect(await failing(() => kms.signMany(signingKey('other', key), datas))).to.be.instanceOf(Failure);
      await kms.remove(signingKey('acme', key));
      expect(await failing(() => kms.signMany(signingKey('acme', key), datas)))
        .to.be.instanceOf(Failure)
        .with.property('code', 'unavailable');
    });

    it('leaves the serving thread free', async () => {
      const key = signingKey('acme', await kms.generate('acme', 'ES512'));
      const begin = performance.eventLoopUtilization();
      let ticks = 0;
      const timer = setInterval(() => ticks++, 1);
      const signing = kms.signMany(
        key,
        Array.from({ length: 200 }, () => 'data'),
      );
      await signing.finally(() => clearInterval(timer));
      expect(performance.eventLoopUtilization(begin).utilization).to.be.lessThan(0.6);
      expect(ticks).to.be.greaterThan(5);
    });

    it('removes both halves, only for their tenant, and does not mind when they are gone', async () => {
      const key = await kms.generate('acme', 'ES256');
      await kms.remove(signingKey('other', key));
      await expectSigns(kms, key);
      await kms.remove(signingKey('acme', key));
      await kms.remove(signingKey('acme', key));
      expect(objectsOf('one', key)).to.deep.equal([]);
      expect(await failing(() => kms.sign(signingKey('acme', key), 'data'))).to.be.instanceOf(Failure);
    });

    it('signs with a key that was made before it was opened', async () => {
      const earlier = await hsm.open('hsm', 'two');
      const key = await earlier.generate('acme', 'EdDSA');
      await earlier.close();
      expect(await failing(() => earlier.sign(signingKey('acme', key), 'data'))).to.be.instanceOf(Failure);
      const later = await hsm.open('hsm', 'two');
      await expectSigns(later, key);
      await later.close();
    });

    it('has several providers on one library, also under another name of its file', async () => {
      const link = join(hsm.folder, 'link.so');
      symlinkSync(hsm.library, link);
      const [two, again] = [await hsm.open('two', 'two', { library: link }), await hsm.open('again', 'one')];
      const [key, other] = [await kms.generate('acme', 'ES256'), await two.generate('acme', 'ES256')];
      expect(other.handle.kms).to.equal('two');
      await Promise.all([expectSigns(kms, key), expectSigns(two, other), expectSigns(again, key)]);
      expect(await failing(() => two.sign(signingKey('acme', key), 'data'))).to.be.instanceOf(Failure);
      await Promise.all([two.close(), again.close(), again.close()]);
      await expectSigns(kms, key);
    });

    describe('import', () => {
      const made = {
        ES256: () => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey,
        ES384: () => generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey,
        ES512: () => generateKeyPairSync('ec', { namedCurve: 'P-521' }).privateKey,
        EdDSA: () => generateKeyPairSync('ed25519').privateKey,
      };
      for (const algorithm of SIGNING_ALGORITHMS) {
        it(`takes a key for ${algorithm} as JWK and as PKCS#8, which it does not give back`, async () => {
          const key = made[algorithm]();
          const der = key.export({ format: 'der', type: 'pkcs8' });
          for (const material of [key.export({ format: 'jwk' }) as PrivateKeyMaterial, der]) {
            const stored = await kms.import('acme', material);
            expect(stored.handle).to.include({ kms: 'hsm', algorithm });
            expect(stored.publicJwk).to.not.have.any.keys('d');
            await expectSigns(kms, stored);
            const [object] = objectsOf('one', stored);
            const value = () =>
              hsm.beside('one', (other, session) =>
                other.C_GetAttributeValue(session, object ?? Buffer.alloc(8), [{ type: CKA.value }]),
              );
            expect(value).to.throw('CKR_ATTRIBUTE_SENSITIVE');
            await kms.remove(signingKey('acme', stored));
            expect(objectsOf('one', stored)).to.deep.equal([]);
          }
        });
      }

      const ecJwk = () => made.ES256().export({ format: 'jwk' });
      const refused: Record<string, () => JsonWebKey | Buffer> = {
        'a key on a curve of its own': () =>
          generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).privateKey.export({ format: 'jwk' }),
        'an RSA key': () =>
          generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' }),
        'a key with a foreign public half': () => ({ ...ecJwk(), d: ecJwk().d ?? '' }),
        'no key at all': () => Buffer.from('not a key'),
      };
      for (const [name, make] of Object.entries(refused)) {
        it(`refuses ${name}`, async () => {
          const error = await failing(() => kms.import('acme', make() as PrivateKeyMaterial));
          expect(error).to.be.instanceOf(Failure).with.property('code', 'invalid_input');
        });
      }
    });
  });
}
