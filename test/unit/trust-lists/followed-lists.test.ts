import { expect } from 'chai';
import { ConfirmSigner, ListFollowedLists } from '../../../application/trust-lists/followed-lists.ts';
import { ForecastTrust, TrustForecastQuery } from '../../../application/trust-lists/trust-forecast.ts';
import { thumbprintOf } from '../../../application/trust-lists/verify-trust-list.ts';
import { type Certified, certify } from '../../support/test-certificates.ts';
import { ACME } from '../verification-flow/kit.ts';
import { endOf, WalletWorld } from '../wallet-kit.ts';

const PLACE = { uri: 'https://lists.example/list' };

describe('Lists of others that a tenant relies on', () => {
  let world: WalletWorld;
  let signer: Certified;
  before(async () => {
    signer = await certify({ name: 'Another operator' });
  });
  beforeEach(async () => {
    world = await WalletWorld.open();
  });

  const confirm = async (id: string, fingerprint: string) =>
    endOf(new ConfirmSigner(world).execute(await world.caller(), id, { fingerprint }));
  const hold = (id: string, by: string | undefined) =>
    world.store
      .lists(ACME)
      .holdAgainst(
        id,
        PLACE,
        { fault: 'untrusted_signer', reason: 'nobody knows them', ...(by !== undefined && { signer: by }) },
        world.clock.now(),
      );

  it('are shown with what is held against them', async () => {
    await hold('one', signer.certificate);
    const [shown, ...others] = await new ListFollowedLists(world).execute(await world.caller());
    expect(others).to.deep.equal([]);
    expect([shown?.id, shown?.place, shown?.held?.signer]).to.deep.equal(['one', PLACE, signer.certificate]);
  });

  it('are signed by somebody else only where one waits, by its fingerprint, and a configuration names the list', async () => {
    const fingerprint = thumbprintOf(signer.certificate);
    expect(await confirm('none', fingerprint)).to.equal('not_found');
    await hold('nobody', undefined);
    expect(await confirm('nobody', fingerprint)).to.equal('conflict');
    await hold('one', signer.certificate);
    expect(await confirm('one', thumbprintOf((await certify({ name: 'Other' })).certificate))).to.equal(
      'invalid_input',
    );
    expect(await confirm('one', fingerprint), 'no configuration names it').to.equal('conflict');
  });

  it('end, like the keys of the tenant, in one order and its reverse', async () => {
    const told = async (query: object) => {
      const caller = {
        ...(await world.caller()),
        roles: ['issuance:manage', 'presentation:manage'] as const,
      };
      return new ForecastTrust(world).execute(caller, TrustForecastQuery.parse(query));
    };
    const { items, next } = await told({});
    expect(items.filter(({ kind }) => kind === 'key-chain')).to.not.deep.equal([]);
    expect(next).to.equal(undefined);
    const keys = items.map(({ key }) => key);
    expect(keys).to.deep.equal(keys.toSorted());
    expect((await told({ sort: 'desc' })).items.map(({ key }) => key)).to.deep.equal(keys.toReversed());
    const page = await told({ limit: 1 });
    expect(page.next).to.equal(keys[0]);
    expect((await told({ limit: 1, cursor: page.next })).items.map(({ key }) => key)).to.deep.equal([
      keys[1],
    ]);
  });
});
