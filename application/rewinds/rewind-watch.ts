import {
  compareWithHistory,
  fencedAt,
  formatPosition,
  type History,
  isSettledByOperator,
  newerPosition,
  nextTermNumber,
  type Position,
  positionOf,
  type Term,
} from '../../domain/rewinds/term.ts';
import type { Log } from '../ports/log.ts';
import type { Terms } from '../ports/terms.ts';
import type { Witness } from '../ports/witness.ts';

type Ports = {
  readonly terms: Terms;
  readonly witness: Witness;
  readonly log: Log;
  /** Drops the caches of this process. */
  readonly forget: () => void;
};

/** Time after a failover in which processes can report missing data. */
const OBJECTION_PERIOD_MS = 3_000;
/**
 * Maximum interval in which a process confirms its record. Even if nothing is changed for long, the records of ended processes are
 * older than that of a running one.
 */
const IDLE_CHECK_MS = 10_000;
const LOST =
  'the database went back in time, and the service would reuse lost values: nothing is issued until ' +
  '`npx vidimus restore fence` (in a clone `npm run restore:fence`) was run; see docs/guides/backup-and-restore.md';
const SETTLING = 'another database has just taken over; processes that miss changes are awaited';

/**
 * Detects a rollback of the database while this process runs. It compares the history in the database with what this process saw of it,
 * periodically and on each new connection. When data are missing, nothing is issued until an operator has run the fence; reads and
 * revocations continue.
 */
export class RewindWatch {
  readonly #ports: Ports;
  readonly #address: string;
  #position: Position;
  #place: string;
  #isLost = false;
  #settlesAt = 0;
  #fencedAt: Date | undefined;
  #counted: number;
  #confirmedAt = performance.now();
  #recordedPosition: Position | undefined;
  /** The newest position that this process has marked as recorded in the database. */
  #markedPosition: Position | undefined;
  #isWitnessFailing = false;

  /** @param history the result of `assertNotRewound`. */
  constructor(ports: Ports, address: string, history: History) {
    this.#ports = ports;
    this.#address = address;
    const [newest] = history.terms;
    if (newest === undefined) throw new Error('the database has no history');
    this.#position = positionOf(newest);
    this.#place = history.place;
    this.#counted = ports.terms.changes;
    this.#enterTerm(history);
  }

