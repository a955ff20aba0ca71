import { execFile, execFileSync } from 'node:child_process';
import { generateKeyPairSync, type JsonWebKey } from 'node:crypto';
import { closeSync, constants, openSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { publicJwkOf } from '../../adapters/kms/pkcs11/algorithms.ts';
import { CKA } from '../../adapters/kms/pkcs11/cryptoki.ts';
import { faultOf } from '../../adapters/kms/pkcs11/fault.ts';
import type { Pkcs11Kms } from '../../adapters/kms/pkcs11/pkcs11-kms.ts';
import { createPrivateKey, generatePair } from '../../adapters/kms/pkcs11/token-keys.ts';
import type { PrivateKeyMaterial } from '../../application/ports/kms.ts';
import { type StoredKey, signingKey } from '../../domain/keys/signing-key.ts';
import { Failure } from '../../domain/shared/failure.ts';
import { SIGNING_ALGORITHMS } from '../../domain/shared/jwk.ts';
import { describeKmsProvider, failing, isSignedBy } from '../contract/kms-provider.suite.ts';
import { minimalEnvironment } from '../support/compile-cache.ts';
import {
  errorMessage,
  expectValidSignature,
  filesIn,
  hasSoftHsm,
  PIN,
  SoftHsm,
  type TokenAccess,
  unavailableReason,
} from '../support/softhsm.ts';

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

    const findKeyObjects = (token: string, { handle }: StoredKey) =>
      hsm.withSession(token, (cryptoki, session) => {
        const id = Buffer.from(handle.keyId, 'hex');
        cryptoki.C_FindObjectsInit(session, [{ type: CKA.id, value: id }]);
        const objects = cryptoki.C_FindObjects(session, 10);
        cryptoki.C_FindObjectsFinal(session);
        return objects;
      });
    it('offers the algorithms that the token supports', () => {
      expect(kms.algorithms).to.deep.equal(SIGNING_ALGORITHMS);
    });

    it('keeps the private key on the token, for signing only, under the name of its tenant', async () => {
      const key = await kms.generate('acme', 'ES256');
      const attributes = hsm.withSession('one', (cryptoki, session) => {
        const readAttribute = (object: Buffer, type: number) => {
          try {
            return cryptoki.C_GetAttributeValue(session, object, [{ type }])[0]?.value.toString('hex');
          } catch (error) {
            return (error as Error).message;
          }
        };
        return findKeyObjects('one', key).map((object) =>
          Object.fromEntries(Object.entries(CKA).map(([name, type]) => [name, readAttribute(object, type)])),
        );
      });
      expect(attributes).to.have.length(2);
      expect(attributes.find((keyObject) => keyObject['class']?.startsWith('03'))).to.include({
        ...{ token: '01', private: '01', sensitive: '01', extractable: '00', sign: '01' },
        ...{ decrypt: '00', unwrap: '00', derive: '00', signRecover: '00' },
        value: 'CKR_ATTRIBUTE_SENSITIVE',
        label: Buffer.from(`acme.${key.handle.keyId}`).toString('hex'),
      });
    });

    it('signs 200 simultaneous texts with four sessions', async () => {
      const keys = await Promise.all(SIGNING_ALGORITHMS.map((algorithm) => kms.generate('acme', algorithm)));
      const signatures = await Promise.all(
        Array.from({ length: 200 }, async (_, index) => {
          const key = keys[index % keys.length] as StoredKey;
          const signature = await kms.sign(signingKey('acme', key), `data ${index}`);
          return isSignedBy(key.publicJwk, `data ${index}`, signature);
        }),
      );
      expect(signatures.filter((isRight) => isRight)).to.have.length(200);
    });

    for (const count of [0, 1, 7, 50, 300]) {
      it(`signs a batch of ${count} in its order`, async () => {
        const key = await kms.generate('acme', 'ES256');
        const texts = Array.from({ length: count }, (_, index) => `data ${index}`);
        const signatures = await kms.signMany(signingKey('acme', key), texts);
        expect(signatures).to.have.length(count);
        for (const [index, data] of texts.entries())
          expect(isSignedBy(key.publicJwk, data, signatures[index] ?? Buffer.alloc(0))).to.equal(true);
      });
    }

    it('signs no part of a batch for another tenant or a removed key', async () => {
      const key = await kms.generate('acme', 'ES256');
      const texts = Array.from({ length: 100 }, (_, index) => `data ${index}`);
      expect(await failing(() => kms.signMany(signingKey('other', key), texts))).to.be.instanceOf(Failure);
      await kms.remove(signingKey('acme', key));
      expect(await failing(() => kms.signMany(signingKey('acme', key), texts)))
        .to.be.instanceOf(Failure)
        .with.property('code', 'unavailable');
    });

    it('does not block the main thread', async () => {
      const key = signingKey('acme', await kms.generate('acme', 'ES512'));
      const startedAt = performance.eventLoopUtilization();
      let ticks = 0;
      const timer = setInterval(() => ticks++, 1);
      const signing = kms.signMany(
        key,
        Array.from({ length: 200 }, () => 'data'),
      );
      await signing.finally(() => clearInterval(timer));
      expect(performance.eventLoopUtilization(startedAt).utilization).to.be.lessThan(0.6);
      expect(ticks).to.be.greaterThan(5);
    });

    it('removes both key objects, only for their tenant, and ignores removed keys', async () => {
      const key = await kms.generate('acme', 'ES256');
      await kms.remove(signingKey('other', key));
      await expectValidSignature(kms, key);
      await kms.remove(signingKey('acme', key));
      await kms.remove(signingKey('acme', key));
      expect(findKeyObjects('one', key)).to.deep.equal([]);
      expect(await failing(() => kms.sign(signingKey('acme', key), 'data'))).to.be.instanceOf(Failure);
    });

    it('signs with a key that was created before the provider was opened', async () => {
      const earlierKms = await hsm.open('hsm', 'two');
      const key = await earlierKms.generate('acme', 'EdDSA');
      await earlierKms.close();
      expect(await failing(() => earlierKms.sign(signingKey('acme', key), 'data'))).to.be.instanceOf(Failure);
      const laterKms = await hsm.open('hsm', 'two');
      await expectValidSignature(laterKms, key);
      await laterKms.close();
    });

    it('supports several providers on one library, also under another file name', async () => {
      const link = join(hsm.folder, 'link.so');
      symlinkSync(hsm.library, link);
      const [secondKms, reopenedKms] = [await hsm.open('two', 'two', { library: link }), await hsm.open('again', 'one')];
      const [key, otherKey] = [await kms.generate('acme', 'ES256'), await secondKms.generate('acme', 'ES256')];
      expect(otherKey.handle.kms).to.equal('two');
      await Promise.all([
        expectValidSignature(kms, key),
        expectValidSignature(secondKms, otherKey),
        expectValidSignature(reopenedKms, key),
      ]);
      expect(await failing(() => secondKms.sign(signingKey('acme', key), 'data'))).to.be.instanceOf(Failure);
      await Promise.all([secondKms.close(), reopenedKms.close(), reopenedKms.close()]);
      await expectValidSignature(kms, key);
    });

    describe('import', () => {
      const generatedKey = {
        ES256: () => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey,
        ES384: () => generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey,
        ES512: () => generateKeyPairSync('ec', { namedCurve: 'P-521' }).privateKey,
        EdDSA: () => generateKeyPairSync('ed25519').privateKey,
      };
      for (const algorithm of SIGNING_ALGORITHMS) {
        it(`accepts a key for ${algorithm} as JWK and as PKCS#8, and never exports it`, async () => {
          const key = generatedKey[algorithm]();
          const der = key.export({ format: 'der', type: 'pkcs8' });
          for (const material of [key.export({ format: 'jwk' }) as PrivateKeyMaterial, der]) {
            const storedKey = await kms.import('acme', material);
            expect(storedKey.handle).to.include({ kms: 'hsm', algorithm });
            expect(storedKey.publicJwk).to.not.have.any.keys('d');
            await expectValidSignature(kms, storedKey);
            const [object] = findKeyObjects('one', storedKey);
            const value = () =>
              hsm.withSession('one', (cryptoki, session) =>
                cryptoki.C_GetAttributeValue(session, object ?? Buffer.alloc(8), [{ type: CKA.value }]),
              );
            expect(value).to.throw('CKR_ATTRIBUTE_SENSITIVE');
            await kms.remove(signingKey('acme', storedKey));
            expect(findKeyObjects('one', storedKey)).to.deep.equal([]);
          }
        });
      }

      const ecJwk = () => generatedKey.ES256().export({ format: 'jwk' });
      const rejectedMaterial: Record<string, () => JsonWebKey | Buffer> = {
        'a key on a custom curve': () => generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).privateKey.export({ format: 'jwk' }),
        'an RSA key': () => generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' }),
        'a key with a foreign public half': () => ({ ...ecJwk(), d: ecJwk().d ?? '' }),
        'no key at all': () => Buffer.from('not a key'),
      };
      for (const [name, make] of Object.entries(rejectedMaterial)) {
        it(`rejects ${name}`, async () => {
          const error = await failing(() => kms.import('acme', make() as PrivateKeyMaterial));
          expect(error).to.be.instanceOf(Failure).with.property('code', 'invalid_input');
        });
      }
    });
  });
}

