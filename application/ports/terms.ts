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
  /** Tells all processes that something is missing from the newest term. */
  markLost(): Promise<void>;
  /** Records that a process keeps a sighting of this term outside of the database. */
  markWitnessed(seen: Position): Promise<void>;
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
