import { Gauge, type Registry } from 'prom-client';
import type { ExpiryDate } from '../../../application/ports/metrics.ts';
import type { TenantLabels } from './tenant-labels.ts';

const DAY_MS = 86_400_000;
/** One process at a time computes the values; values of a process that has stopped doing so expire. */
const TTL_MS = 900_000;
/** Limit of named endings per kind; the earliest are kept. */
const MAX_PER_KIND = 1_000;

/** Days until something expires: by name if tenants are distinguished, otherwise the first of each kind. */
export class EndingDays {
  readonly #tenants: TenantLabels;
  #endings: readonly ExpiryDate[] = [];
  #until = 0;

  constructor(registry: Registry, name: string, tenants: TenantLabels) {
    this.#tenants = tenants;
    const gauge = new Gauge({
      name,
      help: 'Days until the first certificate, authority, list or registration of its kind expires; negative after that',
      labelNames: tenants.areTold ? ['kind', 'tenant', 'id'] : ['kind'],
      aggregator: 'min',
      registers: [registry],
      collect: () => {
        gauge.reset();
        for (const [labels, days] of this.#days()) gauge.set(labels, days);
      },
    });
  }

  keep(endings: readonly ExpiryDate[]): void {
    this.#endings = this.#tenants.areTold ? earliestPerKind(endings) : [...firstOfKind(endings).values()];
    this.#until = performance.now() + TTL_MS;
  }

  *#days(): Iterable<[Record<string, string>, number]> {
    if (performance.now() > this.#until) return;
    const now = Date.now();
    // The earliest comes last, so that it wins among equal labels.
    for (const { kind, tenantId, id, endsAt } of this.#endings.toReversed()) {
      const tenantLabels = this.#tenants.areTold ? { tenant: this.#tenants.of(tenantId), id } : {};
      yield [{ kind, ...tenantLabels }, (endsAt.getTime() - now) / DAY_MS];
    }
  }
}

function firstOfKind(endings: readonly ExpiryDate[]): Map<string, ExpiryDate> {
  const earliest = new Map<string, ExpiryDate>();
  for (const ending of endings) {
    const current = earliest.get(ending.kind);
    if (current === undefined || ending.endsAt < current.endsAt) earliest.set(ending.kind, ending);
  }
  return earliest;
}

function earliestPerKind(endings: readonly ExpiryDate[]): readonly ExpiryDate[] {
  const counts = new Map<string, number>();
  return endings
    .toSorted((a, b) => a.endsAt.getTime() - b.endsAt.getTime())
    .filter(({ kind }) => {
      const count = (counts.get(kind) ?? 0) + 1;
      counts.set(kind, count);
      return count <= MAX_PER_KIND;
    });
}
