import { expect } from 'chai';
import fc from 'fast-check';
import sinon from 'sinon';
import type { TenantCaller } from '../../../application/caller.ts';
import { Revocation } from '../../../application/status-lists/revoke-session.ts';
import { ListSessionStatuses, SessionStatusesQuery } from '../../../application/status-lists/session-statuses.ts';
import { detailOf } from '../../../domain/audit/audit-entry.ts';
import { lifeTimeWithin } from '../../../domain/issuance/credential.ts';
import type { FailureCode } from '../../../domain/shared/failure.ts';
import type { SessionId } from '../../../domain/shared/ids.ts';
import { Refusal } from '../../../domain/shared/refusal.ts';
import { parseAttestedStatuses } from '../../../domain/status-lists/attested-status.ts';
import { ENTRY_BITS, packEntries } from '../../../domain/status-lists/bits.ts';
import { distinctStatuses, endOfStatuses, revokedIndices } from '../../../domain/status-lists/wallet-status.ts';
import { decode } from '../../support/present.ts';
import { cachedCaller } from '../../support/remembered-caller.ts';
import { ACME } from '../verification/kit.ts';
import { anOffer, endOf, failureOf, type Issued, Wallet, WalletWorld } from '../wallet-kit.ts';

describe('ListSessionStatuses', () => {
  let world: WalletWorld;
  let wallet: Wallet;
  before(async () => {
    world = await WalletWorld.open();
    wallet = new Wallet(world);
    for (const id of ['listed', 'other']) await world.offers({ id, statusManagement: true });
  });

  type Held = { readonly session: SessionId; readonly token: string };
  const offered = async (): Promise<Held> => {
    const made = await anOffer(world, { credentialConfigurationIds: ['listed', 'other', 'card'] });
    return { session: made.session.id, token: await wallet.token(made) };
  };
  const issue = ({ token }: Held, id: string) => wallet.issue(token, { credential_configuration_id: id });
  const placeOf = ({ credentials: [first] }: Issued): { idx: number; uri: string } =>
    decode(first?.credential ?? '').payload['status'].status_list;
  const list = async (session: SessionId, query: object = {}, rights: Partial<TenantCaller> = {}) =>
    new ListSessionStatuses(world).execute({ ...(await world.caller()), ...rights }, session, SessionStatusesQuery.parse(query));
  const revoke = async (sessionId: SessionId, credentialConfigurationId?: string) =>
    world.revokeSession.execute(cachedCaller(await world.caller()), {
      ...{ sessionId, status: 1 },
      ...(credentialConfigurationId !== undefined && { credentialConfigurationId }),
    });

  it('lists the entry of each credential, with its status', async () => {
    const held = await offered();
    const [listed, other] = [await issue(held, 'listed'), await issue(held, 'other')];
    await issue(held, 'card');
    await revoke(held.session, 'other');
    const { entries, next } = await list(held.session);
    expect(next).to.equal(undefined);
    expect(
      entries.map(({ uri, index, status, credentialConfigurationId }) => ({ ...{ uri, idx: index, status, credentialConfigurationId } })),
    ).to.have.deep.members([
      { ...placeOf(listed), status: 0, credentialConfigurationId: 'listed' },
      { ...placeOf(other), status: 1, credentialConfigurationId: 'other' },
    ]);
  });

  it('is paginated, with each entry once', async () => {
    const held = await offered();
    for (const id of ['listed', 'listed', 'other', 'listed']) await issue(held, id);
    const whole = (await list(held.session)).entries;
    expect(whole).to.have.length(4);
    expect((await list(held.session, { sort: 'desc' })).entries).to.deep.equal(whole.toReversed());
    for (const sort of ['asc', 'desc'])
      for (const limit of [1, 2, 3, 4]) {
        const seen: unknown[] = [];
        for (let cursor: string | undefined, first = true; first || cursor !== undefined; first = false) {
          const page = await list(held.session, { limit, sort, ...(cursor !== undefined && { cursor }) });
          expect(page.entries.length).to.be.within(1, limit);
          seen.push(...page.entries);
          cursor = page.next;
        }
        expect(seen, `${limit} a page`).to.deep.equal(sort === 'asc' ? whole : whole.toReversed());
      }
    expect(await list(held.session, { cursor: '99' })).to.deep.equal({ entries: [] });
    expect((await list(held.session, { cursor: '99', sort: 'desc' })).entries).to.deep.equal(whole.toReversed());
  });

  it('lists entries of a removed session', async () => {
    const held = await offered();
    const listed = await issue(held, 'listed');
    await world.store.commit(ACME, { removes: held.session }, world.clock.now());
    const [entry] = (await list(held.session)).entries;
    expect(entry?.index).to.equal(placeOf(listed).idx);
  });

  it('is empty for a session without credentials', async () => {
    expect(await list((await offered()).session)).to.deep.equal({ entries: [] });
  });

  type Refused = readonly [what: string, code: FailureCode, ask: (held: Held) => Promise<unknown>];
  const refusals: readonly Refused[] = [
    ['a session of nobody', 'not_found', () => list('unknown' as SessionId)],
    ['a session that a client may not see', 'not_found', ({ session }) => list(session, {}, { allowedIssuanceConfigs: ['card'] })],
    [
      'what issued nothing, of a client that may not see it',
      'not_found',
      async () => list((await offered()).session, {}, { allowedIssuanceConfigs: ['card'] }),
    ],
    [
      'a presentation',
      'not_found',
      async () => {
        await world.verifies();
        return list((await world.request()).session.id);
      },
    ],
  ];
  for (const [what, code, ask] of refusals)
    it(`rejects ${what}: ${code}`, async () => {
      const held = await offered();
      await issue(held, 'listed');
      expect(await endOf(ask(held))).to.equal(code);
    });

  for (const query of [{ limit: 0 }, { limit: 501 }, { cursor: '0' }, { cursor: 'x' }, { cursor: '1234567890' }])
    it(`rejects ${JSON.stringify(query)}`, () => {
      expect(SessionStatusesQuery.safeParse(query).success).to.equal(false);
    });
});

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
  const revoke = async ({ session }: Pick<Held, 'session'>, changes: Partial<Revocation> = {}, rights: Partial<TenantCaller> = {}) => {
    const caller = cachedCaller({ ...(await world.caller()), ...rights });
    return world.revokeSession.execute(caller, { sessionId: session, status: 1, ...changes });
  };

  it('changes the status of all credentials of a session, and ends the issuance', async () => {
    const held = await offered();
    const [listed, other] = [await issue(held, 'listed'), await issue(held, 'other')];
    expect(await revoke(held)).to.equal(2);
    expect([await statusOf(listed), await statusOf(other)]).to.deep.equal([1, 1]);
    for (const id of IDS) expect(await endOf(issue(held, id))).to.equal('credential_request_denied');
  });

  it('changes the entries of one configuration only', async () => {
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

  it('is final, also for a concurrent change of the status', async () => {
    const held = await offered();
    const listed = await issue(held, 'listed');
    await revoke(held);
    expect(await endOf(revoke(held, { status: 0 }))).to.equal('conflict');
    const { store } = world;
    const read = store.read.bind(store);
    const reading = sinon.stub(store, 'read').callsFake((tenantId) => ({ ...read(tenantId), statusesAt: async () => [] }));
    try {
      expect(await endOf(revoke(held, { status: 0 }))).to.equal('conflict');
    } finally {
      reading.restore();
    }
    expect(await statusOf(listed)).to.equal(1);
    expect(await endOf(issue(held, 'listed')), 'nor is the session opened').to.equal('credential_request_denied');
    expect(await revoke(held), 'revoked again').to.equal(0);
  });

  it('writes an audit log entry with the actor', async () => {
    const held = await offered();
    await issue(held, 'listed');
    await revoke(held);
    const [entry] = await world.store.forTenant(ACME, ({ audit }) => audit.list({ limit: 1 }));
    expect(JSON.stringify(entry)).to.include(held.session).and.include('"client"');
  });

  it('stores the reason in the audit log only', async () => {
    const reason = 'The employment ended on Friday';
    const held = await offered();
    const listed = await issue(held, 'listed');
    await revoke(held, { reason });
    const [entry] = await world.store.forTenant(ACME, ({ audit }) => audit.list({ limit: 1 }));
    expect(entry && detailOf(entry).changes).to.deep.include({ member: 'reason', after: reason });
    const listId = placeOf(listed).uri.split('/').at(-1) ?? '';
    const reads = world.store.read(ACME);
    const kept = [await reads.session(held.session), await reads.statusList(listId), await reads.statusEntries(listId, 0)];
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
    it(`${isTaken ? 'accepts' : 'rejects'} a reason of ${what}`, () => {
      expect(Revocation.safeParse({ sessionId: 'x', status: 1, reason }).success).to.equal(isTaken);
    });

  it('changes credentials whose session was removed', async () => {
    const held = await offered();
    const listed = await issue(held, 'listed');
    await world.store.commit(ACME, { removes: held.session }, world.clock.now());
    expect(await revoke(held)).to.equal(1);
    expect(await statusOf(listed)).to.equal(1);
  });

  it('notifies the publishers of the list', async () => {
    const held = await offered();
    await issue(held, 'listed');
    const heard: string[] = [];
    world.eventBus.subscribe(({ type }) => heard.push(type));
    await revoke(held);
    expect(heard).to.deep.equal(['status-list']);
  });

  it('is retried when a credential is issued concurrently', async () => {
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

  it('finds lists that another process created just before', async () => {
    const caller = cachedCaller(await world.caller());
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
    ['a session that a client may not see', 'not_found', (held) => revoke(held, {}, { allowedIssuanceConfigs: ['card'] })],
    ['what issued nothing', 'conflict', async () => revoke(await offered())],
    [
      'what issued nothing, of a client that may not see it',
      'not_found',
      async () => revoke(await offered(), {}, { allowedIssuanceConfigs: ['card'] }),
    ],
    ['a configuration that issued nothing', 'conflict', (held) => revoke(held, { credentialConfigurationId: 'other' })],
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
    it(`rejects ${what}, and changes nothing`, async () => {
      const held = await offered();
      const listed = await issue(held, 'listed');
      expect(await endOf(ask(held))).to.equal(code);
      expect(await statusOf(listed)).to.equal(0);
      expect(await endOf(issue(held, 'listed'))).to.equal('done');
    });
  }

  it('fails while credentials are issued repeatedly', async () => {
    const held = await offered();
    await issue(held, 'listed');
    const stub = sinon.stub(world.store, 'commit').resolves({ done: false, part: 'session' });
    const { code, message } = await failureOf(revoke(held));
    expect([code, message]).to.deep.equal(['conflict', 'the session is issuing credentials; try again']);
    expect(stub.callCount).to.equal(11);
  });

  it('accepts the three defined statuses', () => {
    const statuses = [0, 1, 2, 3, '1'].map((status) => Revocation.safeParse({ sessionId: 'x', status }).success);
    expect(statuses).to.deep.equal([true, true, true, false, false]);
  });
});

const NOW = new Date('2026-06-01T12:00:00Z');
const SECONDS = NOW.getTime() / 1000;
const URI = 'https://provider.example/status/1';
const status = (changes: object = {}) => ({ uri: URI, idx: 1, anchor: 'a', ...changes });

describe('status of an attestation', () => {
  const list = { status_list: { idx: 4, uri: URI } };

  it('is in any of three properties', () => {
    const payload = { status: list, client_status: { status: list, exp: SECONDS + 1 }, key_storage_status: { status: list } };
    const reference = { idx: 4, uri: URI };
    expect(parseAttestedStatuses(payload, NOW)).to.deep.equal([
      { place: 'status', reference },
      { place: 'client_status', reference, keptUntil: SECONDS + 1 },
      { place: 'key_storage_status', reference },
    ]);
    expect(parseAttestedStatuses({}, NOW)).to.deep.equal([]);
  });

  it('names the invalid property', () => {
    const reasonOf = (payload: object) => {
      try {
        parseAttestedStatuses({ ...payload } as never, NOW);
        return 'read';
      } catch (error) {
        return error instanceof Refusal ? error.message : error;
      }
    };
    expect(reasonOf({ client_status: {} })).to.equal('status_invalid: client_status: has no status');
    expect(reasonOf({ key_storage_status: { status: {} } })).to.equal('status_invalid: key_storage_status: no status_list');
    expect(reasonOf({ status: 1 })).to.equal('status_invalid: status: no status_list');
    expect(reasonOf({ client_status: { status: list, exp: SECONDS } })).to.equal('status_invalid: client_status: exp has passed');
    expect(reasonOf({ client_status: { status: list, exp: null } })).to.equal('status_invalid: client_status: exp is no time');
  });

  it('is parsed or rejected, for any input', () => {
    const member = fc.oneof(fc.jsonValue(), fc.record({ status: fc.oneof(fc.jsonValue(), fc.constant(list)), exp: fc.jsonValue() }));
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom('status', 'client_status', 'key_storage_status'), member), (payload) => {
        try {
          parseAttestedStatuses(payload as never, NOW);
        } catch (error) {
          expect(error).to.be.instanceOf(Refusal);
        }
      }),
      { numRuns: 300 },
    );
  });
});

describe('expiry of credentials that follow a wallet', () => {
  it('is the first expiry that its provider names', () => {
    expect(endOfStatuses([status(), status({ keptUntil: 20 }), status({ keptUntil: 10 })])).to.deep.equal(new Date(10_000));
    expect(endOfStatuses([status()])).to.equal(undefined);
  });

  it('is a valid time, for any input of the provider, and never later than the input', () => {
    fc.assert(
      fc.property(fc.double({ min: SECONDS + 1, noNaN: true, noDefaultInfinity: true }), (keptUntil) => {
        const end = endOfStatuses([status({ keptUntil })]);
        const lifeTime = lifeTimeWithin(NOW, undefined, end) ?? 0;
        expect(lifeTime).to.satisfy(Number.isSafeInteger).and.to.be.greaterThan(0);
        expect(SECONDS + lifeTime).to.be.lessThan(Math.max(keptUntil, SECONDS + 1.5));
        expect(lifeTimeWithin(NOW, 60, end)).to.be.at.most(60);
      }),
    );
  });

  it('exists once for each entry, with the earliest expiry', () => {
    const all = [status({ keptUntil: 20 }), status(), status({ keptUntil: 10 }), status({ idx: 2 }), status({ anchor: 'b' })];
    expect(distinctStatuses(all)).to.have.deep.members([status({ keptUntil: 10 }), status({ idx: 2 }), status({ anchor: 'b' })]);
  });
});

describe('revoked entries of a list', () => {
  it('are found in order, a few at a time, and no others', () => {
    const entries = fc.uniqueArray(fc.record({ index: fc.nat(999), status: fc.nat(3) }), { selector: ({ index }) => index });
    fc.assert(
      fc.property(fc.constantFrom(...ENTRY_BITS), entries, fc.integer({ min: 1, max: 7 }), (bits, all, limit) => {
        const fitting = all.filter((entry) => entry.status < 1 << bits);
        const bytes = packEntries(bits, 1_000, fitting);
        const expected = fitting
          .filter((entry) => entry.status === 1)
          .map(({ index }) => index)
          .sort((a, b) => a - b);
        const found: number[] = [];
        for (let from = 0; ; ) {
          const page = revokedIndices(bytes, bits, from, limit);
          expect(page.length).to.be.at.most(limit);
          found.push(...page);
          if (page.length < limit) break;
          from = (page.at(-1) ?? 0) + 1;
        }
        expect(found).to.deep.equal(expected);
      }),
      { numRuns: 200 },
    );
  });
});
