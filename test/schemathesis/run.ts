import 'reflect-metadata';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { addClient, populate } from '../support/populated.ts';
import { startTestService } from '../support/test-service.ts';
import { EXPECTED } from './expected.ts';
import { unexpectedRefusals } from './refusals.ts';

/**
 * `node test/schemathesis/run.ts [-- options of schemathesis]`: a service with one tenant that has all kinds of resources,
 * and generated requests from its API document. `SCHEMATHESIS` names the program. Operations of different roles are called
 * in separate runs: as an account that manages tenants, as one that manages clients and may take its own rights away, and
 * as the tenant's administrator.
 */
const program = process.env['SCHEMATHESIS'] ?? 'schemathesis';
const options = process.argv.slice(2).filter((option) => option !== '--');

/** Calls of the many are wanted here. */
const UNLIMITED = Object.fromEntries(['TOKEN', 'OFFER', 'NONCE', 'LOGIN'].map((group) => [`RATE_LIMIT_${group}`, '1000000']));

const OF_TENANTS = ['--include-path-regex', '^/tenant'];
const OF_CLIENTS = ['--include-path-regex', '^/client'];
const OF_THE_TENANT = [
  '--exclude-path-regex',
  // The stream lasts as long as its session; the page is no part of the interface.
  '^/(tenant|client|docs|session/[^/]+/events)',
];

async function run(token: string, address: string, extraArgs: readonly string[]): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'vidimus-schemathesis-'));
  const file = join(folder, 'schemathesis.toml');
  writeFileSync(file, `headers.Authorization = "Bearer ${token}"\n${EXPECTED}`, { mode: 0o600 });
  const events = join(folder, 'events.ndjson');
  const reporting = ['--report', 'ndjson', '--report-ndjson-path', events];
  // How long a generator takes to make up a query says nothing of the service.
  const patience = ['--suppress-health-check', 'too_slow'];
  const child = spawn(
    program,
    ['--config-file', file, 'run', `${address}/openapi.json`, ...reporting, ...patience, ...extraArgs, ...options],
    { stdio: 'inherit', cwd: folder },
  );
  const code = await new Promise<number>((resolve) => {
    child.once('error', () => {
      console.error(`${program} does not start; see test/README.md`);
      resolve(2);
    });
    child.once('exit', (status) => resolve(status ?? 1));
  });
  const refusals = code > 1 ? [] : await unexpectedRefusals(events);
  for (const { operation, path, message } of refusals)
    console.error(`allowed by the document, and refused: ${operation}: ${path}: ${message}`);
  rmSync(folder, { recursive: true });
  return Math.max(code, refusals.length > 0 ? 1 : 0);
}

const service = await startTestService(UNLIMITED);
const tenant = await populate(service, 'anvils');
const clients = await addClient(tenant, 'anvils-clients', { roles: ['clients:manage'] });
const codes = [
  await run(tenant.token, service.address, OF_THE_TENANT),
  await run(clients, service.address, OF_CLIENTS),
  await run(await service.rootToken(), service.address, OF_TENANTS),
];
await service.close();
process.exit(Math.max(...codes));
