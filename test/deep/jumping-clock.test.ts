import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { Container } from 'inversify';
import sinon from 'sinon';
import { MasterCipher } from '../../adapters/crypto/cipher.ts';
import { OrmStore } from '../../adapters/persistence/orm-store.ts';
import { RenewKeyChains } from '../../application/keys/renew-key-chains.ts';
import { Clock } from '../../application/ports/clock.ts';
import { EventBus } from '../../application/ports/event-bus.ts';
import { Kms } from '../../application/ports/kms.ts';
import { Log } from '../../application/ports/log.ts';
import { ServiceSettings } from '../../application/ports/settings.ts';
import { Store } from '../../application/ports/store.ts';
import { TenantConfigurations } from '../../application/tenant-cache/tenant-configurations.ts';
import { RenewTrustLists } from '../../application/trust-lists/renew-trust-lists.ts';
import { startJobs } from '../../bootstrap/jobs/jobs.ts';
import { clockProbe, clockWarning } from '../../bootstrap/wiring/clock-check.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { addTenant, aUse, openOffer, REDEMPTION } from '../contract/store/builders.ts';
import { grantRedemption, stepsOf } from '../contract/store/steps.ts';
import { databases, type TestDatabase } from '../support/databases.ts';
import { stubFollowJobs } from '../support/fakes.ts';

const HOURS_MS = 3_600_000;
const inSeconds = (seconds: number) => new Date(Date.now() + seconds * 1000);
const pause = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const cipher = new MasterCipher({ masterSecrets: ['a master secret of decent length'] });

