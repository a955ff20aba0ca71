import { expect } from 'chai';
import { Store } from '../../application/ports/store.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { createTenant } from '../support/test-service.ts';
import { describeUpgrade } from '../support/upgrade.ts';

const BEFORE = 'Migration00000000000005_sealing_keys';

describeUpgrade('A database from before removed clients were remembered', (upgrade) => {
  it('learns from the audit log who was removed', async () => {
    const { start, goBack } = upgrade();
    const older = await start();
    const { token } = await createTenant(older, 'acme');
    const call = async (method: string, path: string, json?: object) => {
      const answer = await older.call(method, path, { token, ...(json === undefined ? {} : { json }) });
      expect(answer.status, answer.text).to.be.oneOf([200, 201]);
    };
    for (const clientId of ['gone', 'back']) {
      await call('POST', '/client', { clientId, roles: ['issuance:offer'] });
      await call('DELETE', `/client/${clientId}`);
      await call('POST', '/client', { clientId, roles: ['issuance:offer'] });
      if (clientId === 'gone') await call('DELETE', `/client/${clientId}`);
    }
    await older.close();
    await goBack(BEFORE);

    const { container } = (await start()).service;
    const removed = (clientId: string) =>
      container.get(Store).forService(({ clients }) => clients.isRemoved('acme' as TenantId, clientId));
    expect(await Promise.all(['gone', 'back', 'never'].map(removed))).to.deep.equal([true, false, false]);
  });
});
