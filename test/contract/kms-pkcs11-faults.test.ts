import { execFile, execFileSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { closeSync, constants, openSync, readdirSync, renameSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { inspect, promisify } from 'node:util';
import { expect } from 'chai';
import { CKA, CKK, CKO } from '../../adapters/kms/pkcs11/cryptoki.ts';
import { asRefusal } from '../../adapters/kms/pkcs11/fault.ts';
import type { Pkcs11Kms } from '../../adapters/kms/pkcs11/pkcs11-kms.ts';
import { type StoredKey, signingKey } from '../../domain/keys/signing-key.ts';
import { Failure } from '../../domain/shared/failure.ts';
import { bareEnvironment } from '../support/compile-cache.ts';
import { hasSoftHsm, type OtherUser, PIN, SoftHsm } from '../support/softhsm.ts';
import { failing, isSignedBy } from './kms-provider.suite.ts';

/** CKF_USER_PIN_COUNT_LOW: a wrong PIN was given since the last right one. */
const WRONG_PIN_GIVEN = 0x1_0000;

if (hasSoftHsm()) {
  describe('faults of an HSM', () => {
    let hsm: SoftHsm;

    beforeEach(() => {
      hsm = new SoftHsm();
    });
    afterEach(() => hsm.stop());

    const expectSigns = async (kms: Pkcs11Kms, key: StoredKey) => {
      const signature = await kms.sign(signingKey('acme', key), 'data');
      expect(isSignedBy(key.publicJwk, 'data', signature)).to.equal(true);
    };
    const reasonOf = async (work: () => Promise<unknown>): Promise<string> => {
      const error = await failing(work);
      expect(error).to.be.instanceOf(Failure).with.property('code', 'unavailable');
      return ((error as Failure).cause as Error).message;
    };
    const messageOf = async (work: () => Promise<unknown>) =>
      ((await failing(work)) as Error | undefined)?.message;

    describe('the token', () => {
      it('may come later', async () => {
        const kms = await hsm.open('hsm', 'later');
        expect(kms.algorithms).to.have.length(4);
        expect(await messageOf(() => kms.check())).to.equal(
          'the key provider "hsm" does not work: no token is labelled "later"; the library shows 0 initialized ones',
        );
        expect(await reasonOf(() => kms.generate('acme', 'ES256'))).to.contain('"later"');
        hsm.addToken('later');
        await kms.check();
        await expectSigns(kms, await kms.generate('acme', 'ES256'));
      });

      it('is looked for anew when nobody else uses the library', async () => {
        hsm.addToken('there');
        const [there, kms] = [await hsm.open('there', 'there'), await hsm.open('hsm', 'later')];
        hsm.addToken('later');
        const key = await there.generate('acme', 'ES256');
        expect(await messageOf(() => kms.check())).to.contain('shows 1 initialized ones');
        await expectSigns(there, key);
        await there.close();
        await kms.check();
      });

      it('is not guessed when several have its label', async () => {
        hsm.addToken('twin');
        hsm.addToken('twin');
        const kms = await hsm.open('hsm', 'twin');
        expect(await messageOf(() => kms.check())).to.contain('more than one token');
      });
    });

    it('gives a refused PIN once, and never again in this process', async () => {
      hsm.addToken('locked', 'another-pin');
      const flags = () =>
        hsm.beside('locked', (other, _, slot) => other.C_GetTokenInfo(slot).flags & WRONG_PIN_GIVEN);
      const kms = await hsm.open('hsm', 'locked');
      expect(flags()).to.equal(WRONG_PIN_GIVEN);
      expect(await messageOf(() => kms.check())).to.match(
        /the PIN was refused .*CKR_PIN_INCORRECT.*correct it and restart/,
      );
      hsm.beside('locked', (other, session) => {
        other.C_Login(session, 1, 'another-pin');
        other.C_SetPIN(session, 'another-pin', PIN);
        other.C_Logout(session);
      });
      // From now on it would be the right one.
      expect(await reasonOf(() => kms.generate('acme', 'ES256'))).to.contain('the PIN was refused');
      const again = await hsm.open('again', 'locked');
      expect(await messageOf(() => again.check())).to.contain('the PIN was refused');
      expect(flags()).to.equal(0);
    });

    describe('a session', () => {
      const losses: Record<string, (other: OtherUser, slot: Buffer, session: Buffer) => void> = {
        'the sessions of all are closed': (other, slot) => other.C_CloseAllSessions(slot),
        'the user is logged out': (other, _, session) => other.C_Logout(session),
      };
      for (const [title, lose] of Object.entries(losses)) {
        it(`is opened again when ${title}`, async () => {
          hsm.addToken('restarted');
          const [kms, neighbour] = [await hsm.open('hsm', 'restarted'), await hsm.open('other', 'restarted')];
          const key = await kms.generate('acme', 'ES256');
          await Promise.all(Array.from({ length: 20 }, () => expectSigns(kms, key)));
          hsm.beside('restarted', (other, session, slot) => lose(other, slot, session));
          await Promise.all(
            Array.from({ length: 20 }, (_, index) => expectSigns(index % 2 === 0 ? kms : neighbour, key)),
          );
          hsm.beside('restarted', (other, session, slot) => lose(other, slot, session));
          await expectSigns(neighbour, await kms.generate('acme', 'ES256'));
          await Promise.all([kms.check(), neighbour.check()]);
        });
      }
    });

    it('is used again when the library was finalized', async () => {
      hsm.addToken('ended');
      const kms = await hsm.open('hsm', 'ended');
      const key = await kms.generate('acme', 'ES256');
      hsm.other().C_Finalize();
      await expectSigns(kms, key);
      await Promise.all(Array.from({ length: 20 }, () => expectSigns(kms, key)));
    });

    describe('a key', () => {
      const template = ({ handle }: StoredKey, more: { type: number; value: number }[] = []) => [
        { type: CKA.id, value: Buffer.from(handle.keyId, 'hex') },
        ...more,
      ];
      const destroy = (key: StoredKey) =>
        hsm.beside('one', (other, session) => {
          other.C_FindObjectsInit(session, template(key));
          const found = other.C_FindObjects(session, 10);
          other.C_FindObjectsFinal(session);
          for (const object of found) other.C_DestroyObject(session, object);
        });

      it('that somebody destroyed holds up no other', async () => {
        hsm.addToken('one');
        const kms = await hsm.open('hsm', 'one');
        const [key, other] = [await kms.generate('acme', 'ES256'), await kms.generate('acme', 'ES256')];
        await expectSigns(kms, key);
        destroy(key);
        for (let call = 0; call < 10; call++)
          expect(await reasonOf(() => kms.sign(signingKey('acme', key), 'data'))).to.contain(
            `the token has no key acme.${key.handle.keyId}`,
          );
        await expectSigns(kms, other);
        await kms.check();
      });

      it('is found again when it was put back', async () => {
        hsm.addToken('one');
        const kms = await hsm.open('hsm', 'one', { sessions: 1 });
        const seed = Buffer.alloc(32, 7);
        const put = ({ handle: { keyId } }: StoredKey) =>
          hsm.beside('one', (other, session) =>
            other.C_CreateObject(session, [
              { type: CKA.class, value: CKO.privateKey },
              { type: CKA.keyType, value: CKK.ecEdwards },
              { type: CKA.token, value: true },
              { type: CKA.private, value: true },
              { type: CKA.sign, value: true },
              { type: CKA.ecParameters, value: Buffer.from('06032b6570', 'hex') },
              { type: CKA.value, value: seed },
              { type: CKA.id, value: Buffer.from(keyId, 'hex') },
              { type: CKA.label, value: `acme.${keyId}` },
            ]),
          );
        const header = Buffer.from('302e020100300506032b657004220420', 'hex');
        const key = await kms.import('acme', Buffer.concat([header, seed]));
        await expectSigns(kms, key);
        destroy(key);
        put(key);
        await expectSigns(kms, key);
        put(key);
        const later = await hsm.open('hsm', 'one');
        expect(await reasonOf(() => later.sign(signingKey('acme', key), 'data'))).to.contain(
          'more than one key',
        );
      });
    });

    describe('a library that hangs', () => {
      it('holds up nothing else, and works again when it comes back', async () => {
        hsm.addToken('slow');
        const kms = await hsm.open('hsm', 'slow', { timeoutSeconds: 0.3 });
        const key = await kms.generate('acme', 'ES256');
        await expectSigns(kms, key);
        const letGo = hang(hsm.tokens, (name) => name.endsWith('.object') && name !== 'token.object');
        try {
          const begin = performance.now();
          let ticks = 0;
          const timer = setInterval(() => ticks++, 10);
          // More than Node has threads for files.
          const reasons = await Promise.all(
            Array.from({ length: 8 }, () => reasonOf(() => kms.sign(signingKey('acme', key), 'data'))),
          );
          clearInterval(timer);
          expect(performance.now() - begin).to.be.lessThan(3_000);
          expect(ticks).to.be.greaterThan(10);
          expect(reasons.join()).to.match(/no answer within 300 ms/);
          expect(await readFile(new URL(import.meta.url), 'utf8')).to.contain('holds up nothing else');
          expect(await messageOf(() => kms.check())).to.match(/"hsm" does not work: no answer within 300 ms/);
        } finally {
          letGo();
        }
        await until(async () => (await failing(() => kms.check())) === undefined);
        await expectSigns(kms, key);
      });

      it('is left behind in time, and used by who comes after', async () => {
        hsm.addToken('left');
        const kms = await hsm.open('hsm', 'left', { timeoutSeconds: 0.3 });
        const key = await kms.generate('acme', 'ES256');
        const letGo = hang(hsm.tokens, (name) => name.endsWith('.object') && name !== 'token.object');
        try {
          await reasonOf(() => kms.sign(signingKey('acme', key), 'data'));
          const begin = performance.now();
          await kms.close();
          expect(performance.now() - begin).to.be.lessThan(1_500);
        } finally {
          letGo();
        }
        const later = await hsm.open('hsm', 'left');
        await until(async () => (await failing(() => later.check())) === undefined);
        await expectSigns(later, key);
      });

      it('leaves no key for a caller who has gone', async () => {
        hsm.addToken('late');
        const kms = await hsm.open('hsm', 'late', { sessions: 1, timeoutSeconds: 0.3 });
        await kms.generate('acme', 'ES256');
        const objects = () => filesIn(hsm.tokens).filter((file) => file.endsWith('.object')).length;
        const before = objects();
        const letGo = hang(hsm.tokens, (name) => name === 'generation');
        let reason: string;
        try {
          reason = await reasonOf(() => kms.generate('acme', 'ES256'));
        } finally {
          letGo();
        }
        expect(reason).to.contain('no answer within 300 ms');
        await kms.check();
        expect(objects()).to.equal(before);
      });
    });

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
        expect((error as Error).message).to.equal('The token of "hsm" has no keys for EdDSA.');
      }
      await expectSigns(kms, await kms.generate('acme', 'ES384'));
      expect(filesIn(hsm.tokens).filter((file) => file.endsWith('.object'))).to.have.length(3);
    });

    it('tells a token that takes no such key from one that fails', () => {
      const refusals = [0x10, 0x13, 0x54, 0x70, 0xd0, 0xd1, 0x130, 0x140];
      const errors = [...refusals, 0x05, 0x30].map((code) => Object.assign(new Error('CKR_NAME'), { code }));
      const kinds = errors.map((error) => asRefusal(error, 'foreign').kind);
      expect(kinds).to.deep.equal([...refusals.map(() => 'foreign'), 'other', 'session']);
    });

    it('is finalized with the last provider', async () => {
      hsm.addToken('one');
      const [first, last] = [await hsm.open('first', 'one'), await hsm.open('last', 'one')];
      await first.close();
      const other = hsm.other();
      expect(other.C_GetSlotList(true)).to.have.length(2);
      await last.check();
      await last.close();
      expect(() => other.C_GetSlotList(true)).to.throw('CKR_CRYPTOKI_NOT_INITIALIZED');
      expect(await reasonOf(() => last.generate('acme', 'ES256'))).to.contain('closed');
    });

    it('shows its PIN nowhere', async () => {
      hsm.addToken('refusing', 'another-pin');
      hsm.addToken('two');
      const shown: unknown[] = [];
      for (const token of ['refusing', 'two', 'three']) {
        const kms = await hsm.open(token, token);
        const key = { tenantId: 'acme', handle: { kms: token, keyId: '00', algorithm: 'ES256' } } as const;
        shown.push(kms, await failing(() => kms.check()), await failing(() => kms.generate('acme', 'ES256')));
        shown.push(await failing(() => kms.sign(key, 'data')));
        await kms.close();
      }
      expect(shown).to.have.length(12);
      expect(inspect(shown, { depth: 20, showHidden: true, getters: true })).to.not.contain(PIN);
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
          /failed: The key provider "hsm" cannot be used: .*run "npm i pkcs11js".* compiler/,
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

function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name));
}

/**
 * Files of which the library reads nothing until it is let go: each becomes a pipe that nobody writes to.
 * @returns puts them back.
 */
function hang(folder: string, isOne: (name: string) => boolean): () => void {
  const files = filesIn(folder).filter((file) => isOne(file.slice(file.lastIndexOf('/') + 1)));
  expect(files).to.not.equal([]);
  for (const file of files) {
    renameSync(file, `${file}.kept`);
    execFileSync('mkfifo', [file]);
  }
  return () => {
    // A pipe that is open for writing, too, lets those in that wait at it; then they find it empty.
    const pipes = files.map((file) => openSync(file, constants.O_RDWR | constants.O_NONBLOCK));
    for (const file of files) renameSync(`${file}.kept`, file);
    for (const pipe of pipes) closeSync(pipe);
  };
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 15_000;
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error('it did not happen in time');
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
