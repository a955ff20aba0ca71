import { expect } from 'chai';
import sinon from 'sinon';
import { hashCode } from '../../../application/oauth/pre-authorized-code-grant.ts';
import type { WakeUp } from '../../../application/ports/event-bus.ts';
import { StoreUnavailableError } from '../../../application/ports/store.ts';
import { assertCurrent, attempt, attemptFor, record } from '../../../application/transactions/attempt.ts';
import type { TenantTransaction } from '../../../application/transactions/tenant-transaction.ts';
import { issue } from '../../../domain/issuance/issuing.ts';
import type { ConsumedValue } from '../../../domain/oauth/consumed-value.ts';
import type { Session, SessionOutcome } from '../../../domain/sessions/session.ts';
import { acceptAndEnd, updateOutcome } from '../../../domain/sessions/session-change.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { fetchedChange } from '../../support/fetched.ts';
import { cachedCaller } from '../../support/remembered-caller.ts';
import { ACME } from '../verification/kit.ts';
import { anOffer, failureOf, outcomeOf, Wallet, WalletWorld } from '../wallet-kit.ts';

/** The data source of each run of one attempt. */
type Runs = ('memory' | 'stored')[];

describe('attempt', () => {
  let world: WalletWorld;
  let runs: Runs;

  before(async () => {
    world = await WalletWorld.open();
  });
  beforeEach(async () => {
    // The cache equals the stored data.
    await world.caller();
    runs = [];
  });
  afterEach(() => sinon.restore());

  const run = <T>(work: (transaction: TenantTransaction) => Promise<T>, tenantId = ACME) =>
    attempt(world, tenantId, (transaction) => {
      runs.push(transaction.isStored ? 'stored' : 'memory');
      return work(transaction);
    });
  const failure = new Failure('forbidden', 'no');
  const rejectTransaction = async () => {
    throw failure;
  };
  const aConsumedValue = (): ConsumedValue => ({
    kind: 'c_nonce',
    hash: world.random.token(),
    expiresAt: new Date(world.clock.time + 60_000),
  });
  const batch = (session: Session) => world.batchMaker.recordOf(session.id, 'card', 1);
  /** Another process writes a configuration. */
  const write = () => world.putIssuance();
  const reads = () => sinon.spy(world.store, 'read');

  it('uses cached data, and reads nothing', async () => {
    const read = reads();
    expect(await run(async ({ tenant }) => tenant.tenantId)).to.equal(ACME);
    expect([runs, read.callCount]).to.deep.equal([['memory'], 0]);
  });

  it('uses stored data without cached data', async () => {
    const otherProcess = world.otherProcess();
    const transaction = await attempt(otherProcess, ACME, async ({ isStored }) => isStored);
    expect(transaction).to.equal(true);
  });

  it('does nothing for an unknown tenant', async () => {
    expect(await outcomeOf(run(async () => {}, 'unknown' as TenantId))).to.equal('not_found');
    expect(runs).to.deep.equal([]);
  });

  it('needs one read for a rejection by the present configuration', async () => {
    const read = reads();
    expect(await outcomeOf(run(rejectTransaction))).to.equal('forbidden');
    expect([runs, read.callCount]).to.deep.equal([['memory'], 1]);
  });

  it('runs once more after a rejection by an outdated configuration', async () => {
    await write();
    expect(await run(async (transaction) => (transaction.isStored ? 'done' : rejectTransaction()))).to.equal('done');
    expect(runs).to.deep.equal(['memory', 'stored']);
  });

  it('runs once more after a rejection for a cached session', async () => {
    const { session } = await anOffer(world);
    const work = async (transaction: TenantTransaction) => {
      await transaction.session(session.publicId);
      return transaction.isStored ? 'done' : rejectTransaction();
    };
    expect(await run(work)).to.equal('done');
    expect(runs).to.deep.equal(['memory', 'stored']);
  });

  it('never runs a third time', async () => {
    await write();
    expect(await outcomeOf(run(rejectTransaction))).to.equal('forbidden');
    expect(runs).to.deep.equal(['memory', 'stored']);
  });

  it('commits if no data that was read has changed, and consumes nothing otherwise', async () => {
    const [first, second] = [await anOffer(world), await anOffer(world)];
    await write();
    await run((transaction) => transaction.commit({ session: fetchedChange(first.session) }));
    expect(runs).to.deep.equal(['memory']);
    runs.length = 0;
    await write();
    await run((transaction) => transaction.claim({ session: fetchedChange(second.session) }));
    expect(runs).to.deep.equal(['memory', 'stored']);
  });

  it('commits nothing with an outdated configuration, and then commits with the current one', async () => {
    const { session } = await anOffer(world);
    await write();
    const consumed = aConsumedValue();
    await run(async (transaction) => {
      await transaction.tenant.issuance();
      return transaction.commit({ uses: [consumed], session: fetchedChange(session) });
    });
    expect(runs).to.deep.equal(['memory', 'stored']);
    expect((await world.session(session.id)).version, 'commits').to.equal(2);
    expect(await outcomeOf(run((transaction) => transaction.commit({ uses: [consumed] })))).to.equal('conflict');
  });

  it('reads nothing with an outdated configuration', async () => {
    const { session } = await anOffer(world);
    await write();
    await run((transaction) => transaction.confirm(transaction.reads.session(session.id)));
    expect(runs).to.deep.equal(['memory', 'stored']);
  });

  it('fails for a tenant that another process suspended', async () => {
    const { session } = await anOffer(world);
    await world.changeTenant({ status: 'suspended' });
    expect(await outcomeOf(run((transaction) => transaction.commit({ session: fetchedChange(session) })))).to.equal('not_found');
    expect(runs).to.deep.equal(['memory']);
    await world.changeTenant({ status: 'active' });
    expect((await world.session(session.id)).status).to.equal('active');
  });

  it('commits nothing for a tenant that is suspended after it was read', async () => {
    const { session } = await anOffer(world);
    await write();
    const work = async (transaction: TenantTransaction) => {
      if (!transaction.isStored) return rejectTransaction();
      await world.changeTenant({ status: 'suspended' });
      return transaction.commit({ session: fetchedChange(session) });
    };
    expect(await outcomeOf(run(work))).to.equal('not_found');
    await world.changeTenant({ status: 'active' });
    expect((await world.session(session.id)).status).to.equal('active');
  });

  it('repeats nothing after a commit', async () => {
    await write();
    const consumed = aConsumedValue();
    const work = async (transaction: TenantTransaction) => {
      if (transaction.isStored) await transaction.commit({ uses: [consumed] });
      return rejectTransaction();
    };
    expect(await outcomeOf(run(work))).to.equal('forbidden');
    runs = [];
    const { session } = await anOffer(world);
    await world.caller();
    const commitCached = async (transaction: TenantTransaction) => {
      await transaction.commit({ session: fetchedChange(session) });
      await write();
      return rejectTransaction();
    };
    expect(await outcomeOf(run(commitCached))).to.equal('forbidden');
    expect(runs).to.deep.equal(['memory']);
  });

  it('does not retry when the result of a commit is unknown', async () => {
    const connectionError = new Error('the connection broke');
    sinon.stub(world.store, 'commit').callsFake(() => Promise.reject(connectionError));
    const error = await run((transaction) => transaction.commit({ uses: [aConsumedValue()] })).catch((reason: unknown) => reason);
    expect(error).to.equal(connectionError);
    expect(runs).to.deep.equal(['memory']);
  });

  it('repeats nothing while the database cannot be reached', async () => {
    const work = async () => {
      throw new StoreUnavailableError('no connection');
    };
    expect(await run(work).catch((error: unknown) => error)).to.be.instanceOf(StoreUnavailableError);
    expect(runs).to.deep.equal(['memory']);
  });

  it('records the work in progress also for a tenant that was suspended after the first commit', async () => {
    const { session } = await anOffer(world);
    await run(async (transaction) => {
      await transaction.commit({ session: fetchedChange(session) });
      await world.changeTenant({ status: 'suspended' });
      await transaction.commit(issue({ ...session, status: 'fetched' }, batch(session), undefined, {}));
    });
    await world.changeTenant({ status: 'active' });
    expect((await world.session(session.id)).status).to.equal('completed');
  });

  it('reports the rejected part, with the error of the use case', async () => {
    const { session } = await anOffer(world);
    const consumed = aConsumedValue();
    await run((transaction) => transaction.commit({ uses: [consumed] }));
    const missingSession = { ...fetchedChange(session), id: 'gone' as Session['id'] };
    const failures = { uses: (kind: ConsumedValue['kind']) => new Failure('invalid_nonce', kind), session: () => new Failure('gone') };
    const outcomes = [{ uses: [consumed] }, { session: missingSession }].map((part) =>
      outcomeOf(run((transaction) => transaction.commit(part, failures))),
    );
    expect(await Promise.all(outcomes)).to.deep.equal(['invalid_nonce', 'gone']);
  });

  it('hides a rejection by cached data, and runs once more', async () => {
    const { session } = await anOffer(world);
    await world.store.commit(ACME, { session: fetchedChange(session) }, world.clock.now());
    const isStoredByRun: boolean[] = [];
    const work = async (transaction: TenantTransaction) => {
      const foundSession = await transaction.session(session.publicId);
      const missingSession = () => {
        isStoredByRun.push(transaction.isStored);
        return new Failure('gone');
      };
      if (foundSession !== undefined) await transaction.commit({ session: fetchedChange(foundSession) }, { session: missingSession });
    };
    expect(await outcomeOf(run(work))).to.equal('gone');
    expect([runs, isStoredByRun]).to.deep.equal([['memory', 'stored'], [true]]);
  });

  it('distinguishes an ended session from other rejections', async () => {
    const { session } = await anOffer(world);
    const consumed = aConsumedValue();
    const tryCommit = (part: object) => run((transaction) => transaction.tryCommit({ session: fetchedChange(session), ...part }, {}));
    expect(await tryCommit({ uses: [consumed] })).to.equal('done');
    expect(await tryCommit({})).to.equal('session');
    expect(await outcomeOf(tryCommit({ session: { id: session.id, anytime: ['fetched'] }, uses: [consumed] }))).to.equal('conflict');
  });
});

