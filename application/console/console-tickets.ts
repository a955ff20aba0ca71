import { createHash } from 'node:crypto';
import type { Clock } from '../ports/clock.ts';
import type { Random } from '../ports/random.ts';

/** Long enough to read what a start prints, and to open it. */
const VALID_MS = 30 * 60_000;
/** Whoever asks for more has forgotten the ones before. */
const MOST = 16;

/**
 * Tickets with which a person who started the service opens the console: each is good once. They live in the memory of
 * the process that gave them out, since only a service that runs alone, for development, gives out any.
 */
export class ConsoleTickets {
  /** Hashes, by which nobody can open anything, and until when they are good. */
  readonly #open = new Map<string, number>();
  readonly #clock: Pick<Clock, 'now'>;
  readonly #random: Pick<Random, 'token'>;

  constructor(clock: Pick<Clock, 'now'>, random: Pick<Random, 'token'>) {
    this.#clock = clock;
    this.#random = random;
  }

  issue(): string {
    const ticket = this.#random.token(192);
    const [oldest] = this.#open.keys();
    if (this.#open.size >= MOST && oldest !== undefined) this.#open.delete(oldest);
    this.#open.set(hashOf(ticket), this.#clock.now().getTime() + VALID_MS);
    return ticket;
  }

  /** @returns whether it was good; it is not afterwards. */
  redeem(ticket: string): boolean {
    const hash = hashOf(ticket);
    const until = this.#open.get(hash);
    this.#open.delete(hash);
    return until !== undefined && this.#clock.now().getTime() < until;
  }
}

function hashOf(ticket: string): string {
  return createHash('sha256').update(ticket).digest('base64url');
}
