import {
  compareWithHistory,
  formatPosition,
  formatRecord,
  type History,
  isOutdated,
  isSettledByOperator,
  lastWitnessed,
  nextTermNumber,
  type Position,
  positionOf,
  type Term,
} from '../../domain/rewinds/term.ts';
import type { Terms } from '../ports/terms.ts';
import type { Sighting, Witness } from '../ports/witness.ts';
import { stopOtherProcesses } from './stop-other-processes.ts';

/** The database may have been rolled back; the message contains the required steps. */
export class RewindRefusedError extends Error {}

export type Suspicion = {
  readonly finding: string;
  /** The value with which an operator accepts the state; unique for each rollback. */
  readonly position: string;
  readonly knownTerm: number;
  /** There is no record, or an outdated one; the confirmation of a running process replaces it. */
  readonly isUnwitnessed?: true;
  /** The record of this machine proves that this database lost data, so other processes must stop as well. */
  readonly isProven?: true;
};

type Observer = {
  readonly sightings: readonly Sighting[];
  /** File or directory of the sightings. */
  readonly witnessPlace: string;
  readonly address: string;
  /** A running process has confirmed that nothing is missing. */
  readonly isVouchedFor?: boolean;
};

/** The evidence of a rollback of the database; undefined if there is none. */
export function findSuspicion(history: History, observer: Observer): Suspicion | undefined {
  const { terms, place } = history;
  const { sightings, witnessPlace, address } = observer;
  const [newest] = terms;
  if (newest === undefined) return undefined;
  const sighting = sightings.find(({ lineage }) => lineage === newest.lineage);
  if (sighting !== undefined && compareWithHistory({ terms }, sighting) === 'lost') {
    const suspicion = createSuspicion(
      `the database went back in time: this machine has seen it at ${formatPosition(sighting)}, and it is at ${nameOfTerm(newest)}`,
      sighting,
    );
    // A copy of a database, such as that of a test system, has its own terms: a record of the copy proves nothing about this one.
    const isOfThis = sighting.address === address || terms.some(({ id }) => id === sighting.termId);
    return isOfThis ? { ...suspicion, isProven: true } : suspicion;
  }
  if (newest.lostAt !== null)
    return createSuspicion(
      `the database went back in time: a process detected missing changes at ${newest.lostAt.toISOString()}`,
      positionOf(newest),
    );
  const witnessed = lastWitnessed(history);
  const isOutdatedRecord = sighting !== undefined && witnessed !== undefined && isOutdated(sighting, witnessed);
  if (isOutdatedRecord && !observer.isVouchedFor) {
    const { by } = witnessed;
    return {
      ...createSuspicion(
        `${witnessPlace} is out of date: it contains ${formatRecord(sighting)}, but ${by ?? 'another record'} recorded ` +
          `${formatRecord(witnessed)} since, so it cannot show whether the database went back in time. No running process of the ` +
          `service confirms that no change is missing. Start the process with the newest record first${by === null ? '' : ` (${by})`}; ` +
          'the others then start by themselves',
        positionOf(newest),
      ),
      isUnwitnessed: true,
    };
  }
  if ((sighting === undefined || isOutdatedRecord) && place !== newest.place)
    return createSuspicion(
      'the database is at another place, as after a restored backup or a promoted standby, and this machine has not ' +
        'seen it before, so it is unknown whether changes are missing',
      positionOf(newest),
    );
  const otherSighting = sighting === undefined ? sightings.find((sighting) => sighting.address === address) : undefined;
  if (otherSighting !== undefined)
    return createSuspicion(
      `the database differs from the one that this machine has seen at ${address}: it was emptied, or restored to a state before its history began`,
      otherSighting,
    );
  if (sighting === undefined && !observer.isVouchedFor && witnessed !== undefined)
    return {
      ...createSuspicion(
        `${witnessPlace} has no record of the database position, although earlier processes kept one, and no running ` +
          'process of the service confirms that no change is missing: the database may have gone back in time. Mount the volume that ' +
          'had this file; if it is lost, mount another persistent volume (DATA_FOLDER)',
        positionOf(newest),
      ),
      isUnwitnessed: true,
    };
  return undefined;
}

const nameOfTerm = (term: Term) => formatPosition(positionOf(term));

function createSuspicion(finding: string, position: Pick<Position, 'term' | 'counter'>): Suspicion {
  return { finding, position: formatPosition(position), knownTerm: position.term };
}

