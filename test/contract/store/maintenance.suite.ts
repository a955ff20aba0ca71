import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { CleanUpCursor, ExpiryCursor, SessionKey } from '../../../application/ports/maintenance.ts';
import type { Store } from '../../../application/ports/store.ts';
import type { Delivery, Session } from '../../../domain/sessions/session.ts';
import { acceptAndAwaitCode, acceptForDelivery, type SessionChange, updateOutcome } from '../../../domain/sessions/session-change.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import type { Tenant } from '../../../domain/tenants/tenant.ts';
import { aBatch, aClient, aDeferred, addTenant, aSession, aUse, openOffer, seconds } from './builders.ts';
import { batchIssuance, deferredCompletion, deferredFailure, issuanceDeferral, stepsOf } from './steps.ts';

/** Long before everything else in this store, so that maintenance over all tenants meet only what belongs here. */
const PAST = new Date('2020-01-01T00:00:00Z');
const past = (seconds: number) => new Date(PAST.getTime() + seconds * 1000);
/** Claims that are longer than what an ended session keeps. */
const withLargeRequest = (tenantId: TenantId): Pick<Session, 'request'> => {
  const { request } = aSession(tenantId);
  if (request?.kind !== 'issuance') throw new Error('no offer');
  const claims = { family_name: 'x'.repeat(20_000) };
  return { request: { ...request, credentialClaims: { diploma: { type: 'inline', claims } } } };
};

