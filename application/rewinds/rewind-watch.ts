import {
  fencedAt,
  type History,
  isSettledSince,
  later,
  nameOfPosition,
  nextNumber,
  type Position,
  positionOf,
  type Term,
  verdictOn,
} from '../../domain/rewinds/term.ts';
import type { Log } from '../ports/log.ts';
import type { Terms } from '../ports/terms.ts';
import type { Witness } from '../ports/witness.ts';

type Ports = {
  readonly terms: Terms;
  readonly witness: Witness;
  readonly log: Log;
  /** Drops what this process remembers of what is stored. */
  readonly forget: () => void;
};

/** After a database took over elsewhere, processes that miss something have so long to say it. */
const OBJECTIONS_MS = 3_000;
/**
 * A process confirms its record at least this often. When nothing is changed for long, the records of processes that ended are
 * still older than that of a process that runs.
 */
const IDLE_CHECK_MS = 10_000;
const LOST =
  'the database has gone back in time, and would give away once more what it has forgotten: nothing is issued until ' +
  '`npx vidimus restore fence` (in a clone `npm run restore:fence`) was run; see docs/backup-and-restore.md';
const SETTLING = 'another database has just taken over; it is waited for those who miss something in it';

/**
 * Watches whether the database goes back in time while this process lives. It compares what the database knows of its past
 * with what this process saw of it, now and then and on each new connection. When something is missing, nothing is
 * given away any more until an operator has seen to it; what only takes something back, and what reads, goes on.
 */
export class RewindWatch {
  readonly #ports: Ports;
  readonly #address: string;
  #seen: Position;
  #place: string;
  #isLost = false;
  #settledAt = 0;
  #fencedAt: Date | undefined;
  #counted: number;
  #confirmedAt = performance.now();
  #noted: Position | undefined;
  /** The newest position that the database knows to be recorded by this process. */
  #marked: Position | undefined;
  #isWitnessFailing = false;

  /** @param history as `assertNotRewound` has found it. */
  constructor(ports: Ports, address: string, history: History) {
    this.#ports = ports;
    this.#address = address;
    const [newest] = history.terms;
    if (newest === undefined) throw new Error('the database has no history');
    this.#seen = positionOf(newest);
    this.#place = history.place;
    this.#counted = ports.terms.changes;
    this.#enter(history);
  }

