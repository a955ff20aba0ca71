import { argon2, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { LRUCache } from 'lru-cache';
import { Secrets } from '../../application/ports/secrets.ts';
import type { WorkPlaces } from '../../application/ports/work-places.ts';
import { FairQueue } from '../../application/queues/fair-queue.ts';
import { boundedBytes } from '../../application/tenant-cache/bounded.ts';
import { SingleFlight } from '../../application/tenant-cache/single-flight.ts';
import { decodeBase64url, encodeBase64url } from '../../domain/shared/base64url.ts';
import { Failure } from '../../domain/shared/failure.ts';

type Cost = { readonly memory: number; readonly passes: number; readonly parallelism: number };
type Stored = Cost & { readonly salt: Uint8Array; readonly tag: Uint8Array };

/** 19 MiB and 2 passes: about 20 ms of one core. `memory` counts KiB. */
const COST: Cost = { memory: 19_456, passes: 2, parallelism: 1 };
const SALT_BYTES = 16;
const TAG_BYTES = 32;
const FORM = /^argon2id\$m=(\d{1,6}),t=(\d{1,2}),p=(\d)\$([A-Za-z0-9_-]{22})\$([A-Za-z0-9_-]{43})$/;

/** Costs that a stored hash may ask for, so that a planted row cannot exhaust the machine. */
const MOST: Cost = { memory: 131_072, passes: 8, parallelism: 4 };

const derive = promisify(argon2);

const REMEMBERED_BYTES = 4 * 1024 * 1024;
const REMEMBERED_MS = 5 * 60 * 1000;

/** Attempts on one name at a time: one under way and two that wait. */
const MAX_OF_ONE_NAME = 3;

/** All computations are of one party, so they are done in the order of arrival. */
const PARTY = 'secrets';

/** Attempts on names that nobody has which are kept waiting without a computation. */
const MAX_KEPT_WAITING = 1_000;
const FIRST_GUESS_MS = 25;

/**
 * Argon2id (RFC 9106), stored as `argon2id$m=19456,t=2,p=1$<salt>$<tag>` in base64url. A secret that was right
 * is remembered for five minutes under an HMAC that only this process can compute.
 *
 * Anybody may ask for a computation by naming a client. New secrets queue apart, and attempts on one name take few
 * places, so that a stranger who floods finds nobody else in the queue. A name that nobody has is answered like any other:
 * as many attempts on it are let in, and each takes as long. One computation at a time is really done for such names and the
 * others wait without: in a queue of their own its length would tell them from the rest.
 * @throws Failure `too_many_requests` when too many computations wait.
 */
export class Argon2Secrets extends Secrets {
  readonly #clients: FairQueue;
  readonly #places: WorkPlaces | undefined;
  readonly #newSecrets = new FairQueue({ slots: 1, waiting: 64 }, tooManyError);
  /** Attempts under way or waiting, by the name of the client. */
  readonly #ofName = new Map<string, number>();
  #isStrangerComputed = false;
  #keptWaiting = 0;
  /** What a computation for a client that exists took lately, in milliseconds. */
  #usualMs = FIRST_GUESS_MS;
  readonly #memoryKey = randomBytes(32);
  readonly #verified = new LRUCache<string, true>({ ...boundedBytes<true>(REMEMBERED_BYTES), ttl: REMEMBERED_MS });
  readonly #running = new SingleFlight<boolean>();

  /**
   * @param settings for clients that exist: with the other queues no more than the four pool threads are taken.
   * @param places of requests: other threads compute, and the queues here let in as many as they always do.
   */
  constructor(settings: { readonly atOnce?: number; readonly waiting?: number } = {}, places?: WorkPlaces) {
    super();
    this.#places = places;
    this.#clients = new FairQueue({ slots: settings.atOnce ?? 2, waiting: settings.waiting ?? 64 }, tooManyError);
  }

  override async hash(secret: string): Promise<string> {
    const salt = randomBytes(SALT_BYTES);
    const tag = await this.#elsewhere(() => this.#newSecrets.run(PARTY, () => compute(secret, salt, COST)));
    const { memory, passes, parallelism } = COST;
    return `argon2id$m=${memory},t=${passes},p=${parallelism}$${encodeBase64url(salt)}$${encodeBase64url(tag)}`;
  }

  override async verify(secret: string, hash: string, name: string): Promise<boolean> {
    const memory = createHmac('sha256', this.#memoryKey)
      .update(JSON.stringify([hash, name]))
      .update(secret)
      .digest('base64');
    if (this.#verified.get(memory)) return true;

    // A client that opens many connections at once asks the same question many times.
    return this.#elsewhere(() =>
      this.#running.run(memory, async () => {
        const right = await this.#inTurn(name, (before) => this.#compare(secret, hash, before));
        if (right) this.#verified.set(memory, true);
        return right;
      }),
    );
  }

  #elsewhere<T>(work: () => Promise<T>): Promise<T> {
    return this.#places === undefined ? work() : this.#places.elsewhere(work);
  }

  /** @param before how many attempts on the same name are under way. */
  async #compare(secret: string, hash: string, before: number): Promise<boolean> {
    const stored = readStored(hash);
    if (stored === undefined) {
      await this.#asLongAsUsual(secret, before);
      return false;
    }
    const { salt, tag, ...cost } = stored;
    const begun = performance.now();
    const computed = await this.#clients.run(PARTY, () => compute(secret, salt, cost));
    if (before === 0) this.#usualMs += (performance.now() - begun - this.#usualMs) / 4;
    return timingSafeEqual(computed, tag);
  }

  async #asLongAsUsual(secret: string, before: number): Promise<void> {
    if (!this.#isStrangerComputed && before === 0) {
      this.#isStrangerComputed = true;
      try {
        await compute(secret, Buffer.alloc(SALT_BYTES), COST);
      } finally {
        this.#isStrangerComputed = false;
      }
      return;
    }
    if (this.#keptWaiting >= MAX_KEPT_WAITING) throw tooManyError();
    this.#keptWaiting++;
    try {
      // Of three attempts on a client that exists, two are computed together and one after them.
      await pause(this.#usualMs * (before < 2 ? 1 : 2));
    } finally {
      this.#keptWaiting--;
    }
  }

  async #inTurn<T>(name: string, work: (before: number) => Promise<T>): Promise<T> {
    const before = this.#ofName.get(name) ?? 0;
    if (before >= MAX_OF_ONE_NAME) throw tooManyError();
    this.#ofName.set(name, before + 1);
    try {
      return await work(before);
    } finally {
      const left = (this.#ofName.get(name) ?? 1) - 1;
      if (left > 0) this.#ofName.set(name, left);
      else this.#ofName.delete(name);
    }
  }
}

const tooManyError = () => new Failure('too_many_requests', { retryAfterSeconds: 1 });

function readStored(hash: string): Stored | undefined {
  const [, m, t, p, saltText = '', tagText = ''] = FORM.exec(hash) ?? [];
  const [memory, passes, parallelism] = [Number(m), Number(t), Number(p)];
  const salt = decodeBase64url(saltText);
  const tag = decodeBase64url(tagText);
  if (salt?.length !== SALT_BYTES || tag?.length !== TAG_BYTES) return undefined;
  if (!(memory >= 8 * parallelism && memory <= MOST.memory)) return undefined;
  if (!(passes >= 1 && passes <= MOST.passes)) return undefined;
  if (!(parallelism >= 1 && parallelism <= MOST.parallelism)) return undefined;
  return { memory, passes, parallelism, salt, tag };
}

function compute(secret: string, salt: Uint8Array, cost: Cost): Promise<Buffer> {
  return derive('argon2id', { message: secret, nonce: salt, tagLength: TAG_BYTES, ...cost });
}