export function describeMaintenance(open: () => Store): void {
  describe('maintenance', () => {
    let store: Store;
    let one: TenantId;
    let two: TenantId;
    beforeEach(async () => {
      store = open();
      one = await addTenant(store);
      two = await addTenant(store);
    });

    /** One whole walk; on SQLite a batch is smaller on a slow machine. */
    const expireAll = async (at: Date) => {
      const found: { expired: SessionKey[]; overdue: SessionKey[] } = { expired: [], overdue: [] };
      let after: ExpiryCursor | undefined;
      do {
        const batch = await store.maintenance.expireSessions(at, 999, after === undefined ? {} : { after });
        found.expired.push(...batch.expired);
        found.overdue.push(...batch.overdue);
        after = batch.next;
      } while (after !== undefined);
      return found;
    };

    it('expires open sessions of all tenants in batches, the oldest first, and logs it', async () => {
      const at = (tenantId: TenantId, second: number, status: 'active' | 'fetched' | 'completed') =>
        openOffer(store, tenantId, { session: { expiresAt: past(second), status } });
      const late = await at(one, 3, 'active');
      const middle = await at(two, 2, 'fetched');
      const early = await at(one, 1, 'active');
      const done = await at(one, 1, 'completed');
      const open = await at(one, 100, 'active');
      const name = ({ session: { tenantId, id } }: typeof late) => ({ tenantId, id });
      const first = await store.maintenance.expireSessions(past(3), 3);
      expect(first.expired).to.have.deep.members([name(early), name(middle)]);
      const second = await store.maintenance.expireSessions(past(3), 3, { ...(first.next !== undefined && { after: first.next }) });
      expect([second.expired, second.next]).to.deep.equal([[name(late)], undefined]);
      expect((await expireAll(past(3))).expired).to.deep.equal([]);

      for (const { session } of [late, middle, early]) {
        const steps = stepsOf(store, session.tenantId);
        expect((await steps.session(session.id))?.session).to.deep.include({ status: 'expired', version: 2, updatedAt: past(3) });
        expect(await steps.sessionEvents(session.id, 1, 10)).to.deep.equal([{ sequence: 2, version: 2, status: 'expired', at: past(3) }]);
      }
      for (const { session } of [done, open]) {
        expect((await stepsOf(store, one).session(session.id))?.session).to.deep.equal(session);
      }
    });

    it('keeps sessions with a response readable for an hour', async () => {
      const { session } = await openOffer(store, one, { session: { expiresAt: past(9_000), status: 'fetched' } });
      const { tenantId, id } = session;
      const outcome = { awaiting: { credentials: [] } };
      const commit = (change: SessionChange) => store.commit(tenantId, { session: change }, past(1));
      expect((await commit(acceptAndAwaitCode(session, outcome, past(5_000)))).done).to.equal(true);
      const kept = (await store.read(tenantId).session(id))?.session;
      expect(kept, 'ends earlier than it would have').to.deep.include({
        ...{ status: 'fetched', version: 2, expiresAt: past(5_000), outcome },
      });
      const visit = (second: number) => expireAll(past(second));
      expect((await visit(4_999)).overdue).to.deep.equal([]);
      expect((await visit(5_000)).overdue).to.deep.equal([{ tenantId, id }]);
      expect((await visit(8_599)).expired).to.not.deep.include({ tenantId, id });
      const last = await visit(8_600);
      expect(last.expired).to.deep.include({ tenantId, id });
      expect(last.overdue).to.deep.equal([]);
    });

    it('lists unfinished deliveries, a few of each tenant, until their results are stored', async () => {
      const { maintenance } = store;
      const pending = (id: string): Delivery => ({ id, webhook: 'presentation', at: '', result: 'pending' });
      const begin = async (tenantId: TenantId, id: string) => {
        const { session } = await openOffer(store, tenantId, { session: { expiresAt: past(9_000) } });
        const outcome = { deliveries: [pending(id)] };
        const change = { session: acceptForDelivery(session, outcome) };
        expect((await store.commit(tenantId, change, past(1))).done).to.equal(true);
        return { ...session, version: session.version + 1, outcome };
      };
      const now = async () => (await maintenance.time()).getTime();
      const dueOf = async (second: number, ofEach = 9) =>
        (await maintenance.dueDeliveries(new Date((await now()) + second * 1000), 9, ofEach)).filter(
          ({ tenantId }) => tenantId === one || tenantId === two,
        );
      const first = await begin(one, 'a');
      await begin(one, 'b');
      await begin(two, 'c');
      expect(await dueOf(50), 'by the clock of the database').to.deep.equal([]);
      expect((await dueOf(61)).map(({ id }) => id).sort()).to.deep.equal(['a', 'b', 'c']);
      expect((await dueOf(61, 1)).map(({ tenantId }) => tenantId).sort()).to.deep.equal([one, two].sort());
      for (const at of [past(9_000), past(99_999)]) {
        const { expired, overdue } = await expireAll(at);
        expect([...expired, ...overdue], 'while one is under way').to.not.deep.include({ tenantId: one, id: first.id });
      }

      const outcome = { deliveries: [{ ...pending('a'), result: 'delivered' as const }] };
      await store.commit(one, { session: updateOutcome(first, outcome, 'complete') }, past(1));
      const [b, c, ...more] = (await dueOf(61)).sort((x, y) => (x.id < y.id ? -1 : 1));
      expect([b?.id, c?.id, more]).to.deep.equal(['b', 'c', []]);
      if (b === undefined || c === undefined) throw new Error('nothing is due');
      await maintenance.forgetDelivery({ ...b, dueAt: new Date(b.dueAt.getTime() - 1) });
      await maintenance.postponeDelivery(c, new Date(c.dueAt.getTime() + 100_000));
      expect(
        (await dueOf(61)).map(({ id }) => id),
        'as it was read, or not at all',
      ).to.deep.equal(['b']);
      await maintenance.forgetDelivery(b);
      expect((await dueOf(200)).map(({ id }) => id)).to.deep.equal(['c']);
    });

    it('removes values that can no longer be used, in batches', async () => {
      // Values are remembered that end later than the clocks of databases show, and earlier than others of this store.
      const day = (second: number) => seconds(second - 86_400);
      while ((await store.maintenance.forgetExpired(day(0), 1000)) > 0);
      const values = [1, 2, 3].map((second) => aUse('dpop_jti', { expiresAt: day(second) }));
      const fresh = aUse();
      await stepsOf(store, one).commit({ uses: [...values.slice(0, 2), fresh] });
      await stepsOf(store, two).commit({ uses: values.slice(2) });
      const old = await openOffer(store, one, { grant: { expiresAt: day(1) } });
      const young = await openOffer(store, one);
      expect(await store.maintenance.forgetExpired(day(3), 2)).to.equal(3);
      expect(await store.maintenance.forgetExpired(day(3), 2)).to.equal(1);
      expect(await store.maintenance.forgetExpired(day(3), 2)).to.equal(0);

      expect(await stepsOf(store, one).commit({ uses: [fresh] })).to.include({ done: false });
      expect(await stepsOf(store, one).commit({ uses: values.slice(0, 2) })).to.include({ done: true });
      expect((await stepsOf(store, one).grantByCode(old.grant.codeHash))?.grant).to.equal(undefined);
      expect((await stepsOf(store, one).grantByCode(young.grant.codeHash))?.grant?.id).to.equal(young.grant.id);
      await store.maintenance.forgetExpired(day(3), 100);
    });

    const DEFAULTS = { ttlSeconds: 1000 };
    /** One whole walk. */
    const clean = async (second: number, limit = 100) => {
      const counts = { removed: 0, anonymized: 0 };
      let place: CleanUpCursor | undefined;
      do {
        const done = await store.maintenance.cleanUpSessions(past(second), limit, DEFAULTS, place);
        counts.removed += done.removed;
        counts.anonymized += done.anonymized;
        place = done.next;
      } while (place !== undefined);
      return counts;
    };
    const offer = async (tenantId: TenantId, session: Partial<Session> = {}) => {
      const ended = { createdAt: past(0), expiresAt: past(1000), status: 'completed', ...session } as const;
      return (await openOffer(store, tenantId, { session: ended })).session;
    };

    it('removes ended sessions that are older than the retention of their tenant', async () => {
      const short = await addTenant(store, { sessionConfig: { ttlSeconds: 60 } });
      const kept = await offer(one);
      const open = await offer(short, { status: 'fetched' });
      const gone = await offer(short);
      await stepsOf(store, short).commit(batchIssuance(open.id, aBatch(open), 0, 3), past(1));
      const noStatus = { statusListId: null, firstCounter: null };
      await stepsOf(store, short).commit(batchIssuance(open.id, aBatch(open, noStatus), 0, 3), past(1));
      await stepsOf(store, one).commit(batchIssuance(kept.id, aBatch(kept, noStatus), 0, 3), past(1));
      expect(await clean(59)).to.deep.equal({ removed: 0, anonymized: 0 });
      expect(await clean(60)).to.deep.equal({ removed: 1, anonymized: 0 });
      expect((await stepsOf(store, short).session(gone.id))?.session).to.equal(undefined);
      expect(await stepsOf(store, short).sessionEvents(gone.id, 0, 10)).to.deep.equal([]);
      expect((await stepsOf(store, one).session(kept.id))?.session?.id, 'by the default').to.equal(kept.id);
      expect((await stepsOf(store, short).session(open.id))?.session?.id, 'open').to.equal(open.id);

      expect((await stepsOf(store, one).issued(kept.id))?.batches, 'of a session that is kept').to.have.length(1);

      expect(await clean(1000), 'by the clock').to.deep.equal({ removed: 2, anonymized: 0 });
      expect((await stepsOf(store, short).session(open.id))?.session).to.equal(undefined);
      const revocable = (await stepsOf(store, short).issued(open.id))?.batches;
      expect(revocable?.map(({ statusListId }) => statusListId)).to.deep.equal(['list']);
      expect((await stepsOf(store, one).issued(kept.id))?.batches, 'nothing to revoke').to.deep.equal([]);
    });

    it('anonymizes ended sessions once when the tenant configures it', async () => {
      const quiet = await addTenant(store, { sessionConfig: { ttlSeconds: null, cleanupMode: 'anonymize' } });
      const steps = stepsOf(store, quiet);
      const { session, grant } = await openOffer(store, quiet, { session: { createdAt: past(0), status: 'fetched' } });
      await steps.recordOutcome(session, 'complete', { redirectUri: 'https://ada.example' }, past(5));
      expect(await clean(1000)).to.deep.equal({ removed: 0, anonymized: 1 });
      expect(await clean(1000)).to.deep.equal({ removed: 0, anonymized: 0 });
      const expected = { request: null, outcome: null, status: 'completed', version: 3 };
      expect((await steps.session(session.id))?.session).to.deep.include({
        id: session.id,
        ...expected,
        // Of all times the day: by the millisecond somebody could be found again.
        ...{ createdAt: past(0), updatedAt: past(0), expiresAt: past(0) },
      });
      const events = await steps.sessionEvents(session.id, 0, 10);
      expect(events.map(({ at }) => at)).to.deep.equal([past(0), past(0)]);
      expect((await steps.grantByCode(grant.codeHash))?.grant).to.equal(undefined);
      const late = { ...session, version: 2 };
      expect(await steps.recordOutcome(late, undefined, { redirectUri: 'x' }, past(1001))).to.equal(undefined);
    });

    it('anonymizes a session whose large request was erased at its expiry', async () => {
      const quiet = await addTenant(store, { sessionConfig: { ttlSeconds: null, cleanupMode: 'anonymize' } });
      const steps = stepsOf(store, quiet);
      const { session, grant } = await openOffer(store, quiet, {
        session: { ...withLargeRequest(quiet), createdAt: past(10), expiresAt: past(20), status: 'fetched' },
        grant: { expiresAt: past(90_000) },
      });
      const open = await openOffer(store, quiet, { session: { ...withLargeRequest(quiet), createdAt: past(10), expiresAt: past(5_000) } });
      await expireAll(past(30));
      expect((await steps.session(session.id))?.session).to.deep.include({ status: 'expired', request: null });
      expect((await steps.session(open.session.id))?.session?.request).to.deep.equal(open.session.request);
      expect(await clean(1_030)).to.deep.equal({ removed: 0, anonymized: 1 });
      expect(await clean(1_030)).to.deep.equal({ removed: 0, anonymized: 0 });
      const days = { createdAt: past(0), updatedAt: past(0), expiresAt: past(0) };
      expect((await steps.session(session.id))?.session).to.deep.include(days);
      expect((await steps.grantByCode(grant.codeHash))?.grant).to.equal(undefined);
    });

    it('keeps the large request of an expired session that issued a credential or has a response', async () => {
      const { session: issued } = await openOffer(store, one, {
        session: { ...withLargeRequest(one), createdAt: past(10), expiresAt: past(20), issuedMask: 1 },
      });
      const { session: claimed } = await openOffer(store, one, {
        session: { ...withLargeRequest(one), createdAt: past(10), expiresAt: past(20), claimedAt: past(15) },
      });
      await expireAll(past(10_000));
      for (const { id, request } of [issued, claimed])
        expect((await stepsOf(store, one).session(id))?.session).to.deep.include({ status: 'expired', request });
    });

    it('keeps the large request of an ended session whose deferred credential was completed and not retrieved', async () => {
      const steps = stepsOf(store, one);
      const completed = async () => {
        const { session } = await openOffer(store, one, {
          session: { ...withLargeRequest(one), createdAt: past(10), expiresAt: past(20) },
        });
        const transaction = aDeferred(session, { ...{ createdAt: past(10), updatedAt: past(10), expiresAt: past(20) } });
        await steps.commit(issuanceDeferral(transaction, 1));
        const batch = aBatch(session);
        expect(await steps.commit(deferredCompletion(transaction.id, ['one'], batch, 1, 'system'), past(11))).to.include({ done: true });
        return session;
      };
      const [expired, failed] = [await completed(), await completed()];
      const failure = { id: failed.id, running: ['active'], to: 'failed', erasesRequest: true } as const;
      expect((await store.commit(one, { session: failure }, past(12))).done).to.equal(true);
      await store.maintenance.expireDeferred(past(10_000), 1_000);
      await expireAll(past(10_000));
      for (const [{ id, request }, status] of [
        [expired, 'expired'],
        [failed, 'failed'],
      ] as const)
        expect((await steps.session(id))?.session).to.deep.include({ status, request });
    });

    it('keeps sessions whose deferred credential a wallet has not retrieved yet', async () => {
      const removing = await addTenant(store, { sessionConfig: { ttlSeconds: 60 } });
      const quiet = await addTenant(store, { sessionConfig: { ttlSeconds: 60, cleanupMode: 'anonymize' } });
      for (const tenantId of [removing, quiet]) {
        const steps = stepsOf(store, tenantId);
        const awaited = async () => {
          const session = await offer(tenantId);
          const times = { createdAt: past(0), updatedAt: past(0), expiresAt: past(500) };
          const transaction = aDeferred(session, times);
          await steps.commit(issuanceDeferral(transaction, 1));
          return { session, transaction, batch: aBatch(session) };
        };
        const [pending, ready, fetched, failed] = [await awaited(), await awaited(), await awaited(), await awaited()];
        for (const { transaction, batch } of [ready, fetched])
          await steps.commit(deferredCompletion(transaction.id, ['one'], batch, 1, 'system'), past(1));
        const { id, publicId } = fetched.transaction;
        await steps.retrieveDeferred(id, publicId, 1, 3, 'over', past(2));
        await steps.commit(deferredFailure(failed.transaction.id, 'no such person', 'system'), past(2));

        const count = (number: number) => (tenantId === removing ? { removed: number, anonymized: 0 } : { removed: 0, anonymized: number });
        expect(await clean(499), 'fetched and failed').to.deep.equal(count(2));
        for (const { session, transaction } of [pending, ready]) {
          expect((await steps.session(session.id))?.session?.request).to.deep.equal(session.request);
          expect(await steps.deferred(transaction.id)).to.not.equal(undefined);
        }
        expect(await clean(500), 'by the clock').to.deep.equal(count(2));
      }
    });

    describe('keeps renewable credentials of a session', () => {
      const own = { type: 'inline', claims: { name: 'Ada' } } as const;
      const renewable = async (config: Tenant['sessionConfig'], ofOffer: readonly string[] = [], issued = [0, 1]) => {
        const tenantId = await addTenant(store, { sessionConfig: config });
        const credentialClaims = Object.fromEntries(ofOffer.map((id) => [id, own]));
        const opened = await openOffer(store, tenantId, {
          session: {
            ...{ createdAt: past(0), expiresAt: past(1000), configurationIds: ['a', 'b'] },
            request: { kind: 'issuance', offerRequest: {}, offer: {}, offerUrl: 'x', credentialClaims },
          },
          grant: { expiresAt: past(1000) },
        });
        const [steps, { session, grant }] = [stepsOf(store, tenantId), opened];
        const holder = { identifiers: false, refreshableUntil: 5000 };
        await steps.redeemGrant(grant.codeHash, { holder, until: past(5000) }, [], past(1));
        for (const place of issued) {
          const credentialConfigurationId = session.configurationIds[place] ?? '';
          await steps.commit(batchIssuance(session.id, aBatch(session, { credentialConfigurationId }), 2 ** place, 3), past(1));
        }
        const grantNow = async () => (await steps.grantByCode(grant.codeHash))?.grant;
        return { steps, session, grantNow, found: async () => (await steps.session(session.id))?.session };
      };
      const FULL = { ttlSeconds: 1000, cleanupMode: 'full' } as const;
      const QUIET = { ttlSeconds: 1000, cleanupMode: 'anonymize' } as const;

      it('in a hidden session, until its grant ends', async () => {
        const { steps, session, grantNow, found } = await renewable(FULL);
        expect(await clean(1000)).to.deep.equal({ removed: 1, anonymized: 0 });
        expect(await clean(1000), 'once').to.deep.equal({ removed: 0, anonymized: 0 });
        const left = { request: null, outcome: null, issuedMask: 3, isHidden: true, kind: 'issuance' };
        expect(await found()).to.deep.include(left);
        expect(await steps.sessionEvents(session.id, 0, 10)).to.deep.equal([]);
        const all = { kinds: ['issuance', 'verification'], ascending: true, limit: 10 } as const;
        const reads = store.read(session.tenantId);
        expect(await reads.sessions(all)).to.deep.equal([]);
        expect(await reads.sessions({ ...all, kinds: ['issuance'] })).to.deep.equal([]);
        const counted = { kinds: all.kinds, since: new Date(0), now: new Date(0), limit: 10 };
        expect((await reads.sessionCounts(counted)).counts).to.deep.equal([]);
        expect(await grantNow()).to.not.equal(undefined);
        expect(await clean(4999)).to.deep.equal({ removed: 0, anonymized: 0 });
        expect(await clean(5000)).to.deep.equal({ removed: 1, anonymized: 0 });
        expect([await found(), await grantNow()]).to.deep.equal([undefined, undefined]);
        const batches = (await steps.issued(session.id))?.batches;
        expect(batches, 'revocable').to.have.length(2);
        for (const { issuedAt } of batches ?? []) expect(issuedAt.toISOString()).to.include('T00:00:00.000Z');
      });

      it('in an anonymous session when the tenant keeps anonymous sessions', async () => {
        const { steps, session, grantNow, found } = await renewable(QUIET);
        expect(await clean(1000)).to.deep.equal({ removed: 0, anonymized: 1 });
        expect(await clean(1000), 'once').to.deep.equal({ removed: 0, anonymized: 0 });
        expect(await found()).to.deep.include({ request: null, outcome: null, createdAt: session.createdAt });
        expect(await found()).not.to.have.property('isHidden');
        expect(await steps.sessionEvents(session.id, 0, 10)).to.have.length.greaterThan(0);
        expect(await grantNow()).to.not.equal(undefined);
      });

      it('without the claims of the offer, which are removed with the session', async () => {
        const { found, grantNow } = await renewable(FULL, ['a']);
        expect(await clean(1000)).to.deep.equal({ removed: 1, anonymized: 0 });
        expect(await found()).to.deep.include({ issuedMask: 2 });
        expect(await grantNow()).to.not.equal(undefined);
      });

      for (const [what, ofOffer, issued] of [
        ['all claims came with the offer', ['a', 'b'], [0, 1]],
        ['all that was collected came with the offer', ['a'], [0]],
        ['nothing was collected in time', [], []],
      ] as const) {
        it(`but not for ${what}`, async () => {
          const { found, grantNow } = await renewable(FULL, ofOffer, [...issued]);
          while ((await clean(1000)).removed > 0);
          await clean(1000);
          expect([await found(), await grantNow()]).to.deep.equal([undefined, undefined]);
        });
      }

      it('but not for a failed session or a revoked grant', async () => {
        const [failed, revoked] = [await renewable(FULL), await renewable(FULL)];
        const { id } = failed.session;
        const failure = { id, anytime: ['completed'], to: 'failed' } as const;
        await store.commit(failed.session.tenantId, { session: failure }, past(2));
        const grant = { id: (await revoked.grantNow())?.id ?? '', act: 'revoke' } as const;
        await store.commit(revoked.session.tenantId, { grant }, past(2));
        expect(await clean(1000)).to.deep.equal({ removed: 2, anonymized: 0 });
      });
    });

    it('cleans up in batches, the oldest session of a tenant first', async () => {
      const mode = { sessionConfig: { cleanupMode: 'anonymize' } } as const;
      const quiet = await addTenant(store, mode);
      const young = await offer(quiet, { createdAt: past(2) });
      const old = await offer(quiet, { createdAt: past(1) });
      const isClean = async ({ id }: Session) => (await stepsOf(store, quiet).session(id))?.session?.request === null;
      let place: CleanUpCursor | undefined;
      const seen: string[] = [];
      do {
        place = (await store.maintenance.cleanUpSessions(past(2000), 1, DEFAULTS, place)).next;
        seen.push(`${await isClean(old)} ${await isClean(young)}`);
      } while (place !== undefined);
      expect([...new Set(seen)]).to.deep.equal(['false false', 'true false', 'true true']);
      for (const second of [1, 2, 3]) await offer(one, { createdAt: past(second) });
      expect(await clean(2000, 2)).to.deep.equal({ removed: 3, anonymized: 0 });
      expect(await clean(2000, 2)).to.deep.equal({ removed: 0, anonymized: 0 });
    });

    it('erases secrets that were not retrieved', async () => {
      const waiting = (second: number) =>
        aClient(one, { pickUp: { sealedSecret: 'sealed', role: 'clients:manage', expiresAt: past(second) } });
      const clients = [waiting(1), waiting(2), waiting(30)] as const;
      await store.forTenant(
        one,
        async (own) => {
          for (const client of clients) await own.clients.add(client);
        },
        { by: 'system' },
      );
      expect(await store.maintenance.forgetPickUps(past(2), 1)).to.equal(1);
      expect(await store.maintenance.forgetPickUps(past(2), 100)).to.equal(1);
      expect(await store.maintenance.forgetPickUps(past(2), 100)).to.equal(0);
      const read = (i: 0 | 1 | 2) => store.forTenant(one, (own) => own.clients.get(clients[i].clientId));
      expect([(await read(0)).pickUp, (await read(1)).pickUp]).to.deep.equal([null, null]);
      expect(await read(0)).to.include({ version: 2, secretHash: 'hash' });
      expect((await read(2)).pickUp).to.deep.equal(clients[2].pickUp);
    });

    it('leases a job to one process until the lease ends or is renewed', async () => {
      const { maintenance } = store;
      const job = randomUUID();
      expect(await maintenance.tryLease(job, 'a', past(0), 10)).to.equal(true);
      expect(await maintenance.tryLease(job, 'b', past(9), 10)).to.equal(false);
      expect(await maintenance.tryLease(randomUUID(), 'b', past(9), 10)).to.equal(true);
      expect(await maintenance.tryLease(job, 'a', past(9), 10)).to.equal(true);
      expect(await maintenance.tryLease(job, 'b', past(18), 10)).to.equal(false);
      expect(await maintenance.tryLease(job, 'b', past(19), 10)).to.equal(true);
      expect(await maintenance.tryLease(job, 'a', past(20), 10)).to.equal(false);
    });

    it('returns a time that never goes back', async () => {
      const first = await store.maintenance.time();
      expect(first.getTime()).to.be.closeTo(Date.now(), 5_000);
      await new Promise((resolve) => setTimeout(resolve, 20));
      expect((await store.maintenance.time()).getTime()).to.be.within(first.getTime() + 10, first.getTime() + 5_000);
    });

    it('answers a ping', async () => {
      await store.ping();
    });
  });
}
