import { argon2, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import { LRUCache } from 'lru-cache';
import { boundedBytes } from '../../application/bounded.ts';
import { Secrets } from '../../application/ports/secrets.ts';
import { SingleFlight } from '../../application/single-flight.ts';
import { decodeBase64url, encodeBase64url } from '../../domain/shared/base64url.ts';
import { Failure } from '../../domain/shared/failure.ts';
import { Gate } from './gate.ts';

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

/** Computations for one client at a time: one under way and two that wait. */
const MAX_OF_ONE_CLIENT = 3;

/**
 * Argon2id (RFC 9106), stored as `argon2id$m=19456,t=2,p=1$<salt>$<tag>` in base64url. A secret that was right
 * is remembered for five minutes under an HMAC that only this process can compute.
 *
 * Anybody may ask for a computation by naming a client. New secrets, clients that exist and clients that do not
 * queue apart, and one client's attempts take few places, so that a stranger who floods one queue finds nobody else
 * in it.
 * @throws Failure `too_many_requests` when too many computations wait.
 */
export class Argon2Secrets extends Secrets {
  readonly #clients: Gate;
  readonly #strangers = new Gate({ atOnce: 1, waiting: 8 });
  readonly #newSecrets = new Gate({ atOnce: 1, waiting: 64 });
  /** Computations under way or waiting, by the stored hash, which no two clients share. */
  readonly #ofClient = new Map<string, number>();
  readonly #memoryKey = randomBytes(32);
  readonly #verified = new LRUCache<string, true>({
    ...boundedBytes<true>(REMEMBERED_BYTES),
    ttl: REMEMBERED_MS,
  });
  readonly #running = new SingleFlight<boolean>();

  /** @param settings for clients that exist: with the other queues no more than the four pool threads are taken. */
  constructor(settings: { readonly atOnce?: number; readonly waiting?: number } = {}) {
    super();
    this.#clients = new Gate({ atOnce: settings.atOnce ?? 2, waiting: settings.waiting ?? 64 });
  }

  override async hash(secret: string): Promise<string> {
    const salt = randomBytes(SALT_BYTES);
    const tag = await this.#newSecrets.pass(() => compute(secret, salt, COST));
    const { memory, passes, parallelism } = COST;
    return `argon2id$m=${memory},t=${passes},p=${parallelism}$${encodeBase64url(salt)}$${encodeBase64url(tag)}`;
  }

  override async verify(secret: string, hash: string): Promise<boolean> {
    const memory = createHmac('sha256', this.#memoryKey)
      .update(hash)
      .update('\0')
      .update(secret)
      .digest('base64');
    if (this.#verified.get(memory)) return true;

    // A client that opens many connections at once asks the same question many times.
    return this.#running.run(memory, async () => {
      const right = await this.#compare(secret, hash);
      if (right) this.#verified.set(memory, true);
      return right;
    });
  }

  async #compare(secret: string, hash: string): Promise<boolean> {
    const stored = readStored(hash);
    if (stored === undefined) {
      // The same work without a hash, so that time does not tell an unknown client from a wrong secret.
      await this.#strangers.pass(() => compute(secret, Buffer.alloc(SALT_BYTES), COST));
      return false;
    }
    const { salt, tag, ...cost } = stored;
    const computed = await this.#inTurn(hash, () => compute(secret, salt, cost));
    return timingSafeEqual(computed, tag);
  }

  async #inTurn(hash: string, work: () => Promise<Buffer>): Promise<Buffer> {
    const before = this.#ofClient.get(hash) ?? 0;
    if (before >= MAX_OF_ONE_CLIENT) throw new Failure('too_many_requests', { retryAfterSeconds: 1 });
    this.#ofClient.set(hash, before + 1);
    try {
      return await this.#clients.pass(work);
    } finally {
      const left = (this.#ofClient.get(hash) ?? 1) - 1;
      if (left > 0) this.#ofClient.set(hash, left);
      else this.#ofClient.delete(hash);
    }
  }
}

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
