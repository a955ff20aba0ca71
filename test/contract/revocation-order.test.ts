import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { MasterCipher } from '../../adapters/crypto/cipher.ts';
import { OrmStore } from '../../adapters/persistence/orm-store.ts';
import type { Session } from '../../domain/sessions/session.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { databases, openRaw, type TestDatabase } from '../support/databases.ts';
import { aBatch, addTenant, aGrant, NOW, openOffer } from './store/builders.ts';

const cipher = new MasterCipher({ masterSecrets: ['a master secret of decent length'] });

for (const { name, open } of databases().filter((kind) => kind.name === 'postgres')) {
  describe(`simultaneous revocations and authorizations on ${name}`, () => {
    let database: TestDatabase | undefined;
    let store: OrmStore;
    let tenantId: TenantId;
    let session: Session;
    /** A revocation of another process, which is committed when the test says so. */
    let slow: Awaited<ReturnType<typeof openRaw>>;
    const [ada, bob] = [randomUUID(), randomUUID()];

    beforeEach(async function () {
      database = await open();
      if (database === undefined) return this.skip();
      store = await OrmStore.open({ url: database.url, poolSize: 4 }, cipher);
      tenantId = await addTenant(store);
      ({ session } = await openOffer(store, tenantId));
      slow = await openRaw(database.url);
    });
    afterEach(async () => {
      await slow.close();
      await store.close();
      await database?.drop();
    });
    const noteSlowly = (tenant = tenantId) => slow.run(`select note_revoked_subject_1('${tenant}', '${ada}', array[''], ${NOW.getTime()})`);
    const noteRevoked = (...fingerprints: string[]) => store.maintenance.noteRevoked(tenantId, fingerprints, undefined, NOW);
    const authorize = async () => {
      const grant = aGrant(session);
      expect((await store.commit(tenantId, { opens: { grant } }, NOW)).done).to.equal(true);
      return grant.id;
    };
    const issue = async (fingerprint: string, grantId: string) => {
      const batch = aBatch(session, { id: randomUUID(), credentialConfigurationId: 'card' });
      const identifies = { fingerprint, batch, endsAt: null, grantId, authorizedAt: NOW };
      return (await store.commit(tenantId, { issued: batch, identifies }, NOW)).done;
    };
    /** Until the other revocation has ended or waits for a lock. */
    const endedOrWaiting = async (revocation: Promise<void>) => {
      let hasEnded = false;
      const end = () => {
        hasEnded = true;
      };
      revocation.then(end, end);
      const observer = await openRaw(database?.url ?? '');
      try {
        const isWaiting = async () =>
          (
            await observer.run(
              `select 1 from pg_locks l join pg_database d on d.oid = l.database
               where l.locktype = 'advisory' and not l.granted and d.datname = current_database()`,
            )
          ).length > 0;
        while (!hasEnded && !(await isWaiting()));
      } finally {
        await observer.close();
      }
    };

    for (const isOtherRevoked of [false, true])
      it(`reject a wallet that is authorized while its subject is being revoked, ${isOtherRevoked ? 'also when another subject is revoked concurrently' : 'alone'}`, async () => {
        await slow.run('begin');
        await noteSlowly();
        const other = isOtherRevoked ? noteRevoked(bob) : Promise.resolve();
        await endedOrWaiting(other);
        const grantId = await authorize();
        await slow.run('commit');
        await other;
        expect(await issue(ada, grantId), 'to the revoked person').to.equal(false);
        expect(await issue(bob, grantId), 'to the other person').to.equal(!isOtherRevoked);
        expect(await issue(ada, await authorize()), 'by a later authorization').to.equal(true);
      });

    it('number the revocations of several subjects that are revoked in opposite order at once', async () => {
      const people = Array.from({ length: 12 }, () => randomUUID());
      await Promise.all([noteRevoked(...people), noteRevoked(...people.toReversed())]);
      const numbers = await slow.run('select number from revoked_subjects');
      expect(new Set(numbers.map(({ number }) => number)).size).to.equal(people.length);
      const grantId = await authorize();
      for (const person of people) expect(await issue(person, grantId)).to.equal(true);
    });

    it('do not wait for revocations of another tenant', async () => {
      const other = await addTenant(store);
      await slow.run('begin');
      await noteSlowly(other);
      await noteRevoked(bob);
      expect(await issue(bob, await authorize())).to.equal(true);
      await slow.run('rollback');
    });

    it('issue a credential to another subject while a revocation is in progress', async () => {
      await slow.run('begin');
      await noteSlowly();
      expect(await issue(bob, await authorize())).to.equal(true);
      await slow.run('commit');
    });
  });
}
