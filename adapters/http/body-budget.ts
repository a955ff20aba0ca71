import type { NextFunction, Request, Response } from 'express';
import type { Caller } from '../../application/caller.ts';
import { Failure } from '../../domain/shared/failure.ts';
import { callerAddress } from './caller-address.ts';

/** Of what callers of a kind may hold: one public address without a token, and all clients of one tenant. */
const SHARE = { strangers: 1 / 4, known: 1 / 2 };

/**
 * Bytes of request bodies that are held at once, counted as they arrive and until their answer is sent. Callers who have
 * shown a token have one half, all others the other half, so that strangers cannot fill up what administrators need; nor
 * can one tenant what others need.
 */
export class BodyBudget {
  readonly #half: number;
  readonly #held = { known: 0, strangers: 0 };
  /** Bytes by public address or tenant; each is forgotten with its last request. */
  readonly #ofParty = new Map<string, number>();

  /** @param bytes of all bodies together. */
  constructor(bytes: number) {
    this.#half = bytes / 2;
  }

  /** Goes before what reads the body, in the same turn. */
  counter(who: 'known' | 'strangers') {
    return (request: Request, response: Response, next: NextFunction): void => {
      const party = who === 'strangers' ? callerAddress(request.ip) : tenantOf(response);
      let bytes = 0;
      const count = (chunk: Buffer): void => {
        bytes += chunk.length;
        if (this.#take(who, party, chunk.length)) return;
        request.off('data', count);
        // The reader lets go of what it has and hands the error on.
        request.emit('error', tooMuch());
      };
      request.on('data', count);
      response.once('close', () => {
        request.off('data', count);
        this.#give(who, party, bytes);
      });
      next();
    };
  }

  #take(who: 'known' | 'strangers', party: string | undefined, bytes: number): boolean {
    this.#held[who] += bytes;
    if (party === undefined) return this.#held[who] <= this.#half;
    const ofParty = (this.#ofParty.get(party) ?? 0) + bytes;
    this.#ofParty.set(party, ofParty);
    return this.#held[who] <= this.#half && ofParty <= this.#half * SHARE[who];
  }

  #give(who: 'known' | 'strangers', party: string | undefined, bytes: number): void {
    this.#held[who] -= bytes;
    if (party === undefined) return;
    const left = (this.#ofParty.get(party) ?? 0) - bytes;
    if (left > 0) this.#ofParty.set(party, left);
    else this.#ofParty.delete(party);
  }
}

/** Under a name that no address has. */
function tenantOf({ locals }: Response): string | undefined {
  const { tenantId } = (locals['caller'] ?? {}) as Partial<Caller>;
  return tenantId ? `tenant ${tenantId}` : undefined;
}

function tooMuch(): Failure {
  return new Failure('unavailable', {
    message: 'too many large requests are under way; try again',
    retryAfterSeconds: 5,
  });
}
