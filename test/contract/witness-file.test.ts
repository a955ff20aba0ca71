import { chownSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { WitnessFile } from '../../adapters/system/witness-file.ts';

const SIGHTING = { address: 'here', lineage: 'l', term: 1, termId: 't', counter: 3 };

describe('The file in which a machine notes how far its database is', () => {
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
    expect([statSync(file).uid, statSync(file).gid], 'as the folder').to.deep.equal([1000, 1000]);
    chownSync(file, 1001, 1002);
    await new WitnessFile(file).note({ ...SIGHTING, counter: 4 });
    const { uid, gid, mode } = statSync(file);
    expect([uid, gid, mode & 0o777], 'as the former one').to.deep.equal([1001, 1002, 0o600]);
  });

  it('is not written through a link that somebody laid there', async () => {
    const other = join(folder, 'other');
    writeFileSync(other, 'kept');
    symlinkSync(other, `${file}.${process.pid}.new`);
    await new WitnessFile(file).begin(SIGHTING);
    expect(readFileSync(other, 'utf8')).to.equal('kept');
    expect(await new WitnessFile(file).sightings()).to.deep.equal([SIGHTING]);
  });
});
