import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { type Agent, request } from 'node:http';
import { createServer } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { freePort } from '../demo/process.ts';
import { minimalEnvironment } from './compile-cache.ts';
import { WAIT_TIMEOUT_MS } from './patience.ts';
import { startedProgram } from './start-options.ts';
import { type Answer, type Callable, type CallOptions, dataFolderOf, ROOT } from './test-service.ts';

/** A Node option by which a process is recognized in the process list. */
export const NODE_OPTION = '--max-semi-space-size=3';
const WORKERS = '2';

export type LogLine = { readonly msg: string; readonly pid?: number; readonly signal?: string; readonly tenantId?: string };

/** A separate process of `npm start` with `WORKERS=2`. */
export class WorkerService {
  readonly address: string;
  readonly process: ChildProcess;
  /** The exit code, or the signal that ended it. */
  readonly ended: Promise<number | string>;
  errors = '';
  /** Complete log lines so far, each of which is JSON. */
  readonly lines: LogLine[] = [];
  #unended = '';

  constructor(port: number, environment: Readonly<Record<string, string>>) {
    this.address = `http://localhost:${port}`;
    this.process = spawn(process.execPath, [NODE_OPTION, startedProgram()], {
      env: {
        ...minimalEnvironment(),
        HOST: '127.0.0.1',
        PORT: String(port),
        WORKERS,
        DATA_FOLDER: dataFolderOf(environment['DATABASE_URL']),
        // No balancer in front of it has to notice the shutdown.
        DRAIN_SECONDS: '0',
        AUTH_CLIENT_ID: ROOT.clientId,
        AUTH_CLIENT_SECRET: ROOT.secret,
        MASTER_SECRET: 'a master secret for several workers',
        ...environment,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.process.stdout?.setEncoding('utf8').on('data', (chunk: string) => this.#read(chunk));
    this.process.stderr?.on('data', (chunk: Buffer) => {
      this.errors += chunk;
    });
    // All output has been read by then.
    this.ended = new Promise((resolve) => this.process.once('close', (code, signal) => resolve(signal ?? code ?? -1)));
  }

  static async start(environment: Readonly<Record<string, string>>): Promise<WorkerService> {
    return WorkerService.startAt(await freePort(createServer), environment);
  }

  static async startAt(port: number, environment: Readonly<Record<string, string>>): Promise<WorkerService> {
    const service = new WorkerService(port, environment);
    // An idle worker buffers its log for half a second, and tests read the start lines of all workers. A single process has
    // no workers.
    const workers = Number(environment['WORKERS'] ?? WORKERS);
    await service
      .line(({ msg }) => msg === 'started')
      .then((started) => (workers > 1 ? service.line(({ msg }) => msg === 'worker started', workers) : started))
      .catch((error: unknown) => {
        service.process.kill('SIGKILL');
        throw error;
      });
    return service;
  }

  #read(chunk: string): void {
    const lines = (this.#unended + chunk).split('\n');
    this.#unended = lines.pop() ?? '';
    for (const line of lines) this.lines.push(JSON.parse(line) as LogLine);
  }

  /** Waits for lines of the log. @returns the last of them. */
  async line(matches: (line: LogLine) => boolean, count = 1): Promise<LogLine> {
    const deadline = performance.now() + WAIT_TIMEOUT_MS;
    for (;;) {
      const matchingLines = this.lines.filter(matches);
      const lastLine = matchingLines.at(-1);
      if (lastLine !== undefined && matchingLines.length >= count) return lastLine;
      if (performance.now() > deadline || this.process.exitCode !== null)
        throw new Error(`a line is missing:\n${this.errors}${JSON.stringify(this.lines.slice(-10))}`);
      await setTimeout(20);
    }
  }

  /** Processes of the workers, including ended ones. */
  get workers(): readonly number[] {
    return this.lines.flatMap(({ msg, pid }) => (msg === 'worker started' && pid !== undefined ? [pid] : []));
  }

  stop(): Promise<number | string> {
    this.process.kill('SIGTERM');
    return this.ended;
  }
}

/** An ended process that was not waited for is still in the process list. */
export function isRunning(pid: number): boolean {
  try {
    return !/^State:\tZ/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

/** Returns a caller with a new connection for each call, or with those of an agent. */
export function callerFor(address: string, agent: Agent | false = false): Callable {
  const call = (method: string, path: string, options: CallOptions = {}): Promise<Answer> => {
    const { token, json, form, text, headers } = options;
    const body = json !== undefined ? JSON.stringify(json) : form ? new URLSearchParams(form).toString() : text;
    const type = json !== undefined ? 'application/json' : form && 'application/x-www-form-urlencoded';
    return new Promise((resolve, reject) => {
      const clientRequest = request(
        path.startsWith('http') ? path : address + path,
        {
          method,
          agent,
          headers: {
            ...(type && { 'Content-Type': type }),
            ...(token && { Authorization: `Bearer ${token}` }),
            ...(body !== undefined && { 'Content-Length': Buffer.byteLength(body) }),
            ...headers,
          },
        },
        async (response) => {
          try {
            const content = Buffer.concat(await response.toArray()).toString();
            const status = response.statusCode ?? 0;
            resolve({ status, headers: new Headers(), text: content, body: parse(content) });
          } catch (error) {
            reject(error);
          }
        },
      );
      clientRequest.once('error', reject);
      clientRequest.end(body);
    });
  };
  const token = async (client_id: string, client_secret: string): Promise<string> => {
    const json = { grant_type: 'client_credentials', client_id, client_secret };
    const answer = await call('POST', '/oauth2/token', { json });
    if (answer.status !== 200) throw new Error(`no token: ${answer.status} ${answer.text}`);
    return answer.body.access_token;
  };
  return { address, call, token, rootToken: () => token(ROOT.clientId, ROOT.secret) };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
