import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { MasterCipher } from '../../adapters/crypto/cipher.ts';
import { OrmStore } from '../../adapters/persistence/orm-store.ts';
import type { Store } from '../../application/ports/store.ts';
import { MAX_ISSUANCES } from '../../domain/sessions/session.ts';
import { aBatch, addList, addTenant, aKeyChain, aUse, NOW, openOffer } from '../contract/store/builders.ts';
import { batchIssuance, stepsOf } from '../contract/store/steps.ts';
import { databases, type TestDatabase } from '../support/databases.ts';
import type { Assignment } from '../support/race-child.ts';
import { type RaceKeys, type RaceResult, race } from '../support/races.ts';

const MASTER_SECRET = 'a master secret of decent length';
const CHILD = fileURLToPath(new URL('../support/race-child.ts', import.meta.url));
const run = promisify(execFile);

async function prepare(store: Store): Promise<RaceKeys> {
  const tenantId = await addTenant(store);
  const { grant } = await openOffer(store, tenantId);
  const claimedSession = await openOffer(store, tenantId);
  const issuedSession = await openOffer(store, tenantId);
  const list = await addList(store, tenantId, { capacity: 100_000 });
  return {
    tenantId,
    grantId: grant.id,
    hash: randomUUID(),
    claimedSessionId: claimedSession.session.id,
    issuedSessionId: issuedSession.session.id,
    listId: list.id,
  };
}

/** Invariants for any number of participants. */
async function expectOneWinner(store: Store, track: RaceKeys, results: readonly RaceResult[], callers: number) {
  const sum = (counter: 'consumed' | 'remembered' | 'claimed' | 'completed' | 'issued') =>
    results.reduce((total, result) => total + result[counter], 0);
  expect(sum('consumed'), 'grants consumed').to.equal(1);
  expect(sum('remembered'), 'values used').to.equal(1);
  expect(sum('claimed'), 'responses claimed').to.equal(1);
  expect(sum('completed'), 'sessions completed').to.equal(1);
  expect(sum('issued'), 'batches recorded').to.equal(Math.min(callers, MAX_ISSUANCES));

  const steps = stepsOf(store, track.tenantId);
  const counters = results.flatMap((result) => result.counters);
  expect(new Set(counters)).to.deep.equal(new Set(Array.from({ length: callers }, (_, index) => index)));
  expect(await steps.statusList(track.listId)).to.include({ usedEntries: callers, version: 1 + callers });
  const entries = await steps.statusEntries(track.listId, 0);
  expect(new Set(entries.map(({ index }) => index)).size).to.equal(callers);
  expect((await steps.issued(track.issuedSessionId))?.batches).to.have.length(Math.min(callers, MAX_ISSUANCES));
  expect((await steps.session(track.issuedSessionId))?.session).to.include({ status: 'completed', version: 2 });
  expect(await steps.sessionEvents(track.issuedSessionId, 0, 10)).to.have.length(2);
}

