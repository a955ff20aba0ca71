/** Together those that have no name of their own here. */
const OTHERS = 'others';

/** Names of tenants as values of a label: of so many, the first that are met, and of all others one together. */
export class TenantLabels {
  readonly #most: number;
  readonly #known = new Set<string>();

  /** @param most 0: no tenant is told apart. */
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
