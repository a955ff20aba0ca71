import { expect } from 'chai';
import type { Store } from '../../../application/ports/store.ts';
import type { DeferredTransaction } from '../../../domain/issuance/deferred.ts';
import { MAX_ISSUANCES, type Session } from '../../../domain/sessions/session.ts';
import type { SessionId, TenantId } from '../../../domain/shared/ids.ts';
import { aBatch, aDeferred, addTenant, aSession, NOW, openOffer, seconds } from './builders.ts';
import {
  credentialRevocation,
  deferredCompletion,
  deferredFailure,
  issuanceDeferral,
  responseDelivery,
  sessionOpening,
  sessionRemoval,
  stepsOf,
} from './steps.ts';

export function describeDeferred(open: () => Store): void {
  describe('a deferred transaction', () => {
    let store: Store;
    let tenantId: TenantId;
    let session: Session;
    let transaction: DeferredTransaction;
    beforeEach(async () => {
      store = open();
      tenantId = await addTenant(store);
      ({ session } = await openOffer(store, tenantId));
      transaction = aDeferred(session);
      expect(await stepsOf(store, tenantId).commit(issuanceDeferral(transaction, 1))).to.include({ done: true });
    });
    const complete = (id = transaction.id, at = seconds(1)) =>
      stepsOf(store, tenantId).commit(deferredCompletion(id, ['one', 'two'], aBatch(session, { id: 'b' }), 1, 'system'), at);
    const retrieve = (at = seconds(2)) => stepsOf(store, tenantId).retrieveDeferred(transaction.id, session.publicId, 1, 1, 'over', at);

    it('is found by its tenant, and keeps its session alive', async () => {
      const steps = stepsOf(store, tenantId);
      expect(await steps.deferred(transaction.id)).to.deep.equal(transaction);
      expect(await steps.deferred('none')).to.equal(undefined);
      expect(await stepsOf(store, await addTenant(store)).deferred(transaction.id)).to.equal(undefined);
      expect((await steps.session(session.id))?.session?.expiresAt).to.deep.equal(transaction.expiresAt);
    });

    it('is not opened for a terminal session', async () => {
      const steps = stepsOf(store, tenantId);
      const failedSession = (await openOffer(store, tenantId, { session: { status: 'failed' } })).session;
      const deferred = aDeferred(failedSession);
      expect(await steps.commit(issuanceDeferral(deferred, 1))).to.include({ done: false });
      expect(await steps.deferred(deferred.id)).to.equal(undefined);
    });

    it('is opened a bounded number of times, and not for a barred configuration', async () => {
      const steps = stepsOf(store, tenantId);
      const revocation = { by: 'system', sessionId: session.id, mask: 2, barred: true, issuedCount: 0 } as const;
      await steps.commit(credentialRevocation([{ listId: 'none', index: 0, status: 1 }], revocation));
      expect(await steps.commit(issuanceDeferral(aDeferred(session), 2)), 'for a revoked credential').to.include({ done: false });
      for (let count = 1; count < MAX_ISSUANCES; count++) {
        expect(await steps.commit(issuanceDeferral(aDeferred(session), 1))).to.include({ done: true });
      }
      expect(await steps.commit(issuanceDeferral(aDeferred(session), 1)), 'beyond the limit of open transactions').to.include({
        done: false,
      });
    });

    it('is listed by session, the newest first', async () => {
      const steps = stepsOf(store, tenantId);
      const newerTransaction = aDeferred(session, { createdAt: seconds(5) });
      await steps.commit(issuanceDeferral(newerTransaction, 1));
      const ids = async (query: object) => (await steps.deferredTransactions({ limit: 10, ...query })).map(({ id }) => id);
      expect(await ids({ sessionId: session.id })).to.deep.equal([newerTransaction.id, transaction.id]);
      expect(await ids({ limit: 1 })).to.deep.equal([newerTransaction.id]);
      expect(await ids({ sessionId: 'other' })).to.deep.equal([]);
    });

    it('is completed once, and its batch is recorded', async () => {
      const steps = stepsOf(store, tenantId);
      const results = await Promise.all(
        Array.from({ length: 20 }, (_, index) =>
          steps.commit(
            deferredCompletion(transaction.id, [`credential ${index}`], aBatch(session, { id: `batch-${index}` }), 1, 'system'),
            seconds(1),
          ),
        ),
      );
      expect(results.filter(({ done }) => done)).to.have.length(1);
      const winner = results.findIndex(({ done }) => done);
      expect(await steps.deferred(transaction.id)).to.deep.equal({
        ...transaction,
        status: 'ready',
        credentials: [`credential ${winner}`],
        batchId: `batch-${winner}`,
        updatedAt: seconds(1),
      });
      const batches = (await steps.issued(session.id))?.batches;
      expect(batches?.map(({ id }) => id)).to.deep.equal([`batch-${winner}`]);
    });

    it('is not completed after its expiry, for a barred configuration or after a failure', async () => {
      const steps = stepsOf(store, tenantId);
      expect(await complete(transaction.id, transaction.expiresAt)).to.include({ done: false });
      expect(await complete('none')).to.include({ done: false });
      await steps.commit(
        credentialRevocation([{ listId: 'none', index: 0, status: 1 }], {
          by: 'system',
          sessionId: session.id,
          mask: 1,
          barred: true,
          issuedCount: 0,
        }),
      );
      expect(await complete()).to.include({ done: false });
      expect((await steps.deferred(transaction.id))?.status).to.equal('pending');
      expect(await steps.commit(deferredFailure(transaction.id, 'no such person', 'system'), seconds(3))).to.include({ done: true });
      expect(await steps.commit(deferredFailure(transaction.id, 'again', 'system'), seconds(4))).to.include({ done: false });
      expect(await steps.deferred(transaction.id)).to.deep.include({ status: 'failed', errorMessage: 'no such person' });
      expect((await steps.issued(session.id))?.batches).to.deep.equal([]);
    });

    it('keeps the keys of the wallet until its end of any kind', async () => {
      const steps = stepsOf(store, tenantId);
      const countKeys = async (id: string) => (await steps.deferred(id))?.holderKeys.length;
      const [fetched, failed, expired] = [transaction, aDeferred(session), aDeferred(session)];
      for (const one of [failed, expired]) await steps.commit(issuanceDeferral(one, 1));
      await complete();
      expect(await countKeys(fetched.id), 'ready')
        .to.equal(fetched.holderKeys.length)
        .and.to.be.above(0);
      await retrieve();
      expect(await countKeys(fetched.id), 'fetched').to.equal(0);
      await steps.commit(deferredFailure(failed.id, 'no such person', 'system'), seconds(3));
      expect(await countKeys(failed.id), 'failed').to.equal(0);
      expect(await countKeys(expired.id), 'pending').to.be.above(0);
      await store.maintenance.expireDeferred(expired.expiresAt, 1000);
      expect(await countKeys(expired.id), 'expired').to.equal(0);
    });

    it('is retrieved once, which may complete the session', async () => {
      const steps = stepsOf(store, tenantId);
      expect(await retrieve(), 'before the completion').to.equal(undefined);
      await complete();
      const retrieval = await steps.retrieveDeferred(transaction.id, 'other' as never, 1, 1, 'over', seconds(2));
      expect(retrieval, 'for another session').to.equal(undefined);
      const retrievals = await Promise.all(Array.from({ length: 20 }, () => retrieve()));
      const winners = retrievals.filter((answer) => answer !== undefined && answer !== 'refused');
      expect(winners).to.have.length(1);
      expect(winners[0]?.transaction.credentials).to.deep.equal(['one', 'two']);
      expect(winners[0]?.completed).to.equal(true);
      expect(await steps.deferred(transaction.id)).to.deep.include({ status: 'retrieved', credentials: null });
      expect((await steps.session(session.id))?.session).to.deep.include({ status: 'completed', issuedMask: 1 });
      const events = await steps.sessionEvents(session.id, 0, 10);
      expect(events.map(({ status }) => status)).to.deep.equal(['active', 'completed']);
    });

    it('ends without a retrieval when its session failed or was revoked for it', async () => {
      const steps = stepsOf(store, tenantId);
      const revoke = (mask: number) =>
        steps.commit(
          credentialRevocation([{ listId: 'none', index: 0, status: 1 }], {
            by: 'system',
            sessionId: session.id,
            mask,
            barred: true,
            issuedCount: 1,
          }),
        );
      const failSession = () => steps.recordOutcome(session, 'fail', {}, seconds(1));
      for (const endSession of [() => revoke(1), failSession]) {
        ({ session } = await openOffer(store, tenantId));
        transaction = aDeferred(session);
        await steps.commit(issuanceDeferral(transaction, 1));
        await complete();
        await endSession();
        expect(await retrieve()).to.equal('refused');
        expect(await steps.deferred(transaction.id)).to.deep.include({
          status: 'failed',
          holderKeys: [],
          credentials: null,
          errorMessage: 'over',
          updatedAt: seconds(2),
        });
        expect((await steps.session(session.id))?.session?.issuedMask).to.equal(0);
        expect(await retrieve(), 'a second retrieval').to.equal(undefined);
      }
    });

    it('is retrieved when another credential of its session was revoked, or all others are issued', async () => {
      const steps = stepsOf(store, tenantId);
      await complete();
      const revocation = { by: 'system', sessionId: session.id, mask: 2, barred: true, issuedCount: 1 } as const;
      await steps.commit(credentialRevocation([{ listId: 'none', index: 0, status: 1 }], revocation));
      await steps.recordOutcome(session, 'complete', {}, seconds(1));
      expect(await retrieve()).to.deep.include({ completed: false });
    });

    it('is either retrieved or revoked when both happen simultaneously', async () => {
      const steps = stepsOf(store, tenantId);
      for (let round = 0; round < 20; round++) {
        ({ session } = await openOffer(store, tenantId));
        transaction = aDeferred(session);
        await steps.commit(issuanceDeferral(transaction, 1));
        await complete();
        const revocation = { by: 'system', sessionId: session.id, mask: 1, barred: true, issuedCount: 1 } as const;
        const [retrievalResult, revocationResult] = await Promise.all([
          retrieve(),
          steps.commit(credentialRevocation([{ listId: 'none', index: 0, status: 1 }], revocation)),
        ]);
        const { status } = (await steps.deferred(transaction.id)) ?? {};
        expect([revocationResult.done, status]).to.deep.equal([true, retrievalResult === 'refused' ? 'failed' : 'retrieved']);
        expect((await steps.session(session.id))?.session?.issuedMask).to.equal(retrievalResult === 'refused' ? 0 : 1);
      }
    });

    it('is not retrieved after its expiry', async () => {
      await complete();
      expect(await retrieve(transaction.expiresAt)).to.equal(undefined);
    });

    it('expires without its credentials, and is removed with its session', async () => {
      const steps = stepsOf(store, tenantId);
      await complete();
      await store.maintenance.expireDeferred(seconds(86_399), 1000);
      expect((await steps.deferred(transaction.id))?.status).to.equal('ready');
      expect(await store.maintenance.expireDeferred(transaction.expiresAt, 1000)).to.be.greaterThan(0);
      expect(await steps.deferred(transaction.id)).to.deep.include({ status: 'expired', credentials: null });
      expect(await complete()).to.include({ done: false });
      const otherTransaction = aDeferred(session);
      await steps.commit(issuanceDeferral(otherTransaction, 1));
      await steps.commit(sessionRemoval(session.id, 'system'));
      expect(await steps.deferred(otherTransaction.id)).to.equal(undefined);
    });
  });
}

