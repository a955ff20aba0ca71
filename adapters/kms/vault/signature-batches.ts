/** Vault accepts up to 32 MiB, proxies often 1 MiB. A single text may be longer. */
const MAX_CALL_CHARACTERS = 512 * 1024;
const MAX_CALL_TEXTS = 100;
/** Texts wait for a running call of the same key at most this long. */
const HOLD_MS = 200;
/** Limit over all keys, including running calls. */
const MAX_TEXTS = 20_000;
const MAX_CHARACTERS = 64 * 1024 ** 2;

/** Outcome of one text; an error of one text does not affect the others. */
export type Outcome = Uint8Array | Error;

type WaitingText = { readonly text: string; readonly resolve: (signature: Uint8Array) => void; readonly reject: (error: unknown) => void };

type Settings<Key> = {
  /** Makes one call. @returns an outcome for each text, in their order. */
  readonly send: (key: Key, texts: readonly string[]) => Promise<readonly Outcome[]>;
  /** Converts the error of one text. */
  readonly toError: (error: Error) => Error;
};

/** Waiting texts of one key, and the call that they wait for. */
type Lane<Key> = {
  readonly key: Key;
  readonly waiting: WaitingText[];
  characters: number;
  isDue: boolean;
  /** The last call, until it has ended or has taken too long. */
  held: object | undefined;
  underWay: number;
};

/**
 * Batches the signatures of one key into calls: those of one turn of the event loop, and those that arrive while a call for the key is
 * running.
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
   * @throws the error of `send` or of the outcome; an error if too many texts are waiting.
   */
  sign(name: string, key: Key, text: string): Promise<Uint8Array> {
    if (this.#texts >= MAX_TEXTS || this.#characters + text.length > MAX_CHARACTERS) {
      return Promise.reject(this.#settings.toError(new Error('too many signatures are pending')));
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
    const existingLane = this.#lanes.get(name);
    if (existingLane !== undefined) return existingLane;
    const lane = { key, waiting: [], characters: 0, isDue: false, held: undefined, underWay: 0 };
    this.#lanes.set(name, lane);
    return lane;
  }

  /** Sends after the turn, so that texts of other requests in the turn are included. */
  #flushSoon(name: string, lane: Lane<Key>): void {
    if (lane.isDue) return;
    lane.isDue = true;
    setImmediate(() => {
      lane.isDue = false;
      for (const batch of takeBatches(lane)) void this.#send(name, lane, batch);
    });
  }

  async #send(name: string, lane: Lane<Key>, batch: readonly WaitingText[]): Promise<void> {
    const call = {};
    const release = () => {
      if (lane.held !== call) return;
      lane.held = undefined;
      if (lane.waiting.length > 0) this.#flushSoon(name, lane);
    };
    lane.held = call;
    lane.underWay++;
    const timer = setTimeout(release, HOLD_MS);
    await this.#settle(lane.key, batch);
    clearTimeout(timer);
    lane.underWay--;
    release();
    if (lane.underWay === 0 && lane.waiting.length === 0) this.#lanes.delete(name);
  }

  async #settle(key: Key, batch: readonly WaitingText[]): Promise<void> {
    try {
      const texts = batch.map(({ text }) => text);
      const outcomes = await this.#settings.send(key, texts);
      for (const [index, { resolve, reject }] of batch.entries()) {
        const outcome = outcomes[index] ?? new Error('a signature is missing');
        if (outcome instanceof Error) reject(this.#settings.toError(outcome));
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

/** Takes all waiting texts in as few calls as possible; while another call holds the lane, only full batches. */
function takeBatches(lane: Lane<unknown>): readonly (readonly WaitingText[])[] {
  const batches: WaitingText[][] = [];
  const isHeld = lane.held !== undefined;
  while (lane.waiting.length > 0 && (!isHeld || isFull(lane))) batches.push(takeBatch(lane));
  return batches;
}

function takeBatch(lane: Lane<unknown>): WaitingText[] {
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
