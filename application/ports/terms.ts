import type { History, Position, TermBeginning } from '../../domain/rewinds/term.ts';

/** A term that is about to begin. */
export type NextTerm = {
  /** Number of the newest term; if another process was faster, it has already begun the next one. */
  readonly after: number;
  readonly number: number;
  readonly how: TermBeginning;
  /** Versions published up to this number may be lost; never lower than that of the previous term. */
  readonly listFloor?: number;
};

/** The recorded history of a database, see `domain/rewinds/term.ts`. All methods throw `StoreUnavailableError`. */
export type Terms = {
  /** Begins the first term if there is none. */
  begin(): Promise<void>;
  read(): Promise<History>;
  /**
   * Raises the counter, if the database is at `seen` or further in the same term. The result is durable, with everything that
   * was written before.
   */
  count(seen: Position): Promise<History>;
  open(next: NextTerm): Promise<boolean>;
  /**
   * Marks this term, and the terms that were promoted from it since, as incomplete for all processes. A term that an operator began
   * since (`fenced`, `accepted`) is not marked, since the operator has settled the earlier loss.
   * @param observed the newest term when the loss was detected.
   */
  markLost(observed: Pick<Position, 'term' | 'termId'>): Promise<void>;
  /**
   * Records that this position is stored on a disk outside of the database; never replaces a later one, see `later`.
   * @param location host and file of the record, for messages to operators.
   */
  markWitnessed(recorded: Position, location: string): Promise<void>;
  /**
   * Asks the running processes to confirm that the database has everything that they saw. The challenge is random, so that no
   * answer can come from a backup. @returns its id.
   */
  openChallenge(): Promise<string>;
  /** Confirms for a running process that nothing is missing. */
  answerChallenges(ids: readonly string[]): Promise<void>;
  isAnswered(id: string): Promise<boolean>;
  closeChallenge(id: string): Promise<void>;
  /**
   * True if the database has the last change of this process that no counted position is known to cover. On PostgreSQL changes
   * reach a standby in order, so it has the earlier ones as well.
   */
  hasLastChange(): Promise<boolean>;
  /** Number of changes that this process made so far. */
  readonly changes: number;
  /** True if the database can continue elsewhere without loss: a promoted standby of PostgreSQL. */
  readonly moves: boolean;
};
