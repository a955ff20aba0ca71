import 'reflect-metadata';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { Container } from 'inversify';
import { Store } from '../application/ports/store.ts';
import { readSettings } from '../config/settings.ts';
import { Failure } from '../domain/shared/failure.ts';
import type { TenantId } from '../domain/shared/ids.ts';
import { writeExport } from './export-files.ts';
import { exportTenant } from './export-tenant.ts';
import { modules } from './modules/all.ts';
import { Closers, openAdapters } from './modules/platform.ts';

/**
 * `npm run config:export -- <tenant> <folder> [--force]`: writes a tenant as files that the import takes, with the
 * settings of the service, which may run meanwhile. The tenant is only read; an older database is brought up to date, as
 * by a start.
 */
const force = process.argv.includes('--force');
const [tenant, folder, ...others] = process.argv.slice(2).filter((argument) => argument !== '--force');
if (tenant === undefined || folder === undefined || others.length > 0) {
  console.error('usage: npm run config:export -- <tenant> <folder> [--force]');
  process.exit(2);
}
const closers = new Closers();
try {
  const settings = readSettings({
    ...keptSecrets(),
    ...given(),
    LOG_LEVEL: 'silent',
    CONFIG_FOLDER: undefined,
  });
  const container = new Container();
  // An export only reads.
  container.load(await openAdapters(settings, closers, { migrates: false }), ...modules);
  const exported = await exportTenant(container.get(Store), tenant as TenantId);
  const { written, left } = writeExport(folder, tenant, exported, force);
  for (const path of written) console.log(join(folder, tenant, path));
  for (const path of left)
    console.error(`${join(folder, tenant, path)} was there before and is not of this tenant now`);
} catch (error) {
  const unknown = error instanceof Failure && error.code === 'not_found';
  const reason = error instanceof Error ? error.message : String(error);
  console.error(unknown ? `there is no tenant "${tenant}"` : `the export failed: ${reason}`);
  process.exitCode = 1;
} finally {
  await closers.closeAll();
}

/** What the first start generated; nothing is generated here. */
function keptSecrets(): Record<string, string | undefined> {
  const file = join(process.env['DATA_FOLDER'] || './data', 'secrets.env');
  if (process.env['NODE_ENV'] === 'production' || !existsSync(file)) return {};
  return parseEnv(readFileSync(file, 'utf8'));
}

function given(): Record<string, string | undefined> {
  return Object.fromEntries(
    Object.entries(process.env).filter(([, value]) => value !== undefined && value !== ''),
  );
}
