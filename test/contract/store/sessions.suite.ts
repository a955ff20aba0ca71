import { expect } from 'chai';
import type { CountQuery, OutcomeQuery } from '../../../application/ports/session-rates.ts';
import type { SessionQuery, Store } from '../../../application/ports/store.ts';
import { MOVES, type Session } from '../../../domain/sessions/session.ts';
import type { PublicId, SessionId, TenantId } from '../../../domain/shared/ids.ts';
import type { VerificationRequest } from '../../../domain/verification/verification-request.ts';
import { aBatch, addTenant, aGrant, aSession, NOW, openOffer, REDEMPTION, seconds } from './builders.ts';
import { batchIssuance, grantRedemption, sessionOpening, sessionRemoval, stepsOf } from './steps.ts';

const unknownTenant = 'unknown-tenant' as TenantId;

export function describeSessions(open: () => Store): void {
  describe('sessions', () => {
    let store: Store;
    let tenantId: TenantId;
    beforeEach(async () => {
      store = open();
      tenantId = await addTenant(store);
    });
    const start = async (changes: Partial<Session> = {}) => {
      const session = aSession(tenantId, changes);
      expect(await stepsOf(store, tenantId).commit(sessionOpening(session))).to.include({ done: true });
      return session;
    };
    const events = async (id: SessionId) => (await stepsOf(store, tenantId).sessionEvents(id, 0, 100)).map(({ status }) => status);

    describe('with recorded steps', () => {
      const noteFetched = (sessions: readonly Session[], at = NOW) =>
        store.note(
          tenantId,
          sessions.map(({ id }) => id),
          MOVES.fetch,
          at,
        );

      it('change their status when allowed, with events and new versions', async () => {
        const [one, otherSession] = [await start(), await start({ version: 7 })];
        const fetchedSessions = [...(await noteFetched([one, otherSession]))].sort((a, b) => a.version - b.version);
        expect(fetchedSessions).to.deep.equal([
          { id: one.id, version: 2 },
          { id: otherSession.id, version: 8 },
        ]);
        const stored = (await stepsOf(store, tenantId).session(otherSession.id))?.session;
        expect(stored).to.deep.equal({ ...otherSession, status: 'fetched', version: 8, updatedAt: NOW });
        expect(await events(one.id)).to.deep.equal(['active', 'fetched']);
      });

      it('are unchanged when they have a newer version, are terminal or do not exist', async () => {
        const completedSession = await start({ status: 'completed' });
        const expiredSession = await start({ expiresAt: NOW });
        const fetchedSession = await start();
        await noteFetched([fetchedSession]);
        const unknownSession = { ...completedSession, id: 'unknown' as SessionId };
        expect(await noteFetched([completedSession, expiredSession, fetchedSession, unknownSession], seconds(1))).to.deep.equal([]);
        for (const session of [completedSession, expiredSession])
          expect((await stepsOf(store, tenantId).session(session.id))?.session).to.deep.equal(session);
        expect(await events(fetchedSession.id)).to.deep.equal(['active', 'fetched']);
      });

      it('are changed for their tenant only', async () => {
        const session = await start();
        const otherTenant = await addTenant(store);
        expect(await store.note(otherTenant, [session.id], MOVES.fetch, NOW)).to.deep.equal([]);
        expect(await store.note(unknownTenant, [session.id], MOVES.fetch, NOW)).to.deep.equal([]);
        expect((await stepsOf(store, tenantId).session(session.id))?.session).to.deep.equal(session);
      });

      it('change once for many simultaneous callers', async () => {
        const sessions = await Promise.all(Array.from({ length: 20 }, () => start()));
        const results = await Promise.all(
          Array.from({ length: 8 }, (_, index) => noteFetched(index % 2 === 0 ? sessions : sessions.toReversed())),
        );
        const ids = results.flat().map(({ id }) => id);
        expect(new Set(ids).size).to.equal(ids.length);
        // The next statement notes sessions that all of these passed over.
        const remaining = await noteFetched(sessions);
        expect(ids.length + remaining.length).to.equal(sessions.length);
      });
    });

    it('have a state that is read without their contents', async () => {
      const session = await start({ claimedAt: seconds(1), outcome: { credentials: [] } });
      const { status, version, updatedAt, expiresAt, claimedAt } = session;
      const reads = store.read(tenantId);
      const tenant = await stepsOf(store, tenantId).state();
      expect(await reads.sessionState(session.publicId)).to.deep.equal({
        tenant,
        sessionState: { status, version, updatedAt, expiresAt, claimedAt },
      });
      expect(await reads.sessionState('unknown' as PublicId)).to.deep.equal({ tenant, sessionState: undefined });
      const otherTenant = await addTenant(store);
      expect((await store.read(otherTenant).sessionState(session.publicId))?.sessionState).to.equal(undefined);
      expect(await store.read(unknownTenant).sessionState(session.publicId)).to.equal(undefined);
    });

    it('are read completely together with a cached request', async () => {
      const steps = stepsOf(store, tenantId);
      const failedSession = aSession(tenantId, { outcome: { failure: { code: 'internal_error', message: 'y' } } });
      const grant = aGrant(failedSession);
      await steps.commit(sessionOpening(failedSession, grant));
      await steps.commit(grantRedemption(grant, REDEMPTION, []), seconds(3));
      const request = { ...failedSession.request, kind: 'verification' } as unknown as VerificationRequest;
      const verificationSession = await start({ kind: 'verification', request, claimedAt: seconds(1) });
      const results = [];
      for (const session of [failedSession, verificationSession]) {
        const stored = await steps.sessionWithAuthorization(session.id);
        expect(stored?.session).to.deep.equal(session);
        expect(await steps.sessionWithAuthorization(session.id, session.request ?? undefined)).to.deep.equal(stored);
        results.push(stored?.authorization?.tokenAt);
      }
      expect(results).to.deep.equal([seconds(3), undefined]);
    });

    it('are read in their present state with a cached request, and not found after their removal', async () => {
      const session = await start();
      const request = session.request ?? undefined;
      const emptySession = await start({ request: null });
      const otherTenant = await addTenant(store);
      const readSession = async (tenant: TenantId, id: SessionId) =>
        (await store.read(tenant).sessionWithAuthorization(id, request))?.session;
      await store.note(tenantId, [session.id], MOVES.fetch, seconds(2));
      expect(await readSession(tenantId, session.id)).to.deep.include({ status: 'fetched', version: 2 });
      expect(await readSession(tenantId, emptySession.id), 'no request is stored').to.deep.equal(emptySession);
      expect(await readSession(otherTenant, session.id)).to.equal(undefined);
      expect(await store.read(unknownTenant).sessionWithAuthorization(session.id, request)).to.equal(undefined);
      await stepsOf(store, tenantId).commit(sessionRemoval(session.id, 'system'));
      expect(await readSession(tenantId, session.id)).to.equal(undefined);
    });

    it('are returned as they were opened', async () => {
      const emptySession = await start({ request: null });
      const fullSession = await start({
        kind: 'verification',
        useDcApi: true,
        configurationIds: [],
        outcome: { failure: { code: 'internal_error', message: 'y' }, credentials: [{ name: 'Ä' }] },
        issuedMask: 0b101,
        claimedAt: seconds(1),
      });
      const steps = stepsOf(store, tenantId);
      expect((await steps.session(emptySession.id))?.session).to.deep.equal(emptySession);
      expect((await steps.session(fullSession.id))?.session).to.deep.equal(fullSession);
      const head = await steps.state();
      expect(await steps.sessionByPublicId(fullSession.publicId)).to.deep.equal({ tenant: head, session: fullSession });
    });

    it('with an unknown id or tenant are not found', async () => {
      const session = await start();
      const steps = stepsOf(store, tenantId);
      const head = await steps.state();
      expect((await steps.session('none' as SessionId))?.session).to.equal(undefined);
      expect(await steps.sessionByPublicId('none' as PublicId)).to.deep.equal({ tenant: head, session: undefined });
      expect(await steps.fetchSession('none' as PublicId, NOW)).to.deep.equal({ tenant: head, session: undefined, changed: false });
      expect(await stepsOf(store, unknownTenant).sessionByPublicId(session.publicId)).to.equal(undefined);
      expect(await stepsOf(store, unknownTenant).fetchSession(session.publicId, NOW)).to.equal(undefined);
    });

    it('cannot be opened twice', async () => {
      const session = await start();
      const steps = stepsOf(store, tenantId);
      for (const duplicate of [aSession(tenantId, { id: session.id }), aSession(tenantId, { publicId: session.publicId })]) {
        const failure = await steps.commit(sessionOpening(duplicate)).then(
          () => false,
          () => true,
        );
        expect(failure).to.equal(true);
      }
      expect((await steps.session(session.id))?.session).to.deep.equal(session);
    });

    it('log their creation', async () => {
      const session = await start();
      expect(await stepsOf(store, tenantId).sessionEvents(session.id, 0, 10)).to.deep.equal([
        { sequence: 1, version: 1, status: 'active', at: NOW },
      ]);
    });

    it('do not change when the caller changes its input or the result', async () => {
      const session = await start();
      const stored = (await stepsOf(store, tenantId).session(session.id))?.session;
      (stored?.configurationIds as string[] | undefined)?.push('more');
      stored?.expiresAt.setTime(0);
      expect((await stepsOf(store, tenantId).session(session.id))?.session).to.deep.equal(session);
    });

    it('are opened only for an existing, active and unchanged tenant', async () => {
      const steps = stepsOf(store, tenantId);
      const revision = (await steps.state())?.revision ?? -1;
      const session = aSession(tenantId);
      const openSession = async (assumedRevision: number) =>
        steps.commit({ ...sessionOpening(session), ...(await steps.assuming(assumedRevision)) });
      expect(await openSession(revision + 1)).to.include({ done: false });
      expect(await stepsOf(store, 'unknown' as TenantId).commit(sessionOpening(session))).to.include({ done: false });
      expect((await steps.session(session.id))?.session).to.equal(undefined);
      expect(await openSession(revision)).to.include({ done: true });
      expect(await steps.session(session.id)).to.deep.equal({ tenant: await steps.state(), session });
      expect(await steps.session('none' as SessionId)).to.deep.include({ session: undefined });
    });

    describe('when a wallet fetches the request or offer', () => {
      it('become fetched once, and later fetches change nothing', async () => {
        const session = await start();
        const steps = stepsOf(store, tenantId);
        const first = await steps.fetchSession(session.publicId, seconds(5));
        const expected = { ...session, status: 'fetched', version: 2, updatedAt: seconds(5) };
        const head = await steps.state();
        expect(first).to.deep.equal({ tenant: head, session: expected, changed: true });
        const second = await steps.fetchSession(session.publicId, seconds(6));
        expect(second).to.deep.equal({ tenant: head, session: expected, changed: false });
        expect((await steps.session(session.id))?.session).to.deep.equal(expected);
        expect(await events(session.id)).to.deep.equal(['active', 'fetched']);
      });

      it('are unchanged after their expiry', async () => {
        const session = await start({ expiresAt: seconds(10) });
        const lateFetch = await stepsOf(store, tenantId).fetchSession(session.publicId, seconds(10));
        expect(lateFetch).to.deep.include({ session, changed: false });
        expect(await events(session.id)).to.deep.equal(['active']);
      });

      it('are unchanged while the tenant is suspended', async () => {
        const session = await start();
        await store.forTenant(
          tenantId,
          async (repositories) => repositories.tenant.save({ ...(await repositories.tenant.get()), status: 'suspended' }),
          { by: 'system' },
        );
        const fetchedSession = await stepsOf(store, tenantId).fetchSession(session.publicId, NOW);
        expect(fetchedSession).to.deep.include({ session, changed: false });
        expect(fetchedSession?.tenant.status).to.equal('suspended');
        expect(await events(session.id)).to.deep.equal(['active']);
      });
    });

    describe('in a list', () => {
      const query: SessionQuery = { kinds: [], ascending: true, limit: 100 };
      const ids = async (changes: Partial<SessionQuery>) =>
        (await stepsOf(store, tenantId).sessions({ ...query, ...changes })).map(({ id }) => id as string);
      beforeEach(async () => {
        const rows: [string, number, Session['kind'], Session['status']][] = [
          ['c', 10, 'issuance', 'active'],
          ['a', 10, 'verification', 'completed'],
          ['b', 10, 'issuance', 'completed'],
          ['z', 5, 'issuance', 'active'],
          ['y', 20, 'verification', 'active'],
        ];
        for (const [id, at, kind, status] of rows) {
          await start({ id: id as SessionId, createdAt: seconds(at), kind, status });
        }
      });

      it('are in the order of creation, then of ids', async () => {
        expect(await ids({})).to.deep.equal(['z', 'a', 'b', 'c', 'y']);
        expect(await ids({ ascending: false })).to.deep.equal(['y', 'c', 'b', 'a', 'z']);
      });

      it('continue after the last session of the previous page, also with equal times', async () => {
        for (const ascending of [true, false]) {
          const allIds = await ids({ ascending });
          const paged: string[] = [];
          let cursor: SessionQuery['after'];
          for (;;) {
            const page = await store
              .read(tenantId)
              .sessions({ ...query, ascending, limit: 2, ...(cursor === undefined ? {} : { after: cursor }) });
            paged.push(...page.map(({ id }) => id));
            cursor = page.at(-1);
            if (page.length < 2) break;
          }
          expect(paged).to.deep.equal(allIds);
        }
      });

      it('can be filtered by kind, status and time, separately and together', async () => {
        expect(await ids({ kinds: ['verification'] })).to.deep.equal(['a', 'y']);
        expect(await ids({ kinds: ['issuance', 'verification'] })).to.have.length(5);
        expect(await ids({ status: 'completed' })).to.deep.equal(['a', 'b']);
        expect(await ids({ since: seconds(10) })).to.deep.equal(['a', 'b', 'c', 'y']);
        const cursor = { createdAt: seconds(10), id: 'a' };
        expect(await ids({ kinds: ['issuance'], status: 'completed', since: seconds(6), after: cursor, limit: 1 })).to.deep.equal(['b']);
      });

      it('have the versions of existing sessions', async () => {
        const steps = stepsOf(store, tenantId);
        const versions = await steps.sessionVersions(['a', 'none', 'z'] as SessionId[]);
        expect(versions).to.have.deep.members([
          { id: 'a', version: 1 },
          { id: 'z', version: 1 },
        ]);
        expect(await steps.sessionVersions([])).to.deep.equal([]);
      });
    });

    it('are removed with their grants and events, but without the record of issued credentials', async () => {
      const { session, grant } = await openOffer(store, tenantId);
      const keptOffer = await openOffer(store, tenantId);
      const steps = stepsOf(store, tenantId);
      const batch = aBatch(session);
      await steps.commit(batchIssuance(session.id, batch, 1, 3));
      expect(await steps.commit(sessionRemoval(session.id, 'system'))).to.include({ done: true });
      expect(await steps.commit(sessionRemoval(session.id, 'system'))).to.include({ done: false });
      expect((await steps.session(session.id))?.session).to.equal(undefined);
      expect((await steps.grantByCode(grant.codeHash))?.grant).to.equal(undefined);
      expect(await events(session.id)).to.deep.equal([]);
      expect((await steps.issued(session.id))?.batches).to.deep.equal([batch]);
      expect((await steps.grantByCode(keptOffer.grant.codeHash))?.grant?.id).to.equal(keptOffer.grant.id);
      expect(await events(keptOffer.session.id)).to.deep.equal(['active']);
    });

    it('have a log that is read from a cursor', async () => {
      const session = await start();
      const steps = stepsOf(store, tenantId);
      await steps.fetchSession(session.publicId, NOW);
      await steps.recordOutcome({ ...session, version: 2 }, 'fail', {}, NOW);
      const statuses = async (after: number, limit: number) =>
        (await steps.sessionEvents(session.id, after, limit)).map(({ status }) => status);
      expect(await statuses(0, 10)).to.deep.equal(['active', 'fetched', 'failed']);
      expect(await statuses(0, 2)).to.deep.equal(['active', 'fetched']);
      expect(await statuses(2, 2)).to.deep.equal(['failed']);
    });
  });
}

