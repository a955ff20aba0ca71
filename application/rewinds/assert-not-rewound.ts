import {
  type History,
  isOutdated,
  isSettledSince,
  lastWitnessed,
  nameOfPosition,
  nameOfRecord,
  nextNumber,
  type Position,
  positionOf,
  type Term,
  verdictOn,
} from '../../domain/rewinds/term.ts';
import type { Terms } from '../ports/terms.ts';
import type { Sighting, Witness } from '../ports/witness.ts';
import { stopOtherProcesses } from './stop-other-processes.ts';

/** The database is not as old as it was; the message says what to do. */
export class RewindRefused extends Error {}

export type Suspicion = {
  readonly finding: string;
  /** What an operator names to go on all the same; of each rewind another one. */
  readonly position: string;
  /** The highest term that is known of. */
  readonly knownTerm: number;
  /** There is no record, or only an outdated one: the answer of a running process clears it up. */
  readonly isUnwitnessed?: true;
  /** The record of this machine shows that this very database lost something, so other processes have to stop as well. */
  readonly isProven?: true;
};

type Observer = {
  readonly sightings: readonly Sighting[];
  /** Where the sightings are kept. */
  readonly witnessPlace: string;
  /** Address of the database. */
  readonly address: string;
  /** A process that lives has confirmed that nothing is missing. */
  readonly isVouchedFor?: boolean;
};

/** What speaks for it that a database went back in time; undefined where nothing does. */
export function suspicionOf(history: History, observer: Observer): Suspicion | undefined {
  const { terms, place } = history;
  const { sightings, witnessPlace, address } = observer;
  const [newest] = terms;
  if (newest === undefined) return undefined;
  const seen = sightings.find(({ lineage }) => lineage === newest.lineage);
  if (seen !== undefined && verdictOn({ terms }, seen) === 'lost') {
    const suspicion = suspect(
      `the database has gone back in time: this machine has seen it at ${nameOfPosition(seen)}, and it is at ${nameOfTerm(newest)}`,
      seen,
    );
    // A copy of a database, such as that of a test system, has terms of its own: a record of the copy proves nothing about this one.
    const isOfThis = seen.address === address || terms.some(({ id }) => id === seen.termId);
    return isOfThis ? { ...suspicion, isProven: true } : suspicion;
  }
  if (newest.lostAt !== null)
    return suspect(
      `the database has gone back in time: a process noticed at ${newest.lostAt.toISOString()} that something is missing`,
      positionOf(newest),
    );
  const witnessed = lastWitnessed(history);
  const isStale = seen !== undefined && witnessed !== undefined && isOutdated(seen, witnessed);
  if (isStale && !observer.isVouchedFor) {
    const { by } = witnessed;
    return {
      ...suspect(
        `${witnessPlace} is out of date: it says ${nameOfRecord(seen)}, but ${by ?? 'another record'} recorded ` +
          `${nameOfRecord(witnessed)} since, so it cannot show whether the database has gone back in time. No running process of the ` +
          `service confirms that nothing is missing. Start the process with the newest record first${by === null ? '' : ` (${by})`}; ` +
          'the others then start by themselves',
        positionOf(newest),
      ),
      isUnwitnessed: true,
    };
  }
  if ((seen === undefined || isStale) && place !== newest.place)
    return suspect(
      'the database is not where it was, as after a backup was restored or a standby took over, and this machine has not ' +
        'seen it before: nobody here knows whether something is missing',
      positionOf(newest),
    );
  const other = seen === undefined ? sightings.find((sighting) => sighting.address === address) : undefined;
  if (other !== undefined)
    return suspect(
      `the database is another one than this machine has seen at ${address}: it was emptied, or put back to before it began its history`,
      other,
    );
  if (seen === undefined && !observer.isVouchedFor && witnessed !== undefined)
    return {
      ...suspect(
        `${witnessPlace} has no record of how far the database was, although the processes before kept one, and no running ` +
          'process of the service confirms that nothing is missing: the database may have gone back in time. Mount the volume that ' +
          'had this file; if it is lost, mount another one that outlives the container (DATA_FOLDER)',
        positionOf(newest),
      ),
      isUnwitnessed: true,
    };
  return undefined;
}

const nameOfTerm = (term: Term) => nameOfPosition(positionOf(term));

function suspect(finding: string, position: Pick<Position, 'term' | 'counter'>): Suspicion {
  return { finding, position: nameOfPosition(position), knownTerm: position.term };
}

