import { expect } from 'chai';
import { MAX_ISSUANCES, type Store } from '../../../application/ports/store.ts';
import type { DeferredTransaction } from '../../../domain/issuance/deferred.ts';
import type { Session } from '../../../domain/sessions/session.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { aBatch, aDeferred, addTenant, NOW, openOffer, seconds } from './builders.ts';

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
      expect(await store.beats(tenantId).openDeferred(transaction, 1)).to.equal(true);
    });
    const complete = (id = transaction.id, at = seconds(1)) =>
      store
        .beats(tenantId)
        .completeDeferred(id, ['one', 'two'], aBatch(session, { id: 'b' }), 1, at, 'system');
    const retrieve = (at = seconds(2)) =>
      store.beats(tenantId).retrieveDeferred(transaction.id, session.publicId, 1, 1, 'over', at);

    it('is found by its tenant, and keeps its session alive', async () => {
      const beats = store.beats(tenantId);
      expect(await beats.findDeferred(transaction.id)).to.deep.equal(transaction);
      expect(await beats.findDeferred('none')).to.equal(undefined);
      expect(await store.beats(await addTenant(store)).findDeferred(transaction.id)).to.equal(undefined);
      expect((await beats.findSession(session.id))?.expiresAt).to.deep.equal(transaction.expiresAt);
    });

    it('is not opened for a session that is over', async () => {
      const beats = store.beats(tenantId);
      const over = (await openOffer(store, tenantId, { session: { status: 'failed' } })).session;
      const late = aDeferred(over);
      expect(await beats.openDeferred(late, 1)).to.equal(false);
      expect(await beats.findDeferred(late.id)).to.equal(undefined);
    });

    it('is opened a bounded number of times, and not for what was barred', async () => {
      const beats = store.beats(tenantId);
      const bar = { by: 'system', sessionId: session.id, mask: 2, barred: true, issuedCount: 0 } as const;
      await beats.changeStatuses([{ listId: 'none', index: 0, status: 1 }], NOW, bar);
      expect(await beats.openDeferred(aDeferred(session), 2), 'barred').to.equal(false);
      for (let count = 1; count < MAX_ISSUANCES; count++) {
        expect(await beats.openDeferred(aDeferred(session), 1)).to.equal(true);
      }
      expect(await beats.openDeferred(aDeferred(session), 1), 'one too many').to.equal(false);
    });

    it('is listed by session, the newest first', async () => {
      const beats = store.beats(tenantId);
      const newer = aDeferred(session, { createdAt: seconds(5) });
      await beats.openDeferred(newer, 1);
      const ids = async (query: object) =>
        (await beats.listDeferred({ limit: 10, ...query })).map(({ id }) => id);
      expect(await ids({ sessionId: session.id })).to.deep.equal([newer.id, transaction.id]);
      expect(await ids({ limit: 1 })).to.deep.equal([newer.id]);
      expect(await ids({ sessionId: 'other' })).to.deep.equal([]);
    });

    it('is completed once, with its batch on record', async () => {
      const beats = store.beats(tenantId);
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, index) =>
          beats.completeDeferred(
            transaction.id,
            [`credential ${index}`],
            aBatch(session, { id: `batch-${index}` }),
            1,
            seconds(1),
            'system',
          ),
        ),
      );
      expect(answers.filter(Boolean)).to.have.length(1);
      const winner = answers.indexOf(true);
      expect(await beats.findDeferred(transaction.id)).to.deep.equal({
        ...transaction,
        status: 'ready',
        credentials: [`credential ${winner}`],
        batchId: `batch-${winner}`,
        updatedAt: seconds(1),
      });
      const batches = await beats.issuedBatches(session.id);
      expect(batches.map(({ id }) => id)).to.deep.equal([`batch-${winner}`]);
    });

    it('is not completed after its end, for a barred configuration or when it failed', async () => {
      const beats = store.beats(tenantId);
      expect(await complete(transaction.id, transaction.expiresAt)).to.equal(false);
      expect(await complete('none')).to.equal(false);
      await beats.changeStatuses([{ listId: 'none', index: 0, status: 1 }], NOW, {
        by: 'system',
        sessionId: session.id,
        mask: 1,
        barred: true,
        issuedCount: 0,
      });
      expect(await complete()).to.equal(false);
      expect((await beats.findDeferred(transaction.id))?.status).to.equal('pending');
      expect(await beats.failDeferred(transaction.id, 'no such person', seconds(3), 'system')).to.equal(true);
      expect(await beats.failDeferred(transaction.id, 'again', seconds(4), 'system')).to.equal(false);
      expect(await beats.findDeferred(transaction.id)).to.deep.include({
        status: 'failed',
        errorMessage: 'no such person',
      });
      expect(await beats.issuedBatches(session.id)).to.deep.equal([]);
    });

    it('is handed out once, and that may complete the session', async () => {
      const beats = store.beats(tenantId);
      expect(await retrieve(), 'not yet').to.equal(undefined);
      await complete();
      const foreign = await beats.retrieveDeferred(
        transaction.id,
        'other' as never,
        1,
        1,
        'over',
        seconds(2),
      );
      expect(foreign, 'of another session').to.equal(undefined);
      const answers = await Promise.all(Array.from({ length: 20 }, () => retrieve()));
      const winners = answers.filter((answer) => answer !== undefined && answer !== 'refused');
      expect(winners).to.have.length(1);
      expect(winners[0]?.transaction.credentials).to.deep.equal(['one', 'two']);
      expect(winners[0]?.completed).to.equal(true);
      expect(await beats.findDeferred(transaction.id)).to.deep.include({
        status: 'retrieved',
        credentials: null,
      });
      expect(await beats.findSession(session.id)).to.deep.include({ status: 'completed', issuedMask: 1 });
      const events = await beats.sessionEvents(session.id, 0, 10);
      expect(events.map(({ status }) => status)).to.deep.equal(['active', 'completed']);
    });

    it('ends without being handed out when its session failed or was revoked for it', async () => {
      const beats = store.beats(tenantId);
      const revoke = (mask: number) =>
        beats.changeStatuses([{ listId: 'none', index: 0, status: 1 }], NOW, {
          by: 'system',
          sessionId: session.id,
          mask,
          barred: true,
          issuedCount: 1,
        });
      const fail = () => beats.recordOutcome(session, 'fail', {}, seconds(1));
      for (const end of [() => revoke(1), fail]) {
        ({ session } = await openOffer(store, tenantId));
        transaction = aDeferred(session);
        await beats.openDeferred(transaction, 1);
        await complete();
        await end();
        expect(await retrieve()).to.equal('refused');
        expect(await beats.findDeferred(transaction.id)).to.deep.include({
          status: 'failed',
          credentials: null,
          errorMessage: 'over',
          updatedAt: seconds(2),
        });
        expect((await beats.findSession(session.id))?.issuedMask).to.equal(0);
        expect(await retrieve(), 'once').to.equal(undefined);
      }
    });

    it('is handed out when another credential of its session was revoked, or all others are out', async () => {
      const beats = store.beats(tenantId);
      await complete();
      const bar = { by: 'system', sessionId: session.id, mask: 2, barred: true, issuedCount: 1 } as const;
      await beats.changeStatuses([{ listId: 'none', index: 0, status: 1 }], NOW, bar);
      await beats.recordOutcome(session, 'complete', {}, seconds(1));
      expect(await retrieve()).to.deep.include({ completed: false });
    });

    it('is either handed out or revoked first, when both come at once', async () => {
      const beats = store.beats(tenantId);
      for (let round = 0; round < 20; round++) {
        ({ session } = await openOffer(store, tenantId));
        transaction = aDeferred(session);
        await beats.openDeferred(transaction, 1);
        await complete();
        const bar = { by: 'system', sessionId: session.id, mask: 1, barred: true, issuedCount: 1 } as const;
        const [taken, barred] = await Promise.all([
          retrieve(),
          beats.changeStatuses([{ listId: 'none', index: 0, status: 1 }], NOW, bar),
        ]);
        const { status } = (await beats.findDeferred(transaction.id)) ?? {};
        expect([barred, status]).to.deep.equal([true, taken === 'refused' ? 'failed' : 'retrieved']);
        expect((await beats.findSession(session.id))?.issuedMask).to.equal(taken === 'refused' ? 0 : 1);
      }
    });

    it('is not handed out after its end', async () => {
      await complete();
      expect(await retrieve(transaction.expiresAt)).to.equal(undefined);
    });

    it('ends by the clock without its credentials, and goes with its session', async () => {
      const beats = store.beats(tenantId);
      await complete();
      await store.chores.expireDeferred(seconds(86_399), 1000);
      expect((await beats.findDeferred(transaction.id))?.status).to.equal('ready');
      expect(await store.chores.expireDeferred(transaction.expiresAt, 1000)).to.be.greaterThan(0);
      expect(await beats.findDeferred(transaction.id)).to.deep.include({
        status: 'expired',
        credentials: null,
      });
      expect(await complete()).to.equal(false);
      const other = aDeferred(session);
      await beats.openDeferred(other, 1);
      await beats.removeSession(session.id, 'system');
      expect(await beats.findDeferred(other.id)).to.equal(undefined);
    });
  });
}
