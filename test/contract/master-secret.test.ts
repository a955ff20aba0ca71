import { expect } from 'chai';
import { MasterCipher } from '../../adapters/crypto/cipher.ts';
import { OrmStore } from '../../adapters/persistence/orm-store.ts';
import { databases, type TestDatabase } from '../support/databases.ts';
import { addTenant, aKeyChain } from './store/builders.ts';

const FORMER = 'the secret that sealed everything so far';
const OTHER = 'a secret that this database never saw';

for (const kind of databases()) {
  describe(`A database on ${kind.name} under another master secret`, () => {
    let database: TestDatabase | undefined;
    const open = (...masterSecrets: string[]) =>
      OrmStore.open({ url: database?.url ?? '', poolSize: 2 }, new MasterCipher({ masterSecrets }));
    before(async function () {
      database = await kind.open();
      if (database === undefined) return this.skip();
      const store = await open(FORMER);
      const tenantId = await addTenant(store);
      await store.forTenant(tenantId, (own) => own.keyChains.add(aKeyChain(tenantId, 'one')), {
        by: 'system',
      });
      await store.close();
    });
    after(() => database?.drop());

    it('is not opened, with a word on what to do', async () => {
      const refusal = await open(OTHER).then(
        () => undefined,
        (error: unknown) => error as Error,
      );
      expect(refusal?.message).to.match(/MASTER_SECRET is not the one.*list every former one behind it/);
    });

    it('does not need one with which somebody only read', async () => {
      const cipher = new MasterCipher({ masterSecrets: [OTHER, FORMER] });
      const reading = { url: database?.url ?? '', poolSize: 2, migrates: false };
      await (await OrmStore.open(reading, cipher)).close();
      await (await open(FORMER)).close();
    });

    it('is opened as long as the former one is listed', async () => {
      await (await open(FORMER)).close();
      await (await open(OTHER, FORMER)).close();
      await (await open(FORMER, OTHER)).close();
    });

    it('is not opened without one that sealed something meanwhile', async () => {
      for (const lacking of [FORMER, OTHER]) {
        const refusal = await open(lacking).then(
          () => undefined,
          (error: unknown) => error as Error,
        );
        expect(refusal?.message).to.match(/or not all of those that did/);
      }
    });
  });
}
