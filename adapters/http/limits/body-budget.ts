import type { NextFunction, Request, Response } from 'express';
import type { Caller } from '../../../application/caller.ts';
import { MemoryBudget } from '../../../application/queues/memory-budget.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import { callerAddress } from '../input/caller-address.ts';

/**
 * Bytes of request bodies in memory, counted from their arrival until their response is sent. Callers with a token have one half and all
 * others the other half, so that anonymous callers cannot use up the share of administrators. A tenant may use half of its half, and a
 * public address a quarter.
 */
export class BodyBudget {
  readonly #authenticated: MemoryBudget;
  readonly #anonymous: MemoryBudget;

  /** @param bytes limit of all bodies together. */
  constructor(bytes: number) {
    const half = bytes / 2;
    this.#authenticated = new MemoryBudget({ total: half, perKey: half / 2 }, tooMuchError);
    this.#anonymous = new MemoryBudget({ total: half, perKey: half / 4 }, tooMuchError);
  }

  /** Returns a handler that runs before the reader of the body, in the same turn of the event loop. */
  counter(callers: 'authenticated' | 'anonymous') {
    return (request: Request, response: Response, next: NextFunction): void => {
      const share =
        callers === 'anonymous' ? this.#anonymous.open(callerAddress(request.ip)) : this.#authenticated.open(tenantOf(response));
      const count = (chunk: Buffer): void => {
        try {
          share.add(chunk.length);
        } catch (error) {
          request.off('data', count);
          // The reader drops what it has read and passes the error on.
          request.emit('error', error);
        }
      };
      request.on('data', count);
      response.once('close', () => {
        request.off('data', count);
        share.release();
      });
      next();
    };
  }
}

/** @returns undefined for accounts without a tenant: only the common limit applies to them. */
function tenantOf({ locals }: Response): string | undefined {
  const { tenantId } = (locals['caller'] ?? {}) as Partial<Caller>;
  return tenantId || undefined;
}

const tooMuchError = () =>
  new Failure('unavailable', { message: 'too many large requests are in progress; try again', retryAfterSeconds: 5 });
