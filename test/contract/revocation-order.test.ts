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
    /** A revocation of another process, which the test commits later. */
    let otherProcess: Awaited<ReturnType<typeof openRaw>>;
    const [ada, bob] = [randomUUID(), randomUUID()];

    beforeEach(async function () {
      database = await open();
      if (database === undefined) return this.skip();
      store = await OrmStore.open({ url: database.url, poolSize: 4 }, cipher);
      tenantId = await addTenant(store);
      ({ session } = await openOffer(store, tenantId));
      otherProcess = await openRaw(database.url);
    });
    afterEach(async () => {
      await otherProcess.close();
      await store.close();
      await database?.drop();
    });
    const revokeInOtherProcess = (tenant = tenantId) =>
      otherProcess.run(`select note_revoked_subject_1('${tenant}', '${ada}', array[''], ${NOW.getTime()})`);
    const revokeSubjects = (...fingerprints: string[]) => store.maintenance.noteRevoked(tenantId, fingerprints, undefined, NOW);
    const authorize = async () => {
      const grant = aGrant(session);
      expect((await store.commit(tenantId, { opens: { grant } }, NOW)).done).to.equal(true);
      return grant.id;
    };
    const issue = async (fingerprint: string, grantId: string) => {
      const batch = aBatch(session, { id: randomUUID(), credentialConfigurationId: 'card' });
      const entry = { fingerprint, batch, endsAt: null, grantId, authorizedAt: NOW };
      return (await store.commit(tenantId, { issued: batch, identifies: entry }, NOW)).done;
    };
    /** Waits until the other revocation has finished or waits for a lock. */
    const waitUntilDoneOrLocked = async (revocation: Promise<void>) => {
      let isDone = false;
      const markDone = () => {
        isDone = true;
      };
      revocation.then(markDone, markDone);
      const observer = await openRaw(database?.url ?? '');
      try {
        const isWaiting = async () =>
          (
            await observer.run(
              `select 1 from pg_locks l join pg_database d on d.oid = l.database
               where l.locktype = 'advisory' and not l.granted and d.datname = current_database()`,
            )
          ).length > 0;
        while (!isDone && !(await isWaiting()));
      } finally {
        await observer.close();
      }
    };

    for (const isOtherRevoked of [false, true])
      it(`reject a wallet that is authorized while its subject is being revoked, ${isOtherRevoked ? 'also when another subject is revoked concurrently' : 'alone'}`, async () => {
        await otherProcess.run('begin');
        await revokeInOtherProcess();
        const otherRevocation = isOtherRevoked ? revokeSubjects(bob) : Promise.resolve();
        await waitUntilDoneOrLocked(otherRevocation);
        const grantId = await authorize();
        await otherProcess.run('commit');
        await otherRevocation;
        expect(await issue(ada, grantId), 'to the revoked subject').to.equal(false);
        expect(await issue(bob, grantId), 'to the other subject').to.equal(!isOtherRevoked);
        expect(await issue(ada, await authorize()), 'by a later authorization').to.equal(true);
      });

    it('number the revocations of several subjects that are revoked in opposite order at once', async () => {
      const subjects = Array.from({ length: 12 }, () => randomUUID());
      await Promise.all([revokeSubjects(...subjects), revokeSubjects(...subjects.toReversed())]);
      const numbers = await otherProcess.run('select number from revoked_subjects');
      expect(new Set(numbers.map(({ number }) => number)).size).to.equal(subjects.length);
      const grantId = await authorize();
      for (const person of subjects) expect(await issue(person, grantId)).to.equal(true);
    });

    it('do not wait for revocations of another tenant', async () => {
      const otherTenant = await addTenant(store);
      await otherProcess.run('begin');
      await revokeInOtherProcess(otherTenant);
      await revokeSubjects(bob);
      expect(await issue(bob, await authorize())).to.equal(true);
      await otherProcess.run('rollback');
    });

    it('issue a credential to another subject while a revocation is in progress', async () => {
      await otherProcess.run('begin');
      await revokeInOtherProcess();
      expect(await issue(bob, await authorize())).to.equal(true);
      await otherProcess.run('commit');
    });
  });
}
