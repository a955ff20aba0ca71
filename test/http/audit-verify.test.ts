import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { databases, rawSql, type TestDatabase } from '../support/databases.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

const SCRIPT = fileURLToPath(new URL('../../bootstrap/audit-verify.ts', import.meta.url));
const MASTER_SECRET = 'a master secret for the tests 0123456789';

type Outcome = { readonly code: number; readonly lines: readonly string[]; readonly errors: string };

for (const kind of databases()) {
  describe(`npm run audit:verify on ${kind.name}`, () => {
    let database: TestDatabase | undefined;
    let service: TestService;
    let token: string;

    before(async function () {
      this.timeout(60_000);
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

    /** Beside the service, which goes on. */
    const verify = (
      parameters: readonly string[] = [],
      environment: Readonly<Record<string, string>> = {},
    ): Promise<Outcome> =>
      new Promise((resolve) => {
        const env = {
          PATH: process.env['PATH'],
          NODE_OPTIONS: process.env['NODE_OPTIONS'],
          NODE_ENV: 'production',
          PUBLIC_URL: 'https://service.example',
          AUTH_CLIENT_ID: 'root',
          AUTH_CLIENT_SECRET: 'root-secret-for-the-tests',
          MASTER_SECRET,
          DATABASE_URL: database?.url,
          ...environment,
        };
        execFile(process.execPath, [SCRIPT, ...parameters], { env }, (error, stdout, errors) => {
          const code = error === null ? 0 : Number(error.code);
          resolve({ code, lines: stdout.split('\n').filter((line) => line !== ''), errors });
        });
      });
    const tamper = (text: string) => rawSql(database?.url ?? '', (run) => run(text));

    it('ends with 0 and tells where each chain ends, and takes that back later', async () => {
      const { code, lines, errors } = await verify();
      expect(code, errors).to.equal(0);
      expect(lines).to.have.length(3);
      expect(lines[0]).to.match(/^_service=\d+:\S+$/);
      expect(lines[1]).to.match(/^acme=7:\S+$/);
      expect(lines[2]).to.match(/^bravo=7:\S+$/);
      expect(errors).to.include('3 chains, all are whole');
      const created = await service.call('POST', '/key-chain', { token, json: { usageType: 'signing' } });
      expect(created.status).to.equal(201);
      const expected = lines.flatMap((line) => ['--expect', line]);
      const later = await verify(expected);
      expect(later.code, later.errors).to.equal(0);
      expect(later.lines[1]).to.match(/^acme=8:/);
      const other = await verify(['--expect', `acme=7:${lines[2]?.split(':')[1]}`]);
      expect([other.code, other.lines[1]]).to.deep.equal([
        1,
        'acme FAULT unexpected at 7: entry 7 is another one than was expected',
      ]);
      const gone = await verify(['--expect', 'gone=7:hash']);
      expect([gone.code, gone.lines.at(-1)]).to.deep.equal([
        1,
        'gone FAULT removed at 1: there is no such chain, but it has had an entry 7',
      ]);
    });

    it('does not take another master secret for a tampered log', async () => {
      const { code, lines, errors } = await verify([], {
        MASTER_SECRET: 'another master secret 0123456789abcdef',
      });
      expect([code, lines]).to.deep.equal([1, []]);
      expect(errors).to.include('MASTER_SECRET is not the one that sealed this database');
    });

    it('does not begin a database that is not there', async () => {
      const missing = await verify([], { DATABASE_URL: 'sqlite:/nowhere/at-all.sqlite' });
      expect([missing.code, missing.errors]).to.deep.equal([
        1,
        'the audit log was not verified: there is no database /nowhere/at-all.sqlite\n',
      ]);
      const empty = await kind.open();
      const behind = await verify([], { DATABASE_URL: empty?.url ?? '' });
      await empty?.drop();
      expect(behind.code).to.equal(1);
      expect(behind.errors).to.match(/older release|there is no database/);
    });

    it('says how it is called', async () => {
      for (const wrong of [
        ['--expect'],
        ['--expect', 'acme'],
        ['acme=7:hash'],
        ['--expect', 'acme=x:hash'],
      ]) {
        const { code, errors } = await verify(wrong);
        expect([code, errors.startsWith('usage: npm run audit:verify')], wrong.join(' ')).to.deep.equal([
          2,
          true,
        ]);
      }
    });

    it('ends with 1 and names the first entry that is wrong, in each chain', async () => {
      await tamper(`update audit_entries set actor = 'nobody' where tenant_id = 'acme' and sequence = 3`);
      await tamper(`delete from audit_entries where tenant_id = 'bravo' and sequence = 7`);
      const { code, lines, errors } = await verify();
      expect(code).to.equal(1);
      expect(lines[0]).to.match(/^_service=/);
      expect(lines.slice(1)).to.deep.equal([
        'acme FAULT altered at 3: entry 3 was altered or put there by somebody else, or one before it was taken away',
        'bravo FAULT truncated at 7: entry 7 is missing at the end',
      ]);
      expect(errors).to.include('3 chains, 2 of them not as the service wrote them');
    });
  });
}
