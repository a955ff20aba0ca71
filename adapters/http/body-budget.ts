import type { NextFunction, Request, Response } from 'express';
import { Failure } from '../../domain/shared/failure.ts';
import { callerAddress } from './caller-address.ts';

/** Of what callers without a token may hold, one public address may hold this part. */
const ADDRESS_SHARE = 1 / 4;

/**
 * Bytes of request bodies that are held at once, counted as they arrive and until their answer is sent. Callers who have
 * shown a token have one half, all others the other half, so that strangers cannot fill up what administrators need.
 */
export class BodyBudget {
  readonly #half: number;
  readonly #held = { known: 0, strangers: 0 };
  /** Bytes by public address; an address is forgotten with its last request. */
  readonly #ofAddress = new Map<string, number>();

  /** @param bytes of all bodies together. */
  constructor(bytes: number) {
    this.#half = bytes / 2;
  }

  /** Goes before what reads the body, in the same turn. */
  counter(who: 'known' | 'strangers') {
    return (request: Request, response: Response, next: NextFunction): void => {
      const address = who === 'strangers' ? callerAddress(request.ip) : undefined;
      let bytes = 0;
      const count = (chunk: Buffer): void => {
        bytes += chunk.length;
        if (this.#take(who, address, chunk.length)) return;
        request.off('data', count);
        // The reader lets go of what it has and hands the error on.
        request.emit('error', tooMuch());
      };
      request.on('data', count);
      response.once('close', () => {
        request.off('data', count);
        this.#give(who, address, bytes);
      });
      next();
    };
  }

  #take(who: 'known' | 'strangers', address: string | undefined, bytes: number): boolean {
    this.#held[who] += bytes;
    if (address === undefined) return this.#held[who] <= this.#half;
    const ofAddress = (this.#ofAddress.get(address) ?? 0) + bytes;
    this.#ofAddress.set(address, ofAddress);
    return this.#held[who] <= this.#half && ofAddress <= this.#half * ADDRESS_SHARE;
  }

  #give(who: 'known' | 'strangers', address: string | undefined, bytes: number): void {
    this.#held[who] -= bytes;
    if (address === undefined) return;
    const left = (this.#ofAddress.get(address) ?? 0) - bytes;
    if (left > 0) this.#ofAddress.set(address, left);
    else this.#ofAddress.delete(address);
  }
}

function tooMuch(): Failure {
  return new Failure('unavailable', {
    message: 'too many large requests are under way; try again',
    retryAfterSeconds: 5,
  });
}
