import { expect } from 'chai';
import { MasterCipher } from '../../adapters/crypto/cipher.ts';
import { OrmStore } from '../../adapters/persistence/orm-store.ts';
import { databases, rawSql, type TestDatabase } from '../support/databases.ts';
import { createTenant, MASTER_SECRET, startTestService, type TestService } from '../support/test-service.ts';

const CLIENT = { clientId: 'shop', secret: 'a-secret-of-sixteen-letters', roles: ['issuance:offer'] };

for (const kind of databases()) {
  describe(`rights of clients in a database on ${kind.name}`, () => {
    let database: TestDatabase;
    let service: TestService;
    let admin: string;

    before(async function () {
      const opened = await kind.open();
      if (opened === undefined) return this.skip();
      database = opened;
    });
    beforeEach(async () => {
      service = await startTestService({ DATABASE_URL: database.url });
      const id = `acme-${Math.random().toString(36).slice(2)}`;
      admin = (await createTenant(service, id)).token;
      const made = await service.call('POST', '/client', { token: admin, json: CLIENT });
      expect(made.status, made.text).to.equal(201);
    });
    afterEach(async () => {
      await write(`delete from clients where client_id <> ''`);
      await service?.close();
    });
    after(() => database?.drop());

    const write = (text: string) => rawSql(database.url, (run) => run(text));
    const login = async (secret = CLIENT.secret) => {
      const json = { grant_type: 'client_credentials', client_id: CLIENT.clientId, client_secret: secret };
      const answer = await service.call('POST', '/oauth2/token', { json });
      return { status: answer.status, token: answer.body.access_token as string | undefined };
    };
    const again = async () => {
      await service.close();
      service = await startTestService({ DATABASE_URL: database.url });
    };
    const forged = async () => {
      const cipher = new MasterCipher({ masterSecrets: [MASTER_SECRET] });
      const store = await OrmStore.open({ url: database.url, poolSize: 2, migrates: false }, cipher);
      try {
        return await store.forgedClients();
      } finally {
        await store.close();
      }
    };

    it('are those that the service wrote, also after each change and a restart', async () => {
      expect((await login()).status).to.equal(200);
      const changed = await service.call('PATCH', `/client/${CLIENT.clientId}`, {
        token: admin,
        json: { roles: ['issuance:offer', 'presentation:request'], allowedIssuanceConfigs: ['a', 'b'] },
      });
      expect(changed.status, changed.text).to.equal(200);
      const rotated = await service.call('POST', `/client/${CLIENT.clientId}/rotate-secret`, {
        token: admin,
      });
      expect((await login(rotated.body.secret)).status).to.equal(200);
      await again();
      expect((await login(rotated.body.secret)).status).to.equal(200);
      expect(await forged()).to.deep.equal([]);
    });

    for (const [what, change] of [
      ['more roles', `roles = '["clients:manage","issuance:manage"]'`],
      ['another tenant', `tenant_id = 'other'`],
      ['fewer restrictions', `allowed_issuance_configs = '["b"]'`],
      [
        'another secret hash',
        `secret_hash = (select secret_hash from clients where client_id <> 'shop' limit 1)`,
      ],
      ['an older secret revision', `secret_revision = secret_revision + 1`],
      ['more time for a former secret', `former_secret_until = 9999999999999`],
      ['no code', `mac = null`],
      ['the code of another client', `mac = (select mac from clients where client_id <> 'shop' limit 1)`],
    ] as const) {
      it(`with ${what} written by something else are those of no client`, async () => {
        const { token } = await login();
        await again();
        await write(`update clients set ${change} where client_id = 'shop'`);
        await again();
        expect((await login()).status).to.equal(401);
        expect((await service.call('GET', '/session', { token: token ?? '' })).status).to.equal(401);
        const listed = await service.call('GET', '/client', { token: admin });
        expect(listed.body.map(({ clientId }: { clientId: string }) => clientId)).to.not.include('shop');
        expect(await forged()).to.deep.equal(['shop']);
      });
    }

    it('are not adopted anew when the marker and the code of a client are removed', async () => {
      await write(`delete from client_mac_markers`);
      await write(`update clients set mac = null, roles = '["clients:manage"]' where client_id = 'shop'`);
      await again();
      expect((await login()).status).to.equal(401);
    });
  });
}
