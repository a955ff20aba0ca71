import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { databases, rawSql, type TestDatabase } from '../support/databases.ts';
import { runCommand, runProcess } from '../support/programs.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

const MASTER_SECRET = 'a master secret for the tests 0123456789';

/** Creates the database as the start of the service does. */
const OPEN = `
  import { MasterCipher } from '${new URL('../../adapters/crypto/cipher.ts', import.meta.url)}';
  import { OrmStore } from '${new URL('../../adapters/persistence/orm-store.ts', import.meta.url)}';
  const { MASTER_SECRET, DATABASE_URL: url } = process.env;
  const store = await OrmStore.open({ url, poolSize: 2 }, new MasterCipher({ masterSecrets: [MASTER_SECRET] }));
  await store.close();
`;

type Outcome = { readonly code: number; readonly lines: readonly string[]; readonly errors: string };

async function runVerify(
  url: string,
  parameters: readonly string[] = [],
  environment: Readonly<Record<string, string>> = {},
  run = runCommand,
): Promise<Outcome> {
  // Only the settings of the database and its secrets are used.
  const settings = { NODE_ENV: 'production', MASTER_SECRET, DATABASE_URL: url, ...environment };
  const { code, stdout, stderr } = await run('commands/audit-verify', parameters, settings);
  return { code, lines: stdout.split('\n').filter((line) => line !== ''), errors: stderr };
}

