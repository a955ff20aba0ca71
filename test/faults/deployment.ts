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
import { ConnectionRefusedError, send } from './calls.ts';

const START_MS = 60_000;
/** Polling interval of a balancer. */
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

class DeploymentProcess {
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

function describeExit({ exitCode, signalCode }: ChildProcess): string {
  if (signalCode !== null) return `ended by ${signalCode}`;
  return exitCode === null ? 'still running' : `exit code ${exitCode}`;
}

/** The service as it is deployed: one process or several that share a database, each with a folder that outlives it. */
export class Deployment implements Callable {
  readonly members: readonly DeploymentProcess[];
  readonly address: string;
  readonly folder: string;
  environment: Readonly<Record<string, string>>;
  readonly #nodeOptions: readonly string[];
  #turn = 0;

  private constructor(folder: string, members: readonly DeploymentProcess[], options: DeploymentOptions) {
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
    const members: DeploymentProcess[] = [];
    while (members.length < options.processes) {
      const memberFolder = join(folder, String(members.length));
      mkdirSync(memberFolder);
      members.push(new DeploymentProcess(await freePort(createServer), memberFolder));
    }
    const deployment = new Deployment(folder, members, options);
    try {
      for (const index of members.keys()) await deployment.startProcess(index);
    } catch (error) {
      await deployment.end();
      throw error;
    }
    return deployment;
  }

  #at(index: number): DeploymentProcess {
    const deploymentProcess = this.members[index];
    if (deploymentProcess === undefined) throw new Error(`there is no process ${index}`);
    return deploymentProcess;
  }

  processId(index: number): number {
    return this.#at(index).child?.pid ?? 0;
  }

  /** Sets the address of the database for the next start. */
  moveTo(databaseUrl: string): void {
    this.environment = { ...this.environment, DATABASE_URL: databaseUrl };
  }

  dataFolder(index: number): string {
    return this.#at(index).folder;
  }

  /** Starts one and waits until it is healthy. */
  async startProcess(index: number): Promise<void> {
    const deploymentProcess = this.#at(index);
    program ??= startedProgram();
    const start = startOptions();
    const child = spawn(process.execPath, [...start.nodeOptions, ...this.#nodeOptions, program], {
      env: {
        ...minimalEnvironment(),
        ...start.environment,
        ...this.environment,
        DATA_FOLDER: deploymentProcess.folder,
        PORT: String(deploymentProcess.port),
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    deploymentProcess.child = child;
    deploymentProcess.errors = '';
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding('utf8').on('data', (text: string) => {
        deploymentProcess.errors = (deploymentProcess.errors + text).slice(-KEPT_ERRORS);
      });
    const deadline = performance.now() + START_MS;
    while (!(await this.isHealthy(index))) {
      if (child.exitCode !== null || child.signalCode !== null || performance.now() > deadline) {
        child.kill('SIGKILL');
        throw new Error(`process ${index} did not start (${describeExit(child)}):\n${deploymentProcess.errors}`);
      }
      await pause(25);
    }
    deploymentProcess.isServing = true;
  }

  async isHealthy(index: number): Promise<boolean> {
    const answer = await this.#send(this.#at(index), 'GET', '/health', {}).catch(() => undefined);
    return answer?.status === 200;
  }

  /** Kills the process without a shutdown. */
  async kill(index: number): Promise<void> {
    await this.#signal(index, 'SIGKILL');
  }

  /** Stops the process cleanly. As behind a balancer, it gets calls until it reports that it is not ready. */
  async stop(index: number): Promise<void> {
    const deploymentProcess = this.#at(index);
    const exited = this.#signal(index, 'SIGTERM');
    while (deploymentProcess.isServing) {
      const answer = await this.callAt(index, 'GET', '/health/ready').catch(() => undefined);
      deploymentProcess.isServing = deploymentProcess.isServing && answer?.status === 200;
      await pause(NOTICED_MS);
    }
    await exited;
  }

  async #signal(index: number, signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    const deploymentProcess = this.#at(index);
    const { child } = deploymentProcess;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exited = new Promise((resolve) => child.once('exit', resolve));
    deploymentProcess.isServing = signal === 'SIGTERM' && deploymentProcess.isServing;
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
    child.kill(signal);
    await exited;
    clearTimeout(timer);
    deploymentProcess.isServing = false;
    deploymentProcess.agent.destroy();
    deploymentProcess.agent = new Agent({ keepAlive: true });
  }

  /** One call, to the processes in turn; who is not there is passed over. @throws NoAnswer */
  async call(method: string, path: string, options: CallOptions = {}): Promise<Answer> {
    const inside = path.startsWith(this.address) ? path.slice(this.address.length) : path;
    const firstIndex = this.#turn++;
    for (let tried = 0; tried < this.members.length; tried++) {
      const deploymentProcess = this.#at((firstIndex + tried) % this.members.length);
      if (!deploymentProcess.isServing) continue;
      try {
        return await this.#send(deploymentProcess, method, inside, options);
      } catch (error) {
        if (!(error instanceof ConnectionRefusedError)) throw error;
      }
    }
    const exitMessages = this.members.flatMap(({ child, errors }) => (child ? [`${describeExit(child)}: ${errors}`] : []));
    throw new ConnectionRefusedError(`no process accepts connections; ${exitMessages.join('; ')}`);
  }

  /** A call of one of them. */
  callAt(index: number, method: string, path: string, options: CallOptions = {}): Promise<Answer> {
    return this.#send(this.#at(index), method, path, options);
  }

  #send(deploymentProcess: DeploymentProcess, method: string, path: string, options: CallOptions): Promise<Answer> {
    const { port, agent } = deploymentProcess;
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
    await Promise.all(this.members.map((_, index) => this.kill(index)));
    rmSync(this.folder, { recursive: true, force: true });
  }
}
