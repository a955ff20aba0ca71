import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { Container } from 'inversify';
import { Log } from '../application/ports/log.ts';
import { ServiceSettings } from '../application/ports/settings.ts';
import type { FolderFault } from '../config/import/folder-document.ts';
import type { Environment } from '../config/import/placeholders.ts';
import { type FolderContents, readFolder } from '../config/import/read-folder.ts';
import { importAll } from './import-all.ts';
import { type CheckedFolder, checkFolder } from './import-check.ts';
import type { ImportDocument } from './import-documents.ts';
import { faultsOf, type Outcome } from './import-outcome.ts';
import { type ImportPorts, ImportTools, importPorts } from './import-tools.ts';

/** Everything that is wrong with a folder, in one message. */
export class FolderFaults extends Error {
  readonly faults: readonly FolderFault[];

  constructor(folder: string, faults: readonly FolderFault[]) {
    super(
      `the configuration in ${folder} has faults:\n${faults.map((fault) => `  - ${describeFault(fault)}`).join('\n')}`,
    );
    this.name = 'FolderFaults';
    this.faults = faults;
  }
}

export function describeFault({ file, path, message }: FolderFault): string {
  return [file, path, message].filter((part) => part !== '').join(': ');
}

/** Attempts when somebody else changes the same things meanwhile. */
const ATTEMPTS = 3;
const LEASE = 'import-folder';
/** Longer than a process is busy with something else. */
const LEASE_SECONDS = 10;
const WAIT_MS = 10 * 60 * 1000;
const POLL_MS = 250;

type Ports = ImportPorts & { readonly log: Log };

/** `isAlone`: whether no other process can have the database, so that there is nobody to take turns with. */
type Sharing = { readonly isAlone: boolean };

/** Imports into the service that is about to start; its own address can be used as a placeholder. */
export async function importAtStart(
  container: Container,
  folder: string,
  environment: Environment,
  sharing: Sharing,
): Promise<void> {
  const { publicUrl } = container.get(ServiceSettings);
  const ports = { ...importPorts(container), log: container.get(Log) };
  await importFolder(ports, folder, { PUBLIC_URL: publicUrl, ...environment }, sharing);
}

/**
 * Brings what is stored to what the folder says, and leaves alone what the folder does not mention. Nothing is stored
 * before all files were found to be right, and nothing at all is written when everything is as it should be. Several
 * processes that start at once take turns.
 * @throws FolderFaults
 */
export async function importFolder(
  ports: Ports,
  folder: string,
  environment: Environment,
  { isAlone }: Sharing = { isAlone: false },
): Promise<void> {
  const contents = readFolder(folder, environment);
  const run = async () => {
    for (let attempt = 1; ; attempt++) {
      const checked = await check(ports, folder, contents);
      const faults = await apply(ports, checked, contents);
      if (faults.length === 0) return;
      if (attempt === ATTEMPTS) throw new FolderFaults(folder, redacted(faults, contents));
    }
  };
  try {
    if (!(await isToDo(ports, folder, contents))) return;
    await (isAlone ? run() : inTurn(ports, run));
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const shown = contents.redact(message);
    throw error instanceof FolderFaults || shown === message ? error : new Error(shown);
  }
}

async function isToDo(ports: Ports, folder: string, contents: FolderContents): Promise<boolean> {
  const { outcomes, documents, warnings } = await check(ports, folder, contents);
  for (const warning of warnings) ports.log.warn(`configuration folder: ${describeFault(warning)}`);
  const isToDo = [...outcomes.values()].some((outcome) => outcome !== 'unchanged');
  if (!isToDo) {
    ports.log.info('configuration folder: everything is as it says', {
      tenants: documents.size,
      files: outcomes.size,
    });
  }
  return isToDo;
}

async function check(ports: ImportPorts, folder: string, contents: FolderContents): Promise<CheckedFolder> {
  const checked = await checkFolder(ports, contents);
  if (checked.faults.length > 0) throw new FolderFaults(folder, checked.faults);
  return checked;
}

/** @returns what was refused although the rehearsal went well. */
async function apply(
  ports: Ports,
  { documents }: CheckedFolder,
  { asWritten }: FolderContents,
): Promise<FolderFault[]> {
  const tools = new ImportTools(ports);
  const faults: FolderFault[] = [];
  for (const [tenantId, own] of documents) {
    const counts = { created: 0, changed: 0, unchanged: 0 };
    const report = (document: ImportDocument, outcome: Outcome) => {
      counts[outcome]++;
      if (outcome === 'unchanged') return;
      const { file, kind, id } = document;
      ports.log.info(`configuration folder: ${outcome}`, { tenantId, kind, id: asWritten(id), file });
    };
    const { refused } = await importAll(tools, own, { report });
    ports.log.info('configuration folder: tenant imported', { tenantId, ...counts });
    for (const [document, failure] of refused) faults.push(...faultsOf(document, failure));
  }
  return faults;
}

/** Runs `work` while no other process does. A process that dies gives way when its lease ends. */
async function inTurn({ store: { chores }, log }: Ports, work: () => Promise<void>): Promise<void> {
  const holder = randomUUID();
  const hold = async (seconds = LEASE_SECONDS) =>
    chores.tryLease(LEASE, holder, await chores.time(), seconds);
  const deadline = performance.now() + WAIT_MS;
  for (let isFirst = true; !(await hold()); isFirst = false) {
    if (isFirst) log.info('configuration folder: another process imports; waiting for it');
    if (performance.now() > deadline) throw new Error('another process is importing for too long');
    await pause(POLL_MS);
  }
  const tryHold = (seconds?: number) =>
    hold(seconds).catch((error: unknown) => log.error('the lease of the import was not written', {}, error));
  const renewal = setInterval(() => void tryHold(), LEASE_SECONDS * 333);
  try {
    await work();
  } finally {
    clearInterval(renewal);
    await tryHold(0);
  }
}

function redacted(faults: readonly FolderFault[], { redact }: FolderContents): FolderFault[] {
  return faults.map((fault) => ({ ...fault, message: redact(fault.message) }));
}