type StartPorts = {
  readonly terms: Terms;
  readonly witness: Witness;
  readonly pause: (milliseconds: number) => Promise<unknown>;
  /** Receives what an operator should know while the start waits. */
  readonly tell: (line: string) => void;
};

/** Reads the history, and where nothing but a current record is missing asks the running processes. */
export async function observe(
  { terms, witness, pause, tell }: StartPorts,
  address: string,
  { accepted, isAsking = true }: { readonly accepted?: string | undefined; readonly isAsking?: boolean } = {},
): Promise<{ readonly history: History; readonly suspicion: Suspicion | undefined; readonly sightings: readonly Sighting[] }> {
  const history = await terms.read();
  // After the history: a process that marks a term as witnessed has written its sighting before.
  const sightings = await witness.sightings();
  const observer = { sightings, witnessPlace: witness.place, address };
  const suspicion = suspicionOf(history, observer);
  const isToAsk = isAsking && suspicion?.isUnwitnessed === true && suspicion.position !== accepted;
  if (!isToAsk) return { history, suspicion, sightings };
  const isVouched = await isVouchedFor(terms, pause, tell);
  const present = await terms.read();
  return {
    history: present,
    suspicion: suspicionOf(present, { ...observer, isVouchedFor: isVouched }),
    sightings,
  };
}

/**
 * Looks at a database before it is served.
 * @param accepted position that an operator named.
 * @returns its history, in a term of where it is now. @throws RewindRefused when something may be missing from it.
 */
export async function assertNotRewound(ports: StartPorts, address: string, accepted: string | undefined): Promise<History> {
  const { terms, witness } = ports;
  await terms.begin();
  const { history, suspicion } = await observe(ports, address, { accepted });
  const [newest] = history.terms;
  if (newest === undefined) throw new Error('the database has no history');
  if (suspicion !== undefined && suspicion.position !== accepted) {
    if (suspicion.isProven) await terms.markLost(positionOf(newest));
    throw new RewindRefused(
      `${suspicion.finding}. It would give away once more what it has forgotten: entries of status lists, codes, numbers of ` +
        'trust lists. `npx vidimus restore fence` (in a clone `npm run restore:fence`) sees to it that nothing from before counts; see docs/backup-and-restore.md. ' +
        `When nothing can be missing, or this is meant to be a new beginning, start once with ACCEPT_REWIND=${suspicion.position}`,
    );
  }
  if (suspicion === undefined && history.place === newest.place) return history;
  const how = suspicion === undefined ? 'promoted' : 'accepted';
  if (suspicion !== undefined) await stopOtherProcesses(terms, newest, ports.pause);
  const number = nextNumber(history, suspicion?.knownTerm);
  const isOpened = await terms.open({ after: newest.number, number, how });
  const present = await terms.read();
  const [term] = present.terms;
  if (suspicion !== undefined && !isOpened && !isSettledSince(present, { term: newest.number }))
    throw new RewindRefused('another process began a term of the database at the same time. Start again');
  // Where that fails, a start without the operator's word is refused once more.
  if (suspicion !== undefined && term !== undefined) await witness.begin({ ...positionOf(term), address }).catch(() => {});
  return present;
}

/** A process looks at its database each second; one that is busy may take much longer. Shorter than a challenge is valid. */
const ANSWER_MS = 30_000;
const POLL_MS = 250;

/**
 * Asks whether a process that lives has seen everything that it knows of in this database. A process answers only after its own
 * look found nothing missing; on SQLite no other process has the file.
 */
async function isVouchedFor(
  terms: Terms,
  pause: (milliseconds: number) => Promise<unknown>,
  tell: (line: string) => void,
): Promise<boolean> {
  if (!terms.moves) return false;
  tell(
    `waiting up to ${ANSWER_MS / 1_000} seconds for another process of the service that runs on this database: it has to confirm that ` +
      'nothing is missing, because the record of this machine cannot show it',
  );
  const id = await terms.openChallenge();
  try {
    for (let waited = 0; waited < ANSWER_MS; waited += POLL_MS) {
      await pause(POLL_MS);
      const [newest] = (await terms.read()).terms;
      // A process that runs misses something, so none answers any more.
      if (newest === undefined || newest.lostAt !== null) return false;
      if (await terms.isAnswered(id)) return true;
    }
    return false;
  } finally {
    await terms.closeChallenge(id);
  }
}
