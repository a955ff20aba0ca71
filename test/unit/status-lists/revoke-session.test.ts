import { expect } from 'chai';
import sinon from 'sinon';
import type { TenantCaller } from '../../../application/caller.ts';
import { Revocation } from '../../../application/status-lists/revoke-session.ts';
import { detailOf } from '../../../domain/audit/audit-entry.ts';
import type { FailureCode } from '../../../domain/shared/failure.ts';
import type { SessionId } from '../../../domain/shared/ids.ts';
import { decode } from '../../support/present.ts';
import { rememberedCaller } from '../../support/remembered-caller.ts';
import { ACME } from '../verification-flow/kit.ts';
import { anOffer, type Issued, Wallet } from '../wallet.ts';
import { endOf, failureOf, WalletWorld } from '../wallet-kit.ts';

describe('RevokeSession', () => {
  let world: WalletWorld;
  let wallet: Wallet;

  before(async () => {
    world = await WalletWorld.open();
    wallet = new Wallet(world);
    for (const id of ['listed', 'other']) await world.offers({ id, statusManagement: true });
  });
  afterEach(() => sinon.restore());

  type Held = { readonly session: SessionId; readonly token: string };
  const IDS = ['listed', 'other', 'card'];
  const offered = async (): Promise<Held> => {
    const made = await anOffer(world, { credentialConfigurationIds: IDS });
    return { session: made.session.id, token: await wallet.token(made) };
  };
  const issue = ({ token }: Held, id: string) => wallet.issue(token, { credential_configuration_id: id });
  const placeOf = ({ credentials: [first] }: Issued): { idx: number; uri: string } =>
    decode(first?.credential ?? '').payload['status'].status_list;
  const statusOf = async (issued: Issued) => {
    const { idx, uri } = placeOf(issued);
    const entries = await world.store.read(ACME).statusEntries(uri.split('/').at(-1) ?? '', 0);
    return entries.find(({ index }) => index === idx)?.status ?? 0;
  };
  const revoke = async (
    { session }: Pick<Held, 'session'>,
    changes: Partial<Revocation> = {},
    rights: Partial<TenantCaller> = {},
  ) => {
    const caller = rememberedCaller({ ...(await world.caller()), ...rights });
    return world.revokeSession.execute(caller, { sessionId: session, status: 1, ...changes });
  };

  it('changes the status of all that a session issued, and nothing is issued any more', async () => {
    const held = await offered();
    const [listed, other] = [await issue(held, 'listed'), await issue(held, 'other')];
    expect(await revoke(held)).to.equal(2);
    expect([await statusOf(listed), await statusOf(other)]).to.deep.equal([1, 1]);
    for (const id of IDS) expect(await endOf(issue(held, id))).to.equal('credential_request_denied');
  });

  it('changes what one configuration issued, and leaves the rest alone', async () => {
    const held = await offered();
    const [listed, other] = [await issue(held, 'listed'), await issue(held, 'other')];
    expect(await revoke(held, { credentialConfigurationId: 'other' })).to.equal(1);
    expect([await statusOf(listed), await statusOf(other)]).to.deep.equal([0, 1]);
    expect(await endOf(issue(held, 'other'))).to.equal('credential_request_denied');
    expect(await endOf(issue(held, 'listed'))).to.equal('done');
  });

  it('counts only the credentials whose status changes', async () => {
    const held = await offered();
    await issue(held, 'listed');
    await issue(held, 'other');
    expect(await revoke(held, { status: 0 }), 'they are valid').to.equal(0);
    expect(await revoke(held, { credentialConfigurationId: 'other' })).to.equal(1);
    expect(await revoke(held), 'one of them is revoked').to.equal(1);
    expect(await revoke(held), 'both are revoked').to.equal(0);
  });

  it('is final, also for who decided before it came', async () => {
    const held = await offered();
    const listed = await issue(held, 'listed');
    await revoke(held);
    expect(await endOf(revoke(held, { status: 0 }))).to.equal('conflict');
    const { store } = world;
    const read = store.read.bind(store);
    const reading = sinon.stub(store, 'read').callsFake((tenantId) => ({
      ...read(tenantId),
      statusesAt: async () => [],
    }));
    try {
      expect(await endOf(revoke(held, { status: 0 }))).to.equal('conflict');
    } finally {
      reading.restore();
    }
    expect(await statusOf(listed)).to.equal(1);
    expect(await endOf(issue(held, 'listed')), 'nor is the session opened').to.equal(
      'credential_request_denied',
    );
    expect(await revoke(held), 'revoked again').to.equal(0);
  });

  it('stands in the audit log, with who did it', async () => {
    const held = await offered();
    await issue(held, 'listed');
    await revoke(held);
    const [entry] = await world.store.forTenant(ACME, ({ audit }) => audit.list({ limit: 1 }));
    expect(JSON.stringify(entry)).to.include(held.session).and.include('"client"');
  });

  it('keeps the reason in the audit log, and nowhere that wallets or verifiers look', async () => {
    const reason = 'The employment ended on Friday';
    const held = await offered();
    const listed = await issue(held, 'listed');
    await revoke(held, { reason });
    const [entry] = await world.store.forTenant(ACME, ({ audit }) => audit.list({ limit: 1 }));
    expect(entry && detailOf(entry).changes).to.deep.include({ member: 'reason', after: reason });
    const listId = placeOf(listed).uri.split('/').at(-1) ?? '';
    const reads = world.store.read(ACME);
    const kept = [
      await reads.session(held.session),
      await reads.statusList(listId),
      await reads.statusEntries(listId, 0),
    ];
    expect(JSON.stringify(kept)).to.include(held.session).and.not.include('employment');
    const refusal = await failureOf(issue(held, 'listed'));
    expect(JSON.stringify([refusal.message, refusal.details])).not.to.include('employment');
  });

  const reasons: [string, string, boolean][] = [
    ['a sentence', 'The card was lost.', true],
    ['500 characters', 'x'.repeat(500), true],
    ['501 characters', 'x'.repeat(501), false],
    ['nothing', '', false],
    ['two lines', 'one\ntwo', false],
    ['half a character', '\ud800', false],
  ];
  for (const [what, reason, isTaken] of reasons)
    it(`${isTaken ? 'takes' : 'takes no'} reason of ${what}`, () => {
      expect(Revocation.safeParse({ sessionId: 'x', status: 1, reason }).success).to.equal(isTaken);
    });

  it('reaches what outlived its session', async () => {
    const held = await offered();
    const listed = await issue(held, 'listed');
    await world.store.commit(ACME, { removes: held.session }, world.clock.now());
    expect(await revoke(held)).to.equal(1);
    expect(await statusOf(listed)).to.equal(1);
  });

  it('wakes up those who publish the list', async () => {
    const held = await offered();
    await issue(held, 'listed');
    const heard: string[] = [];
    world.eventBus.subscribe(({ type }) => heard.push(type));
    await revoke(held);
    expect(heard).to.deep.equal(['status-list']);
  });

  it('is decided anew when something is issued in between', async () => {
    const held = await offered();
    const first = await issue(held, 'listed');
    const commit = world.store.commit.bind(world.store);
    let second: Issued | undefined;
    const stub = sinon.stub(world.store, 'commit').callsFake(async (...change) => {
      stub.restore();
      second = await issue(held, 'other');
      return commit(...change);
    });
    expect(await revoke(held)).to.equal(2);
    expect([await statusOf(first), second && (await statusOf(second))]).to.deep.equal([1, 1]);
  });

  it('knows lists that another process made a moment ago', async () => {
    const caller = rememberedCaller(await world.caller());
    await world.offers({ id: 'listed', statusManagement: true, keyChainId: 'signing' });
    const held = await offered();
    await issue(held, 'listed');
    const revocation = { sessionId: held.session, status: 1 } as const;
    expect(await world.revokeSession.execute(caller, revocation)).to.equal(1);
    await world.offers({ id: 'listed', statusManagement: true });
  });

  type Refused = readonly [what: string, code: FailureCode, ask: (held: Held) => Promise<unknown>];
  const refusals: readonly Refused[] = [
    ['a session of nobody', 'not_found', () => revoke({ session: 'unknown' as SessionId })],
    [
      'a session that a client may not see',
      'not_found',
      (held) => revoke(held, {}, { allowedIssuanceConfigs: ['card'] }),
    ],
    ['what issued nothing', 'conflict', async () => revoke(await offered())],
    [
      'what issued nothing, of a client that may not see it',
      'not_found',
      async () => revoke(await offered(), {}, { allowedIssuanceConfigs: ['card'] }),
    ],
    [
      'a configuration that issued nothing',
      'conflict',
      (held) => revoke(held, { credentialConfigurationId: 'other' }),
    ],
    [
      'what has no status',
      'conflict',
      async () => {
        const held = await offered();
        await issue(held, 'card');
        return revoke(held);
      },
    ],
    [
      'a presentation',
      'not_found',
      async () => {
        await world.verifies();
        return revoke({ session: (await world.request()).session.id });
      },
    ],
    ['a suspension, which one bit cannot tell', 'invalid_input', (held) => revoke(held, { status: 2 })],
  ];
  for (const [what, code, ask] of refusals) {
    it(`refuses ${what}, and changes nothing`, async () => {
      const held = await offered();
      const listed = await issue(held, 'listed');
      expect(await endOf(ask(held))).to.equal(code);
      expect(await statusOf(listed)).to.equal(0);
      expect(await endOf(issue(held, 'listed'))).to.equal('done');
    });
  }

  it('gives up while more and more is issued', async () => {
    const held = await offered();
    await issue(held, 'listed');
    const stub = sinon.stub(world.store, 'commit').resolves({ done: false, part: 'session' });
    const { code, message } = await failureOf(revoke(held));
    expect([code, message]).to.deep.equal([
      'conflict',
      'the session is issuing credentials at this moment; try again',
    ]);
    expect(stub.callCount).to.equal(11);
  });

  it('takes the three statuses that there are', () => {
    const statuses = [0, 1, 2, 3, '1'].map(
      (status) => Revocation.safeParse({ sessionId: 'x', status }).success,
    );
    expect(statuses).to.deep.equal([true, true, true, false, false]);
  });
});
