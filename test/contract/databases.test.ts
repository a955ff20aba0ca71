import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSecureContext, TLSSocket } from 'node:tls';
import { expect } from 'chai';
import { MasterCipher } from '../../adapters/crypto/cipher.ts';
import { openDatabase, urlWithoutCredentials } from '../../adapters/persistence/opening/database.ts';
import { OrmStore } from '../../adapters/persistence/orm-store.ts';
import { newFileOf } from '../../bootstrap/wiring/platform.ts';
import { databases, rawSql } from '../support/databases.ts';
import { certify, pem } from '../support/test-certificates.ts';

const messageOf = (promise: Promise<unknown>) =>
  promise.then(
    () => 'nothing failed',
    (error: Error) => error.message,
  );

describe('database address', () => {
  it('with a typing error creates no database, and the message names the error', async function () {
    const database = await databases()
      .find(({ name }) => name === 'postgres')
      ?.open();
    if (database === undefined) return this.skip();
    try {
      const url = `${database.url}_mistyped`;
      const name = new URL(url).pathname.slice(1);
      for (const migrates of [true, false]) {
        expect(await messageOf(openDatabase({ url, poolSize: 2, migrates }))).to.equal(
          `DATABASE_URL: ${urlWithoutCredentials(url)} does not exist; create it, or correct its name`,
        );
      }
      const rows = await rawSql(database.url, (run) => run(`select 1 from pg_database where datname = '${name}'`));
      expect(rows).to.deep.equal([]);
    } finally {
      await database.drop();
    }
  });

  it('with a new file name creates a database, and the log names the file', () => {
    const folder = mkdtempSync(join(tmpdir(), 'vidimus-test-'));
    try {
      const file = join(folder, 'here.sqlite');
      expect(newFileOf(`sqlite:${file}`)).to.equal(file);
      writeFileSync(file, '');
      expect(newFileOf(`sqlite:${file}`)).to.equal(undefined);
      expect(newFileOf(`sqlite:${join(folder, 'other', 'here.sqlite')}`)).to.include('other');
      for (const url of ['sqlite::memory:', 'postgres://operator@127.0.0.1/x']) expect(newFileOf(url)).to.equal(undefined);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it('may name a Unix socket', async function () {
    const database = await databases()
      .find(({ name }) => name === 'postgres')
      ?.open();
    if (database === undefined) return this.skip();
    try {
      const { username, password, port, pathname } = new URL(database.url);
      const [row] = await rawSql(database.url, (run) => run(`select current_setting('unix_socket_directories') as folder`));
      const folder = String(row?.['folder']).split(',')[0]?.trim() ?? '';
      expect(existsSync(join(folder, `.s.PGSQL.${port || '5432'}`)), 'the server is local').to.equal(true);
      const url = `postgres://${username}:${password}@${encodeURIComponent(folder)}:${port || '5432'}${pathname}`;
      const cipher = new MasterCipher({ masterSecrets: ['a master secret of decent length'] });
      const store = await OrmStore.open({ url, poolSize: 2 }, cipher);
      await store.ping();
      await store.close();
      const [client] = await rawSql(url, (run) => run('select inet_client_addr() as address'));
      expect(client).to.deep.equal({ address: null });
      expect(urlWithoutCredentials(url)).to.equal(`postgres://${encodeURIComponent(folder)}:${port || '5432'}${pathname}`);
    } finally {
      await database.drop();
    }
  });

  it('is reported without its user', () => {
    expect(urlWithoutCredentials('postgres://user:secret@db.internal/vidimus?sslmode=verify-full')).to.equal(
      'postgres://db.internal:5432/vidimus',
    );
  });

  it('without a user, or with an invalid file, is reported as such', async () => {
    const unreachable = await messageOf(openDatabase({ url: 'postgres://u:geheim@127.0.0.1:1/x', poolSize: 2 }));
    expect(unreachable).to.equal('DATABASE_URL: postgres://127.0.0.1:1/x does not answer (ECONNREFUSED)');
    const folder = mkdtempSync(join(tmpdir(), 'vidimus-address-'));
    try {
      const file = join(folder, 'notes.txt');
      writeFileSync(file, 'these are notes and no database at all'.repeat(100));
      expect(await messageOf(openDatabase({ url: `sqlite:${file}`, poolSize: 2 }))).to.equal(
        `DATABASE_URL: sqlite:${file} cannot be opened: file is not a database`,
      );
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('of a file admits one service at a time and any number of readers', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'vidimus-held-'));
    const url = `sqlite:${join(folder, 'held.sqlite')}`;
    const cipher = new MasterCipher({ masterSecrets: ['a master secret for the tests 0123456789'] });
    const newerCipher = new MasterCipher({
      masterSecrets: ['a newer master secret 0123456789 0123', 'a master secret for the tests 0123456789'],
    });
    const alias = join(folder, 'alias.sqlite');
    const openStore = (at: string, by = cipher) => OrmStore.open({ url: at, poolSize: 2, alone: true }, by);
    const sealingKeys = () => rawSql(url, (run) => run('select * from sealing_keys'));
    const first = await openStore(url);
    try {
      symlinkSync(join(folder, 'held.sqlite'), alias);
      const before = await sealingKeys();
      for (const at of [url, `sqlite:${alias}`]) {
        const error = await messageOf(openStore(at, newerCipher));
        expect(error).to.match(/^another service uses .*\.sqlite; several processes require PostgreSQL/);
      }
      expect(await sealingKeys(), 'the key rows are unchanged').to.deep.equal(before);
      await (await OrmStore.open({ url, poolSize: 2, migrates: false }, cipher)).close();
      await first.close();
      await (await openStore(`sqlite:${alias}`)).close();
    } finally {
      await first.close();
      rmSync(folder, { recursive: true });
    }
  });

  describe('over TLS', () => {
    let folder: string;
    let server: Server;
    let port: number;
    /** Startup messages that arrived over TLS; a PostgreSQL client names its user in them. */
    const startupMessages: string[] = [];
    const sockets = new Set<Socket>();

    before(async () => {
      folder = mkdtempSync(join(tmpdir(), 'vidimus-tls-'));
      const ca = await certify({ name: 'ours', ca: true });
      const serverCertificate = await certify({ name: 'localhost', by: ca, dns: ['localhost'] });
      writeFileSync(join(folder, 'ca.pem'), pem(ca));
      writeFileSync(join(folder, 'other.pem'), pem(await certify({ name: 'other', ca: true })));
      const key = serverCertificate.privateKey.export({ format: 'pem', type: 'pkcs8' });
      const secureContext = createSecureContext({ key, cert: pem(serverCertificate) });
      server = createServer((socket) => {
        sockets.add(socket);
        socket.on('error', () => {});
        socket.once('data', () => {
          socket.write('S');
          const secure = new TLSSocket(socket, { isServer: true, secureContext });
          secure.on('error', () => {});
          secure.once('data', (chunk) => {
            startupMessages.push(chunk.toString('latin1'));
            secure.destroy();
          });
        });
      });
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      port = (server.address() as { port: number }).port;
    });
    after(async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
      rmSync(folder, { recursive: true });
    });

    const attempt = async (host: string, parameters: string) => {
      startupMessages.length = 0;
      const url = `postgres://operator:secret@${host}:${port}/x?${parameters}`;
      const message = await messageOf(openDatabase({ url, poolSize: 2 }));
      return { message, heard: startupMessages.join() };
    };

    it('sends the credentials only to a server with a certificate of the configured authority', async () => {
      const right = await attempt('localhost', `sslmode=verify-full&sslrootcert=${join(folder, 'ca.pem')}`);
      expect(right.heard).to.include('operator');
      for (const [host, parameters] of [
        ['localhost', 'sslmode=verify-full'],
        ['localhost', `sslmode=verify-full&sslrootcert=${join(folder, 'other.pem')}`],
        ['127.0.0.1', `sslmode=verify-full&sslrootcert=${join(folder, 'ca.pem')}`],
        ['127.0.0.1', `sslmode=verify-ca&sslrootcert=${join(folder, 'other.pem')}`],
      ] as const) {
        const result = await attempt(host, parameters);
        expect(result.heard, parameters).to.equal('');
        expect(result.message, parameters).to.match(/^DATABASE_URL: postgres:\/\/.*certificate/i);
        expect(result.message).to.not.include('secret');
      }
      const anyName = await attempt('127.0.0.1', `sslmode=verify-ca&sslrootcert=${join(folder, 'ca.pem')}`);
      expect(anyName.heard).to.include('operator');
    });

    it('reports the path of a certificate file that cannot be read', async () => {
      const { message } = await attempt('localhost', 'sslmode=verify-full&sslrootcert=/no/such/file');
      expect(message).to.include('sslrootcert /no/such/file cannot be read');
    });
  });
});

const LOCK = new URL('../../adapters/persistence/sqlite/lock.ts', import.meta.url).href;
const DATABASE = new URL('../../adapters/persistence/opening/database.ts', import.meta.url).href;
/** Opens the file, locks it on request, and holds the lock until the process is killed. */
const LOCKING_PROGRAM = `
  const [file] = process.argv.slice(1);
  const { openDatabase } = await import('${DATABASE}');
  const { lockSqlite } = await import('${LOCK}');
  const database = await openDatabase({ url: 'sqlite:' + file, poolSize: 2 });
  process.stdin.once('data', () => {
    try {
      lockSqlite(file, database.native);
      process.stdout.write('held');
    } catch (error) {
      process.stdout.write(error.message.split(' ').slice(0, 2).join(' '));
    }
  });
  process.stdout.write('ready');`;

type LockingProcess = { output(): Promise<string>; lock(): void; kill(): void };

function startLockingProcess(file: string): LockingProcess {
  const child = spawn(process.execPath, ['--input-type=module', '-e', LOCKING_PROGRAM, file], { stdio: ['pipe', 'pipe', 'inherit'] });
  return {
    output: async () => String((await once(child.stdout, 'data'))[0]),
    lock: () => void child.stdin.write('now'),
    kill: () => void child.kill('SIGKILL'),
  };
}

describe('SQLite database file', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'vidimus-test-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const modes = () => Object.fromEntries(readdirSync(folder).map((name) => [name, statSync(join(folder, name)).mode & 0o777]));
  const openAndClose = async () => {
    const database = await openDatabase({ url: `sqlite:${join(folder, 'vidimus.sqlite')}`, poolSize: 2 });
    const fileModes = modes();
    const native = await database.all('pragma synchronous');
    await database.close();
    return { modes: fileModes, synchronous: Object.values(native[0] ?? {})[0] };
  };

  it('and its companion files are accessible only to their owner', async () => {
    const before = process.umask(0);
    try {
      const { modes } = await openAndClose();
      expect(Object.keys(modes)).to.include('vidimus.sqlite');
      for (const [name, mode] of Object.entries(modes)) expect(mode, name).to.equal(0o600);
    } finally {
      process.umask(before);
    }
  });

  it('of an earlier release becomes accessible only to its owner', async () => {
    writeFileSync(join(folder, 'vidimus.sqlite'), '');
    chmodSync(join(folder, 'vidimus.sqlite'), 0o644);
    const { modes } = await openAndClose();
    for (const [name, mode] of Object.entries(modes)) expect(mode, name).to.equal(0o600);
  });

  it('is opened by one of several services that start simultaneously', async () => {
    const file = join(folder, 'vidimus.sqlite');
    for (let round = 0; round < 6; round++) {
      const processes = [1, 2, 3].map(() => startLockingProcess(file));
      try {
        await Promise.all(processes.map((process) => process.output()));
        const outputs = processes.map((process) => process.output());
        for (const process of processes) process.lock();
        const results = await Promise.all(outputs);
        expect(results.toSorted()).to.deep.equal(['another service', 'another service', 'held']);
      } finally {
        for (const process of processes) process.kill();
      }
    }
  });

  it('stays locked while it is open, so that another program does not take itself for the last user', async function () {
    // Programs with an older SQLite then remove the log, and all later writes are lost.
    if (!existsSync('/proc/locks')) return this.skip();
    const file = join(folder, 'vidimus.sqlite');
    const first = await openDatabase({ url: `sqlite:${file}`, poolSize: 2 });
    const isLocked = () => readFileSync('/proc/locks', 'utf8').includes(`:${statSync(file).ino} `);
    expect(isLocked(), 'after its creation and migration').to.equal(true);
    const second = await openDatabase({ url: `sqlite:${file}`, poolSize: 2 });
    await second.close();
    expect(isLocked(), 'after another connection of the same process').to.equal(true);
    await first.close();
    expect(isLocked()).to.equal(false);
  });

  it('is flushed to the disk before a change is confirmed', async () => {
    expect((await openAndClose()).synchronous).to.equal(2);
  });
});
