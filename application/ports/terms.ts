import type { History, Position, TermBeginning } from '../../domain/rewinds/term.ts';

/** A term that is to begin. */
export type NextTerm = {
  /** The newest one, as it was seen: whoever was faster has begun the next one. */
  readonly after: number;
  readonly number: number;
  readonly how: TermBeginning;
  /** What was published up to this number may be lost; never lower than that of the term before. */
  readonly listFloor?: number;
};

/** What a database knows of its own past, see `domain/rewinds/term.ts`. All of it throws `StoreUnavailable`. */
export type Terms = {
  /** Begins the first term unless there is one. */
  begin(): Promise<void>;
  read(): Promise<History>;
  /**
   * Raises the counter, if the database is at `seen` or further in the same term. What it answers is durable, with everything that
   * was written before.
   */
  count(seen: Position): Promise<History>;
  /** @returns false when another process was faster. */
  open(next: NextTerm): Promise<boolean>;
  /**
   * Tells all processes that something is missing from this term, and from the terms that were promoted from it since. A term that an
   * operator began since (`fenced`, `accepted`) is not marked, since the operator has settled what was missing before it.
   * @param observed in the term that was the newest when the loss was found.
   */
  markLost(observed: Pick<Position, 'term' | 'termId'>): Promise<void>;
  /**
   * Stores that a record of this position is on a disk outside of the database; never replaces a later one, see `later`.
   * @param place host and file of the record, for messages to operators.
   */
  markWitnessed(recorded: Position, place: string): Promise<void>;
  /**
   * Asks the processes that live whether the database has everything that they saw. The challenge is random, so that no answer can
   * come from a backup. @returns its id.
   */
  openChallenge(): Promise<string>;
  /** Confirms for a process that lives that nothing is missing. */
  answerChallenges(ids: readonly string[]): Promise<void>;
  isAnswered(id: string): Promise<boolean>;
  closeChallenge(id: string): Promise<void>;
  /**
   * Whether the last change that this process made, and that no counted position is known to cover, is there. On PostgreSQL changes
   * come to a standby in their order, so the others are there with it.
   */
  hasLastChange(): Promise<boolean>;
  /** Changes that this process made so far. */
  readonly changes: number;
  /** Whether a database goes on at another place without losing anything: a standby of PostgreSQL that was promoted. */
  readonly moves: boolean;
};
