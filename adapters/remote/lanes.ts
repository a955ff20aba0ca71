import type { AddressGuard } from './address-guard.ts';
import { guardedConnector } from './guarded-connector.ts';
import type { Resolve } from './name-resolver.ts';
import { Pool } from './undici-parts.ts';

/** Calls of one party to one origin at once, each over a connection of its own. */
export const CALLS_OF_LANE = 32;
/** Beyond these, a connection ends with its call: the one who names origins without number keeps no memory by that. */
const KEPT_CONNECTIONS = 512;
const KEPT_OF_ONE = 128;
/** However long a server would like to keep one. */
const KEPT_MS = 10_000;

/** What there is of a party and an origin: as long as calls are under way, or a connection is kept. */
export type Lane = { readonly pool: Pool; readonly key: string; calls: number };

/** Connections, which no two parties share: each may call others, and waits for its own alone. */
export class Lanes {
  readonly #guard: AddressGuard;
  readonly #resolve: Resolve;
  readonly #lanes = new Map<string, Lane>();
  readonly #connections = new Map<string, number>();
  #count = 0;

  constructor(guard: AddressGuard, resolve: Resolve) {
    this.#guard = guard;
    this.#resolve = resolve;
  }

  /** To be given back with `leave`. @param isSigned see `AddressGuard.of`; such calls share no connection with others. */
  enter(party: string, origin: string, isSigned = false): Lane {
    const key = `${party} ${origin}${isSigned ? ' signed' : ''}`;
    const lane = this.#lanes.get(key) ?? this.#open(key, party, origin, isSigned);
    lane.calls++;
    return lane;
  }

  leave(lane: Lane): void {
    lane.calls--;
    this.#forgetIfIdle(lane);
  }

  /** Whether connections are not to be kept. @param underWay calls of all, and of the party, that may have none yet. */
  isCrowded(party: string, underWay: { readonly all: number; readonly own: number }): boolean {
    const own = this.#connections.get(party) ?? 0;
    return Math.max(this.#count, underWay.all) >= KEPT_CONNECTIONS || Math.max(own, underWay.own) >= KEPT_OF_ONE;
  }

  /** Ends after the calls that are under way. */
  async close(): Promise<void> {
    await Promise.all(Array.from(this.#lanes.values(), ({ pool }) => pool.close()));
  }

  #open(key: string, party: string, origin: string, isSigned: boolean): Lane {
    const guard = this.#guard.of(party === '' ? undefined : party, isSigned);
    const pool = new Pool(origin, {
      connections: CALLS_OF_LANE,
      pipelining: 1,
      keepAliveMaxTimeout: KEPT_MS,
      connect: guardedConnector(guard, (host) => this.#resolve(host, party)),
    });
    const lane = { pool, key, calls: 0 };
    this.#lanes.set(key, lane);
    pool.on('connect', () => this.#add(party, 1));
    pool.on('disconnect', () => {
      this.#add(party, -1);
      this.#forgetIfIdle(lane);
    });
    return lane;
  }

  #add(party: string, change: 1 | -1): void {
    this.#count += change;
    const own = (this.#connections.get(party) ?? 0) + change;
    if (own > 0) this.#connections.set(party, own);
    else this.#connections.delete(party);
  }

  /** A connection that is still being made is not waited for. */
  #forgetIfIdle(lane: Lane): void {
    const { pool, key, calls } = lane;
    if (calls > 0 || pool.stats.connected > 0) return;
    if (this.#lanes.get(key) === lane) this.#lanes.delete(key);
    if (!pool.destroyed && !pool.closed) void pool.destroy();
  }
}
