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

/** Everything that is wrong with a folder, in one message. */
export class FolderFaults extends Error {
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

/** Lines of warnings about what is imported, at each start. */
const MAX_ADVICE = 20;

/** Attempts when somebody else changes the same things meanwhile. */
const ATTEMPTS = 3;

/**
 * Brings what is stored to what a folder says, and leaves alone what the folder does not mention. Nothing is stored before all files were
 * found to be right, and nothing at all is written when everything is as it should be. Several processes that start at once take turns.
 */
export class ImportFolder extends needs({ ...CheckFolder.needs, log: Log }) {
  /**
   * @param folder where the contents were read.
   * @param sharing `isAlone`: whether no other process can have the database, so that there is nobody to take turns with.
   * @throws FolderFaults
   */
  async execute(folder: string, contents: FolderContents, { isAlone }: { readonly isAlone: boolean }): Promise<void> {
    const run = async () => {
      for (let attempt = 1; ; attempt++) {
        const faults = await this.#apply(await this.#check(folder, contents), contents);
        if (faults.length === 0) return;
        if (attempt < ATTEMPTS) continue;
        const shown = faults.map((fault) => ({ ...fault, message: contents.redact(fault.message) }));
        throw new FolderFaults(folder, shown);
      }
    };
    try {
      if (!(await this.#isToDo(folder, contents, isAlone))) return;
      await (isAlone ? run() : inTurn(this.ports, run));
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      const shown = contents.redact(message);
      throw error instanceof FolderFaults || shown === message ? error : new Error(shown);
    }
  }

  async #isToDo(folder: string, contents: FolderContents, isAlone: boolean): Promise<boolean> {
    const { log } = this.ports;
    const checked = await new CheckFolder(this.ports).execute(contents);
    const { outcomes, documents, warnings, faults } = checked;
    if (faults.length === 0) {
      for (const each of checked.withheld) log.error(`configuration folder: ${describeFault(each)}`);
      for (const each of checked.advice.slice(0, MAX_ADVICE)) log.warn(`configuration folder: ${describeFault(each)}`);
      if (checked.advice.length > MAX_ADVICE)
        log.warn(`configuration folder: further warnings; config check names all`, { further: checked.advice.length - MAX_ADVICE });
    }
    for (const warning of warnings) log.warn(`configuration folder: ${describeFault(warning)}`);
    // What somebody else was importing meanwhile may have been in the way: who has the turn finds out.
    if (faults.length > 0 && isAlone) throw new FolderFaults(folder, faults);
    if (faults.length > 0) return true;
    const isToDo = [...outcomes.values()].some((outcome) => outcome !== 'unchanged');
    const counts = { tenants: documents.size, files: outcomes.size };
    if (!isToDo) log.info('configuration folder: everything is as it says', counts);
    return isToDo;
  }

  async #check(folder: string, contents: FolderContents): Promise<CheckedFolder> {
    const checked = await new CheckFolder(this.ports).execute(contents);
    if (checked.faults.length > 0) throw new FolderFaults(folder, checked.faults);
    return checked;
  }

  /** @returns what was refused although the dry run went well. */
  async #apply({ documents }: CheckedFolder, { asWritten }: FolderContents): Promise<FolderFault[]> {
    const { log } = this.ports;
    const administration = new Administration(this.ports);
    const faults: FolderFault[] = [];
    for (const [tenantId, own] of documents) {
      const counts = { created: 0, changed: 0, unchanged: 0 };
      const report = ({ file, kind, id }: Document, outcome: Outcome) => {
        counts[outcome]++;
        if (outcome === 'unchanged') return;
        const about = { tenantId, kind: shortName(kind), id: asWritten(id), file };
        log.info(`configuration folder: ${outcome}`, about);
      };
      const { refused } = await apply(administration, own, { report });
      log.info('configuration folder: tenant imported', { tenantId, ...counts });
      for (const [document, failure] of refused) faults.push(...folderFaultsOf(document, failure));
    }
    return faults;
  }
}

const LEASE = 'import-folder';
/** Longer than a process is busy with something else. */
const LEASE_SECONDS = 10;
const WAIT_MS = 10 * 60 * 1000;
const POLL_MS = 250;

type Ports = { readonly store: Store; readonly log: Log; readonly random: Random };

/** Runs `work` while no other process does. A process that dies gives way when its lease ends. */
async function inTurn({ store, log, random }: Ports, work: () => Promise<void>): Promise<void> {
  const holder = random.token();
  const { maintenance } = store;
  const hold = async (seconds = LEASE_SECONDS) => maintenance.tryLease(LEASE, holder, await maintenance.time(), seconds);
  const deadline = performance.now() + WAIT_MS;
  for (let isFirst = true; !(await hold()); isFirst = false) {
    if (isFirst) log.info('configuration folder: another process imports; waiting for it');
    if (performance.now() > deadline) throw new Error('another process is importing for too long');
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
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