for (const kind of databases()) {
  describe(`races on ${kind.name}`, () => {
    let database: TestDatabase | undefined;
    let store: OrmStore;
    before(async function () {
      database = await kind.open();
      if (database === undefined) return this.skip();
      const cipher = new MasterCipher({ masterSecrets: [MASTER_SECRET] });
      store = await OrmStore.open({ url: database.url, poolSize: 20 }, cipher);
    });
    after(async () => {
      await store?.close();
      await database?.drop();
    });

    it('record a key that a tenant gets at the moment of its removal as to be destroyed', async () => {
      const tenantId = await addTenant(store);
      const chain = aKeyChain(tenantId, 'late');
      const { handle, publicJwk } = chain.active.key;
      const key = { handle: { ...handle, kms: 'house', keyId: randomUUID() }, publicJwk };
      const { promise: isUnderWay, resolve: signalUnderWay } = Promise.withResolvers<void>();
      const addKeyChain = store.forTenant(
        tenantId,
        async ({ keyChains }) => {
          await keyChains.add({ ...chain, active: { ...chain.active, key } });
          signalUnderWay();
          // The removal waits until this transaction is committed.
          await new Promise((resolve) => setTimeout(resolve, 100));
        },
        { by: 'system' },
      );
      await isUnderWay;
      await store.forService(({ tenants }) => tenants.remove(tenantId), { by: 'system' });
      await addKeyChain;
      const retiredKeys = await store.maintenance.retiredKeys(100, tenantId);
      expect(retiredKeys.map(({ handle: { keyId } }) => keyId)).to.include(key.handle.keyId);
    });

    it('have one winner among 50 callers', async () => {
      for (let attempt = 0; attempt < 5; attempt++) {
        const track = await prepare(store);
        await expectOneWinner(store, track, [await race(store, track, 50)], 50);
      }
    });

    it('allocate 200 counters to 200 callers', async () => {
      const tenantId = await addTenant(store);
      const list = await addList(store, tenantId, { capacity: 200 });
      const steps = stepsOf(store, tenantId);
      const counters = await Promise.all(Array.from({ length: 210 }, () => steps.allocateStatusRun(list, 1)));
      expect(new Set(counters.filter((counter) => counter !== undefined)).size).to.equal(200);
      expect(counters.filter((counter) => counter === undefined)).to.have.length(10);
    });

    it('show a reader every status change, at any time of the read', async () => {
      const tenantId = await addTenant(store);
      const { id: listId } = await addList(store, tenantId);
      const steps = stepsOf(store, tenantId);
      const seenVersions = new Set<number>();
      let version = 0;
      let isWriting = true;
      const readStatusList = async () => {
        const [listHead] = await steps.statusListVersions([listId]);
        for (const { index } of await steps.statusEntries(listId, version)) seenVersions.add(index);
        version = listHead?.version ?? version;
      };
      const reader = (async () => {
        while (isWriting) await readStatusList();
      })();
      await Promise.all(Array.from({ length: 100 }, (_, index) => steps.commit({ statuses: [{ listId, index, status: 1 }] })));
      isWriting = false;
      await reader;
      await readStatusList();
      expect(seenVersions.size).to.equal(100);
      expect(version).to.equal(101);
    });

    it('for the same entries of the same lists do not block each other permanently', async () => {
      const tenantId = await addTenant(store);
      const lists = [await addList(store, tenantId), await addList(store, tenantId)];
      const steps = stepsOf(store, tenantId);
      await Promise.all(
        Array.from({ length: 60 }, (_, caller) => {
          const changes = lists.flatMap(({ id: listId }) => [1, 2].map((index) => ({ listId, index, status: 2 * (caller % 2) })));
          return steps.commit({ statuses: caller % 2 === 0 ? changes : changes.toReversed() });
        }),
      );
      const heads = await steps.statusListVersions(lists.map(({ id }) => id));
      expect(heads.map(({ version }) => version)).to.deep.equal([61, 61]);
    });

    it('for several values in different order store each set once or not at all', async () => {
      const tenantId = await addTenant(store);
      const steps = stepsOf(store, tenantId);
      const values = [aUse('dpop_jti'), aUse('c_nonce'), aUse('c_nonce')];
      const results = await Promise.all(
        Array.from({ length: 50 }, (_, caller) => steps.commit({ uses: caller % 2 === 0 ? values : values.toReversed() })),
      );
      expect(results.filter(({ done }) => done)).to.have.length(1);
      for (const value of values) expect(await steps.commit({ uses: [value] })).to.include({ done: false });
    });

    it('for one value among many consume a credential request once', async () => {
      const tenantId = await addTenant(store);
      const { session } = await openOffer(store, tenantId);
      const steps = stepsOf(store, tenantId);
      const [jti, ...nonces] = [aUse('dpop_jti'), ...Array.from({ length: 50 }, () => aUse('c_nonce'))];
      const claims = await Promise.all(nonces.map((nonce) => steps.claimCredentialRequest(session.publicId, [jti, nonce])));
      expect(claims.filter((claim) => claim?.replayed === undefined)).to.have.length(1);
      // The nonces of the rejected requests are still valid.
      const repeatedUses = await Promise.all(nonces.map((nonce) => steps.commit({ uses: [nonce] })));
      expect(repeatedUses.filter(({ done }) => done)).to.have.length(49);
    });

    it('of fetching wallets change the session once, and all see it fetched', async () => {
      const tenantId = await addTenant(store);
      const { session } = await openOffer(store, tenantId);
      const steps = stepsOf(store, tenantId);
      const fetches = await Promise.all(Array.from({ length: 50 }, () => steps.fetchSession(session.publicId, NOW)));
      expect(fetches.filter((fetch) => fetch?.changed)).to.have.length(1);
      expect(fetches.every((fetch) => fetch?.session?.status === 'fetched')).to.equal(true);
    });

    it('of an outcome against an issuance end the session once', async () => {
      const tenantId = await addTenant(store);
      const { session } = await openOffer(store, tenantId);
      const steps = stepsOf(store, tenantId);
      const outcomes = Array.from({ length: 25 }, () => steps.recordOutcome(session, 'fail', {}, NOW));
      const issuances = Array.from({ length: 25 }, () => steps.commit(batchIssuance(session.id, aBatch(session), 1, 1)));
      const failed = (await Promise.all(outcomes)).filter((version) => version !== undefined).length;
      const completed = (await Promise.all(issuances)).filter((result) => result.done && result.session?.moved).length;
      expect(failed + completed).to.equal(1);
      const events = await steps.sessionEvents(session.id, 0, 10);
      expect(events.map(({ status }) => status)).to.deep.equal(['active', failed === 1 ? 'failed' : 'completed']);
    });

    it('of processes for one lease have one winner', async () => {
      const name = randomUUID();
      const leases = await Promise.all(Array.from({ length: 50 }, (_, holder) => store.maintenance.tryLease(name, `${holder}`, NOW, 60)));
      expect(leases.filter(Boolean)).to.have.length(1);
    });

    // SQLite is used by one process only.
    if (kind.name === 'sqlite') return;
    it('of two processes have one winner', async () => {
      if (database === undefined) throw new Error('no database');
      const track = await prepare(store);
      const { url } = database;
      const startsAt = Date.now() + 2500;
      const results = await Promise.all(
        [0, 1].map(async (runner): Promise<RaceResult> => {
          const assignment: Assignment = { url, masterSecret: MASTER_SECRET, track, count: 100, runner, startsAt };
          const { stdout } = await run(process.execPath, [CHILD, JSON.stringify(assignment)]);
          return JSON.parse(stdout);
        }),
      );
      await expectOneWinner(store, track, results, 200);
    });
  });
}
