import crypto, { createPublicKey, generateKeyPairSync, sign } from 'node:crypto';
import { expect } from 'chai';
import { databases, rawSql } from '../support/databases.ts';
import { countWork } from '../support/measurements.ts';
import { countingProxy } from '../support/proxies.ts';

describe('counter of database and cryptography calls', () => {
  it('counts signatures and keys of modules that imported the function earlier, and excludes the wallet', async () => {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const jwk = publicKey.export({ format: 'jwk' });
    const original = crypto.sign;
    const work = countWork();
    try {
      sign('sha256', Buffer.from('a'), privateKey);
      sign('sha256', Buffer.from('b'), privateKey);
      createPublicKey({ key: jwk, format: 'jwk' });
      await work.uncounted(async () => void sign('sha256', Buffer.from('c'), privateKey));
      expect(work.takeCounts()).to.deep.equal({ signed: 2, verified: 0, imported: 1, called: 0 });
      expect(work.takeCounts().signed).to.equal(0);
    } finally {
      work.end();
    }
    expect(sign).to.equal(original);
  });

  it('counts statements, and each transaction as one commit', async function () {
    const database = await databases()
      .find(({ name }) => name === 'postgres')
      ?.open();
    if (database === undefined) return this.skip();
    const proxy = await countingProxy(database.url);
    try {
      const traffic = await rawSql(proxy.url, async (run) => {
        await run('create table notes (id int)');
        const counts = async (...texts: string[]) => {
          proxy.takeTraffic();
          for (const text of texts) await run(text);
          const { statements, commits, roundTrips } = proxy.takeTraffic();
          return [statements, commits, roundTrips];
        };
        return {
          read: await counts('select * from notes'),
          written: await counts('insert into notes values (1)', 'update notes set id = 2'),
          transaction: await counts('begin', 'insert into notes values (3)', 'insert into notes values (4)', 'commit'),
          hidden: await counts('with n as (delete from notes returning id) select * from n'),
        };
      });
      expect(traffic).to.deep.equal({ read: [1, 0, 1], written: [2, 2, 2], transaction: [4, 1, 4], hidden: [1, 1, 1] });
    } finally {
      await proxy.end();
      await database.drop();
    }
  });
});
