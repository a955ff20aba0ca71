import { type FolderContents, type FolderFault, shortName } from '../../domain/configuration-files/folder.ts';
import { needs } from '../needs.ts';
import { Log } from '../ports/log.ts';
import type { Random } from '../ports/random.ts';
import type { Store } from '../ports/store.ts';
import { Administration } from './administration.ts';
import { apply } from './apply.ts';
import { type CheckedFolder, CheckFolder } from './check.ts';
import { type Document, folderFaultsOf } from './documents.ts';
import type { Outcome } from './outcome.ts';

export class FolderFaultsError extends Error {
  readonly faults: readonly FolderFault[];

  constructor(folder: string, faults: readonly FolderFault[]) {
    const lines = faults.map((fault) => `  - ${describeFault(fault)}`);
    super(`the configuration in ${folder} has faults:\n${lines.join('\n')}`);
    this.name = 'FolderFaults';
    this.faults = faults;
  }
}

export function describeFault({ file, path, message }: FolderFault): string {
  return [file, path, message].filter((part) => part !== '').join(': ');
}

/** Limit of logged warnings at each start. */
const MAX_ADVICE = 20;

/** Limit of retries after concurrent changes. */
const MAX_ATTEMPTS = 3;

/**
 * Imports a folder: what the folder does not contain is left unchanged. Nothing is stored unless all files are valid, and nothing is
 * written if everything is up to date. Processes that start at the same time import sequentially.
 */
export class ImportFolder extends needs({ ...CheckFolder.needs, log: Log }) {
  /**
   * @param folder for messages.
   * @param sharing `isAlone`: true if no other process can use the database, so that no lease is needed.
   * @throws FolderFaultsError
   */
  async execute(folder: string, contents: FolderContents, { isAlone }: { readonly isAlone: boolean }): Promise<void> {
    const run = async () => {
      for (let attempt = 1; ; attempt++) {
        const faults = await this.#apply(await this.#check(folder, contents), contents);
        if (faults.length === 0) return;
        if (attempt < MAX_ATTEMPTS) continue;
        const redactedFaults = faults.map((fault) => ({ ...fault, message: contents.redact(fault.message) }));
        throw new FolderFaultsError(folder, redactedFaults);
      }
    };
    try {
      if (!(await this.#isImportNeeded(folder, contents, isAlone))) return;
      await (isAlone ? run() : withImportLease(this.ports, run));
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      const redacted = contents.redact(message);
      throw error instanceof FolderFaultsError || redacted === message ? error : new Error(redacted);
    }
  }

  async #isImportNeeded(folder: string, contents: FolderContents, isAlone: boolean): Promise<boolean> {
    const { log } = this.ports;
    const checked = await new CheckFolder(this.ports).execute(contents);
    const { outcomes, documents, warnings, faults } = checked;
    if (faults.length === 0) {
      for (const fault of checked.withheld) log.error(`configuration folder: ${describeFault(fault)}`);
      for (const fault of checked.advice.slice(0, MAX_ADVICE)) log.warn(`configuration folder: ${describeFault(fault)}`);
      if (checked.advice.length > MAX_ADVICE)
        log.warn(`configuration folder: further warnings; config check lists all`, { further: checked.advice.length - MAX_ADVICE });
    }
    for (const warning of warnings) log.warn(`configuration folder: ${describeFault(warning)}`);
    // A concurrent import may be the cause, so the check is repeated with the lease.
    if (faults.length > 0 && isAlone) throw new FolderFaultsError(folder, faults);
    if (faults.length > 0) return true;
    const isNeeded = [...outcomes.values()].some((outcome) => outcome !== 'unchanged');
    const counts = { tenants: documents.size, files: outcomes.size };
    if (!isNeeded) log.info('configuration folder: no changes', counts);
    return isNeeded;
  }

  async #check(folder: string, contents: FolderContents): Promise<CheckedFolder> {
    const checked = await new CheckFolder(this.ports).execute(contents);
    if (checked.faults.length > 0) throw new FolderFaultsError(folder, checked.faults);
    return checked;
  }

  /** @returns faults of documents that were rejected although the dry run accepted them. */
  async #apply({ documents }: CheckedFolder, { withPlaceholders }: FolderContents): Promise<FolderFault[]> {
    const { log } = this.ports;
    const administration = new Administration(this.ports);
    const faults: FolderFault[] = [];
    for (const [tenantId, tenantDocuments] of documents) {
      const counts = { created: 0, changed: 0, unchanged: 0 };
      const report = ({ file, kind, id }: Document, outcome: Outcome) => {
        counts[outcome]++;
        if (outcome === 'unchanged') return;
        const logFields = { tenantId, kind: shortName(kind), id: withPlaceholders(id), file };
        log.info(`configuration folder: ${outcome}`, logFields);
      };
      const { failures } = await apply(administration, tenantDocuments, { report });
      log.info('configuration folder: tenant imported', { tenantId, ...counts });
      for (const [document, failure] of failures) faults.push(...folderFaultsOf(document, failure));
    }
    return faults;
  }
}

const LEASE = 'import-folder';
/** Longer than a process is blocked by other work. */
const LEASE_SECONDS = 10;
const WAIT_MS = 10 * 60 * 1000;
const POLL_MS = 250;

type Ports = { readonly store: Store; readonly log: Log; readonly random: Random };

/** Runs `work` with an exclusive lease. The lease of a process that dies expires. */
async function withImportLease({ store, log, random }: Ports, work: () => Promise<void>): Promise<void> {
  const holder = random.token();
  const { maintenance } = store;
  const acquire = async (seconds = LEASE_SECONDS) => maintenance.tryLease(LEASE, holder, await maintenance.time(), seconds);
  const deadline = performance.now() + WAIT_MS;
  for (let isFirst = true; !(await acquire()); isFirst = false) {
    if (isFirst) log.info('configuration folder: another process imports; waiting for it');
    if (performance.now() > deadline) throw new Error('the import of another process takes too long');
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  const tryAcquire = (seconds?: number) =>
    acquire(seconds).catch((error: unknown) => log.error('the lease of the import was not written', {}, error));
  const renewal = setInterval(() => void tryAcquire(), LEASE_SECONDS * 333);
  try {
    await work();
  } finally {
    clearInterval(renewal);
    await tryAcquire(0);
  }
}
