import { setTimeout } from 'node:timers/promises';
import { urlWithoutCredentials } from '../../adapters/persistence/opening/database.ts';
import { fence } from '../../application/rewinds/fence.ts';
import { witnessOf } from '../wiring/rewind-watch.ts';
import { commandLine, endWithUsage } from './command-line.ts';
import { openStored } from './open-stored.ts';

/**
 * `npm run restore:fence -- [--force] [--lost-releases <n>]`: invalidates all single-use values that were issued before a database was
 * restored, so that the service can continue with it. The command can be interrupted and started again. It ends with 0 when it is done,
 * with 1 when it failed, and with 3 when there is no sign that the database was restored.
 */
const USAGE = 'npm run restore:fence -- [--force] [--lost-releases <n>]';
const ABOUT = `After a database was restored, invalidates all single-use values that were issued before; see docs/guides/backup-and-restore.md.
  --force              fences without evidence that the database went back, if you know that it did
  --lost-releases <n>  signs trust lists with sequence numbers n above the stored ones, instead of a thousand plus one for
                       each second since the last release: for lists that readers have seen with higher numbers
Exits with 0 on success, 1 on failure, and 3 when there was nothing to do.`;
const NOTHING_TO_DO = 3;

const { values } = commandLine(USAGE, { options: { force: { type: 'boolean' }, 'lost-releases': { type: 'string' } } }, ABOUT);
const { force = false, 'lost-releases': statedReleases } = values;
if (statedReleases !== undefined && !/^\d{1,9}$/.test(statedReleases))
  endWithUsage(USAGE, `--lost-releases ${statedReleases}: is not a number`);
try {
  process.exitCode = (await run()) ? 0 : NOTHING_TO_DO;
} catch (error) {
  console.error(`nothing is fenced: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}

async function run(): Promise<boolean> {
  const { store, settings } = await openStored(process.env, { alone: true });
  try {
    const { terms, fencing } = store;
    const isDone = await fence(
      { store, terms, fencing, witness: witnessOf(settings), pause: setTimeout },
      {
        address: urlWithoutCredentials(settings.DATABASE_URL),
        isForced: force,
        ...(statedReleases !== undefined && { lostReleases: Number(statedReleases) }),
        report: (line) => console.error(line),
      },
    );
    if (isDone) console.log('Values that were issued before are no longer valid. The service can be started.');
    else
      console.error(
        'No evidence shows that this database went back in time, so nothing was changed. If you know that it did, run it again with --force.',
      );
    return isDone;
  } finally {
    await store.close();
  }
}
