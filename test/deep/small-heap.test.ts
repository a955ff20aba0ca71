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

/** A query of almost the maximum size with many values to compare. */
function largeQuery(id: string): object {
  const claims = Array.from({ length: 19 }, (_, index) => ({
    path: [`claim${index}`],
    values: Array.from({ length: 120 }, (__, value) => `${index}-${value}-0123456789`),
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
    for (let i = 0; i < 200 && !(await isHealthy()); i++) await new Promise((resolve) => setTimeout(resolve, 50));
    expect(await isHealthy(), errors).to.equal(true);
  });
  after(() => {
    child.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  });

  const isHealthy = async () => {
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
  const requestToken = async (client_id: string, client_secret: string) =>
    (await call('POST', '/oauth2/token', undefined, { grant_type: 'client_credentials', client_id, client_secret })).body
      .access_token as string;
  const resident = () => {
    const [, kibibytes] = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8')) ?? [];
    return Math.round(Number(kibibytes) / 1024);
  };

  it(`of ${HEAP_MEBIBYTES} MB survives the largest load that its limits admit at once`, async () => {
    const root = await requestToken(ROOT.clientId, ROOT.secret);
    const tokens: string[] = [];
    let configuredTenants = 0;
    for (let i = 0; i < TENANTS; i++) {
      const tenantResponse = await call('POST', '/tenant', root, { id: `t${i}`, name: `T${i}`, roles: TENANT_ROLES });
      expect(tenantResponse.status, tenantResponse.text).to.equal(201);
      const token = await requestToken(`t${i}-admin`, (await call('GET', `/client/t${i}-admin/secret`, root)).body.secret);
      tokens.push(token);
      let configuredCount = 0;
      // Fill the quota of bytes.
      for (; configuredCount < 400; configuredCount++) {
        const dcql_query = largeQuery(`${configuredCount}`);
        const body = { id: `c${configuredCount}`, responseMode: 'direct_post', dcql_query };
        const answer = await call('POST', '/verifier/config', token, body);
        if (answer.status !== 201) {
          expect([answer.status, /QUOTA_CONFIG_BYTES/.test(answer.text)], answer.text).to.deep.equal([409, true]);
          break;
        }
      }
      expect(configuredCount).to.be.greaterThan(5);
      configuredTenants = configuredCount;
    }
    const load = async (tenantIndex: number) => {
      const token = tokens[tenantIndex % TENANTS] as string;
      const requestResponse = await call('POST', '/verifier/offer', token, {
        response_type: 'uri',
        requestId: `c${Math.floor(tenantIndex / TENANTS) % configuredTenants}`,
      });
      expect(requestResponse.status, requestResponse.text).to.equal(201);
      const url = new URL(requestResponse.body.uri).searchParams.get('request_uri') ?? '';
      const request = await call('GET', url, undefined);
      const payload = JSON.parse(Buffer.from(request.text.split('.')[1] ?? '', 'base64url').toString());
      const disclosure = Buffer.from(JSON.stringify(['s', 'n', 'x'.repeat(90_000)])).toString('base64url');
      const text = `state=${payload.state}&vp_token={"card":["${`${disclosure}~`.repeat(8)}"]}`;
      const answer = await fetch(payload.response_uri, { method: 'POST', headers: FORM, body: text });
      await answer.arrayBuffer();
      return answer.status;
    };
    const statusCounts = new Map<number, number>();
    for (let attempt = 0; attempt < 2; attempt++) {
      const statuses = await Promise.all(Array.from({ length: 30 }, (_, i) => load(attempt * 30 + i)));
      for (const status of statuses) statusCounts.set(status, (statusCounts.get(status) ?? 0) + 1);
    }
    expect(child.exitCode, errors).to.equal(null);
    expect(await isHealthy(), errors).to.equal(true);
    expect(resident(), 'MiB at most, with what lies beside the heap').to.be.lessThan(450);
    expect([...statusCounts.keys()].every((status) => status === 400 || status === 503)).to.equal(true);
  });
});
