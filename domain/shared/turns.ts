import { Failure } from './failure.ts';

/** Work on one thing at a time: what names the same key runs in the order in which it came. */
export class Turns {
  readonly #queues = new Map<string, { last: Promise<unknown>; length: number }>();
  readonly #most: number;

  /** @param most that may be under way and waiting under one key. */
  constructor(most: number) {
    this.#most = most;
  }

  /** @throws Failure `unavailable` when too many want the same. */
  async take<T>(key: string, work: () => Promise<T>): Promise<T> {
    const queue = this.#queues.get(key) ?? { last: Promise.resolve(), length: 0 };
    if (queue.length >= this.#most) {
      const message = 'too many are changing the same at this moment; try again';
      throw new Failure('unavailable', { message, retryAfterSeconds: 1 });
    }
    this.#queues.set(key, queue);
    queue.length++;
    // Whether the one before failed is its own affair.
    const turn = queue.last.then(work, work);
    queue.last = turn;
    try {
      return await turn;
    } finally {
      queue.length--;
      if (queue.length === 0) this.#queues.delete(key);
    }
  }
}
