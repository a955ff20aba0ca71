import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer as createTcpServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { freePort } from '../demo/process.ts';
import { minimalEnvironment } from '../support/compile-cache.ts';
import { startedProgram, startOptions } from '../support/start-options.ts';
import { ROOT, TENANT_ROLES } from '../support/test-service.ts';

const HEAP_MEBIBYTES = 256;
const TENANTS = 3;
const FORM = { 'Content-Type': 'application/x-www-form-urlencoded' };

/** A query about as large as a request may be, of values that are compared one by one. */
function queryOf(id: string): object {
  const claims = Array.from({ length: 19 }, (_, at) => ({
    path: [`claim${at}`],
    values: Array.from({ length: 120 }, (__, value) => `${at}-${value}-0123456789`),
  }));
  const meta = { vct_values: [`urn:c:${id}`] };
  return { credentials: [{ id: 'card', format: 'dc+sd-jwt', meta, claims }] };
}

describe('service with a small heap', () => {
  let folder: string;
  let address: string;
  let child: ReturnType<typeof spawn>;
  let errors = '';

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'vidimus-test-'));
    const port = await freePort(createTcpServer);
    address = `http://localhost:${port}`;
    child = spawn(process.execPath, [...startOptions().nodeOptions, `--max-old-space-size=${HEAP_MEBIBYTES}`, startedProgram()], {
      env: {
        ...minimalEnvironment(),
        PORT: String(port),
        DATA_FOLDER: folder,
        AUTH_CLIENT_ID: ROOT.clientId,
        AUTH_CLIENT_SECRET: ROOT.secret,
        MASTER_SECRET: 'a master secret for a service with a small heap',
        LOG_LEVEL: 'error',
        RATE_LIMIT_TOKEN: '0',
        RATE_LIMIT_NONCE: '0',
      },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    child.stderr?.on('data', (chunk: Buffer) => {
      errors += chunk.toString();
    });
    for (let i = 0; i < 200 && !(await isUp()); i++) await new Promise((done) => setTimeout(done, 50));
    expect(await isUp(), errors).to.equal(true);
  });
  after(() => {
    child.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  });

  const isUp = async () => {
    try {
      return (await fetch(`${address}/health`)).ok;
    } catch {
      return false;
    }
  };
  const call = async (method: string, path: string, token: string | undefined, json?: unknown) => {
    const answer = await fetch(path.startsWith('http') ? path : address + path, {
      method,
      headers: {
        ...(token !== undefined && { Authorization: `Bearer ${token}` }),
        ...(json !== undefined && { 'Content-Type': 'application/json' }),
      },
      ...(json !== undefined && { body: JSON.stringify(json) }),
    });
    const text = await answer.text();
    return { status: answer.status, text, body: text.startsWith('{') ? JSON.parse(text) : undefined };
  };
  const tokenOf = async (client_id: string, client_secret: string) =>
    (await call('POST', '/oauth2/token', undefined, { grant_type: 'client_credentials', client_id, client_secret })).body
      .access_token as string;
  const resident = () => {
    const [, kibibytes] = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8')) ?? [];
    return Math.round(Number(kibibytes) / 1024);
  };

  it(`of ${HEAP_MEBIBYTES} MB survives the largest load that its limits admit at once`, async () => {
    const root = await tokenOf(ROOT.clientId, ROOT.secret);
    const tokens: string[] = [];
    let configured = 0;
    for (let i = 0; i < TENANTS; i++) {
      const made = await call('POST', '/tenant', root, { id: `t${i}`, name: `T${i}`, roles: TENANT_ROLES });
      expect(made.status, made.text).to.equal(201);
      const token = await tokenOf(`t${i}-admin`, (await call('GET', `/client/t${i}-admin/secret`, root)).body.secret);
      tokens.push(token);
      let written = 0;
      // Up to the quota of bytes.
      for (; written < 400; written++) {
        const dcql_query = queryOf(`${written}`);
        const body = { id: `c${written}`, responseMode: 'direct_post', dcql_query };
        const answer = await call('POST', '/verifier/config', token, body);
        if (answer.status !== 201) {
          expect([answer.status, /QUOTA_CONFIG_BYTES/.test(answer.text)], answer.text).to.deep.equal([409, true]);
          break;
        }
      }
      expect(written).to.be.greaterThan(5);
      configured = written;
    }
    const load = async (turn: number) => {
      const token = tokens[turn % TENANTS] as string;
      const asked = await call('POST', '/verifier/offer', token, {
        response_type: 'uri',
        requestId: `c${Math.floor(turn / TENANTS) % configured}`,
      });
      expect(asked.status, asked.text).to.equal(201);
      const url = new URL(asked.body.uri).searchParams.get('request_uri') ?? '';
      const request = await call('GET', url, undefined);
      const payload = JSON.parse(Buffer.from(request.text.split('.')[1] ?? '', 'base64url').toString());
      const disclosure = Buffer.from(JSON.stringify(['s', 'n', 'x'.repeat(90_000)])).toString('base64url');
      const text = `state=${payload.state}&vp_token={"card":["${`${disclosure}~`.repeat(8)}"]}`;
      const answer = await fetch(payload.response_uri, { method: 'POST', headers: FORM, body: text });
      await answer.arrayBuffer();
      return answer.status;
    };
    const seen = new Map<number, number>();
    for (let round = 0; round < 2; round++) {
      const statuses = await Promise.all(Array.from({ length: 30 }, (_, i) => load(round * 30 + i)));
      for (const status of statuses) seen.set(status, (seen.get(status) ?? 0) + 1);
    }
    expect(child.exitCode, errors).to.equal(null);
    expect(await isUp(), errors).to.equal(true);
    expect(resident(), 'MiB at most, with what lies beside the heap').to.be.lessThan(450);
    expect([...seen.keys()].every((status) => status === 400 || status === 503)).to.equal(true);
  });
});
