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
const secondsFromNow = (seconds: number) => new Date(Date.now() + seconds * 1000);
const pause = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const cipher = new MasterCipher({ masterSecrets: ['a master secret of decent length'] });

/** Expiry and job leases when the clock of the machine is off by hours. */
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

    /** Runs `work` with a clock that is off by this many hours. */
    const withClockOff = async <T>(hours: number, work: () => Promise<T>): Promise<T> => {
      const clock = sinon.useFakeTimers({ now: Date.now() + hours * HOURS_MS, toFake: ['Date'] });
      try {
        return await work();
      } finally {
        clock.restore();
      }
    };

    const createContainer = () => {
      const container = new Container();
      const emptyJob = { execute: async () => ({ rotated: 0, renewed: 0, forgotten: 0, last: undefined }) };
      container.bind(Store).toConstantValue(store);
      container.bind(Clock).toConstantValue({ now: () => new Date() });
      container.bind(EventBus).toConstantValue({ publish: () => {} } as unknown as EventBus);
      const duringMaintenance = <T>(_context: unknown, work: () => T): T => work();
      const log = { info: () => {}, warn: () => {}, error: () => {}, within: duringMaintenance };
      container.bind(Log).toConstantValue(log as unknown as Log);
      container.bind(Kms).toConstantValue({ remove: async () => {} } as unknown as Kms);
      container.bind(TenantConfigurations).toConstantValue({} as unknown as TenantConfigurations);
      container.bind(RenewKeyChains).toConstantValue(emptyJob as unknown as RenewKeyChains);
      stubFollowJobs(container);
      container.bind(RenewTrustLists).toConstantValue(emptyJob as unknown as RenewTrustLists);
      container.bind(ServiceSettings).toConstantValue({ sessionTtlSeconds: 86_400 } as unknown as ServiceSettings);
      return container;
    };
    /** Runs all jobs of one minute in a process whose clock is off by this many hours. */
    const runJobs = async (hours: number) => {
      const timers = sinon.useFakeTimers({ now: Date.now() + hours * HOURS_MS, toFake: ['Date', 'setInterval', 'clearInterval'] });
      try {
        const stop = startJobs(createContainer());
        await timers.tickAsync(60_000);
        await stop();
      } finally {
        timers.restore();
      }
    };

    it('a minute ahead allows no second use of a value', async () => {
      const steps = stepsOf(store, tenantId);
      const values = [aUse('dpop_jti'), aUse('c_nonce'), aUse('client_jti')].map((value) => ({ ...value, expiresAt: secondsFromNow(300) }));
      expect(await steps.commit({ uses: values })).to.include({ done: true });
      await runJobs(3);
      for (const value of values) expect(await steps.commit({ uses: [value] }), value.kind).to.include({ done: false });
    });

    it('a minute ahead expires no session and no grant', async () => {
      const { session, grant } = await openOffer(store, tenantId, {
        session: { createdAt: secondsFromNow(0), expiresAt: secondsFromNow(3_600) },
        grant: { expiresAt: secondsFromNow(3_600) },
      });
      await runJobs(48);
      expect((await stepsOf(store, tenantId).session(session.id))?.session).to.include({ status: session.status });
      expect((await stepsOf(store, tenantId).grantByCode(grant.codeHash))?.grant?.id).to.equal(grant.id);
    });

    it('a minute ahead blocks no job of other processes', async () => {
      const { maintenance } = store;
      const job = randomUUID();
      const lease = async (holder: string) => maintenance.tryLease(job, holder, await maintenance.time(), 1);
      expect(await withClockOff(3, () => lease('dead'))).to.equal(true);
      expect(await lease('other')).to.equal(false);
      await pause(1_100);
      expect(await lease('other')).to.equal(true);
    });

    it('is reported in the log once a minute, and by the probe', async () => {
      const warnings: string[] = [];
      const log = { info() {}, error() {}, warn: (line: string) => warnings.push(line) } as unknown as Log;
      const clock = { now: () => new Date(Date.now() + 2 * HOURS_MS) };
      const warnAboutClock = clockWarning(store, clock, log);
      for (let i = 0; i < 5; i++) await warnAboutClock(await store.maintenance.time());
      expect(warnings).to.have.length(1);
      expect(warnings[0]).to.match(/clock of this machine is 7(199|200|201) seconds ahead of that of the database/);
      const fault = await clockProbe(store, clock)
        .check()
        .then(
          () => 'none',
          (error: Error) => error.message,
        );
      expect(fault).to.match(/ahead of that of the database/);
      const correctClock = { now: () => new Date() };
      await clockWarning(store, correctClock, log)(await store.maintenance.time());
      await clockProbe(store, correctClock).check();
      expect(warnings).to.have.length(1);
    });

    it('leases a job to one of fifty processes', async () => {
      const { maintenance } = store;
      const job = randomUUID();
      const tryLease = async (holder: number) => maintenance.tryLease(job, `${holder}`, await maintenance.time(), 60);
      const leaseFromMany = (hours: number) =>
        withClockOff(hours, () => Promise.all(Array.from({ length: 25 }, (_, n) => tryLease(hours + n / 100))));
      expect([...(await leaseFromMany(3)), ...(await leaseFromMany(-3))].filter(Boolean)).to.have.length(1);
    });

    it('grants no lease for longer than its duration', async () => {
      const { maintenance } = store;
      const job = randomUUID();
      const storeTime = await maintenance.time();
      const laterTime = new Date(storeTime.getTime() + 3 * HOURS_MS);
      // An earlier release used the time of its machine.
      expect(await maintenance.tryLease(job, 'dead', laterTime, 30)).to.equal(true);
      expect(await maintenance.tryLease(job, 'lost it', storeTime, 0), 'given back').to.equal(false);
      expect(await maintenance.tryLease(job, 'other', storeTime, 30)).to.equal(true);
    });

    it('back rejects values whose use may have been removed', async () => {
      const steps = stepsOf(store, tenantId);
      const unexpiredUse = { ...aUse('dpop_jti'), expiresAt: secondsFromNow(300) };
      const value = { ...aUse('c_nonce'), expiresAt: secondsFromNow(-3 * 3_600 + 300) };
      expect(await withClockOff(-3, () => steps.commit({ uses: [unexpiredUse, value] }))).to.include({ done: false });
      expect(await steps.commit({ uses: [unexpiredUse] }), 'not remembered either').to.include({ done: true });
      const { session, grant } = await openOffer(store, tenantId);
      expect(await steps.commit(grantRedemption(grant, REDEMPTION, [value]), new Date())).to.include({
        done: false,
        part: 'uses',
        kind: 'c_nonce',
      });
      const claimResult = await steps.claimCredentialRequest(session.publicId, [value]);
      expect(claimResult?.replayed).to.equal('c_nonce');
      expect(await steps.commit(grantRedemption(grant, REDEMPTION, []), new Date())).to.include({ done: true });
    });

    it('in one of two processes prevents a second use at the other process', async () => {
      const steps = stepsOf(store, tenantId);
      // A nonce of the process whose clock is ahead.
      const value = { ...aUse('c_nonce'), expiresAt: secondsFromNow(3 * 3_600 + 300) };
      expect(await steps.commit({ uses: [value] })).to.include({ done: true });
      await runJobs(-3);
      await runJobs(3);
      expect(await withClockOff(3, () => steps.commit({ uses: [value] }))).to.include({ done: false });
      expect(await steps.commit({ uses: [value] })).to.include({ done: false });
    });

    // With PostgreSQL, the server keeps the time.
    if (kind.name === 'sqlite') {
      it('and a restart allow no second use of a value', async () => {
        const url = `${database?.url}-restarted`;
        const withReopenedStore = async (work: (store: OrmStore) => Promise<void>) => {
          const ownStore = await OrmStore.open({ url, poolSize: 2 }, cipher);
          await work(ownStore).finally(() => ownStore.close());
        };
        const value = { ...aUse(), expiresAt: secondsFromNow(300) };
        let ownTenant: TenantId;
        await withReopenedStore(async (firstStore) => {
          ownTenant = await addTenant(firstStore);
          expect(await stepsOf(firstStore, ownTenant).commit({ uses: [value] })).to.include({ done: true });
          await firstStore.maintenance.time();
        });
        await withClockOff(3, () =>
          withReopenedStore(async ({ maintenance }) => void (await maintenance.forgetExpired(await maintenance.time(), 1000))),
        );
        await withReopenedStore(async (thirdStore) => {
          expect(await stepsOf(thirdStore, ownTenant).commit({ uses: [value] })).to.include({ done: false });
        });
      });
    }
  });
}
