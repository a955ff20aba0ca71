import { expect } from 'chai';
import { MasterCipher } from '../../adapters/crypto/cipher.ts';
import { OrmStore } from '../../adapters/persistence/orm-store.ts';
import { databases, rawSql, type TestDatabase } from '../support/databases.ts';
import { aBatch, addTenant, NOW, openOffer, seconds } from './store/builders.ts';

for (const kind of databases()) {
  describe(`followed status list whose row cannot be decrypted, on ${kind.name}`, () => {
    let database: TestDatabase | undefined;
    let store: OrmStore;
    before(async function () {
      database = await kind.open();
      if (database === undefined) return this.skip();
      const cipher = new MasterCipher({ masterSecrets: ['a master secret of decent length'] });
      store = await OrmStore.open({ url: database.url, poolSize: 4 }, cipher);
    });
    after(async () => {
      await store?.close();
      await database?.drop();
    });

    it('does not delay other lists, and is reported as failing', async () => {
      for (const listId of ['spoiled', 'sound']) {
        const tenantId = await addTenant(store);
        const { session } = await openOffer(store, tenantId);
        const batch = aBatch(session);
        const statuses = [{ uri: 'https://provider.example/1', idx: 3, anchor: 'anchor', listId }];
        const follows = { sessionId: session.id, batchId: batch.id, endsAt: null, statuses };
        expect((await store.commit(tenantId, { issued: batch, follows }, NOW)).done).to.equal(true);
      }
      const { url } = database as TestDatabase;
      await rawSql(url, (run) => run("update followed_lists set place = 'x' where id = 'spoiled'"));
      const dueLists = async (now: Date) => (await store.maintenance.dueFollowedLists(now, 8)).map(({ id }) => id);
      expect(await dueLists(seconds(1))).to.deep.equal(['sound']);
      const rows = await rawSql(url, (run) => run("select failure, failures from followed_lists where id = 'spoiled'"));
      expect(JSON.stringify(rows)).to.include('cannot be decrypted');
      // Until the next attempt is due, the list is not read.
      expect(await dueLists(seconds(2))).to.deep.equal(['sound']);
      expect(await dueLists(seconds(3_600))).to.deep.equal(['sound']);
    });
  });
}
