import type { History, Position, TermBeginning } from '../../domain/rewinds/term.ts';

/** A term that is about to begin. */
export type NextTerm = {
  /** Number of the newest term; the new term is not begun if another process has begun one after it. */
  readonly after: number;
  readonly number: number;
  /** Reason for which the term begins. */
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
   * Raises the counter, if the database is at `lastPosition` or further in the same term. The result is durable, with everything that
   * was written before.
   */
  count(lastPosition: Position): Promise<History>;
  open(next: NextTerm): Promise<boolean>;
  /**
   * Marks this term, and the terms that were promoted from it since, as incomplete for all processes. A term that an operator began
   * since (`fenced`, `accepted`) is not marked, since the operator has settled the earlier loss.
   * @param observed the newest term when the loss was detected.
   */
  markLost(observed: Pick<Position, 'term' | 'termId'>): Promise<void>;
  /**
   * Records that a position is stored on a disk outside of the database. A later position is not replaced.
   * @param recorded the stored position.
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
   * Returns true if the database has the last change of this process after the last counted position. Changes reach a standby of
   * PostgreSQL in order, so it has the earlier ones as well.
   */
  hasLastChange(): Promise<boolean>;
  /** Number of changes that this process made so far. */
  readonly changes: number;
  /** True if the database can continue in another place without loss, as a promoted standby: PostgreSQL, not SQLite. */
  readonly supportsPromotion: boolean;
};
