import 'reflect-metadata';
import { describeFault } from '../../application/configuration-files/import-folder.ts';
import type { Environment } from '../../config/configuration-files/placeholders.ts';
import { checkFolderOffline } from '../start/offline-folder-check.ts';
import { type Finding, fault, ok, warning } from './finding.ts';

const CHECK = 'configuration';
/** Each line names one fault; the remaining faults are counted. */
const MAX_LINES = 20;

/** Checks `CONFIG_FOLDER` like a start, without the stored data. */
export async function checkConfigurationFolder(folder: string, environment: Environment): Promise<readonly Finding[]> {
  const { faults, withheld, advice, documents } = await checkFolderOffline(folder, environment);
  const lines = [
    ...faults.map((folderFault) =>
      fault(
        CHECK,
        describeFault(folderFault),
        'fix the file; a start fails until then. docs/reference/configuration-files.md describes the files',
      ),
    ),
    ...withheld.map((folderFault) =>
      fault(CHECK, describeFault(folderFault), 'fix the file, which is not imported until then; see docs/reference/compatibility.md'),
    ),
    ...advice.map((folderFault) => warning(CHECK, describeFault(folderFault), 'change the file as the message says')),
  ];
  const furtherCount = lines.length - MAX_LINES;
  if (furtherCount > 0)
    return [
      ...lines.slice(0, MAX_LINES),
      warning(CHECK, `${furtherCount} further messages about ${folder}`, `config check ${folder} lists all`),
    ];
  return lines.length > 0 ? lines : [ok(CHECK, `${documents.size} tenants of ${folder} are imported`)];
}
