import { execFile } from 'node:child_process';
import { statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { MasterCipher } from '../../adapters/crypto/cipher.ts';
import { OrmStore } from '../../adapters/persistence/orm-store.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { addTenant } from '../contract/store/builders.ts';
import { databases, rawSql, type TestDatabase } from '../support/databases.ts';
import type { GroupAssignment } from '../support/group-child.ts';

const MASTER_SECRET = 'a master secret of decent length';
const CHILD = fileURLToPath(new URL('../support/group-child.ts', import.meta.url));

/** What a process was told stays, and what it was told has failed does not, however it ends. */
describe('Changes written together on sqlite by a process that', () => {
  let database: TestDatabase;
  let tenantId: TenantId;
  const [kind] = databases();
  beforeEach(async () => {
    database = (await kind?.open()) as TestDatabase;
    const cipher = new MasterCipher({ masterSecrets: [MASTER_SECRET] });
    const store = await OrmStore.open({ url: database.url, poolSize: 2 }, cipher);
    tenantId = await addTenant(store);
    await store.close();
  });
  afterEach(() => database.drop());

  /** @param before what the shell does first. */
  async function said(assignment: Pick<GroupAssignment, 'rounds' | 'dies'>, before = ':') {
    const asked: GroupAssignment = {
      url: database.url,
      masterSecret: MASTER_SECRET,
      tenantId,
      ...assignment,
    };
    const script = `${before}; exec "$@"`;
    const output = await new Promise<string>((resolve) => {
      const words = ['-c', script, 'sh', process.execPath, CHILD, JSON.stringify(asked)];
      execFile('/bin/sh', words, { maxBuffer: 2 ** 24 }, (_error, stdout) => resolve(stdout));
    });
    const lines = output.split('\n').filter((line) => line !== '');
    const ids = (word: string) =>
      lines.flatMap((line) => (line.startsWith(`${word} `) ? [line.slice(word.length + 1)] : []));
    return { lines, done: ids('done'), unavailable: ids('StoreUnavailable') };
  }
  const stored = () =>
    rawSql(database.url, async (run) => (await run('select id from sessions')).map(({ id }) => String(id)));

  it('is killed right after an answer are there', async () => {
    const { done, lines } = await said({ rounds: 5, dies: true });
    expect(lines).to.have.lengthOf.above(160);
    expect(await stored()).to.include.members(done);
  });

  it('cannot write any more are there if they were done, and gone if they failed', async () => {
    const size = statSync(database.url.slice('sqlite:'.length)).size;
    // In blocks of 512 bytes: the log finds no room beyond, in the middle of a commit.
    const room = `ulimit -f ${Math.ceil(size / 512) + 500}; trap '' XFSZ`;
    const { done, unavailable, lines } = await said({ rounds: 200, dies: false }, room);
    expect(lines).to.have.length(8_000);
    expect(done).to.have.lengthOf.above(0);
    expect(unavailable).to.have.lengthOf.above(0);
    expect(done.length + unavailable.length).to.equal(8_000);
    expect((await stored()).toSorted()).to.deep.equal(done.toSorted());
  });
});
