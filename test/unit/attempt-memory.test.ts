import { expect } from 'chai';
import sinon from 'sinon';
import { assertCurrent, attempt, attemptFor, record } from '../../application/attempt.ts';
import type { Known } from '../../application/known.ts';
import { hashCode } from '../../application/oauth/redeem-grant.ts';
import type { WakeUp } from '../../application/ports/event-bus.ts';
import type { UsedValue } from '../../domain/oauth/used-value.ts';
import type { Session, SessionOutcome } from '../../domain/sessions/session.ts';
import { answered, noted } from '../../domain/sessions/session-change.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { fetched } from '../support/fetched.ts';
import { rememberedCaller } from '../support/remembered-caller.ts';
import { ACME } from './verification-flow/kit.ts';
import { anOffer, Wallet } from './wallet.ts';
import { endOf, failureOf, WalletWorld } from './wallet-kit.ts';

describe('What an attempt leaves in memory', () => {
  let world: WalletWorld;

  before(async () => {
    world = await WalletWorld.open();
  });
  beforeEach(() => world.caller());
  afterEach(() => sinon.restore());

  const run = <T>(work: (known: Known) => Promise<T>) => attempt(world, ACME, work);
  const aUse = (): UsedValue => ({
    kind: 'c_nonce',
    hash: world.random.token(),
    expiresAt: new Date(world.clock.time + 60_000),
  });
  const remembered = ({ publicId }: Session) => world.tenantConfigurations.remembered.session(ACME, publicId);
  it('is the session that was opened, at no other tenant', async () => {
    const { session } = await anOffer(world);
    expect(remembered(session)).to.deep.equal(session);
    const other = 'nobody' as TenantId;
    expect(world.tenantConfigurations.remembered.session(other, session.publicId)).to.equal(undefined);
  });

  it('follows the status that a commit gives', async () => {
    const { session } = await anOffer(world);
    await run((known) => known.commit({ session: fetched(session) }));
    expect(remembered(session)).to.deep.include({ status: 'fetched', version: 2 });
  });

  it('is not a session to which more has happened than its status', async () => {
    const { session } = await anOffer(world);
    // Another process has noted what a backend was told.
    const outcome = { deliveries: [] } as unknown as SessionOutcome;
    await world.store.commit(ACME, { session: noted(session, outcome, undefined) }, world.clock.now());
    await run((known) => known.commit({ session: fetched(session) }));
    expect(remembered(session)).to.equal(undefined);
    const { outcome: kept, status } = await world.session(session.id);
    expect([kept, status]).to.deep.equal([outcome, 'fetched']);
  });

  it('is the grant of an offer, until somebody uses it', async () => {
    const { code } = await anOffer(world);
    const grant = () => world.tenantConfigurations.remembered.grant(ACME, hashCode(code));
    expect(grant()).to.deep.include({ kind: 'pre_authorized_code', consumedAt: null });
    await new Wallet(world).redeem(code);
    expect(grant()).to.equal(undefined);
  });

  it('ends with its answer', async () => {
    const { session } = await anOffer(world);
    await run((known) => known.commit({ session: answered(session, 'complete', {}) }));
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
    [
      'the session itself',
      'gone',
      async (session) => world.store.commit(ACME, { session: fetched(session) }, world.clock.now()),
    ],
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
    it(`ends with a refusal for ${what}`, async () => {
      const { session } = await anOffer(world);
      const { uses = [] } = (await meet(session)) as { uses?: UsedValue[] };
      const refusals = { uses: () => new Failure('invalid_nonce'), session: () => new Failure('gone') };
      await run(async (known) => {
        if (known.isStored) return;
        expect(remembered(session)).to.deep.equal(session);
        await known.configured.issuance();
        expect(await endOf(known.commit({ uses, session: fetched(session) }, refusals))).to.equal(end);
      });
      expect(remembered(session)).to.equal(undefined);
    });
  }

  it('is nothing of what could not be opened', async () => {
    const { session } = await anOffer(world);
    const twin = { ...session, id: 'twin' as Session['id'], publicId: 'twin' as Session['publicId'] };
    const refused = await record(world, ACME, { opens: { session: twin }, revisions: { all: 99 } });
    expect([refused.done, remembered(twin)]).to.deep.equal([false, undefined]);
  });

  it('wakes up those who watch a session that has another status', async () => {
    const { session } = await anOffer(world);
    const heard: WakeUp[] = [];
    world.eventBus.subscribe((wakeUp) => heard.push(wakeUp));
    await record(world, ACME, { session: { id: session.id, anytime: ['active'] } });
    expect(heard).to.deep.equal([]);
    await record(world, ACME, { session: fetched(session) });
    expect(heard).to.deep.equal([{ type: 'session', tenantId: ACME, sessionId: session.id }]);
  });

  describe('attemptFor', () => {
    it('keeps the rights of a client as long as its tenant is configured as before', async () => {
      const caller = rememberedCaller(await world.caller());
      const again = sinon.spy(caller, 'again');
      const known = await attemptFor(world, caller, async (_, present) => present.roles);
      expect([known, again.callCount]).to.deep.equal([caller.roles, 0]);
    });

    it('judges them anew with what is stored, and once', async () => {
      const caller = rememberedCaller(await world.caller());
      const again = sinon.spy(caller, 'again');
      await world.issues();
      const isNew = await attemptFor(world, caller, async (known, { configured }) => {
        if (!known.isStored) throw new Failure('forbidden');
        return configured === known.configured && configured !== caller.remembered;
      });
      expect([isNew, again.callCount]).to.deep.equal([true, 1]);
    });
  });

  describe('a client whose tenant', () => {
    const aim = async (own: WalletWorld) => {
      const caller = rememberedCaller(await own.caller());
      const { session } = await anOffer(own);
      const commit = (known: Known) => known.commit({ session: fetched(session) });
      const read = (known: Known) => known.confirm(known.reads.session(session.id));
      return async () => [
        await endOf(attemptFor(own, caller, commit)),
        await endOf(attemptFor(own, caller, read)),
      ];
    };

    it('was suspended by another process is told so', async () => {
      const own = await WalletWorld.open();
      const ends = await aim(own);
      await own.change({ status: 'suspended' });
      expect(await ends()).to.deep.equal(['forbidden', 'forbidden']);
    });

    it('was removed by another process does not exist any more', async () => {
      const own = await WalletWorld.open();
      const ends = await aim(own);
      await own.store.forService(({ tenants }) => tenants.remove(ACME), { by: 'system' });
      expect(await ends()).to.deep.equal(['unauthenticated', 'unauthenticated']);
    });
  });

  describe('assertCurrent', () => {
    it('holds for the present configuration only, and asks to come again otherwise', async () => {
      const { configured } = await world.caller();
      await assertCurrent(world.store, configured);
      await world.issues();
      const { code, details } = await failureOf(assertCurrent(world.store, configured));
      expect([code, details.retryAfterSeconds]).to.deep.equal(['unavailable', 1]);
    });

    it('holds for no tenant that is suspended', async () => {
      await world.change({ status: 'suspended' });
      const { configured } = await world.caller();
      expect(await endOf(assertCurrent(world.store, configured))).to.equal('unavailable');
      await world.change({ status: 'active' });
    });
  });
});
