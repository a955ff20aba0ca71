import { expect } from 'chai';
import { databases, type TestDatabase } from '../support/databases.ts';
import { Shop } from '../support/present.ts';
import { runProcess } from '../support/run-command.ts';
import { startTestService } from '../support/test-service.ts';

const KMS_CONFIG = JSON.stringify({
  providers: { local: { type: 'local' }, house: { type: 'local' } },
});
const MASTER_SECRET = 'a master secret for the tests 0123456789';

for (const kind of databases()) {
  describe(`moving the keys of a tenant to another provider on ${kind.name}`, () => {
    let database: TestDatabase;
    let shop: Shop;
    let environment: Record<string, string>;

    before(async function () {
      const opened = await kind.open();
      if (opened === undefined) return this.skip();
      database = opened;
      environment = { DATABASE_URL: database.url, KMS_CONFIG, MASTER_SECRET };
      shop = await Shop.open({}, () => startTestService(environment));
    });
    after(async () => {
      await shop?.close();
      await database?.drop();
    });

    const migrate = (more: Record<string, string> = {}, ...args: string[]) =>
      runProcess('commands/kms-migrate', args.length > 0 ? args : ['acme', 'house'], {
        ...environment,
        PUBLIC_URL: shop.service.address,
        ...more,
      });
    const chains = async () =>
      (await shop.call('GET', '/key-chain', undefined, shop.acme.token)).body as {
        id: string;
        kmsProvider: string;
        rootCertificate: string;
        previousKeys: object[];
      }[];

    it('refuses what there is not, and settings that are not those of the service', async () => {
      const unknown = await migrate({}, 'nobody', 'house');
      expect([unknown.code, unknown.stderr]).to.satisfy(
        ([code, text]: [number, string]) => code === 1 && /there is no tenant|not found|no such/i.test(text),
      );
      const provider = await migrate({}, 'acme', 'vault');
      expect(provider.stderr).to.match(/no provider named "vault"/);
      const elsewhere = await migrate({ PUBLIC_URL: 'https://other.example' });
      expect(elsewhere.stderr).to.match(/PUBLIC_URL: is other.example here/);
      expect((await chains()).every(({ kmsProvider }) => kmsProvider === 'local')).to.equal(true);
    });

    it('refuses nothing that was valid, while wallets come and go', async () => {
      const before = await chains();
      await shop.configure({ id: 'asked' });
      const held = await shop.issue('card');
      let isOver = false;
      const done: string[] = [];
      const load = (async () => {
        while (!isOver) {
          const fresh = await shop.issue('card');
          for (const credential of [held, fresh]) {
            const answer = await shop.present(await shop.ask('asked'), credential);
            done.push(`${answer.status}`);
          }
        }
      })();
      const ended = await migrate();
      isOver = true;
      await load;
      expect(ended.code, ended.stdout + ended.stderr).to.equal(0);
      expect(new Set(done)).to.deep.equal(new Set(['200']));

      const after = await chains();
      expect(after.map(({ kmsProvider }) => kmsProvider)).to.deep.equal(after.map(() => 'house'));
      expect(after.map(({ rootCertificate }) => rootCertificate)).to.deep.equal(
        before.map(({ rootCertificate }) => rootCertificate),
      );
      expect(after.every(({ previousKeys }) => previousKeys.length === 1)).to.equal(true);
      const own = await shop.call('GET', '/key-chain/providers', undefined, shop.acme.token);
      expect(own.body.find((provider: { own: boolean }) => provider.own).name).to.equal('house');
    });

    it('changes nothing the second time', async () => {
      const before = await chains();
      const ended = await migrate();
      expect(ended.code, ended.stderr).to.equal(0);
      expect(ended.stdout).to.match(/signing: is at house/);
      expect(await chains()).to.deep.equal(before);
    });
  });
}
