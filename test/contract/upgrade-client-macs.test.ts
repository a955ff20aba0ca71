import { expect } from 'chai';
import { rawSql } from '../support/databases.ts';
import { createTenant, type TestService } from '../support/test-service.ts';
import { describeUpgrade } from '../support/upgrade.ts';

const BEFORE = 'Migration00000000000025_pending_deliveries';
const CLIENTS = ['one', 'two', 'three'].map((clientId) => ({
  ...{ clientId, secret: `secret-of-${clientId}-0123456789`, roles: ['issuance:offer'] },
}));

describeUpgrade('A database from before clients had codes', (upgrade, kind) => {
  it('gives each client its code at the first start, and none to a row that is changed later', async () => {
    const { url, start, goBack } = upgrade();
    const older = await start();
    const { token } = await createTenant(older, 'acme');
    for (const json of CLIENTS) {
      expect((await older.call('POST', '/client', { token, json })).status).to.equal(201);
    }
    await older.close();
    await goBack(BEFORE);

    const first = await start();
    const logins = async (service: TestService) => {
      const answers = CLIENTS.map(({ clientId, secret }) =>
        service.call('POST', '/oauth2/token', {
          json: { grant_type: 'client_credentials', client_id: clientId, client_secret: secret },
        }),
      );
      return (await Promise.all(answers)).map(({ status }) => status);
    };
    expect(await logins(first)).to.deep.equal([200, 200, 200]);
    await first.close();
    await rawSql(url, async (run) => {
      await run(`update clients set roles = '["clients:manage"]' where client_id = 'one'`);
      await run(`update clients set mac = null where client_id = 'two'`);
      // As a process of the release before writes it.
      await run(`update clients set description = 'x', roles = '["issuance:manage"]', version = version + 1,
        updated_at = ${Date.now()} where client_id = 'three'`);
    });
    const isRolling = kind === 'postgres';
    expect(await logins(await start())).to.deep.equal([401, 401, isRolling ? 200 : 401]);
  });
});
