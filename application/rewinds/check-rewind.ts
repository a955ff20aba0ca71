import {
  type History,
  isWitnessed,
  nameOfPosition,
  nextNumber,
  type Position,
  positionOf,
  type Term,
  verdictOn,
} from '../../domain/rewinds/term.ts';
import type { Terms } from '../ports/terms.ts';
import type { Sighting, Witness } from '../ports/witness.ts';
import { isVouchedFor } from './is-vouched-for.ts';

/** The database is not as old as it was; the message says what to do. */
export class RewindRefused extends Error {}

export type Suspicion = {
  readonly finding: string;
  /** What an operator names to go on all the same; of each rewind another one. */
  readonly position: string;
  /** The highest term that is known of. */
  readonly knownTerm: number;
  /** Only a sighting is missing, so the answer of a process that lives clears it up. */
  readonly isUnwitnessed?: true;
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
  if (seen !== undefined && verdictOn({ terms }, seen) === 'lost')
    return suspect(
      `the database has gone back in time: this machine has seen it at ${nameOfPosition(seen)}, and it is at ${nameOfTerm(newest)}`,
      seen,
    );
  if (newest.lostAt !== null)
    return suspect(
      `the database has gone back in time: a process noticed at ${newest.lostAt.toISOString()} that something is missing`,
      positionOf(newest),
    );
  if (seen === undefined && place !== newest.place)
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
  if (seen === undefined && !observer.isVouchedFor && isWitnessed(history))
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
};

/** Reads the history, and where nothing but a sighting is missing asks the processes that live. */
export async function observe(
  { terms, witness, pause }: StartPorts,
  address: string,
  accepted?: string,
): Promise<{
  readonly history: History;
  readonly suspicion: Suspicion | undefined;
  readonly sightings: readonly Sighting[];
}> {
  const history = await terms.read();
  // After the history: a process that marks a term as witnessed has written its sighting before.
  const sightings = await witness.sightings();
  const observer = { sightings, witnessPlace: witness.place, address };
  const suspicion = suspicionOf(history, observer);
  if (!suspicion?.isUnwitnessed || suspicion.position === accepted || !(await isVouchedFor(terms, pause)))
    return { history, suspicion, sightings };
  const present = await terms.read();
  return {
    history: present,
    suspicion: suspicionOf(present, { ...observer, isVouchedFor: true }),
    sightings,
  };
}

/**
 * Looks at a database before it is served.
 * @param accepted position that an operator named.
 * @returns its history, in a term of where it is now. @throws RewindRefused when something may be missing from it.
 */
export async function checkRewind(
  ports: StartPorts,
  address: string,
  accepted: string | undefined,
): Promise<History> {
  const { terms, witness } = ports;
  await terms.begin();
  const { history, suspicion } = await observe(ports, address, accepted);
  if (suspicion !== undefined && suspicion.position !== accepted) {
    throw new RewindRefused(
      `${suspicion.finding}. It would give away once more what it has forgotten: entries of status lists, codes, numbers of ` +
        'trust lists. `npx vidimus restore fence` (in a clone `npm run restore:fence`) sees to it that nothing from before counts; see docs/backup-and-restore.md. ' +
        `When nothing can be missing, or this is meant to be a new beginning, start once with ACCEPT_REWIND=${suspicion.position}`,
    );
  }
  const [newest] = history.terms;
  if (newest === undefined) throw new Error('the database has no history');
  if (suspicion === undefined && history.place === newest.place) return history;
  const how = suspicion === undefined ? 'promoted' : 'accepted';
  const number = nextNumber(history, suspicion?.knownTerm);
  await terms.open({ after: newest.number, number, how });
  const present = await terms.read();
  const [term] = present.terms;
  // Where that fails, a start without the operator's word is refused once more.
  if (suspicion !== undefined && term !== undefined)
    await witness.begin({ ...positionOf(term), address }).catch(() => {});
  return present;
}
