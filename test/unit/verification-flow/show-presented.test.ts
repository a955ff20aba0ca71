import { expect } from 'chai';
import { ShowPresented } from '../../../application/verification/show-presented.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { failureOf, WalletWorld } from '../wallet-kit.ts';
import { ACME } from './kit.ts';

describe('The page after a presentation', () => {
  it('is that of tenants who serve wallets', async () => {
    const world = await WalletWorld.open();
    const page = new ShowPresented(world);
    await page.execute(ACME);
    expect(await failureOf(page.execute('nobody' as TenantId))).to.have.property('code', 'not_found');
  });

  it('is not there for a tenant that was suspended, which looks like one that never was', async () => {
    const world = await WalletWorld.open();
    await world.store.forTenant(
      ACME,
      async ({ tenant }) => tenant.save({ ...(await tenant.get()), status: 'suspended' }),
      { by: 'system' },
    );
    const page = new ShowPresented(world);
    expect(await failureOf(page.execute(ACME))).to.have.property('code', 'not_found');
  });
});
