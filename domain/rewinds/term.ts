/**
 * A database can go back in time: a standby takes over that had not heard of the last changes, a backup is restored. What
 * was handed out since is then unknown to it, and it would hand it out again. So it keeps a history of itself: *terms*, of
 * which a new one begins wherever that may have happened, each with a counter that goes up while it is written to. Whoever
 * has seen a position that this history does not have knows that something was lost.
 */
export type Term = {
  /** 1 of the first; else seconds of the database since 1970 when it began, or one more than the highest that was known. */
  readonly number: number;
  /** Random: two terms of one number, of which one was lost, are not taken for each other. */
  readonly id: string;
  /** Id of the first term, which a copy elsewhere has, too. */
  readonly lineage: string;
  /** Where the database was when the term began: the cluster, the database in it and its timeline, or the file. */
  readonly place: string;
  /** As it ended, of a former term. */
  readonly counter: number;
  readonly beganAt: Date;
  readonly how: TermBeginning;
  /** Since when it is known that something is missing from it, for all processes; null while nothing is. */
  readonly lostAt: Date | null;
  /** Trust lists of up to this number may have been published and lost. */
  readonly listFloor: number;
  /** When a process noted first outside of the database that it saw this term; null before, and for terms that earlier releases served. */
  readonly witnessedAt: Date | null;
  /** The highest counter of this term that a process recorded outside of the database; null as above, and before migration 40. */
  readonly witnessedCounter: number | null;
  /** How often a process confirmed that record while nothing changed; null as the counter. */
  readonly witnessedIdleChecks: number | null;
  /** Host and file of that record. */
  readonly witnessedBy: string | null;
};

/**
 * `promoted`: the database is elsewhere and nothing is known to be missing. `accepted`: something may be, and an operator said
 * that this is all right. `fenced`: nothing from before it counts any more.
 */
export type TermBeginning = 'begun' | 'promoted' | 'accepted' | 'fenced';

/** A database's history as of one moment. */
export type History = {
  /** The newest first, at least one once a service has served it. */
  readonly terms: readonly Term[];
  /** Where it is now. */
  readonly place: string;
  /** By its own clock. */
  readonly now: Date;
  /** Ids of the challenges that no process has answered yet, see `Terms.openChallenge`. */
  readonly challenges: readonly string[];
};

/** A moment of a history, of which everything before it was durable. */
export type Position = {
  readonly lineage: string;
  readonly term: number;
  readonly termId: string;
  readonly counter: number;
  /**
   * How often a process confirmed this position while nothing changed. It only orders the records of a position by age: a history
   * that does not have the last check has lost nothing. Absent in records of earlier releases, which counts as 0.
   */
  readonly idleChecks?: number | undefined;
};

export function positionOf({ lineage, number, id, counter, witnessedIdleChecks }: Term): Position {
  return { lineage, term: number, termId: id, counter, idleChecks: witnessedIdleChecks ?? 0 };
}

/** How an operator names a position. */
export function nameOfPosition({ term, counter }: Pick<Position, 'term' | 'counter'>): string {
  return `${term}.${counter}`;
}

/** How a message names a record of a position, so that an older record of the same position is told apart. */
export function nameOfRecord(record: Pick<Position, 'term' | 'counter' | 'idleChecks'>): string {
  return `${nameOfPosition(record)} (check ${record.idleChecks ?? 0})`;
}

/**
 * Whether a history has all that was before a position that somebody saw.
 * @returns `whole`; `settled` when it has not, and a later term began by the word of an operator; else `lost`.
 */
export function verdictOn({ terms }: Pick<History, 'terms'>, seen: Position): 'whole' | 'settled' | 'lost' {
  const same = terms.find(({ number, id }) => number === seen.term && id === seen.termId);
  if (same !== undefined && same.counter >= seen.counter) return 'whole';
  return isSettledSince({ terms }, seen) ? 'settled' : 'lost';
}

/** Whether an operator had a term begin after what somebody saw, knowing that something may be missing. */
export function isSettledSince({ terms }: Pick<History, 'terms'>, { term }: Pick<Position, 'term'>): boolean {
  return terms.some(({ number, how }) => number > term && (how === 'accepted' || how === 'fenced'));
}

/**
 * The newest position that a process recorded outside of the database, as the database knows it. The word of an operator
 * (`fenced`, `accepted`) settles what came before it, so only the terms since then count.
 */
export type WitnessedPosition = Pick<Position, 'term' | 'counter' | 'idleChecks'> & {
  /** Host and file of the record; null if a release before migration 40 wrote it. */
  readonly by: string | null;
};

/**
 * The database learns of a record after the record is on the disk, so the newest record is never behind this position.
 * @returns undefined if no process recorded anything since the last word of an operator (`fenced`, `accepted`).
 */
export function lastWitnessed({ terms }: Pick<History, 'terms'>): WitnessedPosition | undefined {
  const operatorTerm = terms.findIndex(({ how }) => how === 'fenced' || how === 'accepted');
  const unsettled = operatorTerm < 0 ? terms : terms.slice(0, operatorTerm + 1);
  const term = unsettled.find(({ witnessedAt }) => witnessedAt !== null);
  if (term === undefined) return undefined;
  const { number, witnessedCounter, witnessedIdleChecks, witnessedBy } = term;
  return { term: number, counter: witnessedCounter ?? 0, idleChecks: witnessedIdleChecks ?? 0, by: witnessedBy };
}

/**
 * Whether a record is older than one that another process wrote, or that the same process wrote before its folder was replaced by an
 * old copy. Such a record does not show what happened since, so it is no proof that the database is complete.
 */
export function isOutdated(seen: Position, witnessed: WitnessedPosition): boolean {
  if (seen.term !== witnessed.term) return seen.term < witnessed.term;
  if (seen.counter !== witnessed.counter) return seen.counter < witnessed.counter;
  return (seen.idleChecks ?? 0) < (witnessed.idleChecks ?? 0);
}

/** Of two positions that somebody saw, the one that says more. */
export function later(one: Position, other: Position): Position {
  if (one.term !== other.term) return one.term > other.term ? one : other;
  if (one.counter !== other.counter) return one.counter > other.counter ? one : other;
  return (one.idleChecks ?? 0) >= (other.idleChecks ?? 0) ? one : other;
}

/** Later than every one that is known of, and than those that nobody here knows of: their seconds have passed. */
export function nextNumber({ terms, now }: Pick<History, 'terms' | 'now'>, seen = 0): number {
  const known = Math.max(seen, ...terms.map(({ number }) => number));
  return Math.max(known + 1, Math.floor(now.getTime() / 1000));
}

/** When something was ended for good last; undefined when never. */
export function fencedAt({ terms }: Pick<History, 'terms'>): Date | undefined {
  return terms.find(({ how }) => how === 'fenced')?.beganAt;
}
