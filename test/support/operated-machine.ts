import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer as createHttp, type Server } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseEnv } from 'node:util';
import { freePort } from '../demo/process.ts';
import { minimalEnvironment } from './compile-cache.ts';
import { type Nginx, startNginx } from './nginx.ts';
import { rawSql } from './postgres-server.ts';
import { type ProcessResult, type RunningProgram, startProgram, waitForAnswer } from './programs.ts';
import { startedProgram } from './start-options.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/**
 * A machine as in docs/guides/without-docker.md: the package, a settings folder, nginx with TLS and a PostgreSQL server.
 * `systemctl` and `journalctl` are replaced by scripts that start and stop the service and print its output.
 */
export class OperatedMachine {
  readonly folder = mkdtempSync(join(tmpdir(), 'vidimus-operated-'));
  readonly name = `vidimus_operated_${randomBytes(5).toString('hex')}`;
  /** Shell functions that precede every command. */
  functions = '';
  readonly instead: [string, string][] = [];
  #environment: Record<string, string | undefined> = {};
  readonly #port: number;
  readonly #server: URL;
  readonly #nginx: Nginx;
  readonly #control: Server;
  #service: RunningProgram | undefined;
  #written = '';

  private constructor(server: URL, port: number, nginx: Nginx) {
    this.#server = server;
    this.#port = port;
    this.#nginx = nginx;
    this.#control = createHttp(async (incoming, outgoing) => {
      const words = Buffer.concat(await incoming.toArray()).toString();
      const result = await this.#obey(words).catch((error: Error) => error);
      outgoing.statusCode = result instanceof Error ? 500 : 200;
      outgoing.end(result instanceof Error ? result.message : result);
    });
  }

  /** @param server the address of a database of a server on which databases and roles can be made. */
  static async make(server: string): Promise<OperatedMachine> {
    const port = await freePort(createServer);
    const machine = new OperatedMachine(new URL(server), port, await startNginx([port, port]));
    await new Promise<void>((resolve) => machine.#control.listen(0, '127.0.0.1', resolve));
    machine.#furnish();
    return machine;
  }

  get address(): string {
    return this.#nginx.address;
  }

  #furnish(): void {
    const { folder } = this;
    for (const name of ['bin', 'system', 'data', 'cron.d', 'backups', 'far', 'opt/node_modules/.bin'])
      mkdirSync(join(folder, name), { recursive: true });
    symlinkSync(process.execPath, join(folder, 'opt/node_modules/.bin/node'));
    symlinkSync(ROOT, join(folder, 'opt/node_modules/vidimus'));
    const { port } = this.#control.address() as AddressInfo;
    const report = (words: string) => `exec curl -sS --fail-with-body --data "${words}" http://127.0.0.1:${port}/`;
    this.shim('systemctl', report('$*'));
    // The log is written with a delay of half a second.
    this.shim('journalctl', `sleep 1; ${report('journal')}`);
    this.shim('nginx', `exec /usr/sbin/nginx -c ${this.#nginx.folder}/nginx.conf -p ${this.#nginx.folder} "$@"`);
    this.shim('scp', `exec cp "$2" ${join(folder, 'far')}/`);
    const caFile = join(folder, 'authority.pem');
    writeFileSync(caFile, this.#nginx.certificate);
    const { hostname, port: databasePort, username, password } = this.#server;
    const hostAndPort = `${hostname}:${databasePort || 5432}`;
    this.instead.push(
      ['/opt/vidimus', join(folder, 'opt')],
      ['/etc/systemd/system', join(folder, 'system')],
      ['/etc/vidimus', join(folder, 'etc')],
      ['/var/lib/vidimus', join(folder, 'data')],
      ['/usr/local/sbin', join(folder, 'bin')],
      ['/etc/cron.d', join(folder, 'cron.d')],
      ['/var/backups', join(folder, 'backups')],
      ['https://id.acme.example', this.address],
      ['db.acme.example:5432/vidimus', `${hostAndPort}/${this.name}`],
      ['-h db.acme.example -U postgres', `-h ${hostname} -p ${databasePort || 5432} -U ${username} -d postgres`],
      ['role vidimus', `role ${this.name}`],
      ['database vidimus owner vidimus', `database ${this.name} owner ${this.name}`],
      ['postgres://vidimus:', `postgres://${this.name}:`],
      // One process starts sooner than several.
      ['WORKERS=auto', 'WORKERS=1'],
    );
    this.#environment = {
      ...minimalEnvironment(),
      PATH: `${join(folder, 'bin')}:${process.env['PATH']}`,
      HOME: folder,
      NODE_EXTRA_CA_CERTS: caFile,
      CURL_CA_BUNDLE: caFile,
      ...(password !== '' && { PGPASSWORD: decodeURIComponent(password) }),
    };
  }

  /** Replaces a system program by a script. */
  shim(name: string, script: string): void {
    writeFileSync(join(this.folder, 'bin', name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  }

  /** Replaces the addresses of the page by those of the test. */
  adaptToTest(text: string): string {
    return this.instead.reduce((result, [original, replacement]) => result.replaceAll(original, replacement), text);
  }

  set(name: string, value: string): void {
    this.#environment[name] = value;
  }

  setting(name: string): string | undefined {
    return this.#settings()[name];
  }

  #settings(): Record<string, string | undefined> {
    const read = (name: string) => parseEnv(readFileSync(join(this.folder, 'etc', name), 'utf8'));
    return { ...read('settings.env'), ...read('secrets.env') };
  }

  /** Exported variables are kept for the next commands. */
  type(text: string): Promise<ProcessResult> {
    const environmentFile = join(this.folder, '.environment');
    const script = `set -e\n${this.adaptToTest(this.functions)}\n${this.adaptToTest(text)}\nenv -0 > '${environmentFile}'`;
    const options = { cwd: this.folder, env: this.#environment };
    return new Promise((resolve) => {
      execFile('sh', ['-c', script], options, (error, stdout, stderr) => {
        if (error === null) this.#environment = readEnvironment(environmentFile);
        resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr });
      });
    });
  }

  async #obey(words: string): Promise<string> {
    if (words === 'journal') return this.#written + (this.#service?.output() ?? '');
    if (/^(stop|restart) vidimus$/.test(words)) await this.#stop();
    if (/^(start|restart|enable --now) vidimus$/.test(words)) await this.#start();
    return '';
  }

  async #start(): Promise<void> {
    const environment = {
      ...minimalEnvironment(),
      ...{ NODE_ENV: 'production', DATA_FOLDER: join(this.folder, 'data'), DRAIN_SECONDS: '0' },
      ...{ PORT: String(this.#port), HOST: '127.0.0.1' },
      NODE_EXTRA_CA_CERTS: this.#environment['NODE_EXTRA_CA_CERTS'],
      ...this.#settings(),
    };
    this.#service = startProgram(process.execPath, [startedProgram()], { environment, cwd: this.folder });
    await waitForAnswer(this.#service, `http://127.0.0.1:${this.#port}/health/ready`);
  }

  async #stop(): Promise<void> {
    this.#service?.child.kill('SIGTERM');
    await this.#service?.ended;
    this.#written += this.#service?.output() ?? '';
    this.#service = undefined;
  }

  async remove(): Promise<void> {
    await this.#stop();
    this.#control.close();
    await this.#nginx.close();
    await rawSql(this.#server.href, async (run) => {
      await run(`drop database if exists ${this.name}`);
      await run(`drop role if exists ${this.name}`);
    });
    rmSync(this.folder, { recursive: true, force: true });
  }
}

function readEnvironment(file: string): Record<string, string> {
  if (!existsSync(file)) return {};
  const entries = readFileSync(file, 'utf8').split('\0').filter(Boolean);
  return Object.fromEntries(entries.map((entry) => [entry.slice(0, entry.indexOf('=')), entry.slice(entry.indexOf('=') + 1)]));
}
