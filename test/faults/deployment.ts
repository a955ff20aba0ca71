import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { Agent } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { freePort } from '../demo/process.ts';
import { minimalEnvironment } from '../support/compile-cache.ts';
import { startedProgram, startOptions } from '../support/start-options.ts';
import { type Answer, type Callable, type CallOptions, ROOT } from '../support/test-service.ts';
import { Refused, send } from './calls.ts';

const START_MS = 60_000;
/** How often a balancer looks. */
const NOTICED_MS = 100;
const STOP_MS = 30_000;
const KEPT_ERRORS = 4_000;

export type DeploymentOptions = {
  readonly processes: number;
  readonly databaseUrl: string;
  readonly environment?: Readonly<Record<string, string>>;
  /** Options of Node for one of them, behind those of `npm start`. */
  readonly nodeOptions?: readonly string[];
};

class Member {
  readonly port: number;
  readonly folder: string;
  agent = new Agent({ keepAlive: true });
  child: ChildProcess | undefined;
  /** Calls go to it. */
  isServing = false;
  errors = '';

  constructor(port: number, folder: string) {
    this.port = port;
    this.folder = folder;
  }
}

let program: string | undefined;

function endOf({ exitCode, signalCode }: ChildProcess): string {
  if (signalCode !== null) return `ended by ${signalCode}`;
  return exitCode === null ? 'still running' : `exit code ${exitCode}`;
}

/** The service as it is deployed: one process or several that share a database, each with a folder that outlives it. */
export class Deployment implements Callable {
  readonly members: readonly Member[];
  readonly address: string;
  readonly folder: string;
  environment: Readonly<Record<string, string>>;
  readonly #nodeOptions: readonly string[];
  #turn = 0;

  private constructor(folder: string, members: readonly Member[], options: DeploymentOptions) {
    this.folder = folder;
    this.members = members;
    process.once('exit', this.#killAll);
    this.address = `http://localhost:${members[0]?.port}`;
    this.#nodeOptions = options.nodeOptions ?? [];
    this.environment = {
      HOST: '127.0.0.1',
      PUBLIC_URL: this.address,
      DATABASE_URL: options.databaseUrl,
      MASTER_SECRET: 'a master secret for what is broken 0123456789',
      AUTH_CLIENT_ID: ROOT.clientId,
      AUTH_CLIENT_SECRET: ROOT.secret,
      OUTBOUND_ALLOW: '127.0.0.1/32',
      LOG_LEVEL: 'warn',
      DATABASE_TIMEOUT: '5',
      DRAIN_SECONDS: '1',
      STATUS_CAPACITY: '1000',
      ...Object.fromEntries(['TOKEN', 'NONCE', 'LOGIN', 'OFFER'].map((name) => [`RATE_LIMIT_${name}`, '0'])),
      ...options.environment,
    };
  }

  static async start(options: DeploymentOptions): Promise<Deployment> {
    const folder = mkdtempSync(join(tmpdir(), 'vidimus-faults-'));
    const members: Member[] = [];
    while (members.length < options.processes) {
      const own = join(folder, String(members.length));
      mkdirSync(own);
      members.push(new Member(await freePort(createServer), own));
    }
    const deployment = new Deployment(folder, members, options);
    try {
      for (const at of members.keys()) await deployment.begin(at);
    } catch (error) {
      await deployment.end();
      throw error;
    }
    return deployment;
  }

  #at(at: number): Member {
    const member = this.members[at];
    if (member === undefined) throw new Error(`there is no process ${at}`);
    return member;
  }

  pidOf(at: number): number {
    return this.#at(at).child?.pid ?? 0;
  }

  /** Where the database is from the next start on. */
  moveTo(databaseUrl: string): void {
    this.environment = { ...this.environment, DATABASE_URL: databaseUrl };
  }

  folderOf(at: number): string {
    return this.#at(at).folder;
  }

