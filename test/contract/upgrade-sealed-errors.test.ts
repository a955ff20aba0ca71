import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { expect } from 'chai';
import { connect } from '../../adapters/persistence/orm/database.ts';
import { databases, rawSql, type TestDatabase } from '../support/databases.ts';
import { populate } from '../support/populated.ts';
import { startTestService, type TestService } from '../support/test-service.ts';

const BEFORE = 'Migration00000000000006_removed_clients';
const NAME = 'Wilhelmina Unmistakable';
const PLAIN = `no record of ${NAME}. `.repeat(25);

for (const kind of databases()) {
  describe(`A database with plain errors of deferred transactions, on ${kind.name}`, function () {
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

    it('forgets them, and shows the transactions without', async () => {
      const url = database?.url ?? '';
      const older = await startTestService({ DATABASE_URL: url });
      const { token, ids } = await populate(older, 'acme');
      const path = `/issuer/deferred/${ids.deferred}`;
      const json = { errorMessage: 'nobody' };
      expect((await older.call('POST', `${path}/fail`, { token, json })).status).to.equal(200);
      await older.close();
      const orm = await connect({ url, poolSize: 2 }, 'migrate');
      await orm.migrator.down({ to: BEFORE });
      await orm.close();
      await rawSql(url, (run) => run(`update deferred_transactions set error_message = '${PLAIN}'`));

      service = await startTestService({ DATABASE_URL: url });
      const answer = await service.call('GET', path, { token });
      expect(answer.status, answer.text).to.equal(200);
      expect(answer.body).to.include({ status: 'failed' }).and.to.not.have.property('errorMessage');
      expect((await service.call('GET', '/issuer/deferred', { token })).status).to.equal(200);
      const select = 'select count(*) as plain from deferred_transactions where error_message is not null';
      expect(Number((await rawSql(url, (run) => run(select)))[0]?.['plain'])).to.equal(0);
      if (kind.name !== 'sqlite') return;
      await service.close();
      service = undefined;
      const file = url.slice('sqlite:'.length);
      const files = readdirSync(dirname(file)).filter((name) => name.startsWith(basename(file)));
      const bytes = Buffer.concat(files.map((name) => readFileSync(join(dirname(file), name))));
      expect(bytes.includes(ids.deferred), 'this is the right file').to.equal(true);
      expect(bytes.includes(NAME)).to.equal(false);
    });
  });
}
