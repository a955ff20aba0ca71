import { Gauge, type Registry } from 'prom-client';
import type { Ending } from '../../../application/ports/metrics.ts';
import type { TenantLabels } from './tenant-labels.ts';

const DAY_MS = 86_400_000;
/** One process at a time finds out; what one that does so no longer knew is not told for ever. */
const COUNTS_MS = 900_000;
/** Of one kind, by name; the first to end. */
const MAX_NAMED = 1_000;

/** Days until something ends: by name where tenants are told apart, else the first of each kind. */
export class EndingDays {
  readonly #tenants: TenantLabels;
  #all: readonly Ending[] = [];
  #until = 0;

  constructor(registry: Registry, name: string, tenants: TenantLabels) {
    this.#tenants = tenants;
    const gauge = new Gauge({
      name,
      help: 'Days until the first certificate, authority, list or registration of its kind ends; negative after that',
      labelNames: tenants.areTold ? ['kind', 'tenant', 'id'] : ['kind'],
      aggregator: 'min',
      registers: [registry],
      collect: () => {
        gauge.reset();
        for (const [labels, days] of this.#days()) gauge.set(labels, days);
      },
    });
  }

  keep(all: readonly Ending[]): void {
    this.#all = this.#tenants.areTold ? named(all) : [...firstOfKind(all).values()];
    this.#until = performance.now() + COUNTS_MS;
  }

  *#days(): Iterable<[Record<string, string>, number]> {
    if (performance.now() > this.#until) return;
    const now = Date.now();
    // The first to end comes last, and counts where several have the same labels.
    for (const { kind, tenantId, id, endsAt } of this.#all.toReversed()) {
      const who = this.#tenants.areTold ? { tenant: this.#tenants.of(tenantId), id } : {};
      yield [{ kind, ...who }, (endsAt.getTime() - now) / DAY_MS];
    }
  }
}

function firstOfKind(all: readonly Ending[]): Map<string, Ending> {
  const first = new Map<string, Ending>();
  for (const ending of all) {
    const known = first.get(ending.kind);
    if (known === undefined || ending.endsAt < known.endsAt) first.set(ending.kind, ending);
  }
  return first;
}

function named(all: readonly Ending[]): readonly Ending[] {
  const counts = new Map<string, number>();
  return all
    .toSorted((one, other) => one.endsAt.getTime() - other.endsAt.getTime())
    .filter(({ kind }) => {
      const count = (counts.get(kind) ?? 0) + 1;
      counts.set(kind, count);
      return count <= MAX_NAMED;
    });
}
