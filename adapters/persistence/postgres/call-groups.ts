import { unavailableFor } from '../database-faults.ts';
import type { Parameter, Row, Statement } from '../statement.ts';

/** A statement with its parameters. */
export type Call = { readonly statement: Statement; readonly values: readonly Parameter[] };

/** What became of a call that went with others. `undone`: one of the others failed, and nothing of it happened. */
export type Outcome = { readonly rows: readonly Row[] } | { readonly error: unknown } | { readonly undone: true };

/** Calls that go in one message. */
const MOST_TOGETHER = 16;
/** So long calls wait for those before them; then they go on another connection, since a lock may hold those. */
const PATIENCE_MS = 20;

type Waiting = Call & { readonly resolve: (rows: readonly Row[]) => void; readonly reject: (error: unknown) => void };

type Lane = { readonly waiting: Waiting[]; underWay: number; timer: NodeJS.Timeout | undefined };

/**
 * Group commit. While calls of a group are under way, later ones wait, and then go together: one message, one transaction, one wait for the
 * disk, where each would have had its own. Each is answered once that transaction is durable. One that fails undoes its neighbours, which
 * are then run one by one; so a group is of one tenant, and nobody can make others pay for it.
 */
export class CallGroups {
  readonly #lanes = new Map<string, Lane>();
  readonly #alone: (call: Call) => Promise<readonly Row[]>;
  readonly #together: (calls: readonly Call[]) => Promise<readonly Outcome[]>;

  constructor(
    alone: (statement: Call['statement'], values: Call['values']) => Promise<readonly Row[]>,
    together: (calls: readonly Call[]) => Promise<readonly Outcome[]>,
  ) {
    this.#alone = ({ statement, values }) => alone(statement, values);
    this.#together = together;
  }

  run(group: string, call: Call): Promise<readonly Row[]> {
    return new Promise((resolve, reject) => {
      const lane = this.#lane(group);
      lane.waiting.push({ ...call, resolve, reject });
      if (lane.timer !== undefined) return;
      if (lane.underWay > 0) lane.timer = setTimeout(() => this.#send(group, lane), PATIENCE_MS);
      else this.#sendSoon(group, lane);
    });
  }

  #lane(group: string): Lane {
    let lane = this.#lanes.get(group);
    if (lane === undefined) {
      lane = { waiting: [], underWay: 0, timer: undefined };
      this.#lanes.set(group, lane);
    }
    return lane;
  }

  /** Once the events of this turn of the loop are dealt with, which may bring neighbours. */
  #sendSoon(group: string, lane: Lane): void {
    lane.underWay++;
    setImmediate(() => {
      lane.underWay--;
      this.#send(group, lane);
    });
  }

  #send(group: string, lane: Lane): void {
    clearTimeout(lane.timer);
    lane.timer = undefined;
    const calls = lane.waiting.splice(0, MOST_TOGETHER);
    if (calls.length === 0) {
      if (lane.underWay === 0) this.#lanes.delete(group);
      return;
    }
    lane.underWay++;
    void this.#answer(calls).then(() => {
      lane.underWay--;
      this.#send(group, lane);
    });
    if (lane.waiting.length > 0) lane.timer = setTimeout(() => this.#send(group, lane), PATIENCE_MS);
  }

  /** Never rejects. */
  async #answer(calls: readonly Waiting[]): Promise<void> {
    const [first] = calls;
    if (first !== undefined && calls.length === 1) return this.#answerAlone(first);
    let outcomes: readonly Outcome[];
    try {
      outcomes = await this.#together(calls);
    } catch (error) {
      for (const { reject } of calls) reject(error);
      return;
    }
    const undone: Waiting[] = [];
    calls.forEach((call, index) => {
      const outcome = outcomes[index];
      if (outcome === undefined || 'undone' in outcome) undone.push(call);
      else if ('error' in outcome) call.reject(unavailableFor(outcome.error));
      else call.resolve(outcome.rows);
    });
    for (const call of undone) await this.#answerAlone(call);
  }

  #answerAlone(call: Waiting): Promise<void> {
    return this.#alone(call).then(call.resolve, call.reject);
  }
}
