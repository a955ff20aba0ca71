import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import type { MasterCipher } from '../../../adapters/crypto/cipher.ts';
import { OrmStore } from '../../../adapters/persistence/orm-store.ts';
import type { CleanUpCursor } from '../../../application/ports/maintenance.ts';
import type { Store } from '../../../application/ports/store.ts';
import { MOVES } from '../../../domain/sessions/session.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { type DatabaseKind, rawSql } from '../../support/databases.ts';
import { aConfiguration, addList, addTenant, aGrant, aKeyChain, aSession, aUse, failureOf, NOW } from './builders.ts';
import { sessionOpening, stepsOf } from './steps.ts';

const SECRET = 'Xenophilius-Lovegood';
const TABLES = ['credential_configurations', 'key_chains', 'sessions', 'status_lists'];

/** Tests that need a real database. */
export function describeDatabase(kind: DatabaseKind, open: () => { store: Store; url: string; cipher: MasterCipher }): void {
  describe('data at rest', () => {
    let store: Store;
    let url: string;
    let tenantId: TenantId;
    beforeEach(async () => {
      ({ store, url } = open());
      tenantId = await addTenant(store);
    });
    const isRejected = (work: Promise<unknown>) =>
      work.then(
        () => false,
        () => true,
      );

    it('claims, outcomes, configurations and keys cannot be read', async () => {
      const secret = Buffer.from(SECRET.padEnd(32, '!'));
      await stepsOf(store, tenantId).commit(
        sessionOpening(
          aSession(tenantId, {
            request: {
              kind: 'issuance',
              offerRequest: { family_name: SECRET },
              offer: {},
              offerUrl: SECRET,
              credentialClaims: { diploma: { type: 'inline', claims: { family_name: SECRET } } },
            },
          }),
        ),
      );
      const answeredSession = aSession(tenantId, { request: null });
      await stepsOf(store, tenantId).commit(sessionOpening(answeredSession));
      await stepsOf(store, tenantId).recordOutcome(answeredSession, 'complete', { redirectUri: SECRET }, NOW);
      await addList(store, tenantId, { secret });
      await store.forTenant(
        tenantId,
        async (repositories) => {
          await repositories.credentialConfigurations.put(aConfiguration('one', { claims: { family_name: SECRET } }));
          await repositories.keyChains.add({ ...aKeyChain(tenantId, 'one'), description: SECRET });
        },
        { by: 'system' },
      );
      const forbiddenValues = [SECRET, secret.toString('base64'), secret.toString('base64url'), secret.toString('hex')];
      for (const bytes of await readAllStoredData(kind, url)) {
        for (const needle of forbiddenValues) expect(bytes.includes(needle)).to.equal(false);
      }
    });

    if (kind.name === 'postgres') {
      it('an updated session stays on its page, so that no index gets an additional entry', async () => {
        const sessions = Array.from({ length: 60 }, () => aSession(tenantId));
        for (const session of sessions) await stepsOf(store, tenantId).commit(sessionOpening(session));
        const pages = () =>
          rawSql(url, (run) => run(`select id, (ctid::text::point)[0] as page from sessions where tenant_id = '${tenantId}'`));
        const before = new Map((await pages()).map(({ id, page }) => [id, page]));
        // One statement updates all sessions, so that none can use the space that another one freed.
        const ids = sessions.map(({ id }) => id);
        expect(await store.note(tenantId, ids, MOVES.fetch, NOW)).to.have.lengthOf(60);
        const unmovedRows = (await pages()).filter(({ id, page }) => before.get(id) === page);
        expect(unmovedRows.length).to.be.at.least(30);
      });
    }

    it('a session that was copied to another row cannot be decrypted', async () => {
      const steps = stepsOf(store, tenantId);
      const [one, two] = [aSession(tenantId), aSession(tenantId)];
      await steps.commit(sessionOpening(one));
      await steps.commit(sessionOpening(two));
      await steps.recordOutcome(two, 'complete', { redirectUri: SECRET }, NOW);
      await rawSql(url, async (run) => {
        const ofTenant = `tenant_id = '${tenantId}'`;
        const requestOfOther = `(select request from sessions where ${ofTenant} and id = '${two.id}')`;
        await run(`update sessions set request = ${requestOfOther} where ${ofTenant} and id = '${one.id}'`);
        await run(`update sessions set outcome = request where ${ofTenant} and id = '${two.id}'`);
      });
      expect(await isRejected(steps.session(one.id))).to.equal(true);
      expect(await isRejected(steps.session(two.id))).to.equal(true);
    });

    it('a document that was copied to another id, table or tenant cannot be decrypted', async () => {
      const otherTenant = await addTenant(store);
      for (const owner of [tenantId, otherTenant]) {
        await store.forTenant(
          owner,
          async (repositories) => {
            await repositories.credentialConfigurations.put(aConfiguration('one'));
            await repositories.credentialConfigurations.put(aConfiguration('two'));
            await repositories.keyChains.add(aKeyChain(owner, 'one'));
          },
          { by: 'system' },
        );
      }
      await rawSql(url, async (run) => {
        const whereRow = (owner: string, id: string) => `where tenant_id = '${owner}' and id = '${id}'`;
        const set = async (table: string, id: string, owner: string) => {
          const [row] = await run(`select body from credential_configurations ${whereRow(owner, 'one')}`);
          await run(`update ${table} set body = '${row?.['body']}' ${whereRow(tenantId, id)}`);
        };
        await set('credential_configurations', 'two', tenantId);
        await set('key_chains', 'one', tenantId);
        await set('credential_configurations', 'one', otherTenant);
      });
      for (const id of ['one', 'two']) {
        const readConfiguration = store.forTenant(tenantId, (repositories) => repositories.credentialConfigurations.get(id));
        expect(await isRejected(readConfiguration)).to.equal(true);
      }
      expect(await isRejected(store.forTenant(tenantId, (repositories) => repositories.keyChains.get('one')))).to.equal(true);
    });

    for (const mode of ['full', 'anonymize'] as const) {
      it(`a session that was cleaned up (${mode}) leaves no personal value`, async () => {
        const expiry = new Date('2019-01-01T00:00:00Z');
        const ownTenant = await addTenant(store, { sessionConfig: { ttlSeconds: 60, cleanupMode: mode } });
        const session = aSession(ownTenant, { createdAt: expiry, expiresAt: expiry });
        await stepsOf(store, ownTenant).commit(sessionOpening(session, aGrant(session)));
        await stepsOf(store, ownTenant).recordOutcome(session, 'fail', { redirectUri: SECRET }, expiry);
        const afterwards = new Date('2019-01-02T00:00:00Z');
        let cursor: CleanUpCursor | undefined;
        do {
          ({ next: cursor } = await store.maintenance.cleanUpSessions(afterwards, 100, { ttlSeconds: 86_400 }, cursor));
        } while (cursor !== undefined);
        await rawSql(url, async (run) => {
          const rows = (table: string) => run(`select * from ${table} where tenant_id = '${ownTenant}'`);
          const sessions = await rows('sessions');
          expect(sessions).to.have.length(mode === 'full' ? 0 : 1);
          for (const row of sessions) expect(row).to.include({ request: null, outcome: null });
          expect(await rows('session_events')).to.have.length(mode === 'full' ? 0 : 2);
          expect(await rows('grants')).to.have.length(0);
        });
      });
    }

    it('a removed tenant leaves no row in any table', async () => {
      await stepsOf(store, tenantId).commit(sessionOpening(aSession(tenantId)));
      await addList(store, tenantId);
      await store.forService(({ tenants }) => tenants.remove(tenantId), { by: 'system' });
      while ((await store.maintenance.removeRemainingRows(NOW, 500)) > 0);
      await rawSql(url, async (run) => {
        for (const table of [...TABLES, 'session_events', 'grants', 'used_values', 'issued_batches']) {
          const rows = await run(`select 1 from ${table} where tenant_id = '${tenantId}'`);
          expect(rows, table).to.have.length(0);
        }
      });
    });
  });

  it('a kind of resource of a later release can be written for an earlier tenant', async () => {
    const { store, url } = open();
    const tenantId = await addTenant(store);
    await rawSql(url, (run) => run(`update tenants set revisions = '{"all":7}' where id = '${tenantId}'`));
    const before = await stepsOf(store, tenantId).state();
    const write = () => store.forTenant(tenantId, ({ credentialConfigurations: all }) => all.put(aConfiguration('card')), { by: 'system' });
    for (const revision of [1, 2]) {
      await write();
      expect((await stepsOf(store, tenantId).state())?.revisions).to.deep.equal({ ...before?.revisions, credentials: revision });
    }
  });

  describe('opening the database', () => {
    it('keeps the rows of an up-to-date database', async () => {
      const { store, url, cipher } = open();
      const tenantId = await addTenant(store);
      const second = await OrmStore.open({ url, poolSize: 2 }, cipher);
      expect((await stepsOf(second, tenantId).state())?.id).to.equal(tenantId);
      await second.close();
    });

    // SQLite supports one process only.
    if (kind.name === 'postgres') {
      it('migrates an empty database once when several processes open it at once', async function () {
        const database = await kind.openEmpty();
        if (database === undefined) return this.skip();
        const { cipher } = open();
        try {
          const stores = await Promise.all([1, 2, 3, 4].map((poolSize) => OrmStore.open({ url: database.url, poolSize }, cipher)));
          for (const store of stores) await store.ping();
          for (const store of stores) await store.close();
          const migrations = await rawSql(database.url, (run) => run('select name from schema_migrations'));
          expect(new Set(migrations.map(({ name }) => name)).size).to.equal(migrations.length);
        } finally {
          await database.drop();
        }
      });
    }

    if (kind.name === 'postgres') {
      it('opens no new connection for a rejected change', async () => {
        const { cipher } = open();
        // A separate database without other connections.
        const database = await kind.open();
        if (database === undefined) throw new Error('the kind was open a moment ago');
        const { url } = database;
        const store = await OrmStore.open({ url, poolSize: 2 }, cipher);
        try {
          const steps = stepsOf(store, await addTenant(store));
          const consumedValue = aUse();
          await steps.commit({ uses: [consumedValue] });
          const connections = () =>
            rawSql(url, (run) =>
              run(`select pid from pg_stat_activity where datname = current_database()
                and backend_type = 'client backend' and application_name not like 'citus%' and pid <> pg_backend_pid() order by pid`),
            );
          const before = await connections();
          expect(before).to.have.lengthOf.within(1, 2);
          for (let round = 0; round < 10; round++) expect(await steps.commit({ uses: [consumedValue] })).to.include({ done: false });
          expect(await connections()).to.deep.equal(before);
        } finally {
          await store.close();
          await database.drop();
        }
      });
    }

    it('fails when the database cannot be reached', async () => {
      const { cipher } = open();
      const url = kind.name === 'sqlite' ? 'sqlite:/dev/null/x' : 'postgres://postgres@127.0.0.1:1/none';
      expect(await failureOf(OrmStore.open({ url, poolSize: 2 }, cipher))).to.not.equal('nothing failed');
    });
  });
}

/** The contents of the files of SQLite, or the rows of PostgreSQL as text. */
async function readAllStoredData(kind: DatabaseKind, url: string): Promise<(Buffer | string)[]> {
  if (kind.name === 'sqlite') {
    const file = url.slice('sqlite:'.length);
    return [readFileSync(file), readFileSync(`${file}-wal`)];
  }
  return rawSql(url, (run) => Promise.all(TABLES.map(async (table) => JSON.stringify(await run(`select * from ${table}`)))));
}
