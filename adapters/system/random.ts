import { randomBytes, randomFillSync } from 'node:crypto';
import { Random } from '../../application/ports/random.ts';

const POOL_BYTES = 16_384;
/** Size of the salts of a large credential. Larger requests gain nothing from the pool and would only empty it. */
const SMALL_BYTES = 1_024;

/**
 * Random generator of the operating system. Small requests are served from a pool, because a call of the generator costs more than its
 * bytes. Used bytes are erased from the pool.
 */
export class NodeRandom extends Random {
  readonly #pool = Buffer.alloc(POOL_BYTES);
  #next = POOL_BYTES;

  override bytes(length: number): Buffer {
    if (length > SMALL_BYTES) return randomBytes(length);
    const part = this.#take(length);
    const copy = Buffer.from(part);
    part.fill(0);
    return copy;
  }

  override token(bits: 128 | 192 | 256 = 128): string {
    const part = this.#take(bits / 8);
    const text = part.toString('base64url');
    part.fill(0);
    return text;
  }

  #take(length: number): Buffer {
    if (this.#next + length > POOL_BYTES) {
      randomFillSync(this.#pool);
      this.#next = 0;
    }
    const part = this.#pool.subarray(this.#next, this.#next + length);
    this.#next += length;
    return part;
  }
}
