import { setTimeout as pause } from 'node:timers/promises';
import type { Maintenance, ResealPlace } from '../../application/ports/maintenance.ts';
import { SEALING_NOTE_MS } from '../start/sealing-note.ts';
import { commandLine, endWithUsage } from './command-line.ts';
import { openStored } from './open-stored.ts';

/**
 * `npm run reseal`: seals everything under the first master secret that is sealed under a later one of the list, in small
 * steps and beside the running service. It may be broken off and started again. Afterwards the former secrets can be
 * dropped. Ends with 0 when nothing is left, 1 otherwise.
 */
const USAGE = 'npm run reseal';
const BATCH = 200;
/** Processes that have not been restarted yet go on to seal under a former secret; they are looked for once more. */
const LOOK_AGAIN_MS = 2_000;
const MAX_PASSES = 20;
/** Every process has said by then that it seals under another secret. */
const OBJECTIONS_MS = 2 * SEALING_NOTE_MS;
const TELL_EVERY_MS = 2_000;

const { positionals } = commandLine(USAGE, { allowPositionals: true });
if (positionals.length > 0) endWithUsage(USAGE, 'it takes no arguments');
try {
  process.exitCode = (await reseal()) ? 0 : 1;
} catch (error) {
  console.error(`not all was sealed anew: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}

async function reseal(): Promise<boolean> {
  const { store, cipher } = await openStored(process.env);
  try {
    if (cipher.keyIds.length < 2) {
      console.error(
        'MASTER_SECRET has one secret. Put the new one in front, separated by a comma, restart all processes of the ' +
          'service with both, and run this again with the same setting.',
      );
      return false;
    }
    const { maintenance } = store;
    for (let pass = 0; pass < MAX_PASSES; pass++) {
      const pending = await maintenance.pendingReseals();
      const done = await passOver(maintenance, pending);
      if (pending === 0 && done === 0) {
        await maintenance.endReseal(await maintenance.time());
        await pause(OBJECTIONS_MS);
        const resealed = await maintenance.resealedKeys();
        if (!cipher.keyIds.slice(1).every((id) => resealed.includes(id))) break;
        console.log(
          'Everything is sealed under the first secret. The former ones can be taken out of MASTER_SECRET at the next ' +
            'restart of all processes.',
        );
        return true;
      }
      await pause(LOOK_AGAIN_MS);
    }
    console.error(
      'Something is still being sealed under a former secret: a process runs that was not restarted with the new one ' +
        'in front. Restart it and run this again.',
    );
    return false;
  } finally {
    await store.close();
  }
}

/** @returns how many texts were sealed anew. */
async function passOver(maintenance: Maintenance, pending: number): Promise<number> {
  let place: ResealPlace | undefined;
  let done = 0;
  let told = Date.now();
  do {
    const step = await maintenance.reseal(BATCH, place);
    done += step.done;
    place = step.place;
    if (Date.now() - told > TELL_EVERY_MS) {
      console.error(progressOf(done, pending));
      told = Date.now();
    }
  } while (place !== undefined);
  if (done > 0) console.error(progressOf(done, pending));
  return done;
}

/**
 * What `npm run reseal` tells of a pass. More than were counted may turn up: a service writes beside it, and what stands within a
 * row is not counted.
 * @param pending how many were counted when the pass began.
 */
export function progressOf(done: number, pending: number): string {
  return done > pending ? `${done} sealed anew` : `${done} of ${pending} sealed anew`;
}
