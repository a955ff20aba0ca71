import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { dialectOf, placeOf } from '../../adapters/persistence/opening/database.ts';
import type { OrmStore } from '../../adapters/persistence/orm-store.ts';
import { WitnessFile } from '../../adapters/system/witness-file.ts';
import type { Log } from '../../application/ports/log.ts';
import type { Probe } from '../../application/ports/probe.ts';
import { StoreUnavailable } from '../../application/ports/store.ts';
import type { Witness } from '../../application/ports/witness.ts';
import { assertNotRewound } from '../../application/rewinds/assert-not-rewound.ts';
import { RewindWatch } from '../../application/rewinds/rewind-watch.ts';
import { verifyAnchors } from '../../application/rewinds/verify-anchors.ts';
import type { Settings } from '../../config/settings.ts';
import { SERVICE_SCOPE } from '../../domain/audit/audit-entry.ts';

/** A database that went back is noticed by then, if no new connection has shown it before. */
const LOOK_EVERY_MS = 1_000;
/** As `npm run audit:verify` calls the chain of the service. */
const SERVICE = '_service';

/** Beside the file of SQLite, so that one folder may have several; of PostgreSQL in the folder of this machine. */
export function witnessOf({ DATABASE_URL: url, DATA_FOLDER }: Pick<Settings, 'DATABASE_URL' | 'DATA_FOLDER'>): Witness {
  const file = dialectOf(url) === 'sqlite' ? `${url.slice('sqlite:'.length)}-witness` : join(DATA_FOLDER, 'witness.json');
  return new WitnessFile(file);
}

/**
 * Refuses a database that went back in time, and watches whether it does from now on.
 * @returns what stops that, before the store is closed. @throws RewindRefused
 */
export async function watchForRewinds(
  store: OrmStore,
  settings: Pick<Settings, 'DATABASE_URL' | 'DATA_FOLDER' | 'ACCEPT_REWIND' | 'EXPECT_AUDIT_LOG'>,
  log: Log,
): Promise<{ readonly probe: Probe; readonly close: () => Promise<void> }> {
  const probe = (check: () => void): Probe => ({ name: 'history', isPartial: true, check: async () => check() });
  if (settings.DATABASE_URL === 'sqlite::memory:') return { probe: probe(() => {}), close: async () => {} };
  const { terms } = store;
  const witness = witnessOf(settings);
  const address = placeOf(settings.DATABASE_URL);
  await verifyAnchors(store, anchorsOf(settings));
  const history = await assertNotRewound(
    { terms, witness, pause: setTimeout, tell: (line) => log.info(line) },
    address,
    settings.ACCEPT_REWIND,
  );
  const watch = new RewindWatch({ terms, witness, log, forget: () => store.rewinds.forget() }, address, history);
  // Before anything is given away that a database which is put back would forget.
  await watch.testify();
  store.rewinds.watch = watch;
  store.onConnection(async (own) => {
    const wasGood = watch.refusal === undefined;
    await watch.look(own);
    // Who was let through to this connection was told that all is well.
    if (wasGood && watch.refusal !== undefined) throw new StoreUnavailable(watch.refusal);
  });
  return {
    probe: probe(() => {
      if (watch.refusal !== undefined) throw new Error(watch.refusal);
    }),
    close: startLooking(watch, log),
  };
}

function anchorsOf({ EXPECT_AUDIT_LOG: anchors = [] }: Pick<Settings, 'EXPECT_AUDIT_LOG'>) {
  return new Map(anchors.map(({ chain, ...anchor }) => [chain === SERVICE ? SERVICE_SCOPE : chain, anchor]));
}

/** @returns what stops it, after a last look. */
function startLooking(watch: RewindWatch, log: Log): () => Promise<void> {
  let running: Promise<void> | undefined;
  let isFailing = false;
  const look = (work: () => Promise<void>) =>
    work().then(
      () => {
        isFailing = false;
      },
      (error: unknown) => {
        if (!isFailing) log.error('it cannot be seen whether the database went back in time', {}, error);
        isFailing = true;
      },
    );
  const timer = setInterval(() => {
    running ??= look(() => watch.tick()).finally(() => {
      running = undefined;
    });
  }, LOOK_EVERY_MS);
  timer.unref();
  return async () => {
    clearInterval(timer);
    await running;
    await look(() => watch.close());
  };
}
