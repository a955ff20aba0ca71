import type { NextFunction, Request, Response } from 'express';
import { LRUCache } from 'lru-cache';
import { boundedBytes } from '../../../application/tenant-cache/cache-memory.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import { callerAddress } from '../input/caller-address.ts';

export type RateLimitGroup = 'token' | 'nonce' | 'login' | 'offer';

/** Calls per minute of one address or one client; 0 for no limit. */
export type RateLimitSettings = Readonly<Record<RateLimitGroup, number>>;

const MINUTE_MS = 60_000;
/** Memory of the counted callers; the caller that was not seen for longest is evicted first. */
const MAX_CALLER_BYTES = 20 * 1024 * 1024;
const MAX_RECOGNIZED_BYTES = 4 * 1024 * 1024;

/**
 * Counts calls in bounded memory, however many addresses they come from: the generic cell rate algorithm, which stores one time per caller.
 * Each process counts by itself.
 */
export class RateLimits {
  readonly #settings: RateLimitSettings;
  /** Time in milliseconds at which the calls of a caller so far would be through at the allowed rate. */
  readonly #busyUntil = new LRUCache<string, number>(boundedBytes(MAX_CALLER_BYTES));

  /** Clients that authenticated, with the address that they used. */
  readonly #recognized = new LRUCache<string, true>(boundedBytes(MAX_RECOGNIZED_BYTES));

  constructor(settings: RateLimitSettings) {
    this.#settings = settings;
  }

  /**
   * Allows the calls of a minute at once, then one by one.
   * @throws Failure `too_many_requests` with the time to wait.
   */
  consume(group: RateLimitGroup, caller: string, now = performance.now()): void {
    const perMinute = this.#settings[group];
    if (perMinute === 0) return;
    const interval = MINUTE_MS / perMinute;
    const key = `${group} ${caller}`;
    const busyUntil = Math.max(this.#busyUntil.get(key) ?? 0, now) + interval;
    const waitMs = busyUntil - now - MINUTE_MS;
    // A rounding error must not reject a call.
    if (waitMs > 0.5) {
      throw new Failure('too_many_requests', {
        message: `at most ${perMinute} of these calls per minute; try again later`,
        retryAfterSeconds: Math.ceil(waitMs / 1000),
      });
    }
    this.#busyUntil.set(key, busyUntil);
  }

  /**
   * Counts a call of a client that has not authenticated yet. Callers who guess its secret share one count, whatever their addresses; a
   * client that authenticated from this address has a count of its own, which attackers cannot use up.
   * @throws Failure `too_many_requests`.
   */
  consumeUnauthenticated(group: RateLimitGroup, clientId: string, ip: string | undefined): void {
    const key = keyOf(clientId, ip);
    this.consume(group, this.#recognized.get(key) ? `known ${key}` : `client ${clientId}`);
  }

  /** Records that the client of `consumeUnauthenticated` has authenticated. */
  recordAuthenticated(clientId: string, ip: string | undefined): void {
    this.#recognized.set(keyOf(clientId, ip), true);
  }

  /** Returns a handler that runs before the request is read. */
  limitAddress(group: RateLimitGroup, refuse: (response: Response, error: unknown) => void) {
    return (request: Request, response: Response, next: NextFunction): void => {
      const address = callerAddress(request.ip);
      try {
        if (address !== undefined) this.consume(group, address);
      } catch (error) {
        refuse(response, error);
        return;
      }
      next();
    };
  }
}

function keyOf(clientId: string, ip: string | undefined): string {
  // The address comes first: it contains no space, and an unauthenticated client may claim any name.
  return `${callerAddress(ip) ?? 'home'} ${clientId}`;
}
