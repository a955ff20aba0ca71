import { expect } from 'chai';
import type { Store } from '../../../application/ports/store.ts';
import type { Session } from '../../../domain/sessions/session.ts';
import type { SessionId, TenantId } from '../../../domain/shared/ids.ts';
import { addTenant, aSession, NOW, seconds } from './builders.ts';
import { stepsOf } from './steps.ts';

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
      await stepsOf(store, tenantId).openSession(session);
      return session;
    };
    const events = async (id: SessionId) =>
      (await stepsOf(store, tenantId).sessionEvents(id, 0, 100)).map(({ status }) => status);

    describe('a response', () => {
      it('is taken in once', async () => {
        const session = await start();
        const steps = stepsOf(store, tenantId);
        expect(await steps.claimResponse(session.id, seconds(3))).to.equal(true);
        expect(await steps.claimResponse(session.id, seconds(4))).to.equal(false);
        expect((await steps.findSession(session.id))?.claimedAt).to.deep.equal(seconds(3));
      });

      it('ends the session at once, once, for a tenant that is as the caller saw it', async () => {
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
        expect(await steps.findSession(session.id)).to.deep.equal(session);
        const answers = await Promise.all(
          Array.from({ length: 50 }, () => stepsOf(store, tenantId).answerAtOnce(answer(), seconds(3))),
        );
        expect(answers.filter(Boolean)).to.have.length(1);
        const ended = await steps.findSession(session.id);
        expect(ended).to.deep.include({ status: 'completed', version: 2, outcome: answer().outcome });
        expect(ended?.claimedAt).to.deep.equal(seconds(3));
        expect(await events(session.id)).to.deep.equal(['active', 'completed']);
      });

      it('is not taken in at once after somebody claimed the request', async () => {
        const session = await start();
        const steps = stepsOf(store, tenantId);
        const revision = (await steps.state())?.revision ?? -1;
        await steps.claimResponse(session.id, NOW);
        const answer = { sessionId: session.id, publicId: session.publicId, revision, outcome: {} };
        expect(await steps.answerAtOnce({ ...answer, event: 'fail' }, NOW)).to.equal(false);
      });

      it('is not taken in by a session that ended or is unknown', async () => {
        const steps = stepsOf(store, tenantId);
        const over = await start({ expiresAt: seconds(10) });
        expect(await steps.claimResponse(over.id, seconds(10))).to.equal(false);
        for (const status of ['completed', 'failed', 'expired'] as const) {
          expect(await steps.claimResponse((await start({ status })).id, NOW)).to.equal(false);
        }
        expect(await steps.claimResponse('none' as SessionId, NOW)).to.equal(false);
      });
    });

    describe('an outcome', () => {
      const outcome = { credentials: [{ family_name: 'Mustermann' }], redirectUri: 'https://shop.example' };

      it('ends the session and is logged', async () => {
        const session = await start();
        const steps = stepsOf(store, tenantId);
        expect(await steps.recordOutcome(session, 'complete', outcome, seconds(9))).to.equal(2);
        expect(await steps.findSession(session.id)).to.deep.equal({
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

      it('does not apply to a version that is no more', async () => {
        const session = await start();
        const steps = stepsOf(store, tenantId);
        await steps.fetchSession(session.publicId, NOW);
        expect(await steps.recordOutcome(session, 'fail', outcome, NOW)).to.equal(undefined);
        expect(await steps.recordOutcome(session, undefined, outcome, NOW)).to.equal(undefined);
        expect(await steps.findSession(session.id)).to.include({ status: 'fetched', outcome: null });
      });

      it('never changes a terminal status', async () => {
        const steps = stepsOf(store, tenantId);
        for (const status of ['completed', 'failed', 'expired'] as const) {
          const session = await start({ status });
          for (const event of ['complete', 'fail'] as const) {
            expect(await steps.recordOutcome(session, event, outcome, NOW)).to.equal(undefined);
          }
          expect(await steps.findSession(session.id)).to.deep.equal(session);
        }
      });

      it('without an event annotates the session, whatever its status, and logs nothing', async () => {
        const steps = stepsOf(store, tenantId);
        for (const status of ['active', 'fetched', 'completed', 'failed'] as const) {
          const session = await start({ status });
          expect(await steps.recordOutcome(session, undefined, outcome, seconds(1))).to.equal(2);
          expect(await steps.findSession(session.id)).to.deep.include({ status, outcome, version: 2 });
          expect(await events(session.id)).to.deep.equal([status]);
        }
      });
    });
  });
}
