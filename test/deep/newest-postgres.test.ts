import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { startPostgres } from '../support/postgres-server.ts';
import { rawSql } from '../support/raw-sql.ts';

const NEWEST_SUPPORTED = 18;
const root = fileURLToPath(new URL('../../', import.meta.url));

type Report = {
  readonly stats: { readonly passes: number; readonly failures: number; readonly pending: number };
  readonly failures: readonly { readonly fullTitle: string }[];
};

const SUITES = ['store', 'migrations', 'postgres-calls', 'counting', 'terms'].map(
  (name) => `test/contract/${name}.test.ts`,
);
/** SQLite has no server, and pruning takes a minute of statements that other suites run as well. */
const LEFT_OUT = 'sqlite|an audit log that is kept for some days';

/** The suites run in a process of their own, whose server is the one of `url`. */
async function runSuites(url: string): Promise<Report> {
  const { TEST_PREPARED_DATABASES: _, ...env } = process.env;
  const mocha = `${root}node_modules/mocha/bin/mocha.js`;
  const options = ['--no-config', '--require', 'test/support/setup.ts', '--timeout', '180000', '--exit'];
  const suites = ['--reporter', 'json', '--grep', LEFT_OUT, '--invert', ...SUITES];
  const { stdout } = await promisify(execFile)(process.execPath, [mocha, ...options, ...suites], {
    cwd: root,
    env: { ...env, TEST_DATABASE_URL: url },
    maxBuffer: 64 * 1024 * 1024,
  }).catch((error: { stdout?: string }) => ({ stdout: error.stdout ?? '' }));
  return JSON.parse(stdout.slice(stdout.indexOf('{\n'))) as Report;
}

describe(`The contract suites of the database on PostgreSQL ${NEWEST_SUPPORTED}`, () => {
  it('pass on the server of the npm package, which is the newest supported version', async function () {
    if (process.env['TEST_DATABASE_URL'] === undefined && process.env['CI'] !== 'true') {
      console.log('      skipped: without TEST_DATABASE_URL, npm test runs these suites on this server');
      return this.skip();
    }
    this.timeout(600_000);
    const url = await startPostgres();
    const [row] = await rawSql(url, (run) => run("select current_setting('server_version_num') as number"));
    const version = Number((row as { readonly number: string }).number);
    expect(Math.floor(version / 10_000)).to.equal(NEWEST_SUPPORTED);
    const { stats, failures } = await runSuites(url);
    expect(failures.map(({ fullTitle }) => fullTitle)).to.deep.equal([]);
    expect(stats.passes).to.be.greaterThan(200);
    expect(stats.pending).to.equal(0);
  });
});
