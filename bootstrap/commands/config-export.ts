import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type ExportedSecret, type ExportedTenant, ExportTenant } from '../../application/configuration-files/export-tenant.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { commandLine, endWithUsage } from './command-line.ts';
import { openStored } from './open-stored.ts';

/**
 * `npm run config:export -- <tenant> <folder> [--force]`: writes a tenant as files that the import accepts. The command uses the
 * settings of the service, which may run meanwhile. The database is only read.
 */
const USAGE = 'npm run config:export -- <tenant> <folder> [--force]';

const SECRETS_FILE = 'secrets.env.example';

/** The target folder contains files already. */
class FolderNotEmptyError extends Error {}

const { values, positionals } = commandLine(USAGE, { allowPositionals: true, options: { force: { type: 'boolean', default: false } } });
const [tenant, folder, ...furtherArguments] = positionals;
if (tenant === undefined || folder === undefined) endWithUsage(USAGE, 'name a tenant and a folder');
if (furtherArguments.length > 0) endWithUsage(USAGE, 'only one tenant is exported, into one folder');
try {
  const { store } = await openStored(process.env);
  try {
    const exported = await new ExportTenant({ store }).execute(tenant as TenantId);
    const { writtenPaths, leftPaths } = writeExport(folder, tenant, exported, values.force);
    for (const path of writtenPaths) console.log(join(folder, tenant, path));
    for (const path of leftPaths) console.error(`${join(folder, tenant, path)} existed before and does not belong to this tenant now`);
  } finally {
    await store.close();
  }
} catch (error) {
  const unknown = error instanceof Failure && error.code === 'not_found';
  const reason = error instanceof Error ? error.message : String(error);
  console.error(unknown ? `there is no tenant "${tenant}"` : `the export failed: ${reason}`);
  process.exitCode = 1;
}

/**
 * Writes `<folder>/<tenant>/…`.
 * @param force overwrites files that are present. No file is removed.
 * @returns the paths of the written files, and of the earlier files that were not written.
 * @throws FolderNotEmptyError
 */
function writeExport(
  folder: string,
  tenant: string,
  { files, secrets }: ExportedTenant,
  force: boolean,
): { readonly writtenPaths: readonly string[]; readonly leftPaths: readonly string[] } {
  const target = join(folder, tenant);
  const earlierPaths = existsSync(target) ? filesIn(target) : [];
  if (earlierPaths.length > 0 && !force) throw new FolderNotEmptyError(`${target} is not empty; --force overwrites what is there`);
  const texts = [
    ...files.map(({ path, document }) => ({ path, text: `${JSON.stringify(document, null, 2)}\n` })),
    { path: SECRETS_FILE, text: secretsExample(tenant, secrets) },
  ];
  for (const { path, text } of texts) {
    const file = join(target, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
  const writtenPaths = texts.map(({ path }) => path);
  return { writtenPaths, leftPaths: earlierPaths.filter((path) => !writtenPaths.includes(path)) };
}

/** @returns the text of a file that lists the variables without values. */
function secretsExample(tenant: string, secrets: readonly ExportedSecret[]): string {
  const lines = secrets.flatMap(({ name, path, member }) => [`# ${tenant}/${path}: ${member}`, `${name}=`]);
  return [`# Variables in the files of the tenant ${tenant}. No value is exported.`, ...lines, ''].join('\n');
}

function filesIn(folder: string): string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => !entry.isDirectory()).map(({ parentPath, name }) => join(parentPath, name));
  return paths.map((path) => path.slice(folder.length + 1).replaceAll('\\', '/')).sort();
}
