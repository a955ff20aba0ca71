import { expect } from 'chai';
import { MasterCipher } from '../../adapters/crypto/cipher.ts';
import { OrmStore } from '../../adapters/persistence/orm-store.ts';
import { StoreUnavailable } from '../../application/ports/store.ts';
import { SYSTEM } from '../../domain/audit/audit-entry.ts';
import { describeSessionRemoval } from '../../domain/audit/describe-change.ts';
import { positionOf, type Term } from '../../domain/rewinds/term.ts';
import { databases, type TestDatabase } from '../support/databases.ts';
import { rawSql } from '../support/raw-sql.ts';
import { addTenant, aSession, aUse, NOW, openOffer } from './store/builders.ts';

const cipher = new MasterCipher({ masterSecrets: ['a master secret of decent length'] });

for (const { name, open } of databases()) {
  describe(`The history that ${name} keeps of itself`, () => {
    let database: TestDatabase | undefined;
    let stores: OrmStore[];

    beforeEach(async function () {
      database = await open();
      if (database === undefined) return this.skip();
      const { url } = database;
      // What belongs to one process is served by one.
      const count = name === 'sqlite' ? 1 : 4;
      stores = await Promise.all(
        Array.from({ length: count }, () => OrmStore.open({ url, poolSize: 2 }, cipher)),
      );
    });
    afterEach(async () => {
      for (const store of stores) await store.close();
      await database?.drop();
    });
    const first = (): OrmStore => {
      const [store] = stores;
      if (store === undefined) throw new Error('there is a store');
      return store;
    };
    const newest = async (): Promise<Term> => {
      const [term] = (await first().terms.read()).terms;
      if (term === undefined) throw new Error('there is a term');
      return term;
    };

    it('begins once, whoever begins it', async () => {
      await Promise.all([...stores, ...stores].map(({ terms }) => terms.begin()));
      const { terms, place } = await first().terms.read();
      expect(terms).to.have.length(1);
      expect(terms[0]).to.deep.include({ number: 1, counter: 0, how: 'begun', lostAt: null, place });
      expect(terms[0]?.lineage).to.equal(terms[0]?.id);
    });

    it('counts for those whose position it has', async () => {
      const { terms } = first();
      await terms.begin();
      const position = positionOf(await newest());
      await Promise.all([...stores, ...stores].map((store) => store.terms.count(position)));
      const counted = await newest();
      expect(counted.counter).to.equal(2 * stores.length);
      for (const other of [{ counter: counted.counter + 1 }, { term: 2 }, { termId: 'other' }]) {
        await terms.count({ ...positionOf(counted), ...other });
      }
      expect(await newest()).to.deep.equal(counted);
    });

    it('has one next term, after the one that its maker saw', async () => {
      const { terms } = first();
      await terms.begin();
      await terms.markLost();
      expect((await newest()).lostAt).to.be.instanceOf(Date);
      const next = (number: number) => ({ after: 1, number, how: 'fenced', listFloor: 40 }) as const;
      const opened = await Promise.all(stores.map((store, index) => store.terms.open(next(100 + index))));
      expect(opened.filter(Boolean)).to.have.length(1);
      const begun = await newest();
      expect(begun).to.include({ how: 'fenced', lostAt: null, listFloor: 40 });
      expect(await terms.open(next(900)), 'after another one').to.equal(false);
      expect(await terms.open({ after: begun.number, number: 901, how: 'accepted' })).to.equal(true);
      expect(await newest(), 'numbers of lists do not go back').to.include({ number: 901, listFloor: 40 });
      const { terms: all } = await terms.read();
      expect(new Set(all.map(({ lineage }) => lineage)).size).to.equal(1);
    });

    it('marks a term as witnessed once, and no other one', async () => {
      const { terms } = first();
      await terms.begin();
      const begun = await newest();
      expect(begun.witnessedAt).to.equal(null);
      await terms.markWitnessed({ ...positionOf(begun), termId: 'other' });
      expect((await newest()).witnessedAt).to.equal(null);
      await Promise.all(stores.map((store) => store.terms.markWitnessed(positionOf(begun))));
      const { witnessedAt } = await newest();
      expect(witnessedAt).to.be.instanceOf(Date);
      await terms.markWitnessed(positionOf(begun));
      expect((await newest()).witnessedAt).to.deep.equal(witnessedAt);
      await terms.open({ after: begun.number, number: 200, how: 'fenced' });
      expect((await newest()).witnessedAt, 'of the next one').to.equal(null);
    });

    if (name === 'postgres')
      it('shows challenges to other processes until they are answered, expire or are removed', async () => {
        const [asking, , , living] = stores as [OrmStore, OrmStore, OrmStore, OrmStore];
        await asking.terms.begin();
        const open = async () => (await living.terms.read()).challenges;
        const [one, two] = [await asking.terms.openChallenge(), await asking.terms.openChallenge()];
        expect(await open()).to.have.members([one, two]);
        const { challenges } = await living.terms.count(positionOf(await newest()));
        expect(challenges, 'without another query').to.have.members([one, two]);
        await living.terms.answerChallenges([one]);
        expect(await asking.terms.isAnswered(one)).to.equal(true);
        expect(await asking.terms.isAnswered(two)).to.equal(false);
        expect(await open()).to.deep.equal([two]);
        await rawSql(database?.url ?? '', (run) => run('update leases set expires_at = 1'));
        expect(await open(), 'of a process that ended long ago').to.deep.equal([]);
        await asking.terms.closeChallenge(one);
        const left = await rawSql(database?.url ?? '', (run) =>
          run(`select name from leases where name like 'start-challenge/%'`),
        );
        expect(left).to.deep.equal([]);
        await living.terms.answerChallenges([two]);
        expect(await asking.terms.isAnswered(two), 'of a challenge that was removed').to.equal(false);
      });

    it('knows whether the last change of a process is there', async () => {
      const store = first();
      const { terms } = store;
      await terms.begin();
      const tenantId = await addTenant(store);
      const raw = (text: string) => rawSql(database?.url ?? '', (run) => run(text));
      const { changes } = terms;
      await openOffer(store, tenantId);
      expect(terms.changes).to.equal(changes + 1);
      expect(await terms.hasLastChange()).to.equal(true);
      await raw('delete from sessions');
      expect(await terms.hasLastChange(), 'a session').to.equal(false);
      await store.commit(tenantId, { uses: [{ ...aUse(), expiresAt: new Date(Date.now() + 60_000) }] }, NOW);
      expect(await terms.hasLastChange()).to.equal(true);
      await raw('delete from used_values');
      expect(await terms.hasLastChange(), 'a value that counts once').to.equal(false);
      await terms.count(positionOf(await newest()));
      expect(await terms.hasLastChange(), 'what was counted needs no other proof').to.equal(true);
    });

    it('takes a session that somebody removed for no loss', async () => {
      const store = first();
      const { terms } = store;
      await terms.begin();
      const tenantId = await addTenant(store);
      const { session: removed } = await openOffer(store, tenantId);
      const audit = { by: SYSTEM, change: describeSessionRemoval(removed.id) } as const;
      const [, other = store] = stores;
      expect((await other.commit(tenantId, { removes: removed.id, audit }, NOW)).done).to.equal(true);
      expect(await terms.hasLastChange()).to.equal(true);
      await openOffer(store, tenantId);
      await rawSql(database?.url ?? '', (run) => run('delete from sessions'));
      expect(await terms.hasLastChange(), 'another one').to.equal(false);
    });

    it('lets nothing be given away while it may be another one, but statuses be changed', async () => {
      const store = first();
      const tenantId = await addTenant(store);
      store.rewinds.watch = { refusal: 'the database went back', fencedAt: undefined };
      const refused = async (work: Promise<unknown>) => {
        const error = await work.catch((caught: unknown) => caught);
        expect(error).to.be.instanceOf(StoreUnavailable);
      };
      await refused(store.commit(tenantId, { opens: { session: aSession(tenantId) } }, NOW));
      await refused(store.lists(tenantId).takeStatusRun({ id: 'list', keyChainId: null }, 1));
      await refused(store.forTenant(tenantId, async () => {}, { by: 'system' }));
      await refused(store.forService(async () => {}, { by: 'system' }));
      expect(await store.commit(tenantId, { statuses: [] }, NOW)).to.deep.equal({ done: true });
      expect(await store.read(tenantId).state()).to.not.equal(undefined);
    });
  });
}
