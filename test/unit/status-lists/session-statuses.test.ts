import { expect } from 'chai';
import type { TenantCaller } from '../../../application/caller.ts';
import {
  ListSessionStatuses,
  SessionStatusesQuery,
} from '../../../application/status-lists/session-statuses.ts';
import type { FailureCode } from '../../../domain/shared/failure.ts';
import type { SessionId } from '../../../domain/shared/ids.ts';
import { decode } from '../../support/present.ts';
import { rememberedCaller } from '../../support/remembered-caller.ts';
import { ACME } from '../verification-flow/kit.ts';
import { anOffer, type Issued, Wallet } from '../wallet.ts';
import { endOf, WalletWorld } from '../wallet-kit.ts';

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
    new ListSessionStatuses(world).execute(
      { ...(await world.caller()), ...rights },
      session,
      SessionStatusesQuery.parse(query),
    );
  const revoke = async (sessionId: SessionId, credentialConfigurationId?: string) =>
    world.revokeSession.execute(rememberedCaller(await world.caller()), {
      ...{ sessionId, status: 1 },
      ...(credentialConfigurationId !== undefined && { credentialConfigurationId }),
    });

  it('tells the entry that each credential names, with its status', async () => {
    const held = await offered();
    const [listed, other] = [await issue(held, 'listed'), await issue(held, 'other')];
    await issue(held, 'card');
    await revoke(held.session, 'other');
    const { entries, next } = await list(held.session);
    expect(next).to.equal(undefined);
    expect(
      entries.map(({ uri, index, status, credentialConfigurationId }) => ({
        ...{ uri, idx: index, status, credentialConfigurationId },
      })),
    ).to.have.deep.members([
      { ...placeOf(listed), status: 0, credentialConfigurationId: 'listed' },
      { ...placeOf(other), status: 1, credentialConfigurationId: 'other' },
    ]);
  });

  it('comes page by page, each entry once', async () => {
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
    expect((await list(held.session, { cursor: '99', sort: 'desc' })).entries).to.deep.equal(
      whole.toReversed(),
    );
  });

  it('outlives its session', async () => {
    const held = await offered();
    const listed = await issue(held, 'listed');
    await world.store.commit(ACME, { removes: held.session }, world.clock.now());
    const [entry] = (await list(held.session)).entries;
    expect(entry?.index).to.equal(placeOf(listed).idx);
  });

  it('is empty for what issued nothing yet', async () => {
    expect(await list((await offered()).session)).to.deep.equal({ entries: [] });
  });

  type Refused = readonly [what: string, code: FailureCode, ask: (held: Held) => Promise<unknown>];
  const refusals: readonly Refused[] = [
    ['a session of nobody', 'not_found', () => list('unknown' as SessionId)],
    [
      'a session that a client may not see',
      'not_found',
      ({ session }) => list(session, {}, { allowedIssuanceConfigs: ['card'] }),
    ],
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
    it(`refuses ${what}: ${code}`, async () => {
      const held = await offered();
      await issue(held, 'listed');
      expect(await endOf(ask(held))).to.equal(code);
    });

  for (const query of [
    { limit: 0 },
    { limit: 501 },
    { cursor: '0' },
    { cursor: 'x' },
    { cursor: '1234567890' },
  ])
    it(`takes no ${JSON.stringify(query)}`, () => {
      expect(SessionStatusesQuery.safeParse(query).success).to.equal(false);
    });
});
