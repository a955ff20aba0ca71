import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const source = fileURLToPath(new URL('../generated-client/', import.meta.url));
const packages = join(source, 'node_modules');

/** The client generator has its own lockfile, since it needs another compiler than the service. */
export function isClientGeneratorInstalled(): boolean {
  if (existsSync(packages)) return true;
  const message = 'the generator of clients is not installed (npm ci --prefix test/generated-client)';
  if (process.env['CI'] === 'true') throw new Error(message);
  console.log(`      skipped: ${message}`);
  return false;
}

/** The signature of `test/generated-client/whole-run.ts`, which imports nothing of the service. */
type WholeRun = (
  service: { readonly address: string; readonly clientId: string; readonly secret: string },
  wallet: { collect(tenant: string, uri: string): Promise<void>; present(uri: string): Promise<void> },
) => Promise<{ readonly seen: readonly string[] }>;

type GeneratedClient = {
  /** The output of the compiler; empty without errors. */
  readonly faults: string;
  load(): Promise<{ readonly wholeRun: WholeRun }>;
  remove(): void;
};

/** Generates the client of a document with the published `openapi-typescript`, and compiles a program that uses it. */
export async function generateClient(document: unknown): Promise<GeneratedClient> {
  const folder = mkdtempSync(join(tmpdir(), 'vidimus-client-'));
  for (const name of ['whole-run.ts', 'tsconfig.json', 'package.json']) {
    cpSync(join(source, name), join(folder, name));
  }
  symlinkSync(packages, join(folder, 'node_modules'));
  writeFileSync(join(folder, 'openapi.json'), JSON.stringify(document));
  const bin = (name: string) => join(packages, '.bin', name);
  await run(bin('openapi-typescript'), ['openapi.json', '-o', 'schema.d.ts'], { cwd: folder });
  const faults = await run(bin('tsc'), ['-p', '.'], { cwd: folder }).then(
    () => '',
    (error: { stdout?: string }) => error.stdout ?? String(error),
  );
  return {
    faults,
    load: () => import(pathToFileURL(join(folder, 'whole-run.ts')).href),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
