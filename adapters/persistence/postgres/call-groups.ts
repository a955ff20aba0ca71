import { toStoreError } from '../database-faults.ts';
import type { Parameter, Row, Statement } from '../statement.ts';

export type Call = { readonly statement: Statement; readonly values: readonly Parameter[] };

/** Outcome of a call in a batch. `undone`: another call of the batch failed, and nothing of this one happened. */
export type Outcome = { readonly rows: readonly Row[] } | { readonly error: unknown } | { readonly undone: true };

/** Limit of calls per message. */
const MAX_BATCH = 16;
/** Calls wait this long for earlier ones; then they use another connection, because the earlier ones may wait for a lock. */
const MAX_WAIT_MS = 20;

type WaitingCall = Call & { readonly resolve: (rows: readonly Row[]) => void; readonly reject: (error: unknown) => void };

type Lane = { readonly waiting: WaitingCall[]; underWay: number; timer: NodeJS.Timeout | undefined };

/**
 * Group commit. While calls of a group are running, later ones wait and then share one message, one transaction and one disk flush. Each is
 * answered once that transaction is durable. A call that fails undoes the others of its batch, which are then run one by one; so a group
 * belongs to one tenant, and cannot slow down other tenants.
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
      if (lane.underWay > 0) lane.timer = setTimeout(() => this.#send(group, lane), MAX_WAIT_MS);
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

  /** Sends after the current turn of the event loop, whose events may add calls. */
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
    const calls = lane.waiting.splice(0, MAX_BATCH);
    if (calls.length === 0) {
      if (lane.underWay === 0) this.#lanes.delete(group);
      return;
    }
    lane.underWay++;
    void this.#answer(calls).then(() => {
      lane.underWay--;
      this.#send(group, lane);
    });
    if (lane.waiting.length > 0) lane.timer = setTimeout(() => this.#send(group, lane), MAX_WAIT_MS);
  }

  /** The promise never rejects. */
  async #answer(calls: readonly WaitingCall[]): Promise<void> {
    const [onlyCall] = calls;
    if (onlyCall !== undefined && calls.length === 1) return this.#answerAlone(onlyCall);
    let outcomes: readonly Outcome[];
    try {
      outcomes = await this.#together(calls);
    } catch (error) {
      for (const { reject } of calls) reject(error);
      return;
    }
    const undone: WaitingCall[] = [];
    calls.forEach((call, index) => {
      const outcome = outcomes[index];
      if (outcome === undefined || 'undone' in outcome) undone.push(call);
      else if ('error' in outcome) call.reject(toStoreError(outcome.error));
      else call.resolve(outcome.rows);
    });
    for (const call of undone) await this.#answerAlone(call);
  }

  #answerAlone(call: WaitingCall): Promise<void> {
    return this.#alone(call).then(call.resolve, call.reject);
  }
}
