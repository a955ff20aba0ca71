import 'reflect-metadata';
import { describeFault } from '../../application/configuration-files/import-folder.ts';
import { shortName } from '../../domain/configuration-files/folder.ts';
import { PROFILES, Profile } from '../../domain/shared/finding.ts';
import { checkFolderOffline } from '../start/offline-folder-check.ts';
import { commandLine, endWithUsage } from './command-line.ts';

/**
 * `npm run config:check -- <folder> [--profile haip|eu] [--strict]`: checks a folder without a database and without network, like a
 * service that has none of these tenants. Key providers are read from KMS_CONFIG or from `kms.json` in DATA_FOLDER. The command prints
 * the files that would be imported, or every fault, and ends with 0 or 1. `--profile` adds the notes that tenants without a profile
 * would get under this profile. With `--strict` the command ends with 1 if a file is not imported.
 */
const USAGE = `npm run config:check -- <folder> [--profile ${PROFILES.join('|')}] [--strict]`;

const { positionals, values } = commandLine(USAGE, {
  allowPositionals: true,
  options: { profile: { type: 'string' }, strict: { type: 'boolean', default: false } },
});
const profile = values.profile === undefined ? null : profileNamed(values.profile);
const [folder = endWithUsage(USAGE, 'a folder is missing'), ...furtherFolders] = positionals;
if (furtherFolders.length > 0) endWithUsage(USAGE, 'only one folder is checked');
try {
  const { documents, faults, warnings, withheld, advice, contents } = await checkFolderOffline(folder, process.env, profile);
  const allDocuments = [...documents.values()].flat();
  for (const warning of warnings) console.error(`warning: ${describeFault(warning)}`);
  if (faults.length === 0) {
    for (const each of withheld) console.error(`warning: ${describeFault(each)}`);
    // These settings are valid, but other parties may not accept them.
    for (const each of advice) console.error(`note: ${describeFault(each)}`);
    for (const { file, kind, id } of allDocuments) console.log(`${file}: ${shortName(kind)} ${contents.withPlaceholders(id)}`.trimEnd());
    if (withheld.length > 0) {
      console.error(`${folder}: ${withheld.length === 1 ? '1 file is' : `${withheld.length} files are`} not imported`);
      if (values.strict) process.exitCode = 1;
    }
    if (documents.size === 0)
      console.error(`warning: ${folder} has no tenant. A tenant is a folder with tenant.json: ${folder}/<tenant>/tenant.json`);
    const tenants = documents.size === 1 ? '1 tenant' : `${documents.size} tenants`;
    console.log(`${folder}: ${allDocuments.length} files of ${tenants} are valid`);
  } else {
    const fileFaults = faults.filter(({ file }) => file !== '');
    for (const fault of fileFaults) console.error(describeFault(fault));
    for (const { file, message } of faults) if (file === '') console.error(`${folder}: ${message}`);
    const count = fileFaults.length === 1 ? '1 fault' : `${fileFaults.length} faults`;
    if (fileFaults.length > 0) console.error(`${folder}: ${count}; nothing would be imported`);
    process.exitCode = 1;
  }
} catch (error) {
  console.error(`the check failed: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}

function profileNamed(name: string): Profile {
  const { data } = Profile.safeParse(name);
  return data ?? endWithUsage(USAGE, `Unknown profile ${JSON.stringify(name)} in --profile. Allowed: ${PROFILES.join(', ')}.`);
}
