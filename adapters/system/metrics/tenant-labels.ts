/** Shared label of the tenants without a label of their own. */
const OTHERS = 'others';

/** Tenants as label values: a limited number of tenants in the order of appearance, and one shared value for all others. */
export class TenantLabels {
  readonly #most: number;
  readonly #known = new Set<string>();

  /** @param most 0: tenants are not distinguished. */
  constructor(most: number) {
    this.#most = most;
  }

  get areTold(): boolean {
    return this.#most > 0;
  }

  of(tenantId: string): string {
    if (this.#known.has(tenantId)) return tenantId;
    if (this.#known.size >= this.#most) return OTHERS;
    this.#known.add(tenantId);
    return tenantId;
  }
}
