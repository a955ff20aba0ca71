import { chownSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { WitnessFile } from '../../adapters/system/witness-file.ts';

const SIGHTING = { address: 'here', lineage: 'l', term: 1, termId: 't', counter: 3 };

describe('witness file of a machine', () => {
  let folder: string;
  let file: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'vidimus-test-'));
    file = join(folder, 'witness.json');
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it('stays readable for the account of the service when root writes it', async function () {
    if (process.getuid?.() !== 0) return this.skip();
    chownSync(folder, 1000, 1000);
    await new WitnessFile(file).begin(SIGHTING);
    expect([statSync(file).uid, statSync(file).gid], 'the owner of the folder').to.deep.equal([1000, 1000]);
    chownSync(file, 1001, 1002);
    await new WitnessFile(file).note({ ...SIGHTING, counter: 4 });
    const { uid, gid, mode } = statSync(file);
    expect([uid, gid, mode & 0o777], 'as the previous file').to.deep.equal([1001, 1002, 0o600]);
  });

  it('is not written through a symbolic link', async () => {
    const otherFolder = join(folder, 'other');
    writeFileSync(otherFolder, 'kept');
    symlinkSync(otherFolder, `${file}.${process.pid}.new`);
    await new WitnessFile(file).begin(SIGHTING);
    expect(readFileSync(otherFolder, 'utf8')).to.equal('kept');
    expect(await new WitnessFile(file).sightings()).to.deep.equal([SIGHTING]);
  });

  it('keeps the latest position when several processes write simultaneously', async () => {
    const counters = Array.from({ length: 20 }, (_, index) => (index * 7) % 20);
    for (let round = 0; round < 3; round++) {
      await Promise.all(counters.map((counter) => new WitnessFile(file).note({ ...SIGHTING, counter: 20 * round + counter })));
      const [sighting] = await new WitnessFile(file).sightings();
      expect(sighting?.counter).to.equal(20 * round + 19);
    }
    expect(readdirSync(folder)).to.deep.equal(['witness.json']);
  });

  it('is written after a process stopped during a write', async () => {
    writeFileSync(`${file}.lock`, '');
    await new WitnessFile(file).note(SIGHTING);
    expect(await new WitnessFile(file).sightings()).to.deep.equal([SIGHTING]);
  });

  /** A process that pauses after it has read the file. */
  class StoppedProcess extends WitnessFile {
    onRead: (() => Promise<unknown>) | undefined;

    override async sightings() {
      const sightings = await super.sightings();
      const { onRead } = this;
      this.onRead = undefined;
      await onRead?.();
      return sightings;
    }
  }

  for (const method of ['note', 'begin'] as const)
    it(`keeps the records of other processes while the holder of the lock is paused (${method})`, async () => {
      await new WitnessFile(file).note(SIGHTING);
      const otherSighting = { ...SIGHTING, lineage: 'other', address: 'there' };
      const stopped = new StoppedProcess(file);
      stopped.onRead = async () => {
        rmSync(`${file}.lock`);
        await new WitnessFile(file).note({ ...SIGHTING, counter: 9 });
        await new WitnessFile(file).note(otherSighting);
      };
      const nextSighting = { ...SIGHTING, termId: 'next', term: 2 };
      await stopped[method](method === 'note' ? { ...SIGHTING, counter: 4 } : nextSighting);
      const expected = method === 'note' ? { ...SIGHTING, counter: 9 } : nextSighting;
      expect(await new WitnessFile(file).sightings()).to.deep.equal([expected, otherSighting]);
      expect(readdirSync(folder)).to.deep.equal(['witness.json']);
    });

  it('does not remove the lock of another process that took it over', async () => {
    const stopped = new StoppedProcess(file);
    stopped.onRead = async () => {
      writeFileSync(`${file}.lock`, 'another process');
      throw new Error('disk error');
    };
    const error = await stopped.note(SIGHTING).catch((reason: Error) => reason.message);
    expect(error).to.equal('disk error');
    expect(readFileSync(`${file}.lock`, 'utf8')).to.equal('another process');
  });
});
