import { type PairedRun, runAgainst, type Stored } from './against-run.ts';
import type { BenchOptions } from './options.ts';
import type { Comparison } from './pairs.ts';
import type { Growth } from './scenarios.ts';
import { relativeSpread } from './statistics.ts';
import { addKeyChains, addTenants } from './tenant-setup.ts';
import type { DatabaseKind } from './world.ts';

const MANY = { sessions: 1_000_000, tenants: 1_000, lists: 1_000_000, keys: 1_000 } as const;
/** With `--quick`. */
const SHARE = 0.1;
/** How much dearer a flow may be with all of it. */
const ALLOWED = 1.05;
const NO_QUOTA = { QUOTA_KEY_CHAINS: '5000' };

/** Compares the service with little in its database (A) and the same with much (B). */
export function runGrowth(kind: DatabaseKind, options: BenchOptions): Promise<PairedRun | undefined> {
  const grown = (growth: Growth) =>
    options.grow.includes(growth) ? Math.ceil(MANY[growth] * (options.quick ? SHARE : 1)) : 0;
  const b: Stored = {
    sessions: grown('sessions'),
    ...(grown('lists') > 0 && { listCapacity: grown('lists') }),
    more: async ({ service }, world) => {
      await addTenants(service.origin, grown('tenants'));
      await addKeyChains(world, grown('keys'));
    },
  };
  return runAgainst(kind, options, { environment: NO_QUOTA }, { a: { sessions: 0 }, b });
}

/** @returns what is dearer by more than is allowed and than noise explains. */
export function growthFaults({ database, comparisons }: PairedRun): readonly string[] {
  return comparisons
    .filter(grows)
    .map(
      ({ scenario, sum }) => `${database}: ${scenario} is dearer with much stored, ×${sum.median.toFixed(3)}`,
    );
}

function grows({ sum }: Pick<Comparison, 'sum'>): boolean {
  return sum.median > ALLOWED + relativeSpread(sum);
}
