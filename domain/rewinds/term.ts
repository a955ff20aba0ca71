/**
 * A database can be rolled back: a standby without the last changes takes over, or a backup is restored. Values that were issued since are
 * then unknown to it and could be issued again. Therefore it records a history of *terms*; a new term begins whenever that may have
 * happened, and each has a counter that increases with writes. A process that saw a position outside of this history knows that data was
 * lost.
 */
export type Term = {
  /** 1 for the first term; otherwise the database time in seconds since 1970 at its start, or one more than the highest known number. */
  readonly number: number;
  /** A random id distinguishes two terms with the same number, of which one was lost. */
  readonly id: string;
  /** Id of the first term, which copies of the database share. */
  readonly lineage: string;
  /** Location of the database at the start of the term: cluster, database and timeline, or the file. */
  readonly place: string;
  /** Final value for a previous term. */
  readonly counter: number;
  readonly beganAt: Date;
  readonly how: TermBeginning;
  /** Time at which data loss was detected, for all processes; null without a loss. */
  readonly lostAt: Date | null;
  /** Trust lists up to this number may have been published and lost. */
  readonly listFloor: number;
  /** Time at which a process first recorded this term outside of the database; null before, and for terms of earlier releases. */
  readonly witnessedAt: Date | null;
  /** The highest counter of this term that a process recorded outside of the database; null as above, and before migration 40. */
  readonly witnessedCounter: number | null;
  /** Number of confirmations of that record without a change; null like the counter. */
  readonly witnessedIdleChecks: number | null;
  /** Host and file of that record. */
  readonly witnessedBy: string | null;
};

/**
 * `promoted`: the database moved and no loss is known. `accepted`: an operator accepted a possible loss. `fenced`: all values from before
 * are invalid.
 */
export type TermBeginning = 'begun' | 'promoted' | 'accepted' | 'fenced';

/** The history of a database at one moment. */
export type History = {
  /** The newest term first; at least one once a service has used it. */
  readonly terms: readonly Term[];
  /** Current location. */
  readonly place: string;
  /** Time by the database's clock. */
  readonly now: Date;
  /** Ids of the challenges that no process has answered yet, see `Terms.openChallenge`. */
  readonly challenges: readonly string[];
};

/** A position in a history, up to which all writes were durable. */
export type Position = {
  readonly lineage: string;
  readonly term: number;
  readonly termId: string;
  readonly counter: number;
  /**
   * Number of confirmations of this position without a change. It only orders records by age: a history without the last check has lost
   * nothing. Absent in records of earlier releases, which counts as 0.
   */
  readonly idleChecks?: number | undefined;
};

export function positionOf({ lineage, number, id, counter, witnessedIdleChecks }: Term): Position {
  return { lineage, term: number, termId: id, counter, idleChecks: witnessedIdleChecks ?? 0 };
}

/** Notation of a position for operators. */
export function formatPosition({ term, counter }: Pick<Position, 'term' | 'counter'>): string {
  return `${term}.${counter}`;
}

/** Notation of a record in messages, which distinguishes records of the same position. */
export function formatRecord(record: Pick<Position, 'term' | 'counter' | 'idleChecks'>): string {
  return `${formatPosition(record)} (check ${record.idleChecks ?? 0})`;
}

/**
 * Compares a history with a recorded position.
 * @returns `whole` if it contains everything up to it; `settled` if not, and an operator started a later term; otherwise `lost`.
 */
export function compareWithHistory({ terms }: Pick<History, 'terms'>, recorded: Position): 'whole' | 'settled' | 'lost' {
  const matchingTerm = terms.find(({ number, id }) => number === recorded.term && id === recorded.termId);
  if (matchingTerm !== undefined && matchingTerm.counter >= recorded.counter) return 'whole';
  return isSettledByOperator({ terms }, recorded) ? 'settled' : 'lost';
}

/** True if an operator started a term after the recorded position, knowing of a possible loss. */
export function isSettledByOperator({ terms }: Pick<History, 'terms'>, { term }: Pick<Position, 'term'>): boolean {
  return terms.some(({ number, how }) => number > term && (how === 'accepted' || how === 'fenced'));
}

/**
 * The newest recorded position that the database knows. A term started by an operator (`fenced`, `accepted`) settles what came before it,
 * so only later terms count.
 */
export type WitnessedPosition = Pick<Position, 'term' | 'counter' | 'idleChecks'> & {
  /** Host and file of the record; null if a release before migration 40 wrote it. */
  readonly by: string | null;
};

/**
 * The database learns of a record after it was written to disk, so the newest record is never behind this position.
 * @returns undefined if no process recorded anything since the last term of an operator (`fenced`, `accepted`).
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
 * True if a record is older than one that another process wrote, or that the same process wrote before its folder was replaced by an old
 * copy. Such a record does not show later events, so it does not prove that the database is complete.
 */
export function isOutdated(recorded: Position, witnessed: WitnessedPosition): boolean {
  if (recorded.term !== witnessed.term) return recorded.term < witnessed.term;
  if (recorded.counter !== witnessed.counter) return recorded.counter < witnessed.counter;
  return (recorded.idleChecks ?? 0) < (witnessed.idleChecks ?? 0);
}

export function newerPosition(a: Position, b: Position): Position {
  if (a.term !== b.term) return a.term > b.term ? a : b;
  if (a.counter !== b.counter) return a.counter > b.counter ? a : b;
  return (a.idleChecks ?? 0) >= (b.idleChecks ?? 0) ? a : b;
}

/** Exceeds every known number, and unknown ones of lost terms, because their seconds have passed. */
export function nextTermNumber({ terms, now }: Pick<History, 'terms' | 'now'>, highestSeen = 0): number {
  const highestNumber = Math.max(highestSeen, ...terms.map(({ number }) => number));
  return Math.max(highestNumber + 1, Math.floor(now.getTime() / 1000));
}

/** Start of the last `fenced` term; undefined if there is none. */
export function fencedAt({ terms }: Pick<History, 'terms'>): Date | undefined {
  return terms.find(({ how }) => how === 'fenced')?.beganAt;
}
