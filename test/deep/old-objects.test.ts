import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { freePort } from '../demo/process.ts';
import { WAIT_TIMEOUT_MS } from '../support/patience.ts';
import { startedProgram, startOptions } from '../support/start-options.ts';

const PROBE = new URL('../support/old-objects-probe.ts', import.meta.url).href;
const ROOT = { clientId: 'root', secret: 'a secret for the root client' };
const CALLERS = 12;
const WARM_UP = 3_000;
const REQUESTS = 1_500;
/** A request and its response take about 6,000 bytes. */
const MAX_BYTES_PER_REQUEST = 1_500;

// Objects that outlive their request reach the old generation, which is rarely collected.
describe('completed requests', () => {
  const agent = new Agent({ keepAlive: true, maxSockets: CALLERS });
  let folder: string;
  let address: string;
  let child: ChildProcess;
  let token = '';

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'vidimus-old-'));
    const port = await freePort(createServer);
    address = `http://127.0.0.1:${port}`;
    const { environment, nodeOptions } = startOptions();
    child = spawn(process.execPath, [...nodeOptions, '--expose-gc', `--import=${PROBE}`, startedProgram()], {
      env: {
        ...environment,
        PATH: process.env['PATH'],
        HOST: '127.0.0.1',
        PORT: String(port),
        DATA_FOLDER: folder,
        MASTER_SECRET: 'a master secret for objects that are old',
        AUTH_CLIENT_ID: ROOT.clientId,
        AUTH_CLIENT_SECRET: ROOT.secret,
      },
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    const deadline = performance.now() + WAIT_TIMEOUT_MS;
    while (!(await fetch(`${address}/health`).catch(() => undefined))?.ok) {
      if (performance.now() > deadline) throw new Error('the service does not start');
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    const roles = ['issuance:manage'];
    token = await login(ROOT.clientId, ROOT.secret);
    const { clients } = await post('/tenant', { id: 'acme', name: 'Acme', roles });
    token = '';
    token = await login('acme-admin', clients[0].secret);
  });
  after(async () => {
    agent.destroy();
    const exited = once(child, 'exit');
    child.kill('SIGTERM');
    await exited;
    rmSync(folder, { recursive: true, force: true });
  });

  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape
  async function post(path: string, json: object): Promise<any> {
    const headers = { 'Content-Type': 'application/json', ...(token && { Authorization: `Bearer ${token}` }) };
    const answer = await fetch(address + path, { method: 'POST', headers, body: JSON.stringify(json) });
    const text = await answer.text();
    expect(answer.status, text).to.be.oneOf([200, 201]);
    return JSON.parse(text);
  }
  const login = async (client_id: string, client_secret: string): Promise<string> =>
    (await post('/oauth2/token', { grant_type: 'client_credentials', client_id, client_secret })).access_token;

  async function oldBytes(message: 'collect' | 'look'): Promise<number> {
    const reply = once(child, 'message');
    child.send(message);
    return Number((await reply)[0]);
  }

  const sendRequest = (path: string, status: number) =>
    new Promise<void>((resolve, reject) => {
      const headers = { Authorization: `Bearer ${token}` };
      get(address + path, { agent, headers }, (answer) => {
        answer.resume().once('end', () => {
          if (answer.statusCode === status) resolve();
          else reject(new Error(`${path} answers ${answer.statusCode}`));
        });
      }).once('error', reject);
    });

  async function sendMany(path: string, status: number, count: number): Promise<void> {
    let remaining = count;
    const callerLoop = async () => {
      while (remaining-- > 0) await sendRequest(path, status);
    };
    await Promise.all(Array.from({ length: CALLERS }, callerLoop));
  }

  for (const [description, path, status] of [
    ['a published document', '/.well-known/openid-credential-issuer/acme', 200],
    ['what an administrator reads', '/issuer/credentials', 200],
    ['a rejection', '/session/unknown', 404],
  ] as const) {
    it(`leave no objects that slow down later requests: ${description}`, async () => {
      await sendMany(path, status, WARM_UP);
      const bytesBefore = await oldBytes('collect');
      await sendMany(path, status, REQUESTS);
      const bytes = ((await oldBytes('look')) - bytesBefore) / REQUESTS;
      expect(bytes, 'bytes that a request leaves behind').to.be.below(MAX_BYTES_PER_REQUEST);
    });
  }
});
