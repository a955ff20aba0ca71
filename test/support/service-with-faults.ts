import { mkdtempSync, rmSync } from 'node:fs';
import { createServer as createPlain, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { createServer as createSecure } from 'node:https';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Finding } from '../../bootstrap/doctor/finding.ts';
import { freePort } from '../demo/process.ts';
import { type ProcessResult, type RunningProgram, runProcess, startProgram, waitForAnswer } from './programs.ts';
import { startedProgram } from './start-options.ts';
import { type Callable, createTenant } from './test-service.ts';
import { callerFor } from './worker-service.ts';

export const SECRET = 'root-secret-for-the-tests';
export const MASTER_SECRET = 'a master secret that is only for tests 0123456789';

type DoctorResult = ProcessResult & { readonly findings: readonly Finding[] };

/** A service, an optional proxy in front of it, and the doctor command that checks both. */
export class DoctorService {
  readonly folder = mkdtempSync(join(tmpdir(), 'vidimus-doctor-'));
  readonly port: number;
  readonly environment: Record<string, string>;
  readonly #closers: (() => void)[] = [];

  private constructor(port: number) {
    this.port = port;
    this.environment = {
      ...{ PORT: String(port), DATA_FOLDER: this.folder, LOG_LEVEL: 'warn', DRAIN_SECONDS: '0' },
      ...{ AUTH_CLIENT_ID: 'root', AUTH_CLIENT_SECRET: SECRET, MASTER_SECRET: MASTER_SECRET },
    };
  }

  static async make(): Promise<DoctorService> {
    return new DoctorService(await freePort(createServer));
  }

  async start(extra: Readonly<Record<string, string>> = {}): Promise<RunningProgram> {
    const environment = { ...this.environment, ...extra, PATH: process.env['PATH'] };
    const service = startProgram(process.execPath, [startedProgram()], { environment, cwd: this.folder });
    await waitForAnswer(service, `http://127.0.0.1:${this.port}/health`);
    return service;
  }

  /** Runs the doctor with the settings of the service and `more`; its output must contain no secret. */
  async examine(extra: Readonly<Record<string, string>> = {}, ...args: string[]): Promise<DoctorResult> {
    const doctorResult = await runProcess('commands/doctor', ['--json', ...args], { ...this.environment, ...extra });
    for (const secret of [SECRET, MASTER_SECRET]) expect(doctorResult.stdout + doctorResult.stderr).to.not.include(secret);
    return { ...doctorResult, findings: parseFindings(doctorResult) };
  }

  get calls(): Callable {
    return callerFor(`http://127.0.0.1:${this.port}`);
  }

  /** Creates a tenant. @returns the token of its administrator. */
  async makeTenant(): Promise<string> {
    return (await createTenant(this.calls, 'acme')).token;
  }

  /** Starts a proxy in front of the service with the faults in `change`. @returns its address. */
  async startProxy(change: ProxyChange = {}): Promise<string> {
    const handle = proxyTo(this.port, change);
    const server = change.certificate ? createSecure(change.certificate, handle) : createPlain(handle);
    this.#closers.push(() => void server.close());
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    return `${change.certificate ? 'https' : 'http'}://localhost:${port}`;
  }

  /** Call it after the programs have stopped. */
  remove(): void {
    for (const close of this.#closers.splice(0)) close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export type ProxyChange = {
  readonly dropsRequestHeader?: string;
  readonly dropsResponseHeader?: string;
  readonly hiddenPath?: string;
  readonly maxBody?: number;
  readonly certificate?: { readonly key: string; readonly cert: string };
};

function proxyTo(port: number, { dropsRequestHeader, dropsResponseHeader, hiddenPath, maxBody }: ProxyChange) {
  return (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const isLarge = Number(incoming.headers['content-length'] ?? 0) > (maxBody ?? Infinity);
    if (isLarge || (hiddenPath !== undefined && incoming.url?.startsWith(hiddenPath)))
      return outgoing.writeHead(isLarge ? 413 : 404, { 'Content-Type': 'text/html', Connection: 'close' }).end('<html>');
    const headers = Object.fromEntries(Object.entries(incoming.headers).filter(([name]) => name !== dropsRequestHeader));
    const onward = request({ port, host: '127.0.0.1', path: incoming.url, method: incoming.method, headers }, (answer) => {
      const keptHeaders = Object.entries(answer.headers).filter(([name]) => name !== dropsResponseHeader);
      outgoing.writeHead(answer.statusCode ?? 502, Object.fromEntries(keptHeaders));
      answer.pipe(outgoing);
    });
    onward.on('error', () => outgoing.destroy());
    return incoming.pipe(onward);
  };
}

function parseFindings({ stdout, stderr }: ProcessResult): readonly Finding[] {
  try {
    return (JSON.parse(stdout) as { findings: Finding[] }).findings;
  } catch {
    throw new Error(`the doctor did not say what it found: ${stdout}${stderr}`);
  }
}

export function messages(findings: readonly Finding[], outcome?: Finding['outcome'], check?: string): string {
  return findings
    .filter((each) => (outcome === undefined || each.outcome === outcome) && (check === undefined || each.check === check))
    .map(({ message }) => message)
    .join('\n');
}
