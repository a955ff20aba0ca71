import { execFile } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { publicJwkOf } from '../../adapters/kms/pkcs11/algorithms.ts';
import { CKA } from '../../adapters/kms/pkcs11/cryptoki.ts';
import { faultOf } from '../../adapters/kms/pkcs11/fault.ts';
import { createPrivateKey, generatePair } from '../../adapters/kms/pkcs11/token-keys.ts';
import { Failure } from '../../domain/shared/failure.ts';
import { failing } from '../contract/kms-provider.suite.ts';
import { bareEnvironment } from '../support/compile-cache.ts';
import {
  expectSigns,
  filesIn,
  hasSoftHsm,
  messageOf,
  type OtherUser,
  PIN,
  SoftHsm,
} from '../support/softhsm.ts';

if (hasSoftHsm()) {
  describe('kinds of HSM', () => {
    let hsm: SoftHsm;

    beforeEach(() => {
      hsm = new SoftHsm();
    });
    afterEach(() => hsm.stop());

    it('makes and takes no keys that the token cannot use', async () => {
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
        expect((error as Error).message).to.equal(
          'The token of the KMS provider "hsm" has no keys for EdDSA.',
        );
      }
      await expectSigns(kms, await kms.generate('acme', 'ES384'));
      expect(filesIn(hsm.tokens).filter((file) => file.endsWith('.object'))).to.have.length(3);
    });

    describe('a token with rules of its own', () => {
      const key = { id: 'abcd', label: 'acme.abcd', algorithm: 'ES256' } as const;
      /** The real library, but for one function. */
      const asking = (rule: (real: OtherUser) => Partial<OtherUser>): [OtherUser, Buffer] => {
        const real = hsm.other();
        const [slot = Buffer.alloc(8)] = real.C_GetSlotList(true);
        return [Object.assign(hsm.other(), rule(real)), real.C_OpenSession(slot, 6)];
      };
      const refusing = (name: string, code: number) => () => {
        throw Object.assign(new Error(name), { code });
      };
      const objects = (other: OtherUser, session: Buffer) => {
        other.C_FindObjectsInit(session, [{ type: CKA.label, value: key.label }]);
        const found = other.C_FindObjects(session, 10);
        other.C_FindObjectsFinal(session);
        return found;
      };

      beforeEach(async () => {
        hsm.addToken('ruled');
        await hsm.open('hsm', 'ruled');
      });

      it('may not know what a key shall not do', () => {
        const [token, session] = asking((real) => ({
          C_GenerateKeyPair(...given) {
            if (given[3].some(({ type }) => type === CKA.decrypt))
              refusing('CKR_ATTRIBUTE_TYPE_INVALID', 0x12)();
            return real.C_GenerateKeyPair(...given);
          },
        }));
        expect(publicJwkOf(generatePair(token, session, key), 'ES256')).to.have.property('crv', 'P-256');
        expect(objects(token, session)).to.have.length(2);
      });

      it('may take no keys from outside, or not have the curve', () => {
        const [token, session] = asking(() => ({
          C_GenerateKeyPair: refusing('CKR_CURVE_NOT_SUPPORTED', 0x140),
          C_CreateObject: refusing('CKR_TEMPLATE_INCONSISTENT', 0xd1),
        }));
        const kindOf = (work: () => unknown) => {
          try {
            return work();
          } catch (error) {
            return faultOf(error).kind;
          }
        };
        expect(kindOf(() => generatePair(token, session, key))).to.equal('curve');
        expect(kindOf(() => createPrivateKey(token, session, key, Buffer.alloc(32, 1)))).to.equal('foreign');
      });

      it('loses a key that could leave it', () => {
        const [token, session] = asking((real) => ({
          C_GetAttributeValue: (...given) =>
            real
              .C_GetAttributeValue(...given)
              .map((shown, at) => (given[2][at]?.type === CKA.extractable ? { value: Buffer.of(1) } : shown)),
        }));
        expect(() => generatePair(token, session, key)).to.throw('could leave it');
        expect(() => createPrivateKey(token, session, key, Buffer.alloc(32, 1))).to.throw('could leave it');
        expect(objects(token, session)).to.deep.equal([]);
      });

      it('says which key is left on it', () => {
        const [token, session] = asking(() => ({
          C_GetAttributeValue: refusing('CKR_DEVICE_ERROR', 0x30),
          C_DestroyObject: refusing('CKR_ACTION_PROHIBITED', 0x1b),
        }));
        expect(() => generatePair(token, session, key)).to.throw(
          /CKR_DEVICE_ERROR; the key acme\.abcd could not be destroyed: remove it from the token/,
        );
        expect(objects(token, session)).to.have.length(2);
      });
    });

    describe('what is not installed', () => {
      it('is a library that is not there', async () => {
        const library = join(hsm.folder, 'none.so');
        expect(await messageOf(() => hsm.open('hsm', 'one', { library }))).to.match(
          /^The key provider "hsm" cannot be used: there is no PKCS#11 library .*none\.so; .*correct "library"\.$/,
        );
      });

      it('is a file that is no library', async () => {
        const library = join(hsm.folder, 'text.so');
        writeFileSync(library, 'text');
        for (let time = 0; time < 2; time++)
          expect(await messageOf(() => hsm.open('hsm', 'one', { library }))).to.match(
            /text\.so cannot be loaded \(/,
          );
      });

      it('is the package', async () => {
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

    it('does not keep a process that has nothing else to do', async () => {
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

/** A process of its own that signs once with the token `one` and closes nothing. */
function runChild(hsm: SoftHsm, before = ''): Promise<{ readonly stdout: string }> {
  const files = ['kms/pkcs11/pkcs11-kms.ts', 'system/random.ts'].map(
    (file) => new URL(`../../adapters/${file}`, import.meta.url).href,
  );
  const { SOFTHSM2_CONF } = process.env;
  const env = { ...bareEnvironment(), SOFTHSM2_CONF, CASE: JSON.stringify([...files, hsm.library, PIN]) };
  const args = ['--input-type=module', '--eval', `${before}${PROGRAM}`];
  return promisify(execFile)(process.execPath, args, { env, timeout: 15_000, killSignal: 'SIGKILL' });
}
