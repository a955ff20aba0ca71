/** A semaphore per tenant. Calls that exceed the limit wait in their order. */
export class TenantSlots {
  readonly #limit: number;
  readonly #tenants = new Map<string, { running: number; readonly waiting: (() => void)[] }>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  async run<T>(tenantId: string, work: () => Promise<T>): Promise<T> {
    const slots = this.#tenants.get(tenantId) ?? { running: 0, waiting: [] };
    this.#tenants.set(tenantId, slots);
    if (slots.running < this.#limit) slots.running++;
    else await new Promise<void>((resolve) => slots.waiting.push(resolve));
    try {
      return await work();
    } finally {
      // The next waiter gets the slot directly, so that no later call acquires it first.
      const nextWaiter = slots.waiting.shift();
      if (nextWaiter !== undefined) nextWaiter();
      else if (--slots.running === 0) this.#tenants.delete(tenantId);
    }
  }
}
