import type { NextFunction, Request, Response } from 'express';
import { LRUCache } from 'lru-cache';
import { boundedBytes } from '../../../application/tenant-cache/bounded.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import { callerAddress } from '../input/caller-address.ts';

export type RateLimitGroup = 'token' | 'nonce' | 'login' | 'offer';

/** Calls per minute, of one address or one client; 0 for any number. */
export type RateLimitSettings = Readonly<Record<RateLimitGroup, number>>;

const MINUTE_MS = 60_000;
/** Callers that are remembered; the one that was not seen for longest goes first. */
const MAX_CALLER_BYTES = 20 * 1024 * 1024;
const MAX_RECOGNIZED_BYTES = 4 * 1024 * 1024;

/**
 * Counts calls in bounded memory, from however many addresses they come: the generic cell rate algorithm, which
 * remembers one time per caller. Each process counts for itself.
 */
export class RateLimits {
  readonly #settings: RateLimitSettings;
  /** When the calls of a caller so far would be through at the allowed rate, milliseconds. */
  readonly #busyUntil = new LRUCache<string, number>(boundedBytes(MAX_CALLER_BYTES));

  /** Clients that proved who they are, with the address that they did it from. */
  readonly #recognized = new LRUCache<string, true>(boundedBytes(MAX_RECOGNIZED_BYTES));

  constructor(settings: RateLimitSettings) {
    this.#settings = settings;
  }

  /**
   * A minute's calls may come at once, then one by one.
   * @throws Failure `too_many_requests` that says when to come back.
   */
  take(group: RateLimitGroup, caller: string, now = performance.now()): void {
    const perMinute = this.#settings[group];
    if (perMinute === 0) return;
    const interval = MINUTE_MS / perMinute;
    const key = `${group} ${caller}`;
    const busyUntil = Math.max(this.#busyUntil.get(key) ?? 0, now) + interval;
    const waitMs = busyUntil - now - MINUTE_MS;
    // A rounding error is not worth a refusal.
    if (waitMs > 0.5) {
      throw new Failure('too_many_requests', {
        message: `at most ${perMinute} of these calls in a minute; try again later`,
        retryAfterSeconds: Math.ceil(waitMs / 1000),
      });
    }
    this.#busyUntil.set(key, busyUntil);
  }

  /**
   * For a client that is named and not proven yet. Strangers who guess at its secret, from however many addresses, have
   * one count between them; where the client itself was let in, it has a count of its own, which they cannot use up.
   * @throws Failure `too_many_requests`.
   */
  takeNamed(group: RateLimitGroup, clientId: string, ip: string | undefined): void {
    const place = placeOf(clientId, ip);
    this.take(group, this.#recognized.get(place) ? `known ${place}` : `client ${clientId}`);
  }

  /** The client of `takeNamed` has proven who it is. */
  recognize(clientId: string, ip: string | undefined): void {
    this.#recognized.set(placeOf(clientId, ip), true);
  }

  /** Before anything is read of the request. */
  ofAddress(group: RateLimitGroup, refuse: (response: Response, error: unknown) => void) {
    return (request: Request, response: Response, next: NextFunction): void => {
      const address = callerAddress(request.ip);
      try {
        if (address !== undefined) this.take(group, address);
      } catch (error) {
        refuse(response, error);
        return;
      }
      next();
    };
  }
}

function placeOf(clientId: string, ip: string | undefined): string {
  // The address first: it has no space, and a client may be named anything until it has proven who it is.
  return `${callerAddress(ip) ?? 'home'} ${clientId}`;
}
