import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { Store } from '../../../application/ports/store.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { addTenant, aUse, openOffer } from './builders.ts';

/** Long before everything else in this store, so that chores over all tenants meet only what belongs here. */
const PAST = new Date('2020-01-01T00:00:00Z');
const past = (seconds: number) => new Date(PAST.getTime() + seconds * 1000);

export function describeChores(open: () => Store): void {
  describe('chores', () => {
    let store: Store;
    let one: TenantId;
    let two: TenantId;
    beforeEach(async () => {
      store = open();
      one = await addTenant(store);
      two = await addTenant(store);
    });

    it('expire open sessions of all tenants in portions, the oldest first, and log it', async () => {
      const at = (tenantId: TenantId, second: number, status: 'active' | 'fetched' | 'completed') =>
        openOffer(store, tenantId, { session: { expiresAt: past(second), status } });
      const late = await at(one, 3, 'active');
      const middle = await at(two, 2, 'fetched');
      const early = await at(one, 1, 'active');
      const done = await at(one, 1, 'completed');
      const open = await at(one, 100, 'active');
      const name = ({ session: { tenantId, id } }: typeof late) => ({ tenantId, id });
      const first = await store.chores.expireSessions(past(3), 2);
      expect(first).to.have.deep.members([name(early), name(middle)]);
      expect(await store.chores.expireSessions(past(3), 2)).to.deep.equal([name(late)]);
      expect(await store.chores.expireSessions(past(3), 2)).to.deep.equal([]);

      for (const { session } of [late, middle, early]) {
        const beats = store.beats(session.tenantId);
        expect(await beats.findSession(session.id)).to.deep.include({
          status: 'expired',
          version: 2,
          updatedAt: past(3),
        });
        expect(await beats.sessionEvents(session.id, 1, 10)).to.deep.equal([
          { sequence: 2, version: 2, status: 'expired', at: past(3) },
        ]);
      }
      for (const { session } of [done, open]) {
        expect(await store.beats(one).findSession(session.id)).to.deep.equal(session);
      }
    });

    it('forget what could not be used any more, in portions', async () => {
      const values = [1, 2, 3].map((second) => aUse('dpop_jti', { expiresAt: past(second) }));
      const fresh = aUse();
      await store.beats(one).remember([...values.slice(0, 2), fresh]);
      await store.beats(two).remember(values.slice(2));
      const old = await openOffer(store, one, { grant: { expiresAt: past(1) } });
      const young = await openOffer(store, one);
      expect(await store.chores.forgetExpired(past(3), 2)).to.equal(3);
      expect(await store.chores.forgetExpired(past(3), 2)).to.equal(1);
      expect(await store.chores.forgetExpired(past(3), 2)).to.equal(0);

      expect(await store.beats(one).remember([fresh])).to.equal(false);
      expect(await store.beats(one).remember(values.slice(0, 2))).to.equal(true);
      expect((await store.beats(one).findGrant(old.grant.codeHash))?.grant).to.equal(undefined);
      expect((await store.beats(one).findGrant(young.grant.codeHash))?.grant?.id).to.equal(young.grant.id);
      await store.chores.forgetExpired(past(3), 100);
    });

    it('lease a job to one instance until the lease ends or is renewed', async () => {
      const { chores } = store;
      const job = randomUUID();
      expect(await chores.tryLease(job, 'a', past(0), 10)).to.equal(true);
      expect(await chores.tryLease(job, 'b', past(9), 10)).to.equal(false);
      expect(await chores.tryLease(randomUUID(), 'b', past(9), 10)).to.equal(true);
      expect(await chores.tryLease(job, 'a', past(9), 10)).to.equal(true);
      expect(await chores.tryLease(job, 'b', past(18), 10)).to.equal(false);
      expect(await chores.tryLease(job, 'b', past(19), 10)).to.equal(true);
      expect(await chores.tryLease(job, 'a', past(20), 10)).to.equal(false);
    });

    it('answer a ping', async () => {
      await store.ping();
    });
  });
}