describe('cache after an attempt', () => {
  let world: WalletWorld;

  before(async () => {
    world = await WalletWorld.open();
  });
  beforeEach(() => world.caller());
  afterEach(() => sinon.restore());

  const run = <T>(work: (transaction: TenantTransaction) => Promise<T>) => attempt(world, ACME, work);
  const aConsumedValue = (): ConsumedValue => ({
    kind: 'c_nonce',
    hash: world.random.token(),
    expiresAt: new Date(world.clock.time + 60_000),
  });
  const cachedSession = ({ publicId }: Session) => world.tenantConfigurations.sessionCache.session(ACME, publicId);
  it('contains the created session, for its tenant only', async () => {
    const { session } = await anOffer(world);
    expect(cachedSession(session)).to.deep.equal(session);
    const unknownTenant = 'unknown' as TenantId;
    expect(world.tenantConfigurations.sessionCache.session(unknownTenant, session.publicId)).to.equal(undefined);
  });

  it('contains the status of the commit', async () => {
    const { session } = await anOffer(world);
    await run((transaction) => transaction.commit({ session: fetchedChange(session) }));
    expect(cachedSession(session)).to.deep.include({ status: 'fetched', version: 2 });
  });

  it('does not contain a session with other changes than its status', async () => {
    const { session } = await anOffer(world);
    // Another process has recorded a delivery.
    const outcome = { deliveries: [] } as unknown as SessionOutcome;
    await world.store.commit(ACME, { session: updateOutcome(session, outcome, undefined) }, world.clock.now());
    await run((transaction) => transaction.commit({ session: fetchedChange(session) }));
    expect(cachedSession(session)).to.equal(undefined);
    const { outcome: storedOutcome, status } = await world.session(session.id);
    expect([storedOutcome, status]).to.deep.equal([outcome, 'fetched']);
  });

  it('contains the grant of an offer, until it is redeemed', async () => {
    const { code } = await anOffer(world);
    const grant = () => world.tenantConfigurations.sessionCache.grant(ACME, hashCode(code));
    expect(grant()).to.deep.include({ kind: 'pre_authorized_code', consumedAt: null });
    await new Wallet(world).redeem(code);
    expect(grant()).to.equal(undefined);
  });

  it('loses a session at its end', async () => {
    const { session } = await anOffer(world);
    await run((transaction) => transaction.commit({ session: acceptAndEnd(session, 'complete', {}) }));
    expect(cachedSession(session)).to.equal(undefined);
  });

  const rejections: readonly [description: string, outcome: string, prepare: (session: Session) => Promise<object>][] = [
    [
      'a value that was used',
      'invalid_nonce',
      async () => {
        const uses = [aConsumedValue()];
        await record(world, ACME, { uses });
        return { uses };
      },
    ],
    ['the session itself', 'gone', async (session) => world.store.commit(ACME, { session: fetchedChange(session) }, world.clock.now())],
    [
      'a configuration of the past',
      'unavailable',
      async () => {
        await world.putIssuance();
        return {};
      },
    ],
  ];
  for (const [description, outcome, prepareConflict] of rejections) {
    it(`loses the session after a rejection for ${description}`, async () => {
      const { session } = await anOffer(world);
      const { uses = [] } = (await prepareConflict(session)) as { uses?: ConsumedValue[] };
      const failures = { uses: () => new Failure('invalid_nonce'), session: () => new Failure('gone') };
      await run(async (transaction) => {
        if (transaction.isStored) return;
        expect(cachedSession(session)).to.deep.equal(session);
        await transaction.tenant.issuance();
        expect(await outcomeOf(transaction.commit({ uses, session: fetchedChange(session) }, failures))).to.equal(outcome);
      });
      expect(cachedSession(session)).to.equal(undefined);
    });
  }

  it('contains no session that could not be created', async () => {
    const { session } = await anOffer(world);
    const otherSession = { ...session, id: 'twin' as Session['id'], publicId: 'twin' as Session['publicId'] };
    const rejections = await record(world, ACME, { opens: { session: otherSession }, revisions: { all: 99 } });
    expect([rejections.done, cachedSession(otherSession)]).to.deep.equal([false, undefined]);
  });

  it('notifies the streams of a session whose status changed', async () => {
    const { session } = await anOffer(world);
    const wakeUps: WakeUp[] = [];
    world.eventBus.subscribe((wakeUp) => wakeUps.push(wakeUp));
    await record(world, ACME, { session: { id: session.id, anytime: ['active'] } });
    expect(wakeUps).to.deep.equal([]);
    await record(world, ACME, { session: fetchedChange(session) });
    expect(wakeUps).to.deep.equal([{ type: 'session', tenantId: ACME, sessionId: session.id }]);
  });

  describe('attemptFor', () => {
    it('uses the cached rights of a client as long as the tenant is unchanged', async () => {
      const caller = cachedCaller(await world.caller());
      const reauthorize = sinon.spy(caller, 'reauthorize');
      const transaction = await attemptFor(world, caller, async (_, currentCaller) => currentCaller.roles);
      expect([transaction, reauthorize.callCount]).to.deep.equal([caller.roles, 0]);
    });

    it('evaluates them again with stored data, once', async () => {
      const caller = cachedCaller(await world.caller());
      const reauthorize = sinon.spy(caller, 'reauthorize');
      await world.putIssuance();
      const isNew = await attemptFor(world, caller, async (transaction, { tenant }) => {
        if (!transaction.isStored) throw new Failure('forbidden');
        return tenant === transaction.tenant && tenant !== caller.cachedTenant;
      });
      expect([isNew, reauthorize.callCount]).to.deep.equal([true, 1]);
    });
  });

  describe('for a client whose tenant', () => {
    const collectOutcomes = async (freshWorld: WalletWorld) => {
      const caller = cachedCaller(await freshWorld.caller());
      const { session } = await anOffer(freshWorld);
      const commit = (transaction: TenantTransaction) => transaction.commit({ session: fetchedChange(session) });
      const read = (transaction: TenantTransaction) => transaction.confirm(transaction.reads.session(session.id));
      return async () => [await outcomeOf(attemptFor(freshWorld, caller, commit)), await outcomeOf(attemptFor(freshWorld, caller, read))];
    };

    it('was suspended by another process, is rejected', async () => {
      const freshWorld = await WalletWorld.open();
      const outcomes = await collectOutcomes(freshWorld);
      await freshWorld.changeTenant({ status: 'suspended' });
      expect(await outcomes()).to.deep.equal(['forbidden', 'forbidden']);
    });

    it('was removed by another process, is not found', async () => {
      const freshWorld = await WalletWorld.open();
      const outcomes = await collectOutcomes(freshWorld);
      await freshWorld.store.forService(({ tenants }) => tenants.remove(ACME), { by: 'system' });
      expect(await outcomes()).to.deep.equal(['unauthenticated', 'unauthenticated']);
    });
  });

  describe('assertCurrent', () => {
    it('accepts only the current configuration, and requires a retry otherwise', async () => {
      const { tenant } = await world.caller();
      await assertCurrent(world.store, tenant);
      await world.putIssuance();
      const { code, details } = await failureOf(assertCurrent(world.store, tenant));
      expect([code, details.retryAfterSeconds]).to.deep.equal(['unavailable', 1]);
    });

    it('rejects a suspended tenant', async () => {
      await world.changeTenant({ status: 'suspended' });
      const { tenant } = await world.caller();
      expect(await outcomeOf(assertCurrent(world.store, tenant))).to.equal('unavailable');
      await world.changeTenant({ status: 'active' });
    });
  });
});
