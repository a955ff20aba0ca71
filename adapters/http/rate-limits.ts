import type { NextFunction, Request, Response } from 'express';
import ipaddr from 'ipaddr.js';
import { LRUCache } from 'lru-cache';
import { bounded } from '../../application/bounded.ts';
import { Failure } from '../../domain/shared/failure.ts';

/** What is limited together. */
export type RateLimitGroup = 'token' | 'nonce' | 'offer';

/** Calls per minute, of one address or one client; 0 for any number. */
export type RateLimitSettings = Readonly<Record<RateLimitGroup, number>>;

const MINUTE_MS = 60_000;
/** Callers that are remembered; the one that was not seen for longest goes first. */
const MAX_CALLERS = 100_000;
/** What one subscriber is given, who could use a new address for every call otherwise. */
const IPV6_PREFIX = 64;

/**
 * Counts calls in bounded memory, whoever calls from however many addresses: the generic cell rate algorithm, which
 * remembers one time per caller. Each process counts for itself.
 */
export class RateLimits {
  readonly #settings: RateLimitSettings;
  /** When the calls of a caller so far would be through at the allowed rate, milliseconds. */
  readonly #busyUntil = new LRUCache<string, number>(bounded(MAX_CALLERS));

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

/**
 * @returns undefined for an address that is not public: a proxy that does not say whom it speaks for (see TRUST_PROXY),
 *   or the operator's own network, where one address says nothing about who calls.
 */
function callerAddress(text: string | undefined): string | undefined {
  if (text === undefined || !ipaddr.isValid(text)) return undefined;
  const address = ipaddr.process(text);
  if (address.range() !== 'unicast') return undefined;
  if (address.kind() === 'ipv4') return address.toString();
  const network = ipaddr.IPv6.networkAddressFromCIDR(`${address.toString()}/${IPV6_PREFIX}`);
  return network.toString();
}
