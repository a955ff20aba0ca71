import { join } from 'node:path';
import { ExportTenant } from '../../application/configuration-files/export-tenant.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { commandLine, endWithUsage } from './command-line.ts';
import { openStored } from './open-stored.ts';
import { writeExport } from './write-export.ts';

/**
 * `npm run config:export -- <tenant> <folder> [--force]`: writes a tenant as files that the import takes, with the
 * settings of the service, which may run meanwhile. The database is only read.
 */
const USAGE = 'npm run config:export -- <tenant> <folder> [--force]';

const { values, positionals } = commandLine(USAGE, {
  allowPositionals: true,
  options: { force: { type: 'boolean', default: false } },
});
const [tenant, folder, ...others] = positionals;
if (tenant === undefined || folder === undefined) endWithUsage(USAGE, 'give a tenant and a folder');
if (others.length > 0) endWithUsage(USAGE, 'only one tenant is exported, into one folder');
try {
  const { store } = await openStored(process.env);
  try {
    const exported = await new ExportTenant({ store }).execute(tenant as TenantId);
    const { written, left } = writeExport(folder, tenant, exported, values.force);
    for (const path of written) console.log(join(folder, tenant, path));
    for (const path of left)
      console.error(`${join(folder, tenant, path)} was there before and is not of this tenant now`);
  } finally {
    await store.close();
  }
} catch (error) {
  const unknown = error instanceof Failure && error.code === 'not_found';
  const reason = error instanceof Error ? error.message : String(error);
  console.error(unknown ? `there is no tenant "${tenant}"` : `the export failed: ${reason}`);
  process.exitCode = 1;
}
