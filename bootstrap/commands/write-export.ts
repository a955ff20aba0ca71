import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { ExportedSecret, ExportedTenant } from '../../application/configuration-files/export-tenant.ts';

const SECRETS_FILE = 'secrets.env.example';

/** What was there already stands in the way. */
export class FolderNotEmpty extends Error {}

/**
 * Writes `<folder>/<tenant>/…`.
 * @param force whether files that are there are overwritten. None is removed.
 * @returns paths of the files, and of those that were there before and are none of them.
 * @throws FolderNotEmpty
 */
export function writeExport(
  folder: string,
  tenant: string,
  { files, secrets }: ExportedTenant,
  force: boolean,
): { readonly written: readonly string[]; readonly left: readonly string[] } {
  const target = join(folder, tenant);
  const before = existsSync(target) ? filesIn(target) : [];
  if (before.length > 0 && !force) {
    throw new FolderNotEmpty(`${target} is not empty; --force overwrites what is there`);
  }
  const texts = [
    ...files.map(({ path, document }) => ({ path, text: `${JSON.stringify(document, null, 2)}\n` })),
    { path: SECRETS_FILE, text: secretsExample(tenant, secrets) },
  ];
  for (const { path, text } of texts) {
    const file = join(target, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
  const written = texts.map(({ path }) => path);
  return { written, left: before.filter((path) => !written.includes(path)) };
}

/** A file for the values, without any. */
function secretsExample(tenant: string, secrets: readonly ExportedSecret[]): string {
  const lines = secrets.flatMap(({ name, path, member }) => [`# ${tenant}/${path}: ${member}`, `${name}=`]);
  return [
    `# Variables that the files of the tenant ${tenant} name. No value is exported.`,
    ...lines,
    '',
  ].join('\n');
}

function filesIn(folder: string): string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  const paths = entries
    .filter((entry) => !entry.isDirectory())
    .map(({ parentPath, name }) => join(parentPath, name));
  return paths.map((path) => path.slice(folder.length + 1).replaceAll('\\', '/')).sort();
}
