/** Processor time that one tenant may use: at most `milliseconds` at once, and as much again in each `perMs`. */
export type BudgetLimits = { readonly milliseconds: number; readonly perMs: number };

/** Tenants that are remembered; one that has used nothing lately has its whole budget anyway. */
const MAX_TENANTS = 10_000;

/** A token bucket of processor time for each tenant. A tenant may overdraw it with one list, and waits until that is made up. */
export class ProcessorBudget {
  readonly #limits: BudgetLimits;
  readonly #used = new Map<string, { readonly milliseconds: number; readonly at: number }>();

  constructor(limits: BudgetLimits) {
    this.#limits = limits;
  }

  /** @param now milliseconds of any clock that does not go back. @returns 0 when the tenant may go on at once. */
  waitMs(tenantId: string, now: number): number {
    const { milliseconds, perMs } = this.#limits;
    const over = this.#usedAt(tenantId, now) - milliseconds;
    return over < 0 ? 0 : Math.ceil(((over + 1) * perMs) / milliseconds);
  }

  use(tenantId: string, milliseconds: number, now: number): void {
    const used = this.#usedAt(tenantId, now) + milliseconds;
    this.#used.delete(tenantId);
    this.#used.set(tenantId, { milliseconds: used, at: now });
    if (this.#used.size <= MAX_TENANTS) return;
    // The one that used something longest ago.
    for (const oldest of this.#used.keys()) {
      this.#used.delete(oldest);
      break;
    }
  }

  #usedAt(tenantId: string, now: number): number {
    const { milliseconds, perMs } = this.#limits;
    const used = this.#used.get(tenantId);
    if (used === undefined) return 0;
    return Math.max(0, used.milliseconds - ((now - used.at) * milliseconds) / perMs);
  }
}