for (const kind of databases()) {
  describe(`npm run audit:verify on ${kind.name}`, () => {
    let database: TestDatabase | undefined;
    let service: TestService;
    let token: string;

    before(async function () {
      database = await kind.open();
      if (database === undefined) return this.skip();
      service = await startTestService({ DATABASE_URL: database.url });
      ({ token } = await createTenant(service, 'acme'));
      await createTenant(service, 'bravo');
    });
    after(async () => {
      await service?.close();
      await database?.drop();
    });

    /** Runs the command while the service continues. */
    const verify = (parameters: readonly string[] = [], environment: Readonly<Record<string, string>> = {}): Promise<Outcome> =>
      runVerify(database?.url ?? '', parameters, environment);
    const tamper = (text: string) => rawSql(database?.url ?? '', (run) => run(text));

    it('exits with 0 and prints the end of each chain, which it later accepts as an anchor', async () => {
      const { code, lines, errors } = await runVerify(database?.url ?? '', [], {}, runProcess);
      expect(code, errors).to.equal(0);
      expect(lines).to.have.length(3);
      expect(lines[0]).to.match(/^_service=\d+:\S+$/);
      expect(lines[1]).to.match(/^acme=7:\S+$/);
      expect(lines[2]).to.match(/^bravo=7:\S+$/);
      expect(errors).to.include('3 chains, all are intact');
      const created = await service.call('POST', '/key-chain', { token, json: { usageType: 'signing' } });
      expect(created.status).to.equal(201);
      const anchors = lines.flatMap((line) => ['--expect', line]);
      const laterRun = await verify(anchors);
      expect(laterRun.code, laterRun.errors).to.equal(0);
      expect(laterRun.lines[1]).to.match(/^acme=8:/);
      const wrongAnchorRun = await verify(['--expect', `acme=7:${lines[2]?.split(':')[1]}`]);
      expect([wrongAnchorRun.code, wrongAnchorRun.lines[1]]).to.deep.equal([
        1,
        'acme FAULT unexpected at 7: entry 7 differs from the expected entry',
      ]);
      const unknownTenantRun = await verify(['--expect', 'gone=7:hash']);
      expect([unknownTenantRun.code, unknownTenantRun.lines.at(-1)]).to.deep.equal([
        1,
        'gone FAULT removed at 1: the chain does not exist, but it had an entry 7',
      ]);
    });

    it('distinguishes another master secret from a tampered log', async () => {
      const { code, lines, errors } = await verify([], { MASTER_SECRET: 'another master secret 0123456789abcdef' });
      expect([code, lines]).to.deep.equal([1, []]);
      expect(errors).to.include('MASTER_SECRET is not the one that sealed this database');
    });

    it('does not create a missing database', async () => {
      const missingDatabaseRun = await verify([], { DATABASE_URL: 'sqlite:/nowhere/at-all.sqlite' });
      expect([missingDatabaseRun.code, missingDatabaseRun.errors]).to.deep.equal([
        1,
        'the audit log was not verified: there is no database /nowhere/at-all.sqlite\n',
      ]);
      const emptyDatabase = await kind.openEmpty();
      const emptyDatabaseRun = await verify([], { DATABASE_URL: emptyDatabase?.url ?? '' });
      await emptyDatabase?.drop();
      expect(emptyDatabaseRun.code).to.equal(1);
      expect(emptyDatabaseRun.errors).to.match(/the database is empty|there is no database/);
    });

    it('prints its usage and the fault of invalid arguments', async () => {
      const form = 'must be <chain>=<sequence>:<hash>, as this command prints it';
      for (const [args, fault] of [
        [['--expect'], "Option '--expect <value>' argument missing"],
        [['--expect', 'acme'], `--expect acme: ${form}`],
        [['--expect', 'acme=x:hash'], `--expect acme=x:hash: ${form}`],
        [['acme=7:hash'], "Unexpected argument 'acme=7:hash'"],
        [['--expected', 'acme=7:hash'], "Unknown option '--expected'"],
        [['--help'], undefined],
        [['-h'], undefined],
      ] as const) {
        const { code, errors, lines } = await verify(args);
        const usage = 'usage: npm run audit:verify -- [--expect <chain>=<sequence>:<hash>]…';
        const expectedErrors = [...(fault === undefined ? [] : [fault]), usage, ''];
        expect([code, lines, errors.split('\n')], args.join(' ')).to.deep.equal([2, [], expectedErrors]);
      }
    });

    it('names the places where it looked for a missing secret', async () => {
      const production = await verify([], { MASTER_SECRET: '' });
      expect([production.code, production.errors]).to.deep.equal([
        1,
        'the audit log was not verified: MASTER_SECRET: is missing; in production it must be set in the environment\n',
      ]);
      const otherSettings = { MASTER_SECRET: '', NODE_ENV: '', DATA_FOLDER: '/nowhere/data' };
      const { code, errors } = await verify([], otherSettings);
      expect(code).to.equal(1);
      expect(errors).to.include('MASTER_SECRET: is missing');
      expect(errors).to.include('there is no /nowhere/data/secrets.env');
      expect(errors).to.include('another DATA_FOLDER');
    });

    it('exits with 1 and names the first invalid entry in each chain', async () => {
      await tamper(`update audit_entries set actor = 'nobody' where tenant_id = 'acme' and sequence = 3`);
      await tamper(`delete from audit_entries where tenant_id = 'bravo' and sequence = 7`);
      const { code, lines, errors } = await verify();
      expect(code).to.equal(1);
      expect(lines[0]).to.match(/^_service=/);
      expect(lines.slice(1)).to.deep.equal([
        'acme FAULT altered at 3: entry 3 was altered or inserted, or an entry before it was removed',
        'bravo FAULT truncated at 7: entry 7 is missing at the end',
      ]);
      expect(errors).to.include('3 chains, 2 of them were tampered with');
    });
  });

  describe(`npm run audit:verify on ${kind.name} after the removal of whole chains`, () => {
    let database: TestDatabase;
    let service: TestService | undefined;

    beforeEach(async function () {
      const testDatabase = await kind.open();
      if (testDatabase === undefined) return this.skip();
      database = testDatabase;
      await start();
    });
    afterEach(async () => {
      await stop();
      await database?.drop();
    });

    const start = async () => {
      service = await startTestService({ DATABASE_URL: database.url });
      return service;
    };
    const stop = async () => {
      await service?.close();
      service = undefined;
    };
    const makeTenants = async (...ids: string[]) => {
      for (const id of ids) await createTenant(service as TestService, id);
    };
    const rename = async (id: string) => {
      const token = await (service as TestService).rootToken();
      const answer = await service?.call('PATCH', `/tenant/${id}`, { token, json: { name: 'Renamed' } });
      expect(answer?.status, answer?.text).to.equal(200);
    };
    const tamper = (...texts: string[]) =>
      rawSql(database.url, async (run) => {
        for (const text of texts) await run(text);
      });
    const deleteEntries = (condition = 'true') =>
      tamper(`delete from audit_entries where ${condition}`, `delete from audit_heads where ${condition}`);
    const verify = (...parameters: string[]) => runVerify(database.url, parameters);
    const beginnings = async () => {
      const token = await (service as TestService).rootToken();
      const { body } = await (service as TestService).call('GET', '/audit-log?action=begun', { token });
      return body as { sequence: number; actor: string; kind: string; changes: unknown }[];
    };

    it('finds the service log, which the first start begins once', async () => {
      const [serviceStart, ...otherStarts] = await beginnings();
      expect(otherStarts).to.deep.equal([]);
      expect(serviceStart).to.include({ sequence: 1, actor: 'system', kind: 'audit-log' });
      expect(serviceStart?.changes).to.deep.equal([{ member: 'tenants', after: 0 }]);
      await makeTenants('acme');
      await stop();
      await start();
      expect(await beginnings()).to.have.length(1);
      const { code, lines, errors } = await verify();
      expect([code, lines.length], errors).to.deep.equal([0, 2]);
      expect(errors).to.not.include('WARNING');
    });

    it('finds one service log that several processes began simultaneously', async () => {
      await stop();
      await deleteEntries();
      const starts = Array.from({ length: 4 }, () =>
        promisify(execFile)(process.execPath, ['--input-type=module', '--eval', OPEN], {
          env: { ...process.env, MASTER_SECRET, DATABASE_URL: database.url },
        }),
      );
      await Promise.all(starts);
      const { code, lines } = await verify();
      expect([code, lines[0]?.split(':')[0]]).to.deep.equal([0, '_service=1']);
    });

    const EMPTIED =
      '_service FAULT removed at 1: the log of the service is empty, although every start of the service writes to it: ' +
      'it was emptied, or no service of this release was started on this database yet';

    it('reports a missing chain of the service', async () => {
      await makeTenants('acme', 'bravo');
      await deleteEntries(`tenant_id = ''`);
      const { code, lines } = await verify();
      expect([code, lines[0], lines.length]).to.deep.equal([1, EMPTIED, 3]);
    });

    it('reports that all chains are missing, also without a tenant', async () => {
      await deleteEntries();
      expect(await verify()).to.deep.include({ code: 1, lines: [EMPTIED] });
      await makeTenants('acme');
      await stop();
      await deleteEntries();
      expect((await verify()).code).to.equal(1);
    });

    it('reports missing chains permanently after a running service continued to write', async () => {
      await makeTenants('acme');
      await deleteEntries();
      await rename('acme');
      await stop();
      await start();
      const { code, lines } = await verify();
      expect([code, lines[0]]).to.deep.equal([
        1,
        '_service FAULT noted at 1: before entry 1 the service found that all entries are missing',
      ]);
    });

    it('warns of a log that begins after the tenants, such as after a start on emptied chains', async () => {
      await makeTenants('acme', 'bravo');
      const storedAnchors = (await verify()).lines;
      await stop();
      await deleteEntries();
      await start();
      const { code, errors } = await verify();
      expect(code).to.equal(0);
      expect(errors).to.match(/^_service WARNING the log begins on \d{4}-\S+Z, when there were 2 tenants already\. .*the log was emptied/m);
      const [service_, acme] = storedAnchors.map((line) => ['--expect', line]);
      const expected = await verify(...(service_ ?? []), ...(acme ?? []));
      expect([expected.code, expected.errors.includes('WARNING')]).to.deep.equal([1, false]);
      expect(expected.lines.slice(0, 2).map((line) => line.split(' ').slice(0, 3).join(' '))).to.deep.equal([
        '_service FAULT truncated',
        'acme FAULT truncated',
      ]);
      await makeTenants('charlie');
      expect((await verify()).code).to.equal(0);
    });

    it('finds tenants that the new beginning lacks although their chains exist', async () => {
      await makeTenants('acme');
      await stop();
      await deleteEntries(`tenant_id = ''`);
      await start();
      const { code, lines, errors } = await verify();
      expect(code, errors).to.equal(1);
      expect(lines[1]).to.equal(
        'acme FAULT unexpected at 1: the tenant exists, but the log of the service contains no creation of it, although the log is older',
      );
    });

    it('reports a missing tenant that was not removed', async () => {
      await makeTenants('acme', 'bravo');
      await tamper(`delete from tenants where id = 'acme'`);
      const remainingRun = await verify();
      const deletions =
        'acme FAULT removed at 1: the tenant does not exist, and the log of the service contains no removal of it, whose ' +
        'last entry about it is 2';
      expect([remainingRun.code, remainingRun.lines[1]]).to.deep.equal([1, deletions]);
      await deleteEntries(`tenant_id = 'acme'`);
      const { code, lines, errors } = await verify();
      expect([code, lines.length, lines.at(-1)]).to.deep.equal([1, 3, deletions]);
      expect(errors).to.include('3 chains, 1 of them were tampered with');
      // Chains that the service removes itself are not reported as missing.
      const token = await (service as TestService).rootToken();
      await service?.call('DELETE', '/tenant/bravo', { token });
      expect((await verify()).lines.map((line) => line.split(/[ =]/)[0])).to.deep.equal(['_service', 'acme']);
    });

    it('reports a tenant that was created again', async () => {
      await makeTenants('acme');
      await tamper(
        ...['tenants where id', 'clients where tenant_id', 'key_chains where tenant_id'].map((table) => `delete from ${table} = 'acme'`),
      );
      await deleteEntries(`tenant_id = 'acme'`);
      await makeTenants('acme');
      const { code, lines } = await verify();
      expect([code, lines[1]]).to.satisfy(
        ([code, line]: [number, string]) =>
          code === 1 && /^acme FAULT unexpected at 1: the tenant was created again by entry \d+/.test(line),
      );
    });

    it('reports a tenant without an entry of its creation', async () => {
      await makeTenants('acme');
      await tamper(
        `create table planted as select * from tenants`,
        `update planted set id = 'planted'`,
        `insert into tenants select * from planted`,
        `drop table planted`,
      );
      const { code, lines } = await verify();
      expect([code, lines[2]?.startsWith('planted FAULT unexpected at 1: the tenant exists')]).to.deep.equal([1, true]);
    });
  });
}
