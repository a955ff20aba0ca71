import { expect } from 'chai';
import { connect } from '../../adapters/persistence/orm/database.ts';
import { Store } from '../../application/ports/store.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { databases, type TestDatabase } from '../support/databases.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

const BEFORE = 'Migration00000000000005_sealing_keys';

for (const kind of databases()) {
  describe(`A database from before removed clients were remembered, on ${kind.name}`, function () {
    this.timeout(60_000);
    let database: TestDatabase | undefined;
    let service: TestService | undefined;

    before(async function () {
      database = await kind.open();
      if (database === undefined) return this.skip();
    });
    after(async () => {
      await service?.close();
      await database?.drop();
    });

    it('learns from the audit log who was removed', async () => {
      const url = database?.url ?? '';
      const older = await startTestService({ DATABASE_URL: url });
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
      const orm = await connect({ url, poolSize: 2 }, 'migrate');
      await orm.migrator.down({ to: BEFORE });
      await orm.close();

      service = await startTestService({ DATABASE_URL: url });
      const { container } = service.service;
      const removed = (clientId: string) =>
        container.get(Store).forService(({ clients }) => clients.isRemoved('acme' as TenantId, clientId));
      expect(await Promise.all(['gone', 'back', 'never'].map(removed))).to.deep.equal([true, false, false]);
    });
  });
}
