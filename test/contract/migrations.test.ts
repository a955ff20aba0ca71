import { expect } from 'chai';
import { connect } from '../../adapters/persistence/database.ts';
import { databases, type TestDatabase } from '../support/databases.ts';

for (const kind of databases()) {
  describe(`The migrations for ${kind.name}`, () => {
    let database: TestDatabase | undefined;
    before(async function () {
      this.timeout(60_000);
      database = await kind.openEmpty();
      if (database === undefined) this.skip();
    });
    after(() => database?.drop());

    it('have everything that the rows have, by their snapshot', async () => {
      const orm = await connect({ url: database?.url ?? '', poolSize: 2 });
      try {
        expect(await orm.migrator.checkSchema()).to.equal(false);
      } finally {
        await orm.close();
      }
    });
  });
}
