import { expect } from 'chai';
import type { CountQuery, OutcomeQuery } from '../../../application/ports/session-rates.ts';
import type { Store } from '../../../application/ports/store.ts';
import type { Session } from '../../../domain/sessions/session.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { addTenant, aSession, NOW, seconds } from './builders.ts';
import { stepsOf } from './steps.ts';

export function describeSessionRates(open: () => Store): void {
  describe('how sessions went', () => {
    let store: Store;
    let tenantId: TenantId;
    beforeEach(async () => {
      store = open();
      tenantId = await addTenant(store);
    });
    const start = async (at: number, changes: Partial<Session> = {}) => {
      const times = { createdAt: seconds(at), updatedAt: seconds(at), expiresAt: seconds(at + 600) };
      const session = aSession(tenantId, { ...times, ...changes });
      await stepsOf(store, tenantId).openSession(session);
      return session;
    };
    const failed = (message: string): Partial<Session> => ({
      status: 'failed',
      outcome: { failure: { code: 'webhook_failed', message } },
    });
    const kinds = ['issuance', 'verification'] as const;
    const count = async (changes: Partial<CountQuery> = {}, of = tenantId) => {
      const query = { kinds, since: NOW, now: seconds(10), limit: 100, ...changes };
      return (await store.read(of).sessionCounts(query)).counts.map(
        ({ kind, status, count: number, oldest }) =>
          `${number} ${kind} ${status} since ${(oldest.getTime() - NOW.getTime()) / 1000}`,
      );
    };
    const outcomes = async (changes: Partial<OutcomeQuery> = {}, of = tenantId) =>
      store.read(of).sessionOutcomes({ kinds, since: NOW, failed: false, limit: 100, ...changes });

    it('is counted by kind and status, with the age of the oldest', async () => {
      await start(1, { kind: 'issuance', status: 'completed' });
      await start(2, { kind: 'issuance', status: 'completed' });
      await start(3, { kind: 'verification', ...failed('x') });
      await start(4, { kind: 'verification' });
      expect(await count()).to.have.members([
        '2 issuance completed since 1',
        '1 verification failed since 3',
        '1 verification active since 4',
      ]);
      expect(await count({ kinds: ['issuance'] })).to.deep.equal(['2 issuance completed since 1']);
      expect(await count({ since: seconds(2) })).to.include('1 issuance completed since 2');
    });

    it('is counted as expired once the time is over, also where nobody wrote that down', async () => {
      await start(1, { kind: 'issuance', status: 'fetched' });
      await start(2, { kind: 'issuance', status: 'expired' });
      await start(3, { kind: 'issuance', status: 'completed' });
      expect(await count({ now: seconds(601) })).to.have.members([
        '2 issuance expired since 1',
        '1 issuance completed since 3',
      ]);
    });

    it('is counted among as many as may be read, however rare a kind is among them', async () => {
      await start(1, { kind: 'verification', status: 'completed' });
      for (const at of [2, 3, 4]) await start(at, { kind: 'issuance', status: 'completed' });
      await start(5, { kind: 'verification', status: 'completed' });
      const rare = (limit: number) =>
        store.read(tenantId).sessionCounts({ kinds: ['verification'], since: NOW, now: NOW, limit });
      const completed = { kind: 'verification', status: 'completed' };
      expect(await rare(4)).to.deep.equal({
        counts: [{ ...completed, count: 1, oldest: seconds(5) }],
        from: seconds(2),
      });
      expect(await rare(6)).to.deep.equal({ counts: [{ ...completed, count: 2, oldest: seconds(1) }] });
    });

    it('is counted of the newest alone, and of one tenant', async () => {
      for (const at of [1, 2, 3, 4, 5]) await start(at, { kind: 'issuance', status: 'completed' });
      expect(await count({ limit: 3 })).to.deep.equal(['3 issuance completed since 3']);
      expect(await count({}, await addTenant(store))).to.deep.equal([]);
    });

    it('is read of those of which something is on record, the newest first, page by page', async () => {
      const one = await start(1, failed('one'));
      await start(2);
      const three = await start(3, { status: 'completed', outcome: { notifications: [] } });
      const four = await start(4, failed('four'));
      const ids = async (changes: Partial<OutcomeQuery> = {}) =>
        (await outcomes(changes)).map(({ id }) => id);
      expect(await ids()).to.deep.equal([four.id, three.id, one.id]);
      expect((await outcomes())[0]).to.deep.equal({
        ...{ id: four.id, createdAt: four.createdAt, outcome: four.outcome },
      });
      expect(await ids({ failed: true })).to.deep.equal([four.id, one.id]);
      expect(await ids({ failed: true, limit: 1 })).to.deep.equal([four.id]);
      expect(await ids({ after: four, limit: 1 })).to.deep.equal([three.id]);
      expect(await ids({ after: four, kinds: [one.kind], failed: true })).to.deep.equal([one.id]);
      expect(await ids({ since: seconds(4) })).to.deep.equal([four.id]);
      const other = one.kind === 'issuance' ? 'verification' : 'issuance';
      expect(await ids({ kinds: [other] })).to.deep.equal([]);
      expect(await outcomes({}, await addTenant(store))).to.deep.equal([]);
    });
  });
}
