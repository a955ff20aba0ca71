import { setTimeout as pause } from 'node:timers/promises';
import type { Maintenance, ResealCursor } from '../../application/ports/maintenance.ts';
import { SEALING_NOTE_MS } from '../start/sealing-note.ts';
import { commandLine, endWithUsage } from './command-line.ts';
import { openStored } from './open-stored.ts';

/**
 * `npm run reseal`: seals all data under the first master secret that are sealed under a later secret of the list. It works in small
 * steps while the service runs. The command can be interrupted and started again. Afterwards the former secrets can be removed. It ends
 * with 0 when no such data are left, and with 1 otherwise.
 */
const USAGE = 'npm run reseal';
const BATCH = 200;
/** A process that has not been restarted still seals under a former secret; the command then looks again. */
const LOOK_AGAIN_MS = 2_000;
const MAX_PASSES = 20;
/** Within this time every process has noted the secret under which it seals. */
const SEALING_NOTES_MS = 2 * SEALING_NOTE_MS;
const PROGRESS_EVERY_MS = 2_000;

const { positionals } = commandLine(USAGE, { allowPositionals: true });
if (positionals.length > 0) endWithUsage(USAGE, 'it accepts no arguments');
try {
  process.exitCode = (await reseal()) ? 0 : 1;
} catch (error) {
  console.error(`not everything was resealed: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}

async function reseal(): Promise<boolean> {
  const { store, cipher } = await openStored(process.env);
  try {
    if (cipher.keyIds.length < 2) {
      console.error(
        'MASTER_SECRET has one secret. Add the new one before it, separated by a comma, restart all processes of the ' +
          'service with both, and run this again with the same setting.',
      );
      return false;
    }
    const { maintenance } = store;
    for (let pass = 0; pass < MAX_PASSES; pass++) {
      const pendingCount = await maintenance.pendingReseals();
      const doneCount = await resealPass(maintenance, pendingCount);
      if (pendingCount === 0 && doneCount === 0) {
        await maintenance.endReseal(await maintenance.time());
        await pause(SEALING_NOTES_MS);
        const resealed = await maintenance.resealedKeys();
        if (!cipher.keyIds.slice(1).every((id) => resealed.includes(id))) break;
        console.log(
          'All data is sealed under the first secret. The former ones can be removed from MASTER_SECRET at the next ' +
            'restart of all processes.',
        );
        return true;
      }
      await pause(LOOK_AGAIN_MS);
    }
    console.error(
      'Data is still being sealed under a former secret: a process was not restarted with the new one ' +
        'first. Restart it and run this again.',
    );
    return false;
  } finally {
    await store.close();
  }
}

/** @returns the number of sealed texts. */
async function resealPass(maintenance: Maintenance, pending: number): Promise<number> {
  let cursor: ResealCursor | undefined;
  let done = 0;
  let printedAt = Date.now();
  do {
    const step = await maintenance.reseal(BATCH, cursor);
    done += step.done;
    cursor = step.nextCursor;
    if (Date.now() - printedAt > PROGRESS_EVERY_MS) {
      console.error(progressOf(done, pending));
      printedAt = Date.now();
    }
  } while (cursor !== undefined);
  if (done > 0) console.error(progressOf(done, pending));
  return done;
}

/**
 * Describes the progress of a pass. More texts than were counted can be found: the service writes meanwhile, and texts within a row are
 * not counted.
 * @param pending the number of texts that were counted when the pass began.
 */
export function progressOf(done: number, pending: number): string {
  return done > pending ? `${done} resealed` : `${done} of ${pending} resealed`;
}
