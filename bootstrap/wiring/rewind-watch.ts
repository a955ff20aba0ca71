import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { dialectOf, urlWithoutCredentials } from '../../adapters/persistence/opening/database.ts';
import type { OrmStore } from '../../adapters/persistence/orm-store.ts';
import { WitnessFile } from '../../adapters/system/witness-file.ts';
import type { Log } from '../../application/ports/log.ts';
import type { Probe } from '../../application/ports/probe.ts';
import { StoreUnavailableError } from '../../application/ports/store.ts';
import type { Witness } from '../../application/ports/witness.ts';
import { assertNotRewound } from '../../application/rewinds/assert-not-rewound.ts';
import { RewindWatch } from '../../application/rewinds/rewind-watch.ts';
import { verifyAnchors } from '../../application/rewinds/verify-anchors.ts';
import type { Settings } from '../../config/settings.ts';
import { SERVICE_SCOPE } from '../../domain/audit/audit-entry.ts';

/** A rewound database is noticed within this time, if no new connection has shown it before. */
const CHECK_EVERY_MS = 1_000;
/** `npm run audit:verify` uses this name for the chain of the service. */
const SERVICE_CHAIN = '_service';

/** The witness of SQLite is beside its file, so that one folder may contain several; that of PostgreSQL is in the data folder. */
export function witnessOf({ DATABASE_URL: url, DATA_FOLDER }: Pick<Settings, 'DATABASE_URL' | 'DATA_FOLDER'>): Witness {
  const file = dialectOf(url) === 'sqlite' ? `${url.slice('sqlite:'.length)}-witness` : join(DATA_FOLDER, 'witness.json');
  return new WitnessFile(file);
}

/**
 * Refuses a rewound database, and watches for later rewinds.
 * @returns a function that stops the watch; it is called before the store is closed. @throws RewindRefusedError
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
  const address = urlWithoutCredentials(settings.DATABASE_URL);
  await verifyAnchors(store, anchorsOf(settings));
  const history = await assertNotRewound(
    { terms, witness, pause: setTimeout, report: (line) => log.info(line) },
    address,
    settings.ACCEPT_REWIND,
  );
  const watch = new RewindWatch({ terms, witness, log, forget: () => store.rewinds.forget() }, address, history);
  // The witness is written before anything is issued that a restored database would not contain.
  await watch.recordPosition();
  store.rewinds.watch = watch;
  store.onConnection(async (connection) => {
    const wasGood = watch.refusal === undefined;
    await watch.verify(connection);
    // A check that waited for this connection would otherwise report that there is no rewind.
    if (wasGood && watch.refusal !== undefined) throw new StoreUnavailableError(watch.refusal);
  });
  return {
    probe: probe(() => {
      if (watch.refusal !== undefined) throw new Error(watch.refusal);
    }),
    close: startChecks(watch, log),
  };
}

function anchorsOf({ EXPECT_AUDIT_LOG: anchors = [] }: Pick<Settings, 'EXPECT_AUDIT_LOG'>) {
  return new Map(anchors.map(({ chain, ...anchor }) => [chain === SERVICE_CHAIN ? SERVICE_SCOPE : chain, anchor]));
}

/** @returns a function that stops the checks after a last one. */
function startChecks(watch: RewindWatch, log: Log): () => Promise<void> {
  let running: Promise<void> | undefined;
  let isFailing = false;
  const runCheck = (work: () => Promise<void>) =>
    work().then(
      () => {
        isFailing = false;
      },
      (error: unknown) => {
        if (!isFailing) log.error('the check for a database that went back in time failed', {}, error);
        isFailing = true;
      },
    );
  const timer = setInterval(() => {
    running ??= runCheck(() => watch.tick()).finally(() => {
      running = undefined;
    });
  }, CHECK_EVERY_MS);
  timer.unref();
  return async () => {
    clearInterval(timer);
    await running;
    await runCheck(() => watch.close());
  };
}