export function describeOutcomes(open: () => Store): void {
  describe('the end of a session', () => {
    let store: Store;
    let tenantId: TenantId;
    beforeEach(async () => {
      store = open();
      tenantId = await addTenant(store);
    });
    const start = async (changes: Partial<Session> = {}) => {
      const session = aSession(tenantId, changes);
      await stepsOf(store, tenantId).commit(sessionOpening(session));
      return session;
    };
    const events = async (id: SessionId) => (await stepsOf(store, tenantId).sessionEvents(id, 0, 100)).map(({ status }) => status);

    describe('a presentation response', () => {
      it('is accepted once', async () => {
        const session = await start();
        const steps = stepsOf(store, tenantId);
        expect(await steps.commit(responseDelivery(session.id), seconds(3))).to.include({ done: true });
        expect(await steps.commit(responseDelivery(session.id), seconds(4))).to.include({ done: false });
        expect((await steps.session(session.id))?.session?.claimedAt).to.deep.equal(seconds(3));
      });

      it('ends the session once, for an unchanged tenant', async () => {
        const session = await start();
        const steps = stepsOf(store, tenantId);
        const revision = (await steps.state())?.revision ?? -1;
        const answer = (changes: object = {}) => ({
          sessionId: session.id,
          publicId: session.publicId,
          revision,
          event: 'complete' as const,
          outcome: { credentials: [{ id: 'pid' }] },
          ...changes,
        });
        expect(await steps.answerAtOnce(answer({ revision: revision + 1 }), NOW)).to.equal(false);
        expect(await steps.answerAtOnce(answer(), session.expiresAt)).to.equal(false);
        expect((await steps.session(session.id))?.session).to.deep.equal(session);
        const results = await Promise.all(Array.from({ length: 50 }, () => stepsOf(store, tenantId).answerAtOnce(answer(), seconds(3))));
        expect(results.filter(Boolean)).to.have.length(1);
        const stored = (await steps.session(session.id))?.session;
        expect(stored).to.deep.include({ status: 'completed', version: 2, outcome: answer().outcome });
        expect(stored?.claimedAt).to.deep.equal(seconds(3));
        expect(await events(session.id)).to.deep.equal(['active', 'completed']);
      });

      it('is not accepted directly after the request was claimed', async () => {
        const session = await start();
        const steps = stepsOf(store, tenantId);
        const revision = (await steps.state())?.revision ?? -1;
        await steps.commit(responseDelivery(session.id));
        const answer = { sessionId: session.id, publicId: session.publicId, revision, outcome: {} };
        expect(await steps.answerAtOnce({ ...answer, event: 'fail' }, NOW)).to.equal(false);
      });

      it('is not accepted by a terminal or unknown session', async () => {
        const steps = stepsOf(store, tenantId);
        const expiredSession = await start({ expiresAt: seconds(10) });
        expect(await steps.commit(responseDelivery(expiredSession.id), seconds(10))).to.include({ done: false });
        for (const status of ['completed', 'failed', 'expired'] as const) {
          expect(await steps.commit(responseDelivery((await start({ status })).id))).to.include({ done: false });
        }
        expect(await steps.commit(responseDelivery('none' as SessionId))).to.include({ done: false });
      });
    });

    describe('a verification outcome', () => {
      const outcome = { credentials: [{ family_name: 'Mustermann' }], redirectUri: 'https://shop.example' };

      it('ends the session and is logged', async () => {
        const session = await start();
        const steps = stepsOf(store, tenantId);
        expect(await steps.recordOutcome(session, 'complete', outcome, seconds(9))).to.equal(2);
        expect((await steps.session(session.id))?.session).to.deep.equal({
          ...session,
          status: 'completed',
          version: 2,
          outcome,
          updatedAt: seconds(9),
        });
        expect(await steps.sessionEvents(session.id, 1, 10)).to.deep.equal([
          { sequence: 2, version: 2, status: 'completed', at: seconds(9) },
        ]);
      });

      it('is not applied to an outdated version', async () => {
        const session = await start();
        const steps = stepsOf(store, tenantId);
        await steps.fetchSession(session.publicId, NOW);
        expect(await steps.recordOutcome(session, 'fail', outcome, NOW)).to.equal(undefined);
        expect(await steps.recordOutcome(session, undefined, outcome, NOW)).to.equal(undefined);
        expect((await steps.session(session.id))?.session).to.include({ status: 'fetched', outcome: null });
      });

      it('never changes a terminal status', async () => {
        const steps = stepsOf(store, tenantId);
        for (const status of ['completed', 'failed', 'expired'] as const) {
          const session = await start({ status });
          for (const event of ['complete', 'fail'] as const) {
            expect(await steps.recordOutcome(session, event, outcome, NOW)).to.equal(undefined);
          }
          expect((await steps.session(session.id))?.session).to.deep.equal(session);
        }
      });

      it('without an event annotates the session in any status, and logs nothing', async () => {
        const steps = stepsOf(store, tenantId);
        for (const status of ['active', 'fetched', 'completed', 'failed'] as const) {
          const session = await start({ status });
          expect(await steps.recordOutcome(session, undefined, outcome, seconds(1))).to.equal(2);
          expect((await steps.session(session.id))?.session).to.deep.include({ status, outcome, version: 2 });
          expect(await events(session.id)).to.deep.equal([status]);
        }
      });
    });
  });
}
