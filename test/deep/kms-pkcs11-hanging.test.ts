import { execFileSync } from 'node:child_process';
import { closeSync, constants, openSync, renameSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import { signingKey } from '../../domain/keys/signing-key.ts';
import { failing } from '../contract/kms-provider.suite.ts';
import { expectSigns, filesIn, hasSoftHsm, messageOf, reasonOf, SoftHsm } from '../support/softhsm.ts';

if (hasSoftHsm()) {
  describe('an HSM that hangs', () => {
    let hsm: SoftHsm;

    beforeEach(() => {
      hsm = new SoftHsm();
    });
    afterEach(() => hsm.stop());

    it('holds up nothing else, and works again when it comes back', async () => {
      hsm.addToken('slow');
      const kms = await hsm.open('hsm', 'slow', { timeoutSeconds: 1 });
      const key = await kms.generate('acme', 'ES256');
      // All sessions are open.
      await Promise.all(Array.from({ length: 16 }, () => expectSigns(kms, key)));
      const letGo = hang(hsm.tokens, (name) => name.endsWith('.object') && name !== 'token.object');
      try {
        const begin = performance.now();
        let ticks = 0;
        const timer = setInterval(() => ticks++, 10);
        // As many as Node has threads for files, and as many that wait.
        const reasons = await Promise.all(
          Array.from({ length: 8 }, () => reasonOf(() => kms.sign(signingKey('acme', key), 'data'))),
        );
        clearInterval(timer);
        expect(performance.now() - begin).to.be.lessThan(5_000);
        expect(ticks).to.be.greaterThan(10);
        expect(reasons.join()).to.match(/no answer within 1000 ms/);
        expect(await readFile(new URL(import.meta.url), 'utf8')).to.contain('holds up nothing else');
        expect(await messageOf(() => kms.check())).to.match(/"hsm" does not work: no answer within 1000 ms/);
      } finally {
        letGo();
      }
      await until(async () => (await failing(() => kms.check())) === undefined);
      await expectSigns(kms, key);
    });

    it('is left behind in time, and used by who comes after', async () => {
      hsm.addToken('left');
      const kms = await hsm.open('hsm', 'left', { timeoutSeconds: 1 });
      const key = await kms.generate('acme', 'ES256');
      const letGo = hang(hsm.tokens, (name) => name.endsWith('.object') && name !== 'token.object');
      try {
        await reasonOf(() => kms.sign(signingKey('acme', key), 'data'));
        const begin = performance.now();
        await kms.close();
        expect(performance.now() - begin).to.be.lessThan(3_000);
      } finally {
        letGo();
      }
      const later = await hsm.open('hsm', 'left');
      await until(async () => (await failing(() => later.check())) === undefined);
      await expectSigns(later, key);
    });

    it('leaves no key for a caller who has gone', async () => {
      hsm.addToken('late');
      const kms = await hsm.open('hsm', 'late', { sessions: 1, timeoutSeconds: 1 });
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
      expect(reason).to.contain('no answer within 1000 ms');
      await kms.check();
      expect(objects()).to.equal(before);
    });
  });
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