  /** Why nothing may be given away at this moment; undefined when all is well. */
  get refusal(): string | undefined {
    if (this.#isLost) return LOST;
    return performance.now() < this.#settledAt ? SETTLING : undefined;
  }

  /** What is older and counts once does not count any more. */
  get fencedAt(): Date | undefined {
    return this.#fencedAt;
  }

  /** Counts what this process has changed since the last time, and looks whether all that it saw is there. */
  async tick(): Promise<void> {
    const { terms } = this.#ports;
    const { changes } = terms;
    const isToCount = changes !== this.#counted && this.refusal === undefined;
    const history = isToCount ? await terms.count(this.#seen) : await terms.read();
    if (isToCount) {
      this.#counted = changes;
      this.#confirmedAt = performance.now();
    }
    await this.look(terms, history);
    if (history.challenges.length > 0 && this.refusal === undefined) await terms.answerChallenges(history.challenges);
    this.#confirmWhileIdle();
    await this.testify();
  }

  /** Makes the position newer without counting: a standby that lacks only this has lost nothing. */
  #confirmWhileIdle(): void {
    if (this.refusal !== undefined || performance.now() - this.#confirmedAt < IDLE_CHECK_MS) return;
    this.#confirmedAt = performance.now();
    this.#seen = { ...this.#seen, idleChecks: (this.#seen.idleChecks ?? 0) + 1 };
  }

  /** At the end of the process, when nothing is changed any more. */
  async close(): Promise<void> {
    await this.tick();
  }

  /**
   * Records outside of the database how far it is, and then tells the database how far the record is, so that a start without that
   * record, or with an older one, is refused.
   */
  async testify(): Promise<void> {
    if (this.#isLost) return;
    if (this.#noted !== this.#seen) await this.#note(this.#seen);
    const recorded = this.#noted;
    if (recorded === undefined || recorded === this.#marked) return;
    const { terms, witness } = this.#ports;
    await terms.markWitnessed(recorded, witness.qualifiedPlace);
    this.#marked = recorded;
  }

  /** @param terms over a connection that is good for it: that of a database that has just taken over may be the only one. */
  async look(terms: Terms, found?: History): Promise<void> {
    let history = found ?? (await terms.read());
    // What was read before another look has gone on is out of date, and no sign of anything.
    for (let seen: Position | undefined; this.#misses(history) && seen !== this.#seen; ) {
      seen = this.#seen;
      history = await terms.read();
    }
    const [newest] = history.terms;
    if (newest === undefined || this.#misses(history)) return this.#lose(terms, true, newest);
    if (newest.lostAt !== null) return this.#lose(terms, false, newest);
    const isPlaced = history.place === newest.place;
    if (!isPlaced || (history.place !== this.#place && !isSettledSince(history, this.#seen))) {
      // Nobody can work on a file that another one has taken the name of.
      if (!terms.moves || !(await terms.hasLastChange())) return this.#lose(terms, true, newest);
      if (!isPlaced) {
        await terms.open({ after: newest.number, number: nextNumber(history, this.#seen.term), how: 'promoted' });
        history = await terms.read();
        if (history.terms[0]?.lostAt !== null) return this.#lose(terms, false, newest);
      }
    }
    this.#place = history.place;
    this.#advance(history);
  }

  #misses(history: History): boolean {
    const { lineage } = this.#seen;
    return history.terms[0]?.lineage !== lineage || verdictOn(history, this.#seen) === 'lost';
  }

  #advance(history: History): void {
    const [newest] = history.terms;
    if (newest === undefined) return;
    const position = positionOf(newest);
    if (position.termId !== this.#seen.termId) {
      this.#enter(history);
      this.#ports.forget();
      const { number, how, place } = newest;
      this.#ports.log.warn('the database began another term', { term: number, how, place });
      this.#seen = position;
    } else this.#seen = later(this.#seen, position);
    this.#isLost = false;
  }

  #enter({ terms: [newest, ...earlier], now }: History): void {
    if (newest === undefined) return;
    this.#fencedAt = fencedAt({ terms: [newest, ...earlier] });
    const left = newest.how === 'promoted' && this.#ports.terms.moves ? newest.beganAt.getTime() + OBJECTIONS_MS - now.getTime() : 0;
    this.#settledAt = performance.now() + Math.min(left, OBJECTIONS_MS);
  }

  /** @param newest term that was observed; undefined in a database that has no history. */
  async #lose(terms: Terms, isNews: boolean, newest: Term | undefined): Promise<void> {
    if (!this.#isLost) {
      this.#isLost = true;
      this.#ports.log.error(LOST, { seen: nameOfPosition(this.#seen) });
      this.#ports.forget();
      // What is said in a file that has lost its name, nobody reads. Its successor did not come to this position.
      if (isNews && !terms.moves) await this.#note({ ...this.#seen, counter: this.#seen.counter + 1 });
    }
    // The others may have missed nothing, and would go on.
    if (isNews && newest !== undefined) await terms.markLost(positionOf(newest));
  }

  async #note(position: Position): Promise<void> {
    const { witness, log } = this.#ports;
    try {
      await witness.note({ ...position, address: this.#address });
      this.#noted = position;
      this.#isWitnessFailing = false;
    } catch (error) {
      if (!this.#isWitnessFailing)
        log.error(
          'DATA_FOLDER cannot be written, so a start will not notice when the database was put back, or will be refused',
          {},
          error,
        );
      this.#isWitnessFailing = true;
    }
  }
}