if (hasSoftHsm()) {
  describe('kinds of HSM', () => {
    let hsm: SoftHsm;

    beforeEach(() => {
      hsm = new SoftHsm();
    });
    afterEach(() => hsm.stop());

    it('creates and imports no keys that the token cannot use', async () => {
      await hsm.stop();
      hsm = new SoftHsm(['CKM_EC_KEY_PAIR_GEN', 'CKM_ECDSA']);
      hsm.addToken('poor');
      const kms = await hsm.open('hsm', 'poor');
      expect(kms.algorithms).to.deep.equal(['ES256', 'ES384', 'ES512']);
      const { privateKey } = generateKeyPairSync('ed25519');
      const der = privateKey.export({ format: 'der', type: 'pkcs8' });
      for (const work of [() => kms.import('acme', der), () => kms.generate('acme', 'EdDSA')]) {
        const error = await failing(work);
        expect(error).to.be.instanceOf(Failure).with.property('code', 'invalid_input');
        expect((error as Error).message).to.equal('The token of the KMS provider "hsm" has no keys for EdDSA.');
      }
      await expectValidSignature(kms, await kms.generate('acme', 'ES384'));
      expect(filesIn(hsm.tokens).filter((file) => file.endsWith('.object'))).to.have.length(3);
    });

    describe('a token with restrictions', () => {
      const key = { id: 'abcd', label: 'acme.abcd', algorithm: 'ES256' } as const;
      /** Wraps the real library with one replaced function. */
      const openWithRule = (rule: (realLibrary: TokenAccess) => Partial<TokenAccess>): [TokenAccess, Buffer] => {
        const realLibrary = hsm.cryptoki();
        const [slot = Buffer.alloc(8)] = realLibrary.C_GetSlotList(true);
        return [Object.assign(hsm.cryptoki(), rule(realLibrary)), realLibrary.C_OpenSession(slot, 6)];
      };
      const rejectingWith = (name: string, code: number) => () => {
        throw Object.assign(new Error(name), { code });
      };
      const objects = (other: TokenAccess, session: Buffer) => {
        other.C_FindObjectsInit(session, [{ type: CKA.label, value: key.label }]);
        const objects = other.C_FindObjects(session, 10);
        other.C_FindObjectsFinal(session);
        return objects;
      };

      beforeEach(async () => {
        hsm.addToken('ruled');
        await hsm.open('hsm', 'ruled');
      });

      it('is supported when it rejects attributes that forbid uses of a key', () => {
        const [token, session] = openWithRule((realLibrary) => ({
          C_GenerateKeyPair(...parameters) {
            if (parameters[3].some(({ type }) => type === CKA.decrypt)) rejectingWith('CKR_ATTRIBUTE_TYPE_INVALID', 0x12)();
            return realLibrary.C_GenerateKeyPair(...parameters);
          },
        }));
        expect(publicJwkOf(generatePair(token, session, key), 'ES256')).to.have.property('crv', 'P-256');
        expect(objects(token, session)).to.have.length(2);
      });

      it('is supported when it cannot import keys, or lacks the curve', () => {
        const [token, session] = openWithRule(() => ({
          C_GenerateKeyPair: rejectingWith('CKR_CURVE_NOT_SUPPORTED', 0x140),
          C_CreateObject: rejectingWith('CKR_TEMPLATE_INCONSISTENT', 0xd1),
        }));
        const errorKind = (work: () => unknown) => {
          try {
            return work();
          } catch (error) {
            return faultOf(error).kind;
          }
        };
        expect(errorKind(() => generatePair(token, session, key))).to.equal('curve');
        expect(errorKind(() => createPrivateKey(token, session, key, Buffer.alloc(32, 1)))).to.equal('foreign');
      });

      it('deletes a key that could be exported', () => {
        const [token, session] = openWithRule((realLibrary) => ({
          C_GetAttributeValue: (...parameters) =>
            realLibrary
              .C_GetAttributeValue(...parameters)
              .map((attribute, index) => (parameters[2][index]?.type === CKA.extractable ? { value: Buffer.of(1) } : attribute)),
        }));
        expect(() => generatePair(token, session, key)).to.throw('exportable');
        expect(() => createPrivateKey(token, session, key, Buffer.alloc(32, 1))).to.throw('exportable');
        expect(objects(token, session)).to.deep.equal([]);
      });

      it('reports the key that could not be deleted', () => {
        const [token, session] = openWithRule(() => ({
          C_GetAttributeValue: rejectingWith('CKR_DEVICE_ERROR', 0x30),
          C_DestroyObject: rejectingWith('CKR_ACTION_PROHIBITED', 0x1b),
        }));
        expect(() => generatePair(token, session, key)).to.throw(
          /CKR_DEVICE_ERROR; the key acme\.abcd could not be destroyed: remove it from the token/,
        );
        expect(objects(token, session)).to.have.length(2);
      });
    });

    describe('an invalid library setting', () => {
      it('names a library that does not exist', async () => {
        const library = join(hsm.folder, 'none.so');
        expect(await errorMessage(() => hsm.open('hsm', 'one', { library }))).to.match(
          /^The key provider "hsm" cannot be used: there is no PKCS#11 library .*none\.so; .*correct "library"\.$/,
        );
      });

      it('names a file that is not a library', async () => {
        const library = join(hsm.folder, 'text.so');
        writeFileSync(library, 'text');
        for (let time = 0; time < 2; time++)
          expect(await errorMessage(() => hsm.open('hsm', 'one', { library }))).to.match(/text\.so cannot be loaded \(/);
      });

      it('names the missing package', async () => {
        const hooks =
          "import { registerHooks } from 'node:module';" +
          'registerHooks({ resolve(name, context, next) {' +
          " return next(name === 'pkcs11js' ? 'a-package-that-is-not-there' : name, context); } });";
        const { stdout } = await runChild(hsm, hooks);
        expect(stdout).to.match(
          /failed: The key provider "hsm" cannot be used: .*run "npm i --no-save pkcs11js" and "npm rebuild .*compiler/,
        );
      });
    });

    it('does not keep an otherwise idle process running', async () => {
      hsm.addToken('one');
      expect((await runChild(hsm)).stdout).to.equal('signed\n');
    });
  });
}

const PROGRAM = `
const [kmsFile, randomFile, library, pin] = JSON.parse(process.env.CASE);
const { Pkcs11Kms } = await import(kmsFile);
const { NodeRandom } = await import(randomFile);
const settings = { library, token: 'one', pin, sessions: 2, timeoutSeconds: 5 };
try {
  const kms = await Pkcs11Kms.open({ name: 'hsm', settings, random: new NodeRandom() });
  const { handle } = await kms.generate('acme', 'ES256');
  await kms.sign({ tenantId: 'acme', handle }, 'data');
  console.log('signed');
} catch (error) {
  console.log('failed: ' + error.message + (error.cause?.message ?? ''));
}
`;

/** Runs a separate process that signs once with the token `one` and closes nothing. */
function runChild(hsm: SoftHsm, preludeScript = ''): Promise<{ readonly stdout: string }> {
  const files = ['kms/pkcs11/pkcs11-kms.ts', 'system/random.ts'].map((file) => new URL(`../../adapters/${file}`, import.meta.url).href);
  const { SOFTHSM2_CONF } = process.env;
  const env = { ...minimalEnvironment(), SOFTHSM2_CONF, CASE: JSON.stringify([...files, hsm.library, PIN]) };
  const args = ['--input-type=module', '--eval', `${preludeScript}${PROGRAM}`];
  return promisify(execFile)(process.execPath, args, { env, timeout: 15_000, killSignal: 'SIGKILL' });
}

if (hasSoftHsm()) {
  describe('HSM that hangs', () => {
    let hsm: SoftHsm;

    beforeEach(() => {
      hsm = new SoftHsm();
    });
    afterEach(() => hsm.stop());

    it('does not delay other work, and works again when it responds', async () => {
      hsm.addToken('slow');
      const kms = await hsm.open('hsm', 'slow', { timeoutSeconds: 1 });
      const key = await kms.generate('acme', 'ES256');
      // All sessions are open.
      await Promise.all(Array.from({ length: 16 }, () => expectValidSignature(kms, key)));
      const release = blockFiles(hsm.tokens, (name) => name.endsWith('.object') && name !== 'token.object');
      try {
        const startedAt = performance.now();
        let ticks = 0;
        const timer = setInterval(() => ticks++, 10);
        // As many as the threads of the libuv pool, and as many waiting calls.
        const reasons = await Promise.all(
          Array.from({ length: 8 }, () => unavailableReason(() => kms.sign(signingKey('acme', key), 'data'))),
        );
        clearInterval(timer);
        expect(performance.now() - startedAt).to.be.lessThan(5_000);
        expect(ticks).to.be.greaterThan(10);
        expect(reasons.join()).to.match(/no answer within 1000 ms/);
        expect(await readFile(new URL(import.meta.url), 'utf8')).to.contain('holds up nothing else');
        expect(await errorMessage(() => kms.assertReachable())).to.match(/"hsm" does not work: no answer within 1000 ms/);
      } finally {
        release();
      }
      await waitUntil(async () => (await failing(() => kms.assertReachable())) === undefined);
      await expectValidSignature(kms, key);
    });

    it('is abandoned after its timeout, and used by the next call', async () => {
      hsm.addToken('left');
      const kms = await hsm.open('hsm', 'left', { timeoutSeconds: 1 });
      const key = await kms.generate('acme', 'ES256');
      const release = blockFiles(hsm.tokens, (name) => name.endsWith('.object') && name !== 'token.object');
      try {
        await unavailableReason(() => kms.sign(signingKey('acme', key), 'data'));
        const startedAt = performance.now();
        await kms.close();
        expect(performance.now() - startedAt).to.be.lessThan(3_000);
      } finally {
        release();
      }
      const laterKms = await hsm.open('hsm', 'left');
      await waitUntil(async () => (await failing(() => laterKms.assertReachable())) === undefined);
      await expectValidSignature(laterKms, key);
    });

    it('keeps no key for a caller that disconnected', async () => {
      hsm.addToken('late');
      const kms = await hsm.open('hsm', 'late', { sessions: 1, timeoutSeconds: 1 });
      await kms.generate('acme', 'ES256');
      const objects = () => filesIn(hsm.tokens).filter((file) => file.endsWith('.object')).length;
      const objectsBefore = objects();
      const release = blockFiles(hsm.tokens, (name) => name === 'generation');
      let reason: string;
      try {
        reason = await unavailableReason(() => kms.generate('acme', 'ES256'));
      } finally {
        release();
      }
      expect(reason).to.contain('no answer within 1000 ms');
      await kms.assertReachable();
      expect(objects()).to.equal(objectsBefore);
    });
  });
}

/** Blocks reads of files by replacing each with a pipe without a writer. @returns a function that restores them. */
function blockFiles(folder: string, isOne: (name: string) => boolean): () => void {
  const files = filesIn(folder).filter((file) => isOne(file.slice(file.lastIndexOf('/') + 1)));
  expect(files).to.not.equal([]);
  for (const file of files) {
    renameSync(file, `${file}.kept`);
    execFileSync('mkfifo', [file]);
  }
  return () => {
    // Opening the pipe for writing unblocks waiting readers, which then read nothing.
    const pipes = files.map((file) => openSync(file, constants.O_RDWR | constants.O_NONBLOCK));
    for (const file of files) renameSync(`${file}.kept`, file);
    for (const pipe of pipes) closeSync(pipe);
  };
}

async function waitUntil(condition: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 15_000;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error('it did not happen in time');
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
