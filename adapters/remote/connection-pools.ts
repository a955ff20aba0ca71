import type { AddressGuard } from './address-guard.ts';
import { guardedConnector } from './guarded-connector.ts';
import type { Resolve } from './name-resolver.ts';
import { Pool } from './undici-parts.ts';

/** Concurrent calls of one tenant to one origin, each over a connection of its own. */
export const CALLS_PER_POOL = 32;
/** Beyond these numbers, a connection closes after its call, so that calls to any number of origins use bounded memory. */
const MAX_IDLE_CONNECTIONS = 512;
const MAX_IDLE_PER_TENANT = 128;
/** Idle time of a connection, whatever the server offers. */
const KEEP_ALIVE_MS = 10_000;

/** Pool of a tenant and an origin, while calls run or a connection is idle. */
export type OriginPool = { readonly pool: Pool; readonly key: string; calls: number };

/** Connections, which no two tenants share: each may call different addresses, and waits for its own calls only. */
export class ConnectionPools {
  readonly #guard: AddressGuard;
  readonly #resolve: Resolve;
  readonly #lanes = new Map<string, OriginPool>();
  readonly #connections = new Map<string, number>();
  #count = 0;

  constructor(guard: AddressGuard, resolve: Resolve) {
    this.#guard = guard;
    this.#resolve = resolve;
  }

  /** Has to be released with `leave`. @param isSigned see `AddressGuard.forTenant`; such calls share no connection with others. */
  enter(tenantKey: string, origin: string, isSigned = false): OriginPool {
    const key = `${tenantKey} ${origin}${isSigned ? ' signed' : ''}`;
    const lane = this.#lanes.get(key) ?? this.#open(key, tenantKey, origin, isSigned);
    lane.calls++;
    return lane;
  }

  leave(lane: OriginPool): void {
    lane.calls--;
    this.#forgetIfIdle(lane);
  }

  /**
   * Returns true if connections must not be kept. @param underWay running calls in total and of the tenant, which may have no connection
   * yet.
   */
  isCrowded(tenantKey: string, underWay: { readonly all: number; readonly own: number }): boolean {
    const tenantConnections = this.#connections.get(tenantKey) ?? 0;
    return Math.max(this.#count, underWay.all) >= MAX_IDLE_CONNECTIONS || Math.max(tenantConnections, underWay.own) >= MAX_IDLE_PER_TENANT;
  }

  /** Resolves after the running calls. */
  async close(): Promise<void> {
    await Promise.all(Array.from(this.#lanes.values(), ({ pool }) => pool.close()));
  }

  #open(key: string, tenantKey: string, origin: string, isSigned: boolean): OriginPool {
    const guard = this.#guard.forTenant(tenantKey === '' ? undefined : tenantKey, isSigned);
    const pool = new Pool(origin, {
      connections: CALLS_PER_POOL,
      pipelining: 1,
      keepAliveMaxTimeout: KEEP_ALIVE_MS,
      connect: guardedConnector(guard, (host) => this.#resolve(host, tenantKey)),
    });
    const lane = { pool, key, calls: 0 };
    this.#lanes.set(key, lane);
    pool.on('connect', () => this.#add(tenantKey, 1));
    pool.on('disconnect', () => {
      this.#add(tenantKey, -1);
      this.#forgetIfIdle(lane);
    });
    return lane;
  }

  #add(tenantKey: string, change: 1 | -1): void {
    this.#count += change;
    const tenantConnections = (this.#connections.get(tenantKey) ?? 0) + change;
    if (tenantConnections > 0) this.#connections.set(tenantKey, tenantConnections);
    else this.#connections.delete(tenantKey);
  }

  /** A connection that is being opened does not keep the pool. */
  #forgetIfIdle(lane: OriginPool): void {
    const { pool, key, calls } = lane;
    if (calls > 0 || pool.stats.connected > 0) return;
    if (this.#lanes.get(key) === lane) this.#lanes.delete(key);
    if (!pool.destroyed && !pool.closed) void pool.destroy();
  }
}
