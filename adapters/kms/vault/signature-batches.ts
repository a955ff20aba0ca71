/** Vault takes up to 32 MiB, what stands before it often 1 MiB. One text alone may be longer. */
const MAX_CALL_CHARACTERS = 512 * 1024;
const MAX_CALL_TEXTS = 100;
/** While a call for a key is under way, others wait for the next one, but no longer. */
const HOLD_MS = 200;
/** Of all keys, under way included. */
const MAX_TEXTS = 20_000;
const MAX_CHARACTERS = 64 * 1024 ** 2;

/** Each text has its own: what is wrong with one concerns no other. */
export type Outcome = Uint8Array | Error;

type Waiting = { readonly text: string; readonly resolve: (signature: Uint8Array) => void; readonly reject: (error: unknown) => void };

type Settings<Key> = {
  /** One call. @returns an outcome for each text, in their order. */
  readonly send: (key: Key, texts: readonly string[]) => Promise<readonly Outcome[]>;
  /** What becomes of the outcome of one text that is an error. */
  readonly refused: (error: Error) => Error;
};

/** What waits for one key, and the call that it waits for. */
type Lane<Key> = {
  readonly key: Key;
  readonly waiting: Waiting[];
  characters: number;
  isDue: boolean;
  /** The last call, until it has ended or has taken too long. */
  held: object | undefined;
  underWay: number;
};

/**
 * Signatures that are asked for at the same time under one key travel in one call: those of one turn of the event loop,
 * and those that come while a call for that key is under way.
 */
export class SignatureBatches<Key> {
  readonly #settings: Settings<Key>;
  readonly #lanes = new Map<string, Lane<Key>>();
  #texts = 0;
  #characters = 0;

  constructor(settings: Settings<Key>) {
    this.#settings = settings;
  }

  /**
   * @param name of the key; equal names have equal keys.
   * @throws what `send` throws, what `refused` makes of the outcome, or of an Error when too much waits already.
   */
  sign(name: string, key: Key, text: string): Promise<Uint8Array> {
    if (this.#texts >= MAX_TEXTS || this.#characters + text.length > MAX_CHARACTERS) {
      return Promise.reject(this.#settings.refused(new Error('too much waits to be signed')));
    }
    this.#texts++;
    this.#characters += text.length;
    const lane = this.#laneOf(name, key);
    const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
    lane.waiting.push({ text, resolve, reject });
    lane.characters += text.length;
    if (lane.held === undefined || isFull(lane)) this.#flushSoon(name, lane);
    return promise;
  }

  #laneOf(name: string, key: Key): Lane<Key> {
    const known = this.#lanes.get(name);
    if (known !== undefined) return known;
    const lane = { key, waiting: [], characters: 0, isDue: false, held: undefined, underWay: 0 };
    this.#lanes.set(name, lane);
    return lane;
  }

  /** After the turn: what other requests ask for in it goes along. */
  #flushSoon(name: string, lane: Lane<Key>): void {
    if (lane.isDue) return;
    lane.isDue = true;
    setImmediate(() => {
      lane.isDue = false;
      for (const batch of takeBatches(lane)) void this.#send(name, lane, batch);
    });
  }

  async #send(name: string, lane: Lane<Key>, batch: readonly Waiting[]): Promise<void> {
    const call = {};
    const letGo = () => {
      if (lane.held !== call) return;
      lane.held = undefined;
      if (lane.waiting.length > 0) this.#flushSoon(name, lane);
    };
    lane.held = call;
    lane.underWay++;
    const timer = setTimeout(letGo, HOLD_MS);
    await this.#settle(lane.key, batch);
    clearTimeout(timer);
    lane.underWay--;
    letGo();
    if (lane.underWay === 0 && lane.waiting.length === 0) this.#lanes.delete(name);
  }

  async #settle(key: Key, batch: readonly Waiting[]): Promise<void> {
    try {
      const texts = batch.map(({ text }) => text);
      const outcomes = await this.#settings.send(key, texts);
      for (const [index, { resolve, reject }] of batch.entries()) {
        const outcome = outcomes[index] ?? new Error('a signature is missing');
        if (outcome instanceof Error) reject(this.#settings.refused(outcome));
        else resolve(outcome);
      }
    } catch (error) {
      for (const { reject } of batch) reject(error);
    } finally {
      this.#texts -= batch.length;
      for (const { text } of batch) this.#characters -= text.length;
    }
  }
}

function isFull({ waiting, characters }: Lane<unknown>): boolean {
  return waiting.length >= MAX_CALL_TEXTS || characters >= MAX_CALL_CHARACTERS;
}

/** All that waits, in as few calls as the limits of one allow; while another call holds the lane, full ones only. */
function takeBatches(lane: Lane<unknown>): readonly (readonly Waiting[])[] {
  const batches: Waiting[][] = [];
  const isHeld = lane.held !== undefined;
  while (lane.waiting.length > 0 && (!isHeld || isFull(lane))) batches.push(takeBatch(lane));
  return batches;
}

function takeBatch(lane: Lane<unknown>): Waiting[] {
  let characters = 0;
  let count = 0;
  for (const { text } of lane.waiting) {
    if (count === MAX_CALL_TEXTS || (count > 0 && characters + text.length > MAX_CALL_CHARACTERS)) break;
    characters += text.length;
    count++;
  }
  lane.characters -= characters;
  return lane.waiting.splice(0, count);
}
