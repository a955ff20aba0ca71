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

/** Concurrent attempts on one client id. */
const MAX_ATTEMPTS_PER_CLIENT = 3;

/** All computations have one queue key, so they run in the order of arrival. */
const QUEUE_KEY = 'secrets';

/** Attempts on unknown client ids that wait without a computation. */
const MAX_DELAYED = 1_000;
const INITIAL_ESTIMATE_MS = 25;

/**
 * Argon2id (RFC 9106), stored as `argon2id$m=19456,t=2,p=1$<salt>$<tag>` in base64url. A correct secret is cached for five minutes under an
 * HMAC that only this process can compute.
 *
 * Anonymous callers can cause computations by naming a client. New secrets have a queue of their own, and attempts on one client id take
 * few slots, so that a flood does not delay other clients. An unknown client id has the same limits and response times. Only one
 * computation runs for all unknown ids, and further attempts wait for the usual duration: the length of a real queue would reveal which
 * ids exist.
 * @throws Failure `too_many_requests` if too many computations wait.
 */
export class Argon2Secrets extends Secrets {
  readonly #clients: FairQueue;
  readonly #requestSlots: RequestSlots | undefined;
  readonly #newSecrets = new FairQueue({ slots: 1, waiting: 64 }, tooManyError);
  /** Running and waiting attempts by client id. */
  readonly #attemptsByClient = new Map<string, number>();
  #isUnknownClientComputed = false;
  #delayed = 0;
  /** Recent duration of a computation for a known client, in milliseconds. */
  #usualMs = INITIAL_ESTIMATE_MS;
  readonly #cacheHmacKey = randomBytes(32);
  readonly #verified = new LRUCache<string, true>({ ...boundedBytes<true>(CACHE_BYTES), ttl: CACHE_TTL_MS });
  readonly #running = new SingleFlight<boolean>();

  /**
   * @param settings Limits of the queue for existing clients. Its 2 slots, 1 for new secrets and 1 for unknown clients use the 4 threads of
   *   the libuv pool.
   * @param requestSlots The request releases its slot while Argon2 runs in the thread pool; the queues of this class limit the
   *   computations.
   */
  constructor(settings: { readonly atOnce?: number; readonly waiting?: number } = {}, requestSlots?: RequestSlots) {
    super();
    this.#requestSlots = requestSlots;
    this.#clients = new FairQueue({ slots: settings.atOnce ?? 2, waiting: settings.waiting ?? 64 }, tooManyError);
  }

  override async hash(secret: string): Promise<string> {
    const salt = randomBytes(SALT_BYTES);
    const tag = await this.#releaseSlotWhile(() => this.#newSecrets.run(QUEUE_KEY, () => compute(secret, salt, COST)));
    const { memory, passes, parallelism } = COST;
    return `argon2id$m=${memory},t=${passes},p=${parallelism}$${encodeBase64url(salt)}$${encodeBase64url(tag)}`;
  }

  override async verify(secret: string, hash: string, name: string): Promise<boolean> {
    const cacheKey = createHmac('sha256', this.#cacheHmacKey)
      .update(JSON.stringify([hash, name]))
      .update(secret)
      .digest('base64');
    if (this.#verified.get(cacheKey)) return true;

    // A client that opens many connections at once sends the same secret many times.
    return this.#releaseSlotWhile(() =>
      this.#running.run(cacheKey, async () => {
        const isCorrect = await this.#withAttemptLimit(name, (attempts) => this.#compare(secret, hash, attempts));
        if (isCorrect) this.#verified.set(cacheKey, true);
        return isCorrect;
      }),
    );
  }

  #releaseSlotWhile<T>(work: () => Promise<T>): Promise<T> {
    return this.#requestSlots === undefined ? work() : this.#requestSlots.releaseSlotWhile(work);
  }

  /** @param attempts the number of running attempts on the same client id. */
  async #compare(secret: string, hash: string, attempts: number): Promise<boolean> {
    const storedHash = readStored(hash);
    if (storedHash === undefined) {
      await this.#imitateComparison(secret, attempts);
      return false;
    }
    const { salt, tag, ...cost } = storedHash;
    const begun = performance.now();
    const computed = await this.#clients.run(QUEUE_KEY, () => compute(secret, salt, cost));
    if (attempts === 0) this.#usualMs += (performance.now() - begun - this.#usualMs) / 4;
    return timingSafeEqual(computed, tag);
  }

  async #imitateComparison(secret: string, attempts: number): Promise<void> {
    if (!this.#isUnknownClientComputed && attempts === 0) {
      this.#isUnknownClientComputed = true;
      try {
        await compute(secret, Buffer.alloc(SALT_BYTES), COST);
      } finally {
        this.#isUnknownClientComputed = false;
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

  async #withAttemptLimit<T>(name: string, work: (runningAttempts: number) => Promise<T>): Promise<T> {
    const attempts = this.#attemptsByClient.get(name) ?? 0;
    if (attempts >= MAX_ATTEMPTS_PER_CLIENT) throw tooManyError();
    this.#attemptsByClient.set(name, attempts + 1);
    try {
      return await work(attempts);
    } finally {
      const remaining = (this.#attemptsByClient.get(name) ?? 1) - 1;
      if (remaining > 0) this.#attemptsByClient.set(name, remaining);
      else this.#attemptsByClient.delete(name);
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
