import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { expect } from 'chai';
import { freePort } from '../demo/process.ts';
import { databases, rawSql, type TestDatabase } from '../support/databases.ts';
import { framesOf, Terminal } from '../support/docs-walk.ts';
import { canDump } from '../support/dump-tools.ts';
import { hasPrograms } from '../support/has-programs.ts';
import { createTenant } from '../support/test-service.ts';
import { callsTo } from '../support/worker-service.ts';

const NAME = 'docs/backup-and-restore.md';
const PAGE = readFileSync(new URL('../../docs/backup-and-restore.md', import.meta.url), 'utf8');
const BLOCKS = framesOf(PAGE.replaceAll(/^ {3}/gm, '')).filter(({ language }) => language === 'sh');
const blockWith = (part: string): string => {
  const found = BLOCKS.filter(({ text }) => text.includes(part));
  expect(found, part).to.have.length(1);
  return found[0]?.text ?? '';
};
const START = 'npm start';
const FENCE = 'npm run restore:fence';
/** A command of the table of backups. */
const inTable = (program: string) => new RegExp(`\`(${program} [^\`]+)\``).exec(PAGE)?.[1] ?? 'false';

const OWNER = 'vidimus_owner_test';

describe('the commands of the page about backups', () => {
  let terminal: Terminal;
  let address: string;
  let database: TestDatabase | undefined;
  let restored: string | undefined;

  const open = async (instead: Record<string, string>, environment: Record<string, string>) => {
    address = `http://localhost:${await freePort(createServer)}`;
    terminal = new Terminal({ instead, environment });
  };
  afterEach(async () => {
    await terminal?.close();
    if (restored !== undefined) {
      const name = new URL(restored).pathname.slice(1);
      const server = new URL('/postgres', restored).href;
      await rawSql(server, (run) => run(`drop database if exists ${name}`));
    }
    await database?.drop();
    restored = undefined;
    database = undefined;
  });

  const type = async (text: string): Promise<string> => {
    const { code, stdout, stderr } = await terminal.type(text, address);
    expect(code, `${text}\n${stdout}${stderr}`).to.equal(0);
    return stdout;
  };
  /** What the start says that does not serve. */
  const refusal = () =>
    terminal.type(START, address).then(
      () => '',
      (error: Error) => error.message,
    );
  const makeTenant = async (id: string) => {
    const kept = parseEnv(readFileSync(join(terminal.folder, 'data/secrets.env'), 'utf8'));
    const calls = callsTo(address);
    const root = () => calls.token(kept['AUTH_CLIENT_ID'] ?? '', kept['AUTH_CLIENT_SECRET'] ?? '');
    await createTenant({ ...calls, rootToken: root }, id);
  };
  /** What a service did before and after its backup was made by `command`. */
  const live = async (command: string) => {
    await type(START);
    await makeTenant('acme');
    mkdirSync(join(terminal.folder, 'backup'), { recursive: true });
    await type(command);
    await makeTenant('later');
    // A moment in which it is noted outside of the database how far that is.
    await terminal.stop();
  };

  it('are those that the tests below type', () => {
    const parts = [FENCE, 'createdb', 'mkdir lost', START, `${FENCE}\n${START}`, 'ACCEPT_REWIND='];
    expect(BLOCKS).to.have.length(parts.length);
    for (const [index, part] of parts.entries()) expect(BLOCKS[index]?.text).to.include(part);
  });

  it('bring back a file of SQLite, which is fenced before it serves, or served by the word of an operator', async function () {
    if (!hasPrograms(NAME, ['sqlite3'])) return this.skip();
    await open({}, {});
    await live(inTable('sqlite3'));
    await type(blockWith('mkdir lost'));
    expect(existsSync(join(terminal.folder, 'lost/vidimus.sqlite'))).to.equal(true);
    expect(await refusal()).to.include('gone back in time');
    expect(await type(blockWith('restore:fence\nnpm start'))).to.include(
      'Nothing that was handed out before',
    );
    await makeTenant('later');
    await terminal.stop();
    for (const end of ['', '-wal', '-shm'])
      rmSync(join(terminal.folder, `data/vidimus.sqlite${end}`), { force: true });
    copyFileSync(
      join(terminal.folder, 'backup/vidimus.sqlite'),
      join(terminal.folder, 'data/vidimus.sqlite'),
    );
    const [, position = ''] = /ACCEPT_REWIND=(\S+)/.exec(await refusal()) ?? [];
    const word = blockWith('ACCEPT_REWIND').replace(/=\S+ /, `=${position}\n`);
    await type(`export ${word}`);
    await makeTenant('later');
    const running = await terminal.type(`${FENCE} -- --force`, address);
    expect(running.stderr, 'while the service runs').to.include('another service has');
    await terminal.stop();
    await type(`${FENCE} -- --force`);
  });

  it('bring back a dump of PostgreSQL in another database', async function () {
    const [, postgres] = databases();
    database = await postgres?.openEmpty();
    if (database === undefined || !hasPrograms(NAME, ['pg_dump', 'pg_restore', 'createdb']))
      return this.skip();
    if (!(await canDump(database.url))) return this.skip();
    const { hostname, port, username, password, pathname } = new URL(database.url);
    const name = pathname.slice(1);
    // The service runs as the user that docs/operating.md creates: it owns the database and may create no other.
    await rawSql(database.url, async (run) => {
      await run(`do $$ begin create role ${OWNER} login password '${password}';
        exception when duplicate_object or unique_violation then null; end $$`);
      await run(`alter database ${name} owner to ${OWNER}`);
    });
    const asOwner = (path: string) => {
      const url = new URL(path, database?.url);
      url.username = OWNER;
      return url.href;
    };
    restored = asOwner(`/${name}_restored`);
    await open(
      {
        '-h db.example -U postgres -O vidimus': `-h ${hostname} -p ${port || 5432} -U ${username} -O ${OWNER}`,
        '-h db.example -U vidimus': `-h ${hostname} -p ${port || 5432} -U ${OWNER}`,
        'postgres://vidimus:…@db.example:5432/vidimus_restored': restored,
        vidimus_restored: `${name}_restored`,
        'vidimus.dump vidimus': `vidimus.dump ${name}`,
      },
      {
        DATABASE_URL: asOwner(pathname),
        ...(password !== '' && { PGPASSWORD: decodeURIComponent(password) }),
      },
    );
    await live(inTable('pg_dump'));
    await type(blockWith('createdb'));
    expect(await refusal()).to.match(/gone back in time|not where it was/);
    await type(FENCE);
    await type(START);
    await makeTenant('later');
  });
});
