import { createHash } from 'node:crypto';
import type { Clock } from '../ports/clock.ts';
import type { Random } from '../ports/random.ts';

/** Time to read the output of the start and to open the link. */
const VALID_MS = 30 * 60_000;
const MAX_TICKETS = 16;

/**
 * Single-use tickets with which the person who started the service opens the console. They are stored in the memory of the process, since
 * only a single-process service for development issues them.
 */
export class ConsoleTickets {
  /** Expiry times by hash of the ticket. */
  readonly #expiryByHash = new Map<string, number>();
  readonly #clock: Pick<Clock, 'now'>;
  readonly #random: Pick<Random, 'token'>;

  constructor(clock: Pick<Clock, 'now'>, random: Pick<Random, 'token'>) {
    this.#clock = clock;
    this.#random = random;
  }

  issue(): string {
    const ticket = this.#random.token(192);
    const [oldest] = this.#expiryByHash.keys();
    if (this.#expiryByHash.size >= MAX_TICKETS && oldest !== undefined) this.#expiryByHash.delete(oldest);
    this.#expiryByHash.set(hashOf(ticket), this.#clock.now().getTime() + VALID_MS);
    return ticket;
  }

  /** @returns true if it was valid; it is consumed afterwards. */
  redeem(ticket: string): boolean {
    const hash = hashOf(ticket);
    const expiresAt = this.#expiryByHash.get(hash);
    this.#expiryByHash.delete(hash);
    return expiresAt !== undefined && this.#clock.now().getTime() < expiresAt;
  }
}

function hashOf(ticket: string): string {
  return createHash('sha256').update(ticket).digest('base64url');
}
