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

/** Long before all other times in this store, so that maintenance of all tenants finds only rows of this suite. */
const PAST = new Date('2020-01-01T00:00:00Z');
const past = (seconds: number) => new Date(PAST.getTime() + seconds * 1000);
/** Claims that are longer than the data that a finished session keeps. */
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

    /** Runs until no session is left; on SQLite a batch is smaller on a slow machine. */
    const expireAll = async (at: Date) => {
      const result: { expired: SessionKey[]; overdue: SessionKey[] } = { expired: [], overdue: [] };
      let cursor: ExpiryCursor | undefined;
      do {
        const batch = await store.maintenance.expireSessions(at, 999, cursor === undefined ? {} : { after: cursor });
        result.expired.push(...batch.expired);
        result.overdue.push(...batch.overdue);
        cursor = batch.next;
      } while (cursor !== undefined);
      return result;
    };

    it('expires open sessions of all tenants in batches, the oldest first, and logs it', async () => {
      const createSession = (tenantId: TenantId, second: number, status: 'active' | 'fetched' | 'completed') =>
        openOffer(store, tenantId, { session: { expiresAt: past(second), status } });
      const lateSession = await createSession(one, 3, 'active');
      const middleSession = await createSession(two, 2, 'fetched');
      const earlySession = await createSession(one, 1, 'active');
      const completedSession = await createSession(one, 1, 'completed');
      const openSession = await createSession(one, 100, 'active');
      const name = ({ session: { tenantId, id } }: typeof lateSession) => ({ tenantId, id });
      const first = await store.maintenance.expireSessions(past(3), 3);
      expect(first.expired).to.have.deep.members([name(earlySession), name(middleSession)]);
      const second = await store.maintenance.expireSessions(past(3), 3, { ...(first.next !== undefined && { after: first.next }) });
      expect([second.expired, second.next]).to.deep.equal([[name(lateSession)], undefined]);
      expect((await expireAll(past(3))).expired).to.deep.equal([]);

      for (const { session } of [lateSession, middleSession, earlySession]) {
        const steps = stepsOf(store, session.tenantId);
        expect((await steps.session(session.id))?.session).to.deep.include({ status: 'expired', version: 2, updatedAt: past(3) });
        expect(await steps.sessionEvents(session.id, 1, 10)).to.deep.equal([{ sequence: 2, version: 2, status: 'expired', at: past(3) }]);
      }
      for (const { session } of [completedSession, openSession]) {
        expect((await stepsOf(store, one).session(session.id))?.session).to.deep.equal(session);
      }
    });

    it('keeps sessions with a response readable for an hour', async () => {
      const { session } = await openOffer(store, one, { session: { expiresAt: past(9_000), status: 'fetched' } });
      const { tenantId, id } = session;
      const outcome = { awaiting: { credentials: [] } };
      const commit = (change: SessionChange) => store.commit(tenantId, { session: change }, past(1));
      expect((await commit(acceptAndAwaitCode(session, outcome, past(5_000)))).done).to.equal(true);
      const stored = (await store.read(tenantId).session(id))?.session;
      expect(stored, 'expires earlier than before').to.deep.include({
        ...{ status: 'fetched', version: 2, expiresAt: past(5_000), outcome },
      });
      const expireAt = (second: number) => expireAll(past(second));
      expect((await expireAt(4_999)).overdue).to.deep.equal([]);
      expect((await expireAt(5_000)).overdue).to.deep.equal([{ tenantId, id }]);
      expect((await expireAt(8_599)).expired).to.not.deep.include({ tenantId, id });
      const last = await expireAt(8_600);
      expect(last.expired).to.deep.include({ tenantId, id });
      expect(last.overdue).to.deep.equal([]);
    });

    it('lists unfinished deliveries, a few of each tenant, until their results are stored', async () => {
      const { maintenance } = store;
      const pending = (id: string): Delivery => ({ id, webhook: 'presentation', at: '', result: 'pending' });
      const startDelivery = async (tenantId: TenantId, id: string) => {
        const { session } = await openOffer(store, tenantId, { session: { expiresAt: past(9_000) } });
        const outcome = { deliveries: [pending(id)] };
        const change = { session: acceptForDelivery(session, outcome) };
        expect((await store.commit(tenantId, change, past(1))).done).to.equal(true);
        return { ...session, version: session.version + 1, outcome };
      };
      const now = async () => (await maintenance.time()).getTime();
      const findDue = async (second: number, perTenant = 9) =>
        (await maintenance.dueDeliveries(new Date((await now()) + second * 1000), 9, perTenant)).filter(
          ({ tenantId }) => tenantId === one || tenantId === two,
        );
      const first = await startDelivery(one, 'a');
      await startDelivery(one, 'b');
      await startDelivery(two, 'c');
      expect(await findDue(50), 'by the clock of the database').to.deep.equal([]);
      expect((await findDue(61)).map(({ id }) => id).sort()).to.deep.equal(['a', 'b', 'c']);
      expect((await findDue(61, 1)).map(({ tenantId }) => tenantId).sort()).to.deep.equal([one, two].sort());
      for (const time of [past(9_000), past(99_999)]) {
        const { expired, overdue } = await expireAll(time);
        expect([...expired, ...overdue], 'while a delivery is in progress').to.not.deep.include({ tenantId: one, id: first.id });
      }

      const outcome = { deliveries: [{ ...pending('a'), result: 'delivered' as const }] };
      await store.commit(one, { session: updateOutcome(first, outcome, 'complete') }, past(1));
      const [b, c, ...others] = (await findDue(61)).sort((x, y) => (x.id < y.id ? -1 : 1));
      expect([b?.id, c?.id, others]).to.deep.equal(['b', 'c', []]);
      if (b === undefined || c === undefined) throw new Error('nothing is due');
      await maintenance.forgetDelivery({ ...b, dueAt: new Date(b.dueAt.getTime() - 1) });
      await maintenance.postponeDelivery(c, new Date(c.dueAt.getTime() + 100_000));
      expect(
        (await findDue(61)).map(({ id }) => id),
        'in the version that was read, or not at all',
      ).to.deep.equal(['b']);
      await maintenance.forgetDelivery(b);
      expect((await findDue(200)).map(({ id }) => id)).to.deep.equal(['c']);
    });

    it('removes values that can no longer be used, in batches', async () => {
      // Consumed values that expire after the time of database clocks, and before the other values of this store.
      const day = (second: number) => seconds(second - 86_400);
      while ((await store.maintenance.forgetExpired(day(0), 1000)) > 0);
      const values = [1, 2, 3].map((second) => aUse('dpop_jti', { expiresAt: day(second) }));
      const freshValue = aUse();
      await stepsOf(store, one).commit({ uses: [...values.slice(0, 2), freshValue] });
      await stepsOf(store, two).commit({ uses: values.slice(2) });
      const oldOffer = await openOffer(store, one, { grant: { expiresAt: day(1) } });
      const newOffer = await openOffer(store, one);
      expect(await store.maintenance.forgetExpired(day(3), 2)).to.equal(3);
      expect(await store.maintenance.forgetExpired(day(3), 2)).to.equal(1);
      expect(await store.maintenance.forgetExpired(day(3), 2)).to.equal(0);

      expect(await stepsOf(store, one).commit({ uses: [freshValue] })).to.include({ done: false });
      expect(await stepsOf(store, one).commit({ uses: values.slice(0, 2) })).to.include({ done: true });
      expect((await stepsOf(store, one).grantByCode(oldOffer.grant.codeHash))?.grant).to.equal(undefined);
      expect((await stepsOf(store, one).grantByCode(newOffer.grant.codeHash))?.grant?.id).to.equal(newOffer.grant.id);
      await store.maintenance.forgetExpired(day(3), 100);
    });

    const DEFAULTS = { ttlSeconds: 1000 };
    /** Runs until no session is left to clean up. */
    const cleanUpAt = async (second: number, limit = 100) => {
      const counts = { removed: 0, anonymized: 0 };
      let cursor: CleanUpCursor | undefined;
      do {
        const batch = await store.maintenance.cleanUpSessions(past(second), limit, DEFAULTS, cursor);
        counts.removed += batch.removed;
        counts.anonymized += batch.anonymized;
        cursor = batch.next;
      } while (cursor !== undefined);
      return counts;
    };
    const offer = async (tenantId: TenantId, session: Partial<Session> = {}) => {
      const finished = { createdAt: past(0), expiresAt: past(1000), status: 'completed', ...session } as const;
      return (await openOffer(store, tenantId, { session: finished })).session;
    };

    it('removes ended sessions that are older than the retention of their tenant', async () => {
      const shortTenant = await addTenant(store, { sessionConfig: { ttlSeconds: 60 } });
      const keptSession = await offer(one);
      const openSession = await offer(shortTenant, { status: 'fetched' });
      const removedSession = await offer(shortTenant);
      await stepsOf(store, shortTenant).commit(batchIssuance(openSession.id, aBatch(openSession), 0, 3), past(1));
      const noStatus = { statusListId: null, firstCounter: null };
      await stepsOf(store, shortTenant).commit(batchIssuance(openSession.id, aBatch(openSession, noStatus), 0, 3), past(1));
      await stepsOf(store, one).commit(batchIssuance(keptSession.id, aBatch(keptSession, noStatus), 0, 3), past(1));
      expect(await cleanUpAt(59)).to.deep.equal({ removed: 0, anonymized: 0 });
      expect(await cleanUpAt(60)).to.deep.equal({ removed: 1, anonymized: 0 });
      expect((await stepsOf(store, shortTenant).session(removedSession.id))?.session).to.equal(undefined);
      expect(await stepsOf(store, shortTenant).sessionEvents(removedSession.id, 0, 10)).to.deep.equal([]);
      expect((await stepsOf(store, one).session(keptSession.id))?.session?.id, 'by the default retention').to.equal(keptSession.id);
      expect((await stepsOf(store, shortTenant).session(openSession.id))?.session?.id, 'an open session').to.equal(openSession.id);

      expect((await stepsOf(store, one).issued(keptSession.id))?.batches, 'of a kept session').to.have.length(1);

      expect(await cleanUpAt(1000), 'after the retention').to.deep.equal({ removed: 2, anonymized: 0 });
      expect((await stepsOf(store, shortTenant).session(openSession.id))?.session).to.equal(undefined);
      const revocable = (await stepsOf(store, shortTenant).issued(openSession.id))?.batches;
      expect(revocable?.map(({ statusListId }) => statusListId)).to.deep.equal(['list']);
      expect((await stepsOf(store, one).issued(keptSession.id))?.batches, 'no batch to revoke').to.deep.equal([]);
    });

    it('anonymizes ended sessions once when the tenant configures it', async () => {
      const anonymousTenant = await addTenant(store, { sessionConfig: { ttlSeconds: null, cleanupMode: 'anonymize' } });
      const steps = stepsOf(store, anonymousTenant);
      const { session, grant } = await openOffer(store, anonymousTenant, { session: { createdAt: past(0), status: 'fetched' } });
      await steps.recordOutcome(session, 'complete', { redirectUri: 'https://ada.example' }, past(5));
      expect(await cleanUpAt(1000)).to.deep.equal({ removed: 0, anonymized: 1 });
      expect(await cleanUpAt(1000)).to.deep.equal({ removed: 0, anonymized: 0 });
      const expected = { request: null, outcome: null, status: 'completed', version: 3 };
      expect((await steps.session(session.id))?.session).to.deep.include({
        id: session.id,
        ...expected,
        // Only the day of each time is kept: a millisecond could identify a person.
        ...{ createdAt: past(0), updatedAt: past(0), expiresAt: past(0) },
      });
      const events = await steps.sessionEvents(session.id, 0, 10);
      expect(events.map(({ at }) => at)).to.deep.equal([past(0), past(0)]);
      expect((await steps.grantByCode(grant.codeHash))?.grant).to.equal(undefined);
      const lateVersion = { ...session, version: 2 };
      expect(await steps.recordOutcome(lateVersion, undefined, { redirectUri: 'x' }, past(1001))).to.equal(undefined);
    });

    it('anonymizes a session whose large request was erased at its expiry', async () => {
      const anonymousTenant = await addTenant(store, { sessionConfig: { ttlSeconds: null, cleanupMode: 'anonymize' } });
      const steps = stepsOf(store, anonymousTenant);
      const { session, grant } = await openOffer(store, anonymousTenant, {
        session: { ...withLargeRequest(anonymousTenant), createdAt: past(10), expiresAt: past(20), status: 'fetched' },
        grant: { expiresAt: past(90_000) },
      });
      const openOfferOfTenant = await openOffer(store, anonymousTenant, {
        session: { ...withLargeRequest(anonymousTenant), createdAt: past(10), expiresAt: past(5_000) },
      });
      await expireAll(past(30));
      expect((await steps.session(session.id))?.session).to.deep.include({ status: 'expired', request: null });
      expect((await steps.session(openOfferOfTenant.session.id))?.session?.request).to.deep.equal(openOfferOfTenant.session.request);
      expect(await cleanUpAt(1_030)).to.deep.equal({ removed: 0, anonymized: 1 });
      expect(await cleanUpAt(1_030)).to.deep.equal({ removed: 0, anonymized: 0 });
      const days = { createdAt: past(0), updatedAt: past(0), expiresAt: past(0) };
      expect((await steps.session(session.id))?.session).to.deep.include(days);
      expect((await steps.grantByCode(grant.codeHash))?.grant).to.equal(undefined);
    });

    it('keeps the large request of an expired session that issued a credential or has a response', async () => {
      const { session: issuedSession } = await openOffer(store, one, {
        session: { ...withLargeRequest(one), createdAt: past(10), expiresAt: past(20), issuedMask: 1 },
      });
      const { session: claimedSession } = await openOffer(store, one, {
        session: { ...withLargeRequest(one), createdAt: past(10), expiresAt: past(20), claimedAt: past(15) },
      });
      await expireAll(past(10_000));
      for (const { id, request } of [issuedSession, claimedSession])
        expect((await stepsOf(store, one).session(id))?.session).to.deep.include({ status: 'expired', request });
    });

    it('keeps the large request of an ended session whose deferred credential was completed and not retrieved', async () => {
      const steps = stepsOf(store, one);
      const createCompleted = async () => {
        const { session } = await openOffer(store, one, {
          session: { ...withLargeRequest(one), createdAt: past(10), expiresAt: past(20) },
        });
        const transaction = aDeferred(session, { ...{ createdAt: past(10), updatedAt: past(10), expiresAt: past(20) } });
        await steps.commit(issuanceDeferral(transaction, 1));
        const batch = aBatch(session);
        expect(await steps.commit(deferredCompletion(transaction.id, ['one'], batch, 1, 'system'), past(11))).to.include({ done: true });
        return session;
      };
      const [expired, failedSession] = [await createCompleted(), await createCompleted()];
      const failure = { id: failedSession.id, running: ['active'], to: 'failed', erasesRequest: true } as const;
      expect((await store.commit(one, { session: failure }, past(12))).done).to.equal(true);
      await store.maintenance.expireDeferred(past(10_000), 1_000);
      await expireAll(past(10_000));
      for (const [{ id, request }, status] of [
        [expired, 'expired'],
        [failedSession, 'failed'],
      ] as const)
        expect((await steps.session(id))?.session).to.deep.include({ status, request });
    });

    it('keeps sessions whose deferred credential a wallet has not retrieved yet', async () => {
      const removing = await addTenant(store, { sessionConfig: { ttlSeconds: 60 } });
      const anonymousTenant = await addTenant(store, { sessionConfig: { ttlSeconds: 60, cleanupMode: 'anonymize' } });
      for (const tenantId of [removing, anonymousTenant]) {
        const steps = stepsOf(store, tenantId);
        const createAwaited = async () => {
          const session = await offer(tenantId);
          const times = { createdAt: past(0), updatedAt: past(0), expiresAt: past(500) };
          const transaction = aDeferred(session, times);
          await steps.commit(issuanceDeferral(transaction, 1));
          return { session, transaction, batch: aBatch(session) };
        };
        const [pending, ready, fetched, failedSession] = [
          await createAwaited(),
          await createAwaited(),
          await createAwaited(),
          await createAwaited(),
        ];
        for (const { transaction, batch } of [ready, fetched])
          await steps.commit(deferredCompletion(transaction.id, ['one'], batch, 1, 'system'), past(1));
        const { id, publicId } = fetched.transaction;
        await steps.retrieveDeferred(id, publicId, 1, 3, 'over', past(2));
        await steps.commit(deferredFailure(failedSession.transaction.id, 'no such person', 'system'), past(2));

        const count = (number: number) => (tenantId === removing ? { removed: number, anonymized: 0 } : { removed: 0, anonymized: number });
        expect(await cleanUpAt(499), 'the fetched and the failed session').to.deep.equal(count(2));
        for (const { session, transaction } of [pending, ready]) {
          expect((await steps.session(session.id))?.session?.request).to.deep.equal(session.request);
          expect(await steps.deferred(transaction.id)).to.not.equal(undefined);
        }
        expect(await cleanUpAt(500), 'after the retention').to.deep.equal(count(2));
      }
    });

    describe('keeps renewable credentials of a session', () => {
      const inlineClaims = { type: 'inline', claims: { name: 'Ada' } } as const;
      const createRenewable = async (config: Tenant['sessionConfig'], claimsOfOffer: readonly string[] = [], issuedIndices = [0, 1]) => {
        const tenantId = await addTenant(store, { sessionConfig: config });
        const credentialClaims = Object.fromEntries(claimsOfOffer.map((id) => [id, inlineClaims]));
        const offerOfTenant = await openOffer(store, tenantId, {
          session: {
            ...{ createdAt: past(0), expiresAt: past(1000), configurationIds: ['a', 'b'] },
            request: { kind: 'issuance', offerRequest: {}, offer: {}, offerUrl: 'x', credentialClaims },
          },
          grant: { expiresAt: past(1000) },
        });
        const [steps, { session, grant }] = [stepsOf(store, tenantId), offerOfTenant];
        const holder = { identifiers: false, refreshableUntil: 5000 };
        await steps.redeemGrant(grant.codeHash, { holder, until: past(5000) }, [], past(1));
        for (const index of issuedIndices) {
          const credentialConfigurationId = session.configurationIds[index] ?? '';
          await steps.commit(batchIssuance(session.id, aBatch(session, { credentialConfigurationId }), 2 ** index, 3), past(1));
        }
        const grantNow = async () => (await steps.grantByCode(grant.codeHash))?.grant;
        return { steps, session, grantNow, found: async () => (await steps.session(session.id))?.session };
      };
      const FULL = { ttlSeconds: 1000, cleanupMode: 'full' } as const;
      const ANONYMOUS = { ttlSeconds: 1000, cleanupMode: 'anonymize' } as const;

      it('in a hidden session, until its grant ends', async () => {
        const { steps, session, grantNow, found } = await createRenewable(FULL);
        expect(await cleanUpAt(1000)).to.deep.equal({ removed: 1, anonymized: 0 });
        expect(await cleanUpAt(1000), 'a second clean-up').to.deep.equal({ removed: 0, anonymized: 0 });
        const remaining = { request: null, outcome: null, issuedMask: 3, isHidden: true, kind: 'issuance' };
        expect(await found()).to.deep.include(remaining);
        expect(await steps.sessionEvents(session.id, 0, 10)).to.deep.equal([]);
        const all = { kinds: ['issuance', 'verification'], ascending: true, limit: 10 } as const;
        const reads = store.read(session.tenantId);
        expect(await reads.sessions(all)).to.deep.equal([]);
        expect(await reads.sessions({ ...all, kinds: ['issuance'] })).to.deep.equal([]);
        const countQuery = { kinds: all.kinds, since: new Date(0), now: new Date(0), limit: 10 };
        expect((await reads.sessionCounts(countQuery)).counts).to.deep.equal([]);
        expect(await grantNow()).to.not.equal(undefined);
        expect(await cleanUpAt(4999)).to.deep.equal({ removed: 0, anonymized: 0 });
        expect(await cleanUpAt(5000)).to.deep.equal({ removed: 1, anonymized: 0 });
        expect([await found(), await grantNow()]).to.deep.equal([undefined, undefined]);
        const batches = (await steps.issued(session.id))?.batches;
        expect(batches, 'the batches remain revocable').to.have.length(2);
        for (const { issuedAt } of batches ?? []) expect(issuedAt.toISOString()).to.include('T00:00:00.000Z');
      });

      it('in an anonymous session when the tenant keeps anonymous sessions', async () => {
        const { steps, session, grantNow, found } = await createRenewable(ANONYMOUS);
        expect(await cleanUpAt(1000)).to.deep.equal({ removed: 0, anonymized: 1 });
        expect(await cleanUpAt(1000), 'a second clean-up').to.deep.equal({ removed: 0, anonymized: 0 });
        expect(await found()).to.deep.include({ request: null, outcome: null, createdAt: session.createdAt });
        expect(await found()).not.to.have.property('isHidden');
        expect(await steps.sessionEvents(session.id, 0, 10)).to.have.length.greaterThan(0);
        expect(await grantNow()).to.not.equal(undefined);
      });

      it('without the claims of the offer, which are removed with the session', async () => {
        const { found, grantNow } = await createRenewable(FULL, ['a']);
        expect(await cleanUpAt(1000)).to.deep.equal({ removed: 1, anonymized: 0 });
        expect(await found()).to.deep.include({ issuedMask: 2 });
        expect(await grantNow()).to.not.equal(undefined);
      });

      for (const [description, claimsOfOffer, issuedIndices] of [
        ['a session whose offer contained all claims', ['a', 'b'], [0, 1]],
        ['a session whose offer contained all issued claims', ['a'], [0]],
        ['a session without an issued credential', [], []],
      ] as const) {
        it(`but not for ${description}`, async () => {
          const { found, grantNow } = await createRenewable(FULL, claimsOfOffer, [...issuedIndices]);
          while ((await cleanUpAt(1000)).removed > 0);
          await cleanUpAt(1000);
          expect([await found(), await grantNow()]).to.deep.equal([undefined, undefined]);
        });
      }

      it('but not for a failed session or a revoked grant', async () => {
        const [failedSession, revokedSession] = [await createRenewable(FULL), await createRenewable(FULL)];
        const { id } = failedSession.session;
        const failure = { id, anytime: ['completed'], to: 'failed' } as const;
        await store.commit(failedSession.session.tenantId, { session: failure }, past(2));
        const grant = { id: (await revokedSession.grantNow())?.id ?? '', act: 'revoke' } as const;
        await store.commit(revokedSession.session.tenantId, { grant }, past(2));
        expect(await cleanUpAt(1000)).to.deep.equal({ removed: 2, anonymized: 0 });
      });
    });

    it('cleans up in batches, the oldest session of a tenant first', async () => {
      const mode = { sessionConfig: { cleanupMode: 'anonymize' } } as const;
      const anonymousTenant = await addTenant(store, mode);
      const newSession = await offer(anonymousTenant, { createdAt: past(2) });
      const oldSession = await offer(anonymousTenant, { createdAt: past(1) });
      const isAnonymized = async ({ id }: Session) => (await stepsOf(store, anonymousTenant).session(id))?.session?.request === null;
      let cursor: CleanUpCursor | undefined;
      const progress: string[] = [];
      do {
        cursor = (await store.maintenance.cleanUpSessions(past(2000), 1, DEFAULTS, cursor)).next;
        progress.push(`${await isAnonymized(oldSession)} ${await isAnonymized(newSession)}`);
      } while (cursor !== undefined);
      expect([...new Set(progress)]).to.deep.equal(['false false', 'true false', 'true true']);
      for (const second of [1, 2, 3]) await offer(one, { createdAt: past(second) });
      expect(await cleanUpAt(2000, 2)).to.deep.equal({ removed: 3, anonymized: 0 });
      expect(await cleanUpAt(2000, 2)).to.deep.equal({ removed: 0, anonymized: 0 });
    });

    it('erases secrets that were not retrieved', async () => {
      const waiting = (second: number) =>
        aClient(one, { pickUp: { sealedSecret: 'sealed', role: 'clients:manage', expiresAt: past(second) } });
      const clients = [waiting(1), waiting(2), waiting(30)] as const;
      await store.forTenant(
        one,
        async (repositories) => {
          for (const client of clients) await repositories.clients.add(client);
        },
        { by: 'system' },
      );
      expect(await store.maintenance.forgetPickUps(past(2), 1)).to.equal(1);
      expect(await store.maintenance.forgetPickUps(past(2), 100)).to.equal(1);
      expect(await store.maintenance.forgetPickUps(past(2), 100)).to.equal(0);
      const readClient = (i: 0 | 1 | 2) => store.forTenant(one, (repositories) => repositories.clients.get(clients[i].clientId));
      expect([(await readClient(0)).pickUp, (await readClient(1)).pickUp]).to.deep.equal([null, null]);
      expect(await readClient(0)).to.include({ version: 2, secretHash: 'hash' });
      expect((await readClient(2)).pickUp).to.deep.equal(clients[2].pickUp);
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
