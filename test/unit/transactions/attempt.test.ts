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
import { anOffer, endOf, failureOf, Wallet, WalletWorld } from '../wallet-kit.ts';

/** Runs of one attempt, by what they knew. */
type Runs = ('memory' | 'stored')[];

describe('attempt', () => {
  let world: WalletWorld;
  let runs: Runs;

  before(async () => {
    world = await WalletWorld.open();
  });
  beforeEach(async () => {
    // What the process knows best is what is stored.
    await world.caller();
    runs = [];
  });
  afterEach(() => sinon.restore());

  const run = <T>(work: (known: TenantTransaction) => Promise<T>, tenantId = ACME) =>
    attempt(world, tenantId, (known) => {
      runs.push(known.isStored ? 'stored' : 'memory');
      return work(known);
    });
  const refusal = new Failure('forbidden', 'no');
  const refuse = async () => {
    throw refusal;
  };
  const aUse = (): ConsumedValue => ({ kind: 'c_nonce', hash: world.random.token(), expiresAt: new Date(world.clock.time + 60_000) });
  const batch = (session: Session) => world.batchMaker.recordOf(session.id, 'card', 1);
  /** Another process writes a configuration. */
  const change = () => world.issues();
  const reads = () => sinon.spy(world.store, 'read');

  it('uses cached data, and reads nothing', async () => {
    const read = reads();
    expect(await run(async ({ tenant: configured }) => configured.tenantId)).to.equal(ACME);
    expect([runs, read.callCount]).to.deep.equal([['memory'], 0]);
  });

  it('uses stored data without cached data', async () => {
    const elsewhere = world.elsewhere();
    const known = await attempt(elsewhere, ACME, async ({ isStored }) => isStored);
    expect(known).to.equal(true);
  });

  it('does nothing for an unknown tenant', async () => {
    expect(await endOf(run(async () => {}, 'nobody' as TenantId))).to.equal('not_found');
    expect(runs).to.deep.equal([]);
  });

  it('needs one read for a rejection by the present configuration', async () => {
    const read = reads();
    expect(await endOf(run(refuse))).to.equal('forbidden');
    expect([runs, read.callCount]).to.deep.equal([['memory'], 1]);
  });

  it('runs once more after a rejection by an outdated configuration', async () => {
    await change();
    expect(await run(async (known) => (known.isStored ? 'done' : refuse()))).to.equal('done');
    expect(runs).to.deep.equal(['memory', 'stored']);
  });

  it('runs once more after a rejection for a cached session', async () => {
    const { session } = await anOffer(world);
    const work = async (known: TenantTransaction) => {
      await known.session(session.publicId);
      return known.isStored ? 'done' : refuse();
    };
    expect(await run(work)).to.equal('done');
    expect(runs).to.deep.equal(['memory', 'stored']);
  });

  it('never runs a third time', async () => {
    await change();
    expect(await endOf(run(refuse))).to.equal('forbidden');
    expect(runs).to.deep.equal(['memory', 'stored']);
  });

  it('commits if no data that was read has changed, and consumes nothing otherwise', async () => {
    const [one, two] = [await anOffer(world), await anOffer(world)];
    await change();
    await run((known) => known.commit({ session: fetchedChange(one.session) }));
    expect(runs).to.deep.equal(['memory']);
    runs.length = 0;
    await change();
    await run((known) => known.claim({ session: fetchedChange(two.session) }));
    expect(runs).to.deep.equal(['memory', 'stored']);
  });

  it('commits nothing with an outdated configuration, and then commits with the current one', async () => {
    const { session } = await anOffer(world);
    await change();
    const used = aUse();
    await run(async (known) => {
      await known.tenant.issuance();
      return known.commit({ uses: [used], session: fetchedChange(session) });
    });
    expect(runs).to.deep.equal(['memory', 'stored']);
    expect((await world.session(session.id)).version, 'commits').to.equal(2);
    expect(await endOf(run((known) => known.commit({ uses: [used] })))).to.equal('conflict');
  });

  it('reads nothing with an outdated configuration', async () => {
    const { session } = await anOffer(world);
    await change();
    await run((known) => known.confirm(known.reads.session(session.id)));
    expect(runs).to.deep.equal(['memory', 'stored']);
  });

  it('fails for a tenant that another process suspended', async () => {
    const { session } = await anOffer(world);
    await world.change({ status: 'suspended' });
    expect(await endOf(run((known) => known.commit({ session: fetchedChange(session) })))).to.equal('not_found');
    expect(runs).to.deep.equal(['memory']);
    await world.change({ status: 'active' });
    expect((await world.session(session.id)).status).to.equal('active');
  });

  it('commits nothing for a tenant that is suspended after it was read', async () => {
    const { session } = await anOffer(world);
    await change();
    const work = async (known: TenantTransaction) => {
      if (!known.isStored) return refuse();
      await world.change({ status: 'suspended' });
      return known.commit({ session: fetchedChange(session) });
    };
    expect(await endOf(run(work))).to.equal('not_found');
    await world.change({ status: 'active' });
    expect((await world.session(session.id)).status).to.equal('active');
  });

  it('repeats nothing after a commit', async () => {
    await change();
    const used = aUse();
    const work = async (known: TenantTransaction) => {
      if (known.isStored) await known.commit({ uses: [used] });
      return refuse();
    };
    expect(await endOf(run(work))).to.equal('forbidden');
    runs = [];
    const { session } = await anOffer(world);
    await world.caller();
    const onMemory = async (known: TenantTransaction) => {
      await known.commit({ session: fetchedChange(session) });
      await change();
      return refuse();
    };
    expect(await endOf(run(onMemory))).to.equal('forbidden');
    expect(runs).to.deep.equal(['memory']);
  });

  it('does not retry when the result of a commit is unknown', async () => {
    const lost = new Error('the connection broke');
    sinon.stub(world.store, 'commit').callsFake(() => Promise.reject(lost));
    const error = await run((known) => known.commit({ uses: [aUse()] })).catch((reason: unknown) => reason);
    expect(error).to.equal(lost);
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
    await run(async (known) => {
      await known.commit({ session: fetchedChange(session) });
      await world.change({ status: 'suspended' });
      await known.commit(issue({ ...session, status: 'fetched' }, batch(session), undefined, {}));
    });
    await world.change({ status: 'active' });
    expect((await world.session(session.id)).status).to.equal('completed');
  });

  it('reports the rejected part, with the error of the use case', async () => {
    const { session } = await anOffer(world);
    const used = aUse();
    await run((known) => known.commit({ uses: [used] }));
    const gone = { ...fetchedChange(session), id: 'gone' as Session['id'] };
    const refusals = { uses: (kind: ConsumedValue['kind']) => new Failure('invalid_nonce', kind), session: () => new Failure('gone') };
    const ends = [{ uses: [used] }, { session: gone }].map((part) => endOf(run((known) => known.commit(part, refusals))));
    expect(await Promise.all(ends)).to.deep.equal(['invalid_nonce', 'gone']);
  });

  it('hides a rejection by cached data, and runs once more', async () => {
    const { session } = await anOffer(world);
    await world.store.commit(ACME, { session: fetchedChange(session) }, world.clock.now());
    const told: boolean[] = [];
    const work = async (known: TenantTransaction) => {
      const found = await known.session(session.publicId);
      const gone = () => {
        told.push(known.isStored);
        return new Failure('gone');
      };
      if (found !== undefined) await known.commit({ session: fetchedChange(found) }, { session: gone });
    };
    expect(await endOf(run(work))).to.equal('gone');
    expect([runs, told]).to.deep.equal([['memory', 'stored'], [true]]);
  });

  it('distinguishes an ended session from other rejections', async () => {
    const { session } = await anOffer(world);
    const used = aUse();
    const tried = (part: object) => run((known) => known.tryCommit({ session: fetchedChange(session), ...part }, {}));
    expect(await tried({ uses: [used] })).to.equal('done');
    expect(await tried({})).to.equal('session');
    expect(await endOf(tried({ session: { id: session.id, anytime: ['fetched'] }, uses: [used] }))).to.equal('conflict');
  });
});

