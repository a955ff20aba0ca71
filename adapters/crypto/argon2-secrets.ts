import { argon2, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { LRUCache } from 'lru-cache';
import type { RequestSlots } from '../../application/ports/request-slots.ts';
import { Secrets } from '../../application/ports/secrets.ts';
import { FairQueue } from '../../application/queues/fair-queue.ts';
import { boundedBytes } from '../../application/tenant-cache/cache-memory.ts';
import { SingleFlight } from '../../application/tenant-cache/single-flight.ts';
import { decodeBase64url, encodeBase64url } from '../../domain/shared/base64url.ts';
import { Failure } from '../../domain/shared/failure.ts';

type Cost = { readonly memory: number; readonly passes: number; readonly parallelism: number };
type StoredHash = Cost & { readonly salt: Uint8Array; readonly tag: Uint8Array };

/** 19 MiB and 2 passes: about 20 ms of one core. `memory` counts KiB. */
const COST: Cost = { memory: 19_456, passes: 2, parallelism: 1 };
const SALT_BYTES = 16;
const TAG_BYTES = 32;
const FORM = /^argon2id\$m=(\d{1,6}),t=(\d{1,2}),p=(\d)\$([A-Za-z0-9_-]{22})\$([A-Za-z0-9_-]{43})$/;

/** Highest costs of a stored hash, so that a planted row cannot exhaust the machine. */
const MAX_COST: Cost = { memory: 131_072, passes: 8, parallelism: 4 };

const derive = promisify(argon2);

const CACHE_BYTES = 4 * 1024 * 1024;
const CACHE_TTL_MS = 5 * 60 * 1000;

/** Concurrent attempts on one name: one runs and two wait. */
const MAX_PER_NAME = 3;

/** All computations have one queue key, so they run in the order of arrival. */
const QUEUE_KEY = 'secrets';

/** Attempts on unknown names that wait without a computation. */
const MAX_DELAYED = 1_000;
const INITIAL_ESTIMATE_MS = 25;

/**
 * Argon2id (RFC 9106), stored as `argon2id$m=19456,t=2,p=1$<salt>$<tag>` in base64url. A correct secret is cached for five minutes under an
 * HMAC that only this process can compute.
 *
 * Anonymous callers can cause computations by naming a client. New secrets have a queue of their own, and attempts on one name take few
 * slots, so that a flood does not delay other clients. An unknown name is treated like a known one: the number of attempts and their
 * duration are the same. One computation at a time really runs for unknown names and the others only wait: the length of a separate queue
 * would reveal which names exist.
 * @throws Failure `too_many_requests` if too many computations wait.
 */
export class Argon2Secrets extends Secrets {
  readonly #clients: FairQueue;
  readonly #places: RequestSlots | undefined;
  readonly #newSecrets = new FairQueue({ slots: 1, waiting: 64 }, tooManyError);
  /** Running and waiting attempts by the name of the client. */
  readonly #ofName = new Map<string, number>();
  #isUnknownNameComputed = false;
  #delayed = 0;
  /** Recent duration of a computation for a known client, in milliseconds. */
  #usualMs = INITIAL_ESTIMATE_MS;
  readonly #memoryKey = randomBytes(32);
  readonly #verified = new LRUCache<string, true>({ ...boundedBytes<true>(CACHE_BYTES), ttl: CACHE_TTL_MS });
  readonly #running = new SingleFlight<boolean>();

  /**
   * @param settings for known clients: with the other queues, at most the four pool threads are used.
   * @param places slots of requests: other threads compute, and the queues here limit them.
   */
  constructor(settings: { readonly atOnce?: number; readonly waiting?: number } = {}, places?: RequestSlots) {
    super();
    this.#places = places;
    this.#clients = new FairQueue({ slots: settings.atOnce ?? 2, waiting: settings.waiting ?? 64 }, tooManyError);
  }

  override async hash(secret: string): Promise<string> {
    const salt = randomBytes(SALT_BYTES);
    const tag = await this.#elsewhere(() => this.#newSecrets.run(QUEUE_KEY, () => compute(secret, salt, COST)));
    const { memory, passes, parallelism } = COST;
    return `argon2id$m=${memory},t=${passes},p=${parallelism}$${encodeBase64url(salt)}$${encodeBase64url(tag)}`;
  }

  override async verify(secret: string, hash: string, name: string): Promise<boolean> {
    const memory = createHmac('sha256', this.#memoryKey)
      .update(JSON.stringify([hash, name]))
      .update(secret)
      .digest('base64');
    if (this.#verified.get(memory)) return true;

    // A client that opens many connections at once sends the same secret many times.
    return this.#elsewhere(() =>
      this.#running.run(memory, async () => {
        const right = await this.#limited(name, (attempts) => this.#compare(secret, hash, attempts));
        if (right) this.#verified.set(memory, true);
        return right;
      }),
    );
  }

  #elsewhere<T>(work: () => Promise<T>): Promise<T> {
    return this.#places === undefined ? work() : this.#places.releaseSlotWhile(work);
  }

  /** @param attempts the number of running attempts on the same name. */
  async #compare(secret: string, hash: string, attempts: number): Promise<boolean> {
    const storedHash = readStored(hash);
    if (storedHash === undefined) {
      await this.#delay(secret, attempts);
      return false;
    }
    const { salt, tag, ...cost } = storedHash;
    const begun = performance.now();
    const computed = await this.#clients.run(QUEUE_KEY, () => compute(secret, salt, cost));
    if (attempts === 0) this.#usualMs += (performance.now() - begun - this.#usualMs) / 4;
    return timingSafeEqual(computed, tag);
  }

  async #delay(secret: string, attempts: number): Promise<void> {
    if (!this.#isUnknownNameComputed && attempts === 0) {
      this.#isUnknownNameComputed = true;
      try {
        await compute(secret, Buffer.alloc(SALT_BYTES), COST);
      } finally {
        this.#isUnknownNameComputed = false;
      }
      return;
    }
    if (this.#delayed >= MAX_DELAYED) throw tooManyError();
    this.#delayed++;
    try {
      // Of three attempts on a known client, two are computed together and one after them.
      await pause(this.#usualMs * (attempts < 2 ? 1 : 2));
    } finally {
      this.#delayed--;
    }
  }

  async #limited<T>(name: string, work: (before: number) => Promise<T>): Promise<T> {
    const attempts = this.#ofName.get(name) ?? 0;
    if (attempts >= MAX_PER_NAME) throw tooManyError();
    this.#ofName.set(name, attempts + 1);
    try {
      return await work(attempts);
    } finally {
      const remaining = (this.#ofName.get(name) ?? 1) - 1;
      if (remaining > 0) this.#ofName.set(name, remaining);
      else this.#ofName.delete(name);
    }
  }
}

const tooManyError = () => new Failure('too_many_requests', { retryAfterSeconds: 1 });

function readStored(hash: string): StoredHash | undefined {
  const [, m, t, p, saltText = '', tagText = ''] = FORM.exec(hash) ?? [];
  const [memory, passes, parallelism] = [Number(m), Number(t), Number(p)];
  const salt = decodeBase64url(saltText);
  const tag = decodeBase64url(tagText);
  if (salt?.length !== SALT_BYTES || tag?.length !== TAG_BYTES) return undefined;
  if (!(memory >= 8 * parallelism && memory <= MAX_COST.memory)) return undefined;
  if (!(passes >= 1 && passes <= MAX_COST.passes)) return undefined;
  if (!(parallelism >= 1 && parallelism <= MAX_COST.parallelism)) return undefined;
  return { memory, passes, parallelism, salt, tag };
}

function compute(secret: string, salt: Uint8Array, cost: Cost): Promise<Buffer> {
  return derive('argon2id', { message: secret, nonce: salt, tagLength: TAG_BYTES, ...cost });
}
