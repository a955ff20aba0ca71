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
import { anOffer, type CredentialResponse, failureOf, outcomeOf, Wallet, WalletWorld } from '../wallet-kit.ts';

describe('ListSessionStatuses', () => {
  let world: WalletWorld;
  let wallet: Wallet;
  before(async () => {
    world = await WalletWorld.open();
    wallet = new Wallet(world);
    for (const id of ['listed', 'other']) await world.putCredential({ id, statusManagement: true });
  });

  type IssuedSession = { readonly session: SessionId; readonly token: string };
  const startIssuance = async (): Promise<IssuedSession> => {
    const offer = await anOffer(world, { credentialConfigurationIds: ['listed', 'other', 'card'] });
    return { session: offer.session.id, token: await wallet.token(offer) };
  };
  const issue = ({ token }: IssuedSession, id: string) => wallet.issue(token, { credential_configuration_id: id });
  const referenceOf = ({ credentials: [first] }: CredentialResponse): { idx: number; uri: string } =>
    decode(first?.credential ?? '').payload['status'].status_list;
  const list = async (session: SessionId, query: object = {}, rights: Partial<TenantCaller> = {}) =>
    new ListSessionStatuses(world).execute({ ...(await world.caller()), ...rights }, session, SessionStatusesQuery.parse(query));
  const revoke = async (sessionId: SessionId, credentialConfigurationId?: string) =>
    world.revokeSession.execute(cachedCaller(await world.caller()), {
      ...{ sessionId, status: 1 },
      ...(credentialConfigurationId !== undefined && { credentialConfigurationId }),
    });

  it('lists the entry of each credential, with its status', async () => {
    const issuance = await startIssuance();
    const [first, second] = [await issue(issuance, 'listed'), await issue(issuance, 'other')];
    await issue(issuance, 'card');
    await revoke(issuance.session, 'other');
    const { entries, next } = await list(issuance.session);
    expect(next).to.equal(undefined);
    expect(
      entries.map(({ uri, index, status, credentialConfigurationId }) => ({ ...{ uri, idx: index, status, credentialConfigurationId } })),
    ).to.have.deep.members([
      { ...referenceOf(first), status: 0, credentialConfigurationId: 'listed' },
      { ...referenceOf(second), status: 1, credentialConfigurationId: 'other' },
    ]);
  });

  it('is paginated, with each entry once', async () => {
    const issuance = await startIssuance();
    for (const id of ['listed', 'listed', 'other', 'listed']) await issue(issuance, id);
    const allEntries = (await list(issuance.session)).entries;
    expect(allEntries).to.have.length(4);
    expect((await list(issuance.session, { sort: 'desc' })).entries).to.deep.equal(allEntries.toReversed());
    for (const sort of ['asc', 'desc'])
      for (const limit of [1, 2, 3, 4]) {
        const seenEntries: unknown[] = [];
        for (let cursor: string | undefined, first = true; first || cursor !== undefined; first = false) {
          const page = await list(issuance.session, { limit, sort, ...(cursor !== undefined && { cursor }) });
          expect(page.entries.length).to.be.within(1, limit);
          seenEntries.push(...page.entries);
          cursor = page.next;
        }
        expect(seenEntries, `${limit} a page`).to.deep.equal(sort === 'asc' ? allEntries : allEntries.toReversed());
      }
    expect(await list(issuance.session, { cursor: '99' })).to.deep.equal({ entries: [] });
    expect((await list(issuance.session, { cursor: '99', sort: 'desc' })).entries).to.deep.equal(allEntries.toReversed());
  });

  it('lists entries of a removed session', async () => {
    const issuance = await startIssuance();
    const first = await issue(issuance, 'listed');
    await world.store.commit(ACME, { removes: issuance.session }, world.clock.now());
    const [entry] = (await list(issuance.session)).entries;
    expect(entry?.index).to.equal(referenceOf(first).idx);
  });

  it('is empty for a session without credentials', async () => {
    expect(await list((await startIssuance()).session)).to.deep.equal({ entries: [] });
  });

  type RejectionCase = readonly [description: string, code: FailureCode, call: (issuance: IssuedSession) => Promise<unknown>];
  const rejections: readonly RejectionCase[] = [
    ['an unknown session', 'not_found', () => list('unknown' as SessionId)],
    ['a session that a client may not see', 'not_found', ({ session }) => list(session, {}, { allowedIssuanceConfigs: ['card'] })],
    [
      'a session without credentials, for a client that may not see it',
      'not_found',
      async () => list((await startIssuance()).session, {}, { allowedIssuanceConfigs: ['card'] }),
    ],
    [
      'a presentation',
      'not_found',
      async () => {
        await world.putPresentation();
        return list((await world.request()).session.id);
      },
    ],
  ];
  for (const [description, code, call] of rejections)
    it(`rejects ${description}: ${code}`, async () => {
      const issuance = await startIssuance();
      await issue(issuance, 'listed');
      expect(await outcomeOf(call(issuance))).to.equal(code);
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
    for (const id of ['listed', 'other']) await world.putCredential({ id, statusManagement: true });
  });
  afterEach(() => sinon.restore());

  type IssuedSession = { readonly session: SessionId; readonly token: string };
  const IDS = ['listed', 'other', 'card'];
  const startIssuance = async (): Promise<IssuedSession> => {
    const offer = await anOffer(world, { credentialConfigurationIds: IDS });
    return { session: offer.session.id, token: await wallet.token(offer) };
  };
  const issue = ({ token }: IssuedSession, id: string) => wallet.issue(token, { credential_configuration_id: id });
  const referenceOf = ({ credentials: [first] }: CredentialResponse): { idx: number; uri: string } =>
    decode(first?.credential ?? '').payload['status'].status_list;
  const statusOf = async (response: CredentialResponse) => {
    const { idx, uri } = referenceOf(response);
    const entries = await world.store.read(ACME).statusEntries(uri.split('/').at(-1) ?? '', 0);
    return entries.find(({ index }) => index === idx)?.status ?? 0;
  };
  const revoke = async (
    { session }: Pick<IssuedSession, 'session'>,
    changes: Partial<Revocation> = {},
    rights: Partial<TenantCaller> = {},
  ) => {
    const caller = cachedCaller({ ...(await world.caller()), ...rights });
    return world.revokeSession.execute(caller, { sessionId: session, status: 1, ...changes });
  };

  it('changes the status of all credentials of a session, and ends the issuance', async () => {
    const issuance = await startIssuance();
    const [first, second] = [await issue(issuance, 'listed'), await issue(issuance, 'other')];
    expect(await revoke(issuance)).to.equal(2);
    expect([await statusOf(first), await statusOf(second)]).to.deep.equal([1, 1]);
    for (const id of IDS) expect(await outcomeOf(issue(issuance, id))).to.equal('credential_request_denied');
  });

  it('changes the entries of one configuration only', async () => {
    const issuance = await startIssuance();
    const [first, second] = [await issue(issuance, 'listed'), await issue(issuance, 'other')];
    expect(await revoke(issuance, { credentialConfigurationId: 'other' })).to.equal(1);
    expect([await statusOf(first), await statusOf(second)]).to.deep.equal([0, 1]);
    expect(await outcomeOf(issue(issuance, 'other'))).to.equal('credential_request_denied');
    expect(await outcomeOf(issue(issuance, 'listed'))).to.equal('done');
  });

  it('counts only the credentials whose status changes', async () => {
    const issuance = await startIssuance();
    await issue(issuance, 'listed');
    await issue(issuance, 'other');
    expect(await revoke(issuance, { status: 0 }), 'they are valid').to.equal(0);
    expect(await revoke(issuance, { credentialConfigurationId: 'other' })).to.equal(1);
    expect(await revoke(issuance), 'one entry is revoked').to.equal(1);
    expect(await revoke(issuance), 'both are revoked').to.equal(0);
  });

  it('is final, also for a concurrent change of the status', async () => {
    const issuance = await startIssuance();
    const first = await issue(issuance, 'listed');
    await revoke(issuance);
    expect(await outcomeOf(revoke(issuance, { status: 0 }))).to.equal('conflict');
    const { store } = world;
    const read = store.read.bind(store);
    const reading = sinon.stub(store, 'read').callsFake((tenantId) => ({ ...read(tenantId), statusesAt: async () => [] }));
    try {
      expect(await outcomeOf(revoke(issuance, { status: 0 }))).to.equal('conflict');
    } finally {
      reading.restore();
    }
    expect(await statusOf(first)).to.equal(1);
    expect(await outcomeOf(issue(issuance, 'listed')), 'nor is the session opened').to.equal('credential_request_denied');
    expect(await revoke(issuance), 'revoked again').to.equal(0);
  });

  it('writes an audit log entry with the actor', async () => {
    const issuance = await startIssuance();
    await issue(issuance, 'listed');
    await revoke(issuance);
    const [entry] = await world.store.forTenant(ACME, ({ audit }) => audit.list({ limit: 1 }));
    expect(JSON.stringify(entry)).to.include(issuance.session).and.include('"client"');
  });

  it('stores the reason in the audit log only', async () => {
    const reason = 'The employment ended on Friday';
    const issuance = await startIssuance();
    const first = await issue(issuance, 'listed');
    await revoke(issuance, { reason });
    const [entry] = await world.store.forTenant(ACME, ({ audit }) => audit.list({ limit: 1 }));
    expect(entry && detailOf(entry).changes).to.deep.include({ member: 'reason', after: reason });
    const listId = referenceOf(first).uri.split('/').at(-1) ?? '';
    const reads = world.store.read(ACME);
    const storedState = [await reads.session(issuance.session), await reads.statusList(listId), await reads.statusEntries(listId, 0)];
    expect(JSON.stringify(storedState)).to.include(issuance.session).and.not.include('employment');
    const failure = await failureOf(issue(issuance, 'listed'));
    expect(JSON.stringify([failure.message, failure.details])).not.to.include('employment');
  });

  const reasons: [string, string, boolean][] = [
    ['a sentence', 'The card was lost.', true],
    ['500 characters', 'x'.repeat(500), true],
    ['501 characters', 'x'.repeat(501), false],
    ['nothing', '', false],
    ['two lines', 'one\ntwo', false],
    ['half a character', '\ud800', false],
  ];
  for (const [description, reason, isAccepted] of reasons)
    it(`${isAccepted ? 'accepts' : 'rejects'} a reason of ${description}`, () => {
      expect(Revocation.safeParse({ sessionId: 'x', status: 1, reason }).success).to.equal(isAccepted);
    });

  it('changes credentials whose session was removed', async () => {
    const issuance = await startIssuance();
    const first = await issue(issuance, 'listed');
    await world.store.commit(ACME, { removes: issuance.session }, world.clock.now());
    expect(await revoke(issuance)).to.equal(1);
    expect(await statusOf(first)).to.equal(1);
  });

  it('notifies the publishers of the list', async () => {
    const issuance = await startIssuance();
    await issue(issuance, 'listed');
    const wakeUps: string[] = [];
    world.eventBus.subscribe(({ type }) => wakeUps.push(type));
    await revoke(issuance);
    expect(wakeUps).to.deep.equal(['status-list']);
  });

  it('is retried when a credential is issued concurrently', async () => {
    const issuance = await startIssuance();
    const first = await issue(issuance, 'listed');
    const commit = world.store.commit.bind(world.store);
    let second: CredentialResponse | undefined;
    const stub = sinon.stub(world.store, 'commit').callsFake(async (...change) => {
      stub.restore();
      second = await issue(issuance, 'other');
      return commit(...change);
    });
    expect(await revoke(issuance)).to.equal(2);
    expect([await statusOf(first), second && (await statusOf(second))]).to.deep.equal([1, 1]);
  });

  it('finds lists that another process created just before', async () => {
    const caller = cachedCaller(await world.caller());
    await world.putCredential({ id: 'listed', statusManagement: true, keyChainId: 'signing' });
    const issuance = await startIssuance();
    await issue(issuance, 'listed');
    const revocation = { sessionId: issuance.session, status: 1 } as const;
    expect(await world.revokeSession.execute(caller, revocation)).to.equal(1);
    await world.putCredential({ id: 'listed', statusManagement: true });
  });

  type RejectionCase = readonly [description: string, code: FailureCode, call: (issuance: IssuedSession) => Promise<unknown>];
  const rejections: readonly RejectionCase[] = [
    ['an unknown session', 'not_found', () => revoke({ session: 'unknown' as SessionId })],
    ['a session that a client may not see', 'not_found', (issuance) => revoke(issuance, {}, { allowedIssuanceConfigs: ['card'] })],
    ['a session without credentials', 'conflict', async () => revoke(await startIssuance())],
    [
      'a session without credentials, for a client that may not see it',
      'not_found',
      async () => revoke(await startIssuance(), {}, { allowedIssuanceConfigs: ['card'] }),
    ],
    ['a configuration that issued nothing', 'conflict', (issuance) => revoke(issuance, { credentialConfigurationId: 'other' })],
    [
      'a credential without a status',
      'conflict',
      async () => {
        const issuance = await startIssuance();
        await issue(issuance, 'card');
        return revoke(issuance);
      },
    ],
    [
      'a presentation',
      'not_found',
      async () => {
        await world.putPresentation();
        return revoke({ session: (await world.request()).session.id });
      },
    ],
    ['a suspension, which one bit cannot represent', 'invalid_input', (issuance) => revoke(issuance, { status: 2 })],
  ];
  for (const [description, code, call] of rejections) {
    it(`rejects ${description}, and changes nothing`, async () => {
      const issuance = await startIssuance();
      const first = await issue(issuance, 'listed');
      expect(await outcomeOf(call(issuance))).to.equal(code);
      expect(await statusOf(first)).to.equal(0);
      expect(await outcomeOf(issue(issuance, 'listed'))).to.equal('done');
    });
  }

  it('fails while credentials are issued repeatedly', async () => {
    const issuance = await startIssuance();
    await issue(issuance, 'listed');
    const stub = sinon.stub(world.store, 'commit').resolves({ done: false, part: 'session' });
    const { code, message } = await failureOf(revoke(issuance));
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
        const keptUntilLast = endOfStatuses([status({ keptUntil })]);
        const lifeTime = lifeTimeWithin(NOW, undefined, keptUntilLast) ?? 0;
        expect(lifeTime).to.satisfy(Number.isSafeInteger).and.to.be.greaterThan(0);
        expect(SECONDS + lifeTime).to.be.lessThan(Math.max(keptUntil, SECONDS + 1.5));
        expect(lifeTimeWithin(NOW, 60, keptUntilLast)).to.be.at.most(60);
      }),
    );
  });

  it('exists once for each entry, with the earliest expiry', () => {
    const statuses = [status({ keptUntil: 20 }), status(), status({ keptUntil: 10 }), status({ idx: 2 }), status({ anchor: 'b' })];
    expect(distinctStatuses(statuses)).to.have.deep.members([status({ keptUntil: 10 }), status({ idx: 2 }), status({ anchor: 'b' })]);
  });
});

describe('revoked entries of a list', () => {
  it('are found in order, a few at a time, and no others', () => {
    const entries = fc.uniqueArray(fc.record({ index: fc.nat(999), status: fc.nat(3) }), { selector: ({ index }) => index });
    fc.assert(
      fc.property(fc.constantFrom(...ENTRY_BITS), entries, fc.integer({ min: 1, max: 7 }), (bits, statuses, limit) => {
        const representable = statuses.filter((entry) => entry.status < 1 << bits);
        const bytes = packEntries(bits, 1_000, representable);
        const expected = representable
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