describe('cache after an attempt', () => {
  let world: WalletWorld;

  before(async () => {
    world = await WalletWorld.open();
  });
  beforeEach(() => world.caller());
  afterEach(() => sinon.restore());

  const run = <T>(work: (known: TenantTransaction) => Promise<T>) => attempt(world, ACME, work);
  const aUse = (): ConsumedValue => ({ kind: 'c_nonce', hash: world.random.token(), expiresAt: new Date(world.clock.time + 60_000) });
  const remembered = ({ publicId }: Session) => world.tenantConfigurations.sessionCache.session(ACME, publicId);
  it('contains the created session, for its tenant only', async () => {
    const { session } = await anOffer(world);
    expect(remembered(session)).to.deep.equal(session);
    const other = 'nobody' as TenantId;
    expect(world.tenantConfigurations.sessionCache.session(other, session.publicId)).to.equal(undefined);
  });

  it('contains the status of the commit', async () => {
    const { session } = await anOffer(world);
    await run((known) => known.commit({ session: fetchedChange(session) }));
    expect(remembered(session)).to.deep.include({ status: 'fetched', version: 2 });
  });

  it('does not contain a session with other changes than its status', async () => {
    const { session } = await anOffer(world);
    // Another process has noted what a backend was told.
    const outcome = { deliveries: [] } as unknown as SessionOutcome;
    await world.store.commit(ACME, { session: updateOutcome(session, outcome, undefined) }, world.clock.now());
    await run((known) => known.commit({ session: fetchedChange(session) }));
    expect(remembered(session)).to.equal(undefined);
    const { outcome: kept, status } = await world.session(session.id);
    expect([kept, status]).to.deep.equal([outcome, 'fetched']);
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
    await run((known) => known.commit({ session: acceptAndEnd(session, 'complete', {}) }));
    expect(remembered(session)).to.equal(undefined);
  });

  const refused: readonly [what: string, end: string, meet: (session: Session) => Promise<object>][] = [
    [
      'a value that was used',
      'invalid_nonce',
      async () => {
        const uses = [aUse()];
        await record(world, ACME, { uses });
        return { uses };
      },
    ],
    ['the session itself', 'gone', async (session) => world.store.commit(ACME, { session: fetchedChange(session) }, world.clock.now())],
    [
      'a configuration of the past',
      'unavailable',
      async () => {
        await world.issues();
        return {};
      },
    ],
  ];
  for (const [what, end, meet] of refused) {
    it(`loses the session after a rejection for ${what}`, async () => {
      const { session } = await anOffer(world);
      const { uses = [] } = (await meet(session)) as { uses?: ConsumedValue[] };
      const refusals = { uses: () => new Failure('invalid_nonce'), session: () => new Failure('gone') };
      await run(async (known) => {
        if (known.isStored) return;
        expect(remembered(session)).to.deep.equal(session);
        await known.tenant.issuance();
        expect(await endOf(known.commit({ uses, session: fetchedChange(session) }, refusals))).to.equal(end);
      });
      expect(remembered(session)).to.equal(undefined);
    });
  }

  it('contains no session that could not be created', async () => {
    const { session } = await anOffer(world);
    const twin = { ...session, id: 'twin' as Session['id'], publicId: 'twin' as Session['publicId'] };
    const refused = await record(world, ACME, { opens: { session: twin }, revisions: { all: 99 } });
    expect([refused.done, remembered(twin)]).to.deep.equal([false, undefined]);
  });

  it('notifies the streams of a session whose status changed', async () => {
    const { session } = await anOffer(world);
    const heard: WakeUp[] = [];
    world.eventBus.subscribe((wakeUp) => heard.push(wakeUp));
    await record(world, ACME, { session: { id: session.id, anytime: ['active'] } });
    expect(heard).to.deep.equal([]);
    await record(world, ACME, { session: fetchedChange(session) });
    expect(heard).to.deep.equal([{ type: 'session', tenantId: ACME, sessionId: session.id }]);
  });

  describe('attemptFor', () => {
    it('uses the cached rights of a client as long as the tenant is unchanged', async () => {
      const caller = cachedCaller(await world.caller());
      const again = sinon.spy(caller, 'reauthorize');
      const known = await attemptFor(world, caller, async (_, present) => present.roles);
      expect([known, again.callCount]).to.deep.equal([caller.roles, 0]);
    });

    it('evaluates them again with stored data, once', async () => {
      const caller = cachedCaller(await world.caller());
      const again = sinon.spy(caller, 'reauthorize');
      await world.issues();
      const isNew = await attemptFor(world, caller, async (known, { tenant: configured }) => {
        if (!known.isStored) throw new Failure('forbidden');
        return configured === known.tenant && configured !== caller.cachedTenant;
      });
      expect([isNew, again.callCount]).to.deep.equal([true, 1]);
    });
  });

  describe('for a client whose tenant', () => {
    const aim = async (own: WalletWorld) => {
      const caller = cachedCaller(await own.caller());
      const { session } = await anOffer(own);
      const commit = (known: TenantTransaction) => known.commit({ session: fetchedChange(session) });
      const read = (known: TenantTransaction) => known.confirm(known.reads.session(session.id));
      return async () => [await endOf(attemptFor(own, caller, commit)), await endOf(attemptFor(own, caller, read))];
    };

    it('was suspended by another process, is rejected', async () => {
      const own = await WalletWorld.open();
      const ends = await aim(own);
      await own.change({ status: 'suspended' });
      expect(await ends()).to.deep.equal(['forbidden', 'forbidden']);
    });

    it('was removed by another process, is not found', async () => {
      const own = await WalletWorld.open();
      const ends = await aim(own);
      await own.store.forService(({ tenants }) => tenants.remove(ACME), { by: 'system' });
      expect(await ends()).to.deep.equal(['unauthenticated', 'unauthenticated']);
    });
  });

  describe('assertCurrent', () => {
    it('accepts only the current configuration, and requires a retry otherwise', async () => {
      const { tenant: configured } = await world.caller();
      await assertCurrent(world.store, configured);
      await world.issues();
      const { code, details } = await failureOf(assertCurrent(world.store, configured));
      expect([code, details.retryAfterSeconds]).to.deep.equal(['unavailable', 1]);
    });

    it('rejects a suspended tenant', async () => {
      await world.change({ status: 'suspended' });
      const { tenant: configured } = await world.caller();
      expect(await endOf(assertCurrent(world.store, configured))).to.equal('unavailable');
      await world.change({ status: 'active' });
    });
  });
});