type StartPorts = {
  readonly terms: Terms;
  readonly witness: Witness;
  readonly pause: (milliseconds: number) => Promise<unknown>;
  /** Receives messages for the operator while the start waits. */
  readonly report: (line: string) => void;
};

/** Reads the history, and asks the running processes if only a current record is missing. */
export async function readHistory(
  { terms, witness, pause, report }: StartPorts,
  address: string,
  { accepted, isAsking = true }: { readonly accepted?: string | undefined; readonly isAsking?: boolean } = {},
): Promise<{ readonly history: History; readonly suspicion: Suspicion | undefined; readonly sightings: readonly Sighting[] }> {
  const history = await terms.read();
  // Read after the history: a process writes its sighting before it marks a term as witnessed.
  const sightings = await witness.sightings();
  const observer = { sightings, witnessPlace: witness.location, address };
  const suspicion = findSuspicion(history, observer);
  const mustAsk = isAsking && suspicion?.isUnwitnessed === true && suspicion.position !== accepted;
  if (!mustAsk) return { history, suspicion, sightings };
  const isConfirmed = await isConfirmedByProcess(terms, pause, report);
  const currentHistory = await terms.read();
  return { history: currentHistory, suspicion: findSuspicion(currentHistory, { ...observer, isVouchedFor: isConfirmed }), sightings };
}

/**
 * Checks a database before it is served.
 * @param accepted position that an operator accepted.
 * @returns its history, in a term of its current location. @throws RewindRefusedError when data may be missing.
 */
export async function assertNotRewound(ports: StartPorts, address: string, accepted: string | undefined): Promise<History> {
  const { terms, witness } = ports;
  await terms.begin();
  const { history, suspicion } = await readHistory(ports, address, { accepted });
  const [newest] = history.terms;
  if (newest === undefined) throw new Error('the database has no history');
  if (suspicion !== undefined && suspicion.position !== accepted) {
    if (suspicion.isProven) await terms.markLost(positionOf(newest));
    throw new RewindRefusedError(
      `${suspicion.finding}. The service would reuse lost values: status list entries, codes, sequence numbers of ` +
        'trust lists. `npx vidimus restore fence` (in a clone `npm run restore:fence`) invalidates earlier values; see docs/guides/backup-and-restore.md. ' +
        `If no change can be missing, or the database was replaced on purpose, start once with ACCEPT_REWIND=${suspicion.position}`,
    );
  }
  if (suspicion === undefined && history.place === newest.place) return history;
  const how = suspicion === undefined ? 'promoted' : 'accepted';
  if (suspicion !== undefined) await stopOtherProcesses(terms, newest, ports.pause);
  const number = nextTermNumber(history, suspicion?.knownTerm);
  const isOpened = await terms.open({ after: newest.number, number, how });
  const currentHistory = await terms.read();
  const [term] = currentHistory.terms;
  if (suspicion !== undefined && !isOpened && !isSettledByOperator(currentHistory, { term: newest.number }))
    throw new RewindRefusedError('another process began a term of the database concurrently. Start again');
  // If this fails, the next start without the operator's acceptance is rejected again.
  if (suspicion !== undefined && term !== undefined) await witness.begin({ ...positionOf(term), address }).catch(() => {});
  return currentHistory;
}

/** Processes check their database each second; a busy one may take much longer. Shorter than the validity of a challenge. */
const ANSWER_MS = 30_000;
const POLL_MS = 250;

/**
 * Asks if a running process finds everything that it knows in this database. A process answers only after its own check found nothing
 * missing; on SQLite no other process can use the file.
 */
async function isConfirmedByProcess(
  terms: Terms,
  pause: (milliseconds: number) => Promise<unknown>,
  report: (line: string) => void,
): Promise<boolean> {
  if (!terms.supportsPromotion) return false;
  report(
    `waiting up to ${ANSWER_MS / 1_000} seconds for another process of the service on this database, which has to confirm that ` +
      'no change is missing, because the record of this machine cannot show it',
  );
  const id = await terms.openChallenge();
  try {
    for (let waited = 0; waited < ANSWER_MS; waited += POLL_MS) {
      await pause(POLL_MS);
      const [newest] = (await terms.read()).terms;
      // A running process detected a loss, so no process answers any more.
      if (newest === undefined || newest.lostAt !== null) return false;
      if (await terms.isAnswered(id)) return true;
    }
    return false;
  } finally {
    await terms.closeChallenge(id);
  }
}
