import 'reflect-metadata';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildOpenApi } from '../adapters/http/openapi/openapi.ts';
import type { Route } from '../adapters/http/route.ts';
import { Closers } from '../bootstrap/wiring/closers.ts';
import { openPlatform } from '../bootstrap/wiring/platform.ts';
import { collectRoutes } from '../bootstrap/wiring/routes.ts';
import { readSettings } from '../config/settings.ts';

const GENERATOR = fileURLToPath(new URL('../test/generated-client/node_modules/.bin/openapi-typescript', import.meta.url));
const FILE = new URL('../packages/client/src/api.d.ts', import.meta.url);
const NOTE = '/** Written by `npm run client:generate` from the OpenAPI document; not to be edited. */\n';

type OperationResponses = { readonly responses: Record<string, unknown> };
type Document = { readonly paths: Readonly<Record<string, Readonly<Record<string, OperationResponses>>>> };

/** @returns the document without the calls of wallets and without the responses that the client throws: a quarter of the whole. */
function forClients(routes: readonly Route[]): Document {
  const clientRoutes = routes.filter(({ path }) => !path.includes('/:tenant'));
  const document = buildOpenApi(clientRoutes, { publicUrl: 'http://localhost:3000', version: '0', isExact: true }) as Document;
  for (const { responses } of Object.values(document.paths).flatMap((item) => Object.values(item))) {
    for (const status of Object.keys(responses)) if (Number(status) >= 400) delete responses[status];
  }
  return document;
}

/** @returns the types of all operations of a backend. The generator has a lock file of its own, since it needs an older compiler. */
export function clientTypes(routes: readonly Route[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'vidimus-types-'));
  try {
    writeFileSync(join(folder, 'openapi.json'), JSON.stringify(forClients(routes)));
    execFileSync(GENERATOR, ['openapi.json', '-o', 'api.d.ts', '--root-types=false'], { cwd: folder, stdio: 'pipe' });
    const text = readFileSync(join(folder, 'api.d.ts'), 'utf8');
    const generated = text.replace(/^\/\*\*[\s\S]*?\*\/\n\n?/, '');
    return NOTE + generated.replaceAll(/^ +/gm, (indent) => ' '.repeat(Math.ceil(indent.length / 2)));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

if (process.argv[1]?.endsWith('write-client-types.ts') === true) {
  const closers = new Closers();
  const settings = readSettings({
    DATABASE_URL: 'sqlite::memory:',
    MASTER_SECRET: 'no secret here since nothing is sealed with it',
    AUTH_CLIENT_ID: 'nobody',
    AUTH_CLIENT_SECRET: 'no one can log in with it',
    LOG_LEVEL: 'silent',
  });
  writeFileSync(FILE, clientTypes(collectRoutes(await openPlatform(settings, closers))));
  await closers.closeAll();
}