  /** The reason for which nothing may be issued at present; undefined otherwise. */
  get refusal(): string | undefined {
    if (this.#isLost) return LOST;
    return performance.now() < this.#settlesAt ? SETTLING : undefined;
  }

  /** Time of the last fence: older single-use values are invalid. */
  get fencedAt(): Date | undefined {
    return this.#fencedAt;
  }

  /** Counts the changes of this process since the last call, and checks that everything that it saw is there. */
  async tick(): Promise<void> {
    const { terms } = this.#ports;
    const { changes } = terms;
    const mustCount = changes !== this.#counted && this.refusal === undefined;
    const history = mustCount ? await terms.count(this.#position) : await terms.read();
    if (mustCount) {
      this.#counted = changes;
      this.#confirmedAt = performance.now();
    }
    await this.verify(terms, history);
    if (history.challenges.length > 0 && this.refusal === undefined) await terms.answerChallenges(history.challenges);
    this.#confirmWhileIdle();
    await this.recordPosition();
  }

  /** Advances the position without a write: a standby that lacks only this has lost nothing. */
  #confirmWhileIdle(): void {
    if (this.refusal !== undefined || performance.now() - this.#confirmedAt < IDLE_CHECK_MS) return;
    this.#confirmedAt = performance.now();
    this.#position = { ...this.#position, idleChecks: (this.#position.idleChecks ?? 0) + 1 };
  }

  /** Writes the final record at the end of the process. */
  async close(): Promise<void> {
    await this.tick();
  }

  /**
   * Records the position outside of the database, and then marks it as recorded in the database, so that a start without that
   * record, or with an older one, is rejected.
   */
  async recordPosition(): Promise<void> {
    if (this.#isLost) return;
    if (this.#recordedPosition !== this.#position) await this.#writeSighting(this.#position);
    const recordedPosition = this.#recordedPosition;
    if (recordedPosition === undefined || recordedPosition === this.#markedPosition) return;
    const { terms, witness } = this.#ports;
    await terms.markWitnessed(recordedPosition, witness.qualifiedLocation);
    this.#markedPosition = recordedPosition;
  }

  /** @param terms of the current connection: after a failover it may be the only one to the new database. */
  async verify(terms: Terms, knownHistory?: History): Promise<void> {
    let history = knownHistory ?? (await terms.read());
    // A history that was read before a concurrent check advanced is out of date, and no evidence of a loss.
    for (let previousPosition: Position | undefined; this.#isMissingData(history) && previousPosition !== this.#position; ) {
      previousPosition = this.#position;
      history = await terms.read();
    }
    const [newest] = history.terms;
    if (newest === undefined || this.#isMissingData(history)) return this.#handleLoss(terms, true, newest);
    if (newest.lostAt !== null) return this.#handleLoss(terms, false, newest);
    const isSameLocation = history.place === newest.place;
    if (!isSameLocation || (history.place !== this.#place && !isSettledByOperator(history, this.#position))) {
      // A SQLite file that was replaced by another one is lost for this process.
      if (!terms.supportsPromotion || !(await terms.hasLastChange())) return this.#handleLoss(terms, true, newest);
      if (!isSameLocation) {
        await terms.open({ after: newest.number, number: nextTermNumber(history, this.#position.term), how: 'promoted' });
        history = await terms.read();
        if (history.terms[0]?.lostAt !== null) return this.#handleLoss(terms, false, newest);
      }
    }
    this.#place = history.place;
    this.#advance(history);
  }

  #isMissingData(history: History): boolean {
    const { lineage } = this.#position;
    return history.terms[0]?.lineage !== lineage || compareWithHistory(history, this.#position) === 'lost';
  }

  #advance(history: History): void {
    const [newest] = history.terms;
    if (newest === undefined) return;
    const position = positionOf(newest);
    if (position.termId !== this.#position.termId) {
      this.#enterTerm(history);
      this.#ports.forget();
      const { number, how, place } = newest;
      this.#ports.log.warn('the database began another term', { term: number, how, place });
      this.#position = position;
    } else this.#position = newerPosition(this.#position, position);
    this.#isLost = false;
  }

  #enterTerm({ terms: [newest, ...earlier], now }: History): void {
    if (newest === undefined) return;
    this.#fencedAt = fencedAt({ terms: [newest, ...earlier] });
    const remainingMs =
      newest.how === 'promoted' && this.#ports.terms.supportsPromotion ? newest.beganAt.getTime() + OBJECTION_PERIOD_MS - now.getTime() : 0;
    this.#settlesAt = performance.now() + Math.min(remainingMs, OBJECTION_PERIOD_MS);
  }

  /** @param newest observed term; undefined in a database without history. */
  async #handleLoss(terms: Terms, isNew: boolean, newest: Term | undefined): Promise<void> {
    if (!this.#isLost) {
      this.#isLost = true;
      this.#ports.log.error(LOST, { seen: formatPosition(this.#position) });
      this.#ports.forget();
      // A file that was replaced is not read any more, so the loss is recorded by a position that its successor did not reach.
      if (isNew && !terms.supportsPromotion) await this.#writeSighting({ ...this.#position, counter: this.#position.counter + 1 });
    }
    // Other processes may not notice the loss, so the term is marked.
    if (isNew && newest !== undefined) await terms.markLost(positionOf(newest));
  }

  async #writeSighting(position: Position): Promise<void> {
    const { witness, log } = this.#ports;
    try {
      await witness.note({ ...position, address: this.#address });
      this.#recordedPosition = position;
      this.#isWitnessFailing = false;
    } catch (error) {
      if (!this.#isWitnessFailing)
        log.error('DATA_FOLDER cannot be written, so a start does not detect a restored database, or is rejected', {}, error);
      this.#isWitnessFailing = true;
    }
  }
}