/** What the service forgets and who may work, when the clock of its machine is wrong by hours. */
for (const kind of databases()) {
  describe(`clock that jumps, on ${kind.name}`, () => {
    let database: TestDatabase | undefined;
    let store: OrmStore;
    let tenantId: TenantId;
    before(async function () {
      database = await kind.open();
      if (database === undefined) return this.skip();
      store = await OrmStore.open({ url: database.url, poolSize: 8 }, cipher);
    });
    beforeEach(async () => {
      tenantId = await addTenant(store);
    });
    after(async () => {
      await store?.close();
      await database?.drop();
    });

    /** The machine's clock is wrong by so many hours while `work` runs. */
    const wrongBy = async <T>(hours: number, work: () => Promise<T>): Promise<T> => {
      const clock = sinon.useFakeTimers({ now: Date.now() + hours * HOURS_MS, toFake: ['Date'] });
      try {
        return await work();
      } finally {
        clock.restore();
      }
    };

    const containerOf = () => {
      const container = new Container();
      const nothing = { execute: async () => ({ rotated: 0, renewed: 0, forgotten: 0, last: undefined }) };
      container.bind(Store).toConstantValue(store);
      container.bind(Clock).toConstantValue({ now: () => new Date() });
      container.bind(EventBus).toConstantValue({ publish: () => {} } as unknown as EventBus);
      const within = <T>(_context: unknown, work: () => T): T => work();
      const log = { info: () => {}, warn: () => {}, error: () => {}, within };
      container.bind(Log).toConstantValue(log as unknown as Log);
      container.bind(Kms).toConstantValue({ remove: async () => {} } as unknown as Kms);
      container.bind(TenantConfigurations).toConstantValue({} as unknown as TenantConfigurations);
      container.bind(RenewKeyChains).toConstantValue(nothing as unknown as RenewKeyChains);
      stubFollowJobs(container);
      container.bind(RenewTrustLists).toConstantValue(nothing as unknown as RenewTrustLists);
      container.bind(ServiceSettings).toConstantValue({ sessionTtlSeconds: 86_400 } as unknown as ServiceSettings);
      return container;
    };
    /** All jobs that a minute brings, in a process whose clock is wrong by so many hours. */
    const runJobs = async (hours: number) => {
      const timers = sinon.useFakeTimers({ now: Date.now() + hours * HOURS_MS, toFake: ['Date', 'setInterval', 'clearInterval'] });
      try {
        const stop = startJobs(containerOf());
        await timers.tickAsync(60_000);
        await stop();
      } finally {
        timers.restore();
      }
    };

    it('a minute ahead allows no second use of a value', async () => {
      const steps = stepsOf(store, tenantId);
      const values = [aUse('dpop_jti'), aUse('c_nonce'), aUse('client_jti')].map((value) => ({ ...value, expiresAt: inSeconds(300) }));
      expect(await steps.commit({ uses: values })).to.include({ done: true });
      await runJobs(3);
      for (const value of values) expect(await steps.commit({ uses: [value] }), value.kind).to.include({ done: false });
    });

    it('a minute ahead expires no session and no grant', async () => {
      const { session, grant } = await openOffer(store, tenantId, {
        session: { createdAt: inSeconds(0), expiresAt: inSeconds(3_600) },
        grant: { expiresAt: inSeconds(3_600) },
      });
      await runJobs(48);
      expect((await stepsOf(store, tenantId).session(session.id))?.session).to.include({ status: session.status });
      expect((await stepsOf(store, tenantId).grantByCode(grant.codeHash))?.grant?.id).to.equal(grant.id);
    });

    it('a minute ahead blocks no job of other processes', async () => {
      const { maintenance } = store;
      const job = randomUUID();
      const lease = async (holder: string) => maintenance.tryLease(job, holder, await maintenance.time(), 1);
      expect(await wrongBy(3, () => lease('dead'))).to.equal(true);
      expect(await lease('other')).to.equal(false);
      await pause(1_100);
      expect(await lease('other')).to.equal(true);
    });

    it('is reported in the log once a minute, and by the probe', async () => {
      const warned: string[] = [];
      const log = { info() {}, error() {}, warn: (line: string) => warned.push(line) } as unknown as Log;
      const clock = { now: () => new Date(Date.now() + 2 * HOURS_MS) };
      const tell = clockWarning(store, clock, log);
      for (let i = 0; i < 5; i++) await tell(await store.maintenance.time());
      expect(warned).to.have.length(1);
      expect(warned[0]).to.match(/clock of this machine is 7(199|200|201) seconds ahead of that of the database/);
      const fault = await clockProbe(store, clock)
        .check()
        .then(
          () => 'none',
          (error: Error) => error.message,
        );
      expect(fault).to.match(/ahead of that of the database/);
      const right = { now: () => new Date() };
      await clockWarning(store, right, log)(await store.maintenance.time());
      await clockProbe(store, right).check();
      expect(warned).to.have.length(1);
    });

    it('leases a job to one of fifty processes', async () => {
      const { maintenance } = store;
      const job = randomUUID();
      const ask = async (holder: number) => maintenance.tryLease(job, `${holder}`, await maintenance.time(), 60);
      const all = (hours: number) => wrongBy(hours, () => Promise.all(Array.from({ length: 25 }, (_, n) => ask(hours + n / 100))));
      expect([...(await all(3)), ...(await all(-3))].filter(Boolean)).to.have.length(1);
    });

    it('grants no lease for longer than its duration', async () => {
      const { maintenance } = store;
      const job = randomUUID();
      const now = await maintenance.time();
      const later = new Date(now.getTime() + 3 * HOURS_MS);
      // As a release did that took the time of its machine.
      expect(await maintenance.tryLease(job, 'dead', later, 30)).to.equal(true);
      expect(await maintenance.tryLease(job, 'lost it', now, 0), 'given back').to.equal(false);
      expect(await maintenance.tryLease(job, 'other', now, 30)).to.equal(true);
    });

    it('back rejects values whose use may have been removed', async () => {
      const steps = stepsOf(store, tenantId);
      const fresh = { ...aUse('dpop_jti'), expiresAt: inSeconds(300) };
      const value = { ...aUse('c_nonce'), expiresAt: inSeconds(-3 * 3_600 + 300) };
      expect(await wrongBy(-3, () => steps.commit({ uses: [fresh, value] }))).to.include({ done: false });
      expect(await steps.commit({ uses: [fresh] }), 'not remembered either').to.include({ done: true });
      const { session, grant } = await openOffer(store, tenantId);
      expect(await steps.commit(grantRedemption(grant, REDEMPTION, [value]), new Date())).to.include({
        done: false,
        part: 'uses',
        kind: 'c_nonce',
      });
      const claimed = await steps.claimCredentialRequest(session.publicId, [value]);
      expect(claimed?.replayed).to.equal('c_nonce');
      expect(await steps.commit(grantRedemption(grant, REDEMPTION, []), new Date())).to.include({ done: true });
    });

    it('in one of two processes prevents a second use at the other process', async () => {
      const steps = stepsOf(store, tenantId);
      // A nonce that the one made that is ahead.
      const value = { ...aUse('c_nonce'), expiresAt: inSeconds(3 * 3_600 + 300) };
      expect(await steps.commit({ uses: [value] })).to.include({ done: true });
      await runJobs(-3);
      await runJobs(3);
      expect(await wrongBy(3, () => steps.commit({ uses: [value] }))).to.include({ done: false });
      expect(await steps.commit({ uses: [value] })).to.include({ done: false });
    });

    // Of PostgreSQL the server keeps the time.
    if (kind.name === 'sqlite') {
      it('and a restart allow no second use of a value', async () => {
        const url = `${database?.url}-restarted`;
        const reopened = async (work: (own: OrmStore) => Promise<void>) => {
          const own = await OrmStore.open({ url, poolSize: 2 }, cipher);
          await work(own).finally(() => own.close());
        };
        const value = { ...aUse(), expiresAt: inSeconds(300) };
        let own: TenantId;
        await reopened(async (first) => {
          own = await addTenant(first);
          expect(await stepsOf(first, own).commit({ uses: [value] })).to.include({ done: true });
          await first.maintenance.time();
        });
        await wrongBy(3, () => reopened(async ({ maintenance }) => void (await maintenance.forgetExpired(await maintenance.time(), 1000))));
        await reopened(async (third) => {
          expect(await stepsOf(third, own).commit({ uses: [value] })).to.include({ done: false });
        });
      });
    }
  });
}
