import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { freePort } from '../demo/process.ts';
import { WAIT_TIMEOUT_MS } from '../support/patience.ts';
import { QUERY } from '../support/present.ts';
import { startedProgram, startOptions } from '../support/start-options.ts';

const STREAMS = 1_000;
const SESSIONS = 50;
/** Limit for the memory of the streams. */
const MAX_MIB = 50;
/** Limit for the memory of the process. */
const MAX_TOTAL_MIB = 175;
/** Other systems have no such file; the streams are tested there without the measurement. */
const isMeasurable = process.platform === 'linux';
const ROOT = { clientId: 'root', secret: 'a secret for the root client' };

describe('a thousand event streams on one process', () => {
  let folder: string;
  let address: string;
  let child: ChildProcess;
  const log: string[] = [];
  const abortController = new AbortController();

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'vidimus-streams-'));
    const port = await freePort(createServer);
    address = `http://127.0.0.1:${port}`;
    const { environment, nodeOptions } = startOptions();
    child = spawn(process.execPath, [...nodeOptions, startedProgram()], {
      env: {
        ...environment,
        PATH: process.env['PATH'],
        HOST: '127.0.0.1',
        PORT: String(port),
        DATA_FOLDER: folder,
        MASTER_SECRET: 'a master secret for a thousand streams',
        AUTH_CLIENT_ID: ROOT.clientId,
        AUTH_CLIENT_SECRET: ROOT.secret,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const output of [child.stdout, child.stderr]) {
      output?.on('data', (chunk: Buffer) => log.push(chunk.toString()));
    }
    await waitUntil(async () => (await fetch(`${address}/health`)).ok);
  });
  after(async () => {
    abortController.abort();
    const exited = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGTERM');
    await exited;
    rmSync(folder, { recursive: true, force: true });
  });

  /** Waits until an attempt succeeds. */
  async function waitUntil(attempt: () => Promise<boolean>): Promise<void> {
    const deadline = performance.now() + WAIT_TIMEOUT_MS;
    while (!(await attempt().catch(() => false))) {
      if (performance.now() > deadline) throw new Error(`in vain:\n${log.join('').slice(-2_000)}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape
  async function post(path: string, json: object, token?: string): Promise<any> {
    const answer = await fetch(address + path, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...(token && { Authorization: `Bearer ${token}` }) },
      body: JSON.stringify(json),
    });
    const text = await answer.text();
    expect(answer.status, text).to.be.oneOf([200, 201]);
    return JSON.parse(text);
  }
  const login = async (client_id: string, client_secret: string): Promise<string> =>
    (await post('/oauth2/token', { grant_type: 'client_credentials', client_id, client_secret })).access_token;
  const memory = () => {
    if (!isMeasurable) return 0;
    const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
    return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
  };

  it(`use less than ${MAX_MIB} MiB, receive changes, and keep their tokens out of the log`, async () => {
    const root = await login(ROOT.clientId, ROOT.secret);
    const tenantResponse = await post(
      '/tenant',
      { id: 'acme', name: 'Acme', roles: ['presentation:manage', 'presentation:request', 'clients:manage'] },
      root,
    );
    const secret = await fetch(`${address}/client/acme-admin/secret`, { headers: { Authorization: `Bearer ${root}` } });
    expect(tenantResponse.id).to.equal('acme');
    const token = await login('acme-admin', ((await secret.json()) as { secret: string }).secret);
    await post('/verifier/config', { id: 'check', dcql_query: QUERY }, token);
    const sessions: string[] = [];
    for (let i = 0; i < SESSIONS; i++) {
      const { session } = await post('/verifier/offer', { response_type: 'uri', requestId: 'check' }, token);
      sessions.push(session);
    }
    const memoryBefore = memory();
    const streamEnds: Promise<string>[] = [];
    for (let i = 0; i < STREAMS; i++) {
      const url = `${address}/session/${sessions[i % SESSIONS]}/events?token=${token}`;
      const answer = await fetch(url, { signal: abortController.signal });
      expect(answer.status, `stream ${i}`).to.equal(200);
      streamEnds.push(answer.text());
    }
    const total = memory();
    expect(total - memoryBefore, 'MiB of the streams').to.be.lessThan(MAX_MIB);
    expect(total, 'MiB of the process').to.be.lessThan(MAX_TOTAL_MIB);

    for (const session of sessions) {
      const removed = await fetch(`${address}/session/${session}`, { method: 'DELETE', headers: { Authorization: `Bearer ${token}` } });
      expect(removed.status).to.equal(200);
    }
    const streamTexts = await Promise.all(streamEnds);
    expect(streamTexts.filter((text) => text.includes('"status":"active"'))).to.have.length(STREAMS);
    const [, , signature = ''] = token.split('.');
    expect(log.join('')).to.include('/session/:id/events').and.to.not.include(signature);
  });
});
