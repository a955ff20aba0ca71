import { expect } from 'chai';
import { AggregateStatusLists } from '../../../application/status-lists/status-lists.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { decode } from '../../support/present.ts';
import { ACME, PUBLIC_URL } from '../verification-flow/kit.ts';
import { anOffer, Wallet } from '../wallet.ts';
import { endOf, WalletWorld } from '../wallet-kit.ts';

describe('AggregateStatusLists', () => {
  let world: WalletWorld;

  before(async () => {
    world = await WalletWorld.open();
    await world.offers({ id: 'listed', statusManagement: true });
  });

  const aggregate = (tenantId = ACME) => new AggregateStatusLists(world).execute(tenantId);

  it('names the public addresses of the lists', async () => {
    const wallet = new Wallet(world);
    const token = await wallet.token(await anOffer(world, { credentialConfigurationIds: ['listed'] }));
    const { credentials } = await wallet.issue(token, { credential_configuration_id: 'listed' });
    const { uri } = decode(credentials[0]?.credential ?? '').payload['status'].status_list;
    expect(await aggregate()).to.include(uri);
    for (const address of await aggregate())
      expect(address).to.match(new RegExp(`^${PUBLIC_URL}/acme/status-list/`));
  });

  it('names none that takes no part', async () => {
    const [list] = await world.store.forTenant(ACME, (own) => own.statusLists.list());
    if (list === undefined) throw new Error('no list');
    const hidden = { ...list, id: 'hidden', usedEntries: 0, enableAggregation: false };
    await world.store.forTenant(ACME, (own) => own.statusLists.add(hidden), { by: 'system' });
    expect(await aggregate()).not.to.include(`${PUBLIC_URL}/acme/status-list/hidden`);
  });

  it('serves suspended tenants, since their credentials live on', async () => {
    await world.change({ status: 'suspended' });
    expect((await aggregate()).length).to.be.greaterThan(0);
    await world.change({ status: 'active' });
  });

  it('is not found without the tenant, and without lists where none are wanted', async () => {
    expect(await endOf(aggregate('nobody' as TenantId))).to.equal('not_found');
    const empty = 'empty' as TenantId;
    await world.addTenant(empty);
    expect(await aggregate(empty)).to.deep.equal([]);
    await world.change({ statusListConfig: { enableAggregation: false } }, empty);
    expect(await endOf(aggregate(empty))).to.equal('not_found');
  });
});