  /** Starts one and waits until it is healthy. */
  async begin(at: number): Promise<void> {
    const member = this.#at(at);
    program ??= startedProgram();
    const start = startOptions();
    const child = spawn(process.execPath, [...start.nodeOptions, ...this.#nodeOptions, program], {
      env: { ...minimalEnvironment(), ...start.environment, ...this.environment, DATA_FOLDER: member.folder, PORT: String(member.port) },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    member.child = child;
    member.errors = '';
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding('utf8').on('data', (text: string) => {
        member.errors = (member.errors + text).slice(-KEPT_ERRORS);
      });
    const deadline = performance.now() + START_MS;
    while (!(await this.isHealthy(at))) {
      if (child.exitCode !== null || child.signalCode !== null || performance.now() > deadline) {
        child.kill('SIGKILL');
        throw new Error(`process ${at} did not start (${endOf(child)}):\n${member.errors}`);
      }
      await pause(25);
    }
    member.isServing = true;
  }

  async isHealthy(at: number): Promise<boolean> {
    const answer = await this.#send(this.#at(at), 'GET', '/health', {}).catch(() => undefined);
    return answer?.status === 200;
  }

  /** Without a word to anybody. */
  async kill(at: number): Promise<void> {
    await this.#signal(at, 'SIGKILL');
  }

  /** In order. As behind a balancer, it gets calls until it says that it is not ready for more. */
  async stop(at: number): Promise<void> {
    const member = this.#at(at);
    const ended = this.#signal(at, 'SIGTERM');
    while (member.isServing) {
      const answer = await this.callAt(at, 'GET', '/health/ready').catch(() => undefined);
      member.isServing = member.isServing && answer?.status === 200;
      await pause(NOTICED_MS);
    }
    await ended;
  }

  async #signal(at: number, signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    const member = this.#at(at);
    const { child } = member;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    member.isServing = signal === 'SIGTERM' && member.isServing;
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
    child.kill(signal);
    await ended;
    clearTimeout(timer);
    member.isServing = false;
    member.agent.destroy();
    member.agent = new Agent({ keepAlive: true });
  }

  /** One call, to the processes in turn; who is not there is passed over. @throws NoAnswer */
  async call(method: string, path: string, options: CallOptions = {}): Promise<Answer> {
    const inside = path.startsWith(this.address) ? path.slice(this.address.length) : path;
    const first = this.#turn++;
    for (let tried = 0; tried < this.members.length; tried++) {
      const member = this.#at((first + tried) % this.members.length);
      if (!member.isServing) continue;
      try {
        return await this.#send(member, method, inside, options);
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
      }
    }
    const ended = this.members.flatMap(({ child, errors }) => (child ? [`${endOf(child)}: ${errors}`] : []));
    throw new Refused(`no process takes connections; ${ended.join('; ')}`);
  }

  /** A call of one of them. */
  callAt(at: number, method: string, path: string, options: CallOptions = {}): Promise<Answer> {
    return this.#send(this.#at(at), method, path, options);
  }

  #send(member: Member, method: string, path: string, options: CallOptions): Promise<Answer> {
    const { port, agent } = member;
    return send({ port, agent, host: new URL(this.address).host }, method, path, options);
  }

  async token(client_id: string, client_secret: string): Promise<string> {
    const json = { grant_type: 'client_credentials', client_id, client_secret };
    const answer = await this.call('POST', '/oauth2/token', { json });
    if (answer.status !== 200) throw new Error(`no token: ${answer.status} ${answer.text}`);
    return answer.body.access_token;
  }

  rootToken(): Promise<string> {
    return this.token(ROOT.clientId, ROOT.secret);
  }

  readonly #killAll = () => {
    for (const { child } of this.members) child?.kill('SIGKILL');
  };

  async end(): Promise<void> {
    process.off('exit', this.#killAll);
    await Promise.all(this.members.map((_, at) => this.kill(at)));
    rmSync(this.folder, { recursive: true, force: true });
  }
}
