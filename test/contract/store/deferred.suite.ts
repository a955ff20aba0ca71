import { expect } from 'chai';
import type { Store } from '../../../application/ports/store.ts';
import type { DeferredTransaction } from '../../../domain/issuance/deferred.ts';
import type { Session } from '../../../domain/sessions/session.ts';
import { MAX_ISSUANCES } from '../../../domain/sessions/session.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { aBatch, aDeferred, addTenant, NOW, openOffer, seconds } from './builders.ts';
import { stepsOf } from './steps.ts';

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
      expect(await stepsOf(store, tenantId).openDeferred(transaction, 1)).to.equal(true);
    });
    const complete = (id = transaction.id, at = seconds(1)) =>
      stepsOf(store, tenantId).completeDeferred(
        id,
        ['one', 'two'],
        aBatch(session, { id: 'b' }),
        1,
        at,
        'system',
      );
    const retrieve = (at = seconds(2)) =>
      stepsOf(store, tenantId).retrieveDeferred(transaction.id, session.publicId, 1, 1, 'over', at);

    it('is found by its tenant, and keeps its session alive', async () => {
      const steps = stepsOf(store, tenantId);
      expect(await steps.deferred(transaction.id)).to.deep.equal(transaction);
      expect(await steps.deferred('none')).to.equal(undefined);
      expect(await stepsOf(store, await addTenant(store)).deferred(transaction.id)).to.equal(undefined);
      expect((await steps.findSession(session.id))?.expiresAt).to.deep.equal(transaction.expiresAt);
    });

    it('is not opened for a session that is over', async () => {
      const steps = stepsOf(store, tenantId);
      const over = (await openOffer(store, tenantId, { session: { status: 'failed' } })).session;
      const late = aDeferred(over);
      expect(await steps.openDeferred(late, 1)).to.equal(false);
      expect(await steps.deferred(late.id)).to.equal(undefined);
    });

    it('is opened a bounded number of times, and not for what was barred', async () => {
      const steps = stepsOf(store, tenantId);
      const bar = { by: 'system', sessionId: session.id, mask: 2, barred: true, issuedCount: 0 } as const;
      await steps.changeStatuses([{ listId: 'none', index: 0, status: 1 }], NOW, bar);
      expect(await steps.openDeferred(aDeferred(session), 2), 'barred').to.equal(false);
      for (let count = 1; count < MAX_ISSUANCES; count++) {
        expect(await steps.openDeferred(aDeferred(session), 1)).to.equal(true);
      }
      expect(await steps.openDeferred(aDeferred(session), 1), 'one too many').to.equal(false);
    });

    it('is listed by session, the newest first', async () => {
      const steps = stepsOf(store, tenantId);
      const newer = aDeferred(session, { createdAt: seconds(5) });
      await steps.openDeferred(newer, 1);
      const ids = async (query: object) =>
        (await steps.listDeferred({ limit: 10, ...query })).map(({ id }) => id);
      expect(await ids({ sessionId: session.id })).to.deep.equal([newer.id, transaction.id]);
      expect(await ids({ limit: 1 })).to.deep.equal([newer.id]);
      expect(await ids({ sessionId: 'other' })).to.deep.equal([]);
    });

    it('is completed once, with its batch on record', async () => {
      const steps = stepsOf(store, tenantId);
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, index) =>
          steps.completeDeferred(
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
      expect(await steps.deferred(transaction.id)).to.deep.equal({
        ...transaction,
        status: 'ready',
        credentials: [`credential ${winner}`],
        batchId: `batch-${winner}`,
        updatedAt: seconds(1),
      });
      const batches = await steps.issuedBatches(session.id);
      expect(batches.map(({ id }) => id)).to.deep.equal([`batch-${winner}`]);
    });

    it('is not completed after its end, for a barred configuration or when it failed', async () => {
      const steps = stepsOf(store, tenantId);
      expect(await complete(transaction.id, transaction.expiresAt)).to.equal(false);
      expect(await complete('none')).to.equal(false);
      await steps.changeStatuses([{ listId: 'none', index: 0, status: 1 }], NOW, {
        by: 'system',
        sessionId: session.id,
        mask: 1,
        barred: true,
        issuedCount: 0,
      });
      expect(await complete()).to.equal(false);
      expect((await steps.deferred(transaction.id))?.status).to.equal('pending');
      expect(await steps.failDeferred(transaction.id, 'no such person', seconds(3), 'system')).to.equal(true);
      expect(await steps.failDeferred(transaction.id, 'again', seconds(4), 'system')).to.equal(false);
      expect(await steps.deferred(transaction.id)).to.deep.include({
        status: 'failed',
        errorMessage: 'no such person',
      });
      expect(await steps.issuedBatches(session.id)).to.deep.equal([]);
    });

    it('keeps the keys of the wallet until it is over, however it ends', async () => {
      const steps = stepsOf(store, tenantId);
      const keysOf = async (id: string) => (await steps.deferred(id))?.holderKeys.length;
      const [fetched, failed, expired] = [transaction, aDeferred(session), aDeferred(session)];
      for (const one of [failed, expired]) await steps.openDeferred(one, 1);
      await complete();
      expect(await keysOf(fetched.id), 'ready')
        .to.equal(fetched.holderKeys.length)
        .and.to.be.above(0);
      await retrieve();
      expect(await keysOf(fetched.id), 'fetched').to.equal(0);
      await steps.failDeferred(failed.id, 'no such person', seconds(3), 'system');
      expect(await keysOf(failed.id), 'failed').to.equal(0);
      expect(await keysOf(expired.id), 'pending').to.be.above(0);
      await store.maintenance.expireDeferred(expired.expiresAt, 1000);
      expect(await keysOf(expired.id), 'expired').to.equal(0);
    });

    it('is handed out once, and that may complete the session', async () => {
      const steps = stepsOf(store, tenantId);
      expect(await retrieve(), 'not yet').to.equal(undefined);
      await complete();
      const foreign = await steps.retrieveDeferred(
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
      expect(await steps.deferred(transaction.id)).to.deep.include({
        status: 'retrieved',
        credentials: null,
      });
      expect(await steps.findSession(session.id)).to.deep.include({ status: 'completed', issuedMask: 1 });
      const events = await steps.sessionEvents(session.id, 0, 10);
      expect(events.map(({ status }) => status)).to.deep.equal(['active', 'completed']);
    });

    it('ends without being handed out when its session failed or was revoked for it', async () => {
      const steps = stepsOf(store, tenantId);
      const revoke = (mask: number) =>
        steps.changeStatuses([{ listId: 'none', index: 0, status: 1 }], NOW, {
          by: 'system',
          sessionId: session.id,
          mask,
          barred: true,
          issuedCount: 1,
        });
      const fail = () => steps.recordOutcome(session, 'fail', {}, seconds(1));
      for (const end of [() => revoke(1), fail]) {
        ({ session } = await openOffer(store, tenantId));
        transaction = aDeferred(session);
        await steps.openDeferred(transaction, 1);
        await complete();
        await end();
        expect(await retrieve()).to.equal('refused');
        expect(await steps.deferred(transaction.id)).to.deep.include({
          status: 'failed',
          holderKeys: [],
          credentials: null,
          errorMessage: 'over',
          updatedAt: seconds(2),
        });
        expect((await steps.findSession(session.id))?.issuedMask).to.equal(0);
        expect(await retrieve(), 'once').to.equal(undefined);
      }
    });

    it('is handed out when another credential of its session was revoked, or all others are out', async () => {
      const steps = stepsOf(store, tenantId);
      await complete();
      const bar = { by: 'system', sessionId: session.id, mask: 2, barred: true, issuedCount: 1 } as const;
      await steps.changeStatuses([{ listId: 'none', index: 0, status: 1 }], NOW, bar);
      await steps.recordOutcome(session, 'complete', {}, seconds(1));
      expect(await retrieve()).to.deep.include({ completed: false });
    });

    it('is either handed out or revoked first, when both come at once', async () => {
      const steps = stepsOf(store, tenantId);
      for (let round = 0; round < 20; round++) {
        ({ session } = await openOffer(store, tenantId));
        transaction = aDeferred(session);
        await steps.openDeferred(transaction, 1);
        await complete();
        const bar = { by: 'system', sessionId: session.id, mask: 1, barred: true, issuedCount: 1 } as const;
        const [taken, barred] = await Promise.all([
          retrieve(),
          steps.changeStatuses([{ listId: 'none', index: 0, status: 1 }], NOW, bar),
        ]);
        const { status } = (await steps.deferred(transaction.id)) ?? {};
        expect([barred, status]).to.deep.equal([true, taken === 'refused' ? 'failed' : 'retrieved']);
        expect((await steps.findSession(session.id))?.issuedMask).to.equal(taken === 'refused' ? 0 : 1);
      }
    });

    it('is not handed out after its end', async () => {
      await complete();
      expect(await retrieve(transaction.expiresAt)).to.equal(undefined);
    });

    it('ends by the clock without its credentials, and goes with its session', async () => {
      const steps = stepsOf(store, tenantId);
      await complete();
      await store.maintenance.expireDeferred(seconds(86_399), 1000);
      expect((await steps.deferred(transaction.id))?.status).to.equal('ready');
      expect(await store.maintenance.expireDeferred(transaction.expiresAt, 1000)).to.be.greaterThan(0);
      expect(await steps.deferred(transaction.id)).to.deep.include({
        status: 'expired',
        credentials: null,
      });
      expect(await complete()).to.equal(false);
      const other = aDeferred(session);
      await steps.openDeferred(other, 1);
      await steps.removeSession(session.id, 'system');
      expect(await steps.deferred(other.id)).to.equal(undefined);
    });
  });
}
