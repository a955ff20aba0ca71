import { expect } from 'chai';
import { MasterCipher } from '../../adapters/crypto/cipher.ts';
import { OrmStore } from '../../adapters/persistence/orm-store.ts';
import { StoreUnavailableError } from '../../application/ports/store.ts';
import type { Terms } from '../../application/ports/terms.ts';
import { assertNotRewound, RewindRefusedError } from '../../application/rewinds/assert-not-rewound.ts';
import { SYSTEM } from '../../domain/audit/audit-entry.ts';
import { describeSessionRemoval } from '../../domain/audit/describe-change.ts';
import { formatPosition, type Position, positionOf, type Term } from '../../domain/rewinds/term.ts';
import { databases, type TestDatabase } from '../support/databases.ts';
import { rawSql } from '../support/postgres-server.ts';
import { addTenant, aSession, aUse, NOW, openOffer } from './store/builders.ts';

const cipher = new MasterCipher({ masterSecrets: ['a master secret of decent length'] });

for (const { name, open } of databases()) {
  describe(`database history of ${name}`, () => {
    let database: TestDatabase | undefined;
    let stores: OrmStore[];

    beforeEach(async function () {
      database = await open();
      if (database === undefined) return this.skip();
      const { url } = database;
      // A database for one process is opened once.
      const count = name === 'sqlite' ? 1 : 4;
      stores = await Promise.all(Array.from({ length: count }, () => OrmStore.open({ url, poolSize: 2 }, cipher)));
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

    it('begins once when several processes begin it', async () => {
      await Promise.all([...stores, ...stores].map(({ terms }) => terms.begin()));
      const { terms, place } = await first().terms.read();
      expect(terms).to.have.length(1);
      expect(terms[0]).to.deep.include({ number: 1, counter: 0, how: 'begun', lostAt: null, place });
      expect(terms[0]?.lineage).to.equal(terms[0]?.id);
    });

    it('is valid for processes whose position it contains', async () => {
      const { terms } = first();
      await terms.begin();
      const position = positionOf(await newest());
      await Promise.all([...stores, ...stores].map((store) => store.terms.count(position)));
      const counting = await newest();
      expect(counting.counter).to.equal(2 * stores.length);
      for (const differences of [{ counter: counting.counter + 1 }, { term: 2 }, { termId: 'other' }]) {
        await terms.count({ ...positionOf(counting), ...differences });
      }
      expect(await newest()).to.deep.equal(counting);
    });

    it('has one successor, after the term that its creator read', async () => {
      const { terms } = first();
      await terms.begin();
      await terms.markLost(positionOf(await newest()));
      expect((await newest()).lostAt).to.be.instanceOf(Date);
      const next = (number: number) => ({ after: 1, number, how: 'fenced', listFloor: 40 }) as const;
      const results = await Promise.all(stores.map((store, index) => store.terms.open(next(100 + index))));
      expect(results.filter(Boolean)).to.have.length(1);
      const term = await newest();
      expect(term).to.include({ how: 'fenced', lostAt: null, listFloor: 40 });
      expect(await terms.open(next(900)), 'after another term').to.equal(false);
      expect(await terms.open({ after: term.number, number: 901, how: 'accepted' })).to.equal(true);
      expect(await newest(), 'the numbers of lists do not decrease').to.include({ number: 901, listFloor: 40 });
      const { terms: all } = await terms.read();
      expect(new Set(all.map(({ lineage }) => lineage)).size).to.equal(1);
    });

    it('loses a term with the terms that were promoted from it, and no term that an operator began since', async () => {
      const { terms } = first();
      await terms.begin();
      const observed = await newest();
      await terms.markLost({ ...positionOf(observed), termId: 'other' });
      expect((await newest()).lostAt, 'a different term with the same number was observed').to.equal(null);
      await terms.open({ after: observed.number, number: 100, how: 'promoted' });
      await terms.markLost(positionOf(observed));
      expect((await newest()).lostAt, 'a promoted term').to.be.instanceOf(Date);
      for (const [index, how] of (['accepted', 'fenced'] as const).entries()) {
        await terms.open({ after: (await newest()).number, number: 200 + index, how });
        await terms.markLost(positionOf(observed));
        expect((await newest()).lostAt, `a term that is ${how}`).to.equal(null);
      }
      await terms.open({ after: (await newest()).number, number: 300, how: 'promoted' });
      await terms.markLost(positionOf(observed));
      expect((await newest()).lostAt, 'a term that is promoted after an operator accepted a term').to.equal(null);
      await terms.markLost(positionOf(await newest()));
      expect((await newest()).lostAt).to.be.instanceOf(Date);
    });

    for (const isAccepting of [true, false])
      it(`keeps the term that an operator began while another process started ${isAccepting ? 'with' : 'without'} ACCEPT_REWIND`, async () => {
        const { terms } = first();
        await terms.begin();
        const term = await newest();
        const sighting = { ...positionOf(term), counter: term.counter + 7, address: 'here' };
        const accepted = formatPosition(sighting);
        const witness = {
          location: '/data/witness.json',
          qualifiedLocation: 'host:/data/witness.json',
          sightings: async () => [sighting],
          note: async () => {},
          begin: async () => {},
        };
        const start = (ownTerms: Terms, acceptedPosition?: string) =>
          assertNotRewound({ terms: ownTerms, witness, pause: async () => {}, report: () => {} }, 'here', acceptedPosition);
        // The second process read the history before the first one begins its term.
        const lateTerms = Object.create(terms, {
          markLost: {
            value: async (position: Position) => {
              await start(terms, accepted);
              await terms.markLost(position);
            },
          },
        }) as Terms;
        const outcome = await start(lateTerms, isAccepting ? accepted : undefined).catch((error: unknown) => error);
        if (!isAccepting) expect(outcome).to.be.instanceOf(RewindRefusedError);
        expect(await newest()).to.include({ how: 'accepted', lostAt: null });
      });

    it('stores the progress of external records, and never falls behind the newest one', async () => {
      const { terms } = first();
      await terms.begin();
      const term = await newest();
      expect(term).to.include({ witnessedAt: null, witnessedCounter: null, witnessedBy: null });
      const positionWith = (counter: number) => ({ ...positionOf(term), counter });
      await terms.markWitnessed({ ...positionWith(5), termId: 'other' }, 'host:/other');
      expect((await newest()).witnessedCounter, 'for another term').to.equal(null);
      await Promise.all(stores.map((store) => store.terms.markWitnessed(positionWith(0), 'host:/data')));
      const { witnessedAt } = await newest();
      expect(witnessedAt).to.be.instanceOf(Date);
      expect(await newest()).to.include({ witnessedCounter: 0, witnessedBy: 'host:/data' });
      await Promise.all(
        [7, 9, 8].map((counter, index) => stores[index % stores.length]?.terms.markWitnessed(positionWith(counter), `host:/${counter}`)),
      );
      await terms.markWitnessed(positionWith(3), 'host:/3');
      expect(await newest()).to.include({ witnessedCounter: 9, witnessedBy: 'host:/9' });
      expect((await newest()).witnessedAt, 'the time of the first record').to.deep.equal(witnessedAt);
      await terms.open({ after: term.number, number: 200, how: 'fenced' });
      expect((await newest()).witnessedAt, 'for the next term').to.equal(null);
    });

    it('stores how often an unchanged position was confirmed, and keeps the newest confirmation', async () => {
      const { terms } = first();
      await terms.begin();
      const term = await newest();
      expect([term.witnessedIdleChecks, positionOf(term).idleChecks]).to.deep.equal([null, 0]);
      const markWitnessed = async (counter: number, idleChecks: number) => {
        await terms.markWitnessed({ ...positionOf(term), counter, idleChecks }, `host:/${counter}.${idleChecks}`);
        const { counter: present, witnessedCounter, witnessedIdleChecks, witnessedBy } = await newest();
        return [present, witnessedCounter, witnessedIdleChecks, witnessedBy];
      };
      expect(await markWitnessed(4, 2)).to.deep.equal([0, 4, 2, 'host:/4.2']);
      expect(await markWitnessed(4, 1), 'an earlier check').to.deep.equal([0, 4, 2, 'host:/4.2']);
      expect(await markWitnessed(4, 3), 'a later check').to.deep.equal([0, 4, 3, 'host:/4.3']);
      expect(await markWitnessed(3, 9), 'an earlier position').to.deep.equal([0, 4, 3, 'host:/4.3']);
      expect(await markWitnessed(5, 0), 'a later position').to.deep.equal([0, 5, 0, 'host:/5.0']);
    });

    if (name === 'postgres')
      it('shows challenges to other processes until they are answered, expire or are removed', async () => {
        const [askingStore, , , livingStore] = stores as [OrmStore, OrmStore, OrmStore, OrmStore];
        await askingStore.terms.begin();
        const openChallenges = async () => (await livingStore.terms.read()).challenges;
        const [one, two] = [await askingStore.terms.openChallenge(), await askingStore.terms.openChallenge()];
        expect(await openChallenges()).to.have.members([one, two]);
        const { challenges } = await livingStore.terms.count(positionOf(await newest()));
        expect(challenges, 'without another query').to.have.members([one, two]);
        await livingStore.terms.answerChallenges([one]);
        expect(await askingStore.terms.isAnswered(one)).to.equal(true);
        expect(await askingStore.terms.isAnswered(two)).to.equal(false);
        expect(await openChallenges()).to.deep.equal([two]);
        await rawSql(database?.url ?? '', (run) => run('update leases set expires_at = 1'));
        expect(await openChallenges(), 'of a process that stopped long ago').to.deep.equal([]);
        await askingStore.terms.closeChallenge(one);
        const leaseRows = await rawSql(database?.url ?? '', (run) => run(`select name from leases where name like 'start-challenge/%'`));
        expect(leaseRows).to.deep.equal([]);
        await livingStore.terms.answerChallenges([two]);
        expect(await askingStore.terms.isAnswered(two), 'of a challenge that was removed').to.equal(false);
      });

    it('shows whether it contains the last change of a process', async () => {
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
      expect(await terms.hasLastChange(), 'a consumed value').to.equal(false);
      await terms.count(positionOf(await newest()));
      expect(await terms.hasLastChange(), 'a counted change needs no other proof').to.equal(true);
    });

    it('does not report a removed session as a loss', async () => {
      const store = first();
      const { terms } = store;
      await terms.begin();
      const tenantId = await addTenant(store);
      const { session: removedSession } = await openOffer(store, tenantId);
      const audit = { by: SYSTEM, change: describeSessionRemoval(removedSession.id) } as const;
      const [, otherStore = store] = stores;
      expect((await otherStore.commit(tenantId, { removes: removedSession.id, audit }, NOW)).done).to.equal(true);
      expect(await terms.hasLastChange()).to.equal(true);
      await openOffer(store, tenantId);
      await rawSql(database?.url ?? '', (run) => run('delete from sessions'));
      expect(await terms.hasLastChange(), 'another change').to.equal(false);
    });

    it('blocks issuance while it may have been replaced, and still allows status changes', async () => {
      const store = first();
      const tenantId = await addTenant(store);
      store.rewinds.watch = { refusal: 'the database went back', fencedAt: undefined };
      const reasonOfRejection = async (work: Promise<unknown>) => {
        const error = await work.catch((caught: unknown) => caught);
        expect(error).to.be.instanceOf(StoreUnavailableError);
      };
      await reasonOfRejection(store.commit(tenantId, { opens: { session: aSession(tenantId) } }, NOW));
      await reasonOfRejection(store.lists(tenantId).allocateStatusRun({ id: 'list', keyChainId: null }, 1));
      await reasonOfRejection(store.forTenant(tenantId, async () => {}, { by: 'system' }));
      await reasonOfRejection(store.forService(async () => {}, { by: 'system' }));
      expect(await store.commit(tenantId, { statuses: [] }, NOW)).to.deep.equal({ done: true });
      expect(await store.read(tenantId).state()).to.not.equal(undefined);
    });
  });
}