export function describeSessionRates(open: () => Store): void {
  describe('session statistics', () => {
    let store: Store;
    let tenantId: TenantId;
    beforeEach(async () => {
      store = open();
      tenantId = await addTenant(store);
    });
    const start = async (at: number, changes: Partial<Session> = {}) => {
      const times = { createdAt: seconds(at), updatedAt: seconds(at), expiresAt: seconds(at + 600) };
      const session = aSession(tenantId, { ...times, ...changes });
      await stepsOf(store, tenantId).commit(sessionOpening(session));
      return session;
    };
    const failedWith = (message: string): Partial<Session> => ({
      status: 'failed',
      outcome: { failure: { code: 'webhook_failed', message } },
    });
    const kinds = ['issuance', 'verification'] as const;
    const count = async (changes: Partial<CountQuery> = {}, tenant = tenantId) => {
      const query = { kinds, since: NOW, now: seconds(10), limit: 100, ...changes };
      return (await store.read(tenant).sessionCounts(query)).counts.map(
        ({ kind, status, count: number, oldest }) => `${number} ${kind} ${status} since ${(oldest.getTime() - NOW.getTime()) / 1000}`,
      );
    };
    const readOutcomes = async (changes: Partial<OutcomeQuery> = {}, tenant = tenantId) =>
      store.read(tenant).sessionOutcomes({ kinds, since: NOW, failed: false, limit: 100, ...changes });

    it('are counted by kind and status, with the age of the oldest', async () => {
      await start(1, { kind: 'issuance', status: 'completed' });
      await start(2, { kind: 'issuance', status: 'completed' });
      await start(3, { kind: 'verification', ...failedWith('x') });
      await start(4, { kind: 'verification' });
      expect(await count()).to.have.members([
        '2 issuance completed since 1',
        '1 verification failed since 3',
        '1 verification active since 4',
      ]);
      expect(await count({ kinds: ['issuance'] })).to.deep.equal(['2 issuance completed since 1']);
      expect(await count({ since: seconds(2) })).to.include('1 issuance completed since 2');
    });

    it('count a session as expired after its expiry, also before the change is stored', async () => {
      await start(1, { kind: 'issuance', status: 'fetched' });
      await start(2, { kind: 'issuance', status: 'expired' });
      await start(3, { kind: 'issuance', status: 'completed' });
      expect(await count({ now: seconds(601) })).to.have.members(['2 issuance expired since 1', '1 issuance completed since 3']);
    });

    it('count at most the allowed number of sessions, however rare a kind is among them', async () => {
      await start(1, { kind: 'verification', status: 'completed' });
      for (const at of [2, 3, 4]) await start(at, { kind: 'issuance', status: 'completed' });
      await start(5, { kind: 'verification', status: 'completed' });
      const countVerifications = (limit: number) =>
        store.read(tenantId).sessionCounts({ kinds: ['verification'], since: NOW, now: NOW, limit });
      const completed = { kind: 'verification', status: 'completed' };
      expect(await countVerifications(4)).to.deep.equal({ counts: [{ ...completed, count: 1, oldest: seconds(5) }], from: seconds(2) });
      expect(await countVerifications(6)).to.deep.equal({ counts: [{ ...completed, count: 2, oldest: seconds(1) }] });
    });

    it('count the newest sessions only, and those of one tenant', async () => {
      for (const at of [1, 2, 3, 4, 5]) await start(at, { kind: 'issuance', status: 'completed' });
      expect(await count({ limit: 3 })).to.deep.equal(['3 issuance completed since 3']);
      expect(await count({}, await addTenant(store))).to.deep.equal([]);
    });

    it('are read from sessions with a record, the newest first, page by page', async () => {
      const one = await start(1, failedWith('one'));
      await start(2);
      const three = await start(3, { status: 'completed', outcome: { notifications: [] } });
      const four = await start(4, failedWith('four'));
      const ids = async (changes: Partial<OutcomeQuery> = {}) => (await readOutcomes(changes)).map(({ id }) => id);
      expect(await ids()).to.deep.equal([four.id, three.id, one.id]);
      expect((await readOutcomes())[0]).to.deep.equal({ ...{ id: four.id, createdAt: four.createdAt, outcome: four.outcome } });
      expect(await ids({ failed: true })).to.deep.equal([four.id, one.id]);
      expect(await ids({ failed: true, limit: 1 })).to.deep.equal([four.id]);
      expect(await ids({ after: four, limit: 1 })).to.deep.equal([three.id]);
      expect(await ids({ after: four, kinds: [one.kind], failed: true })).to.deep.equal([one.id]);
      expect(await ids({ since: seconds(4) })).to.deep.equal([four.id]);
      const otherKind = one.kind === 'issuance' ? 'verification' : 'issuance';
      expect(await ids({ kinds: [otherKind] })).to.deep.equal([]);
      expect(await readOutcomes({}, await addTenant(store))).to.deep.equal([]);
    });
  });
}
