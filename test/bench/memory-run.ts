import { withCast } from './cast.ts';
import type { BenchOptions } from './options.ts';
import { memoryMegabytes } from './processor-time.ts';
import type { ServiceProcess } from './service-process.ts';
import { setUpTenant } from './tenant-setup.ts';
import { FORMATS } from './world.ts';

/** Memory of a process after this many presentations, in megabytes; the heap is measured after a garbage collection. */
export type MemoryReading = { readonly after: number; readonly resident: number; readonly heap: number };

export type MemoryRun = {
  readonly database: 'postgres' | 'sqlite';
  readonly readings: readonly MemoryReading[];
  /** Megabytes that the heap grew by once it was warm. */
  readonly growth: number;
  readonly met: boolean;
};

/** Each credential is presented in the first part, so that bounded caches do not fill in the second. */
const CREDENTIALS_PER_FORMAT = 1_000;
const WARM = 2_000;
const ALL = 10_000;
/** Half a kilobyte kept of each presentation comes to this. */
export const GROWTH_LIMIT_MB = 4;
const SETTLE_MS = 1_000;

/**
 * Presents again and again, both formats in turn, and looks at what stays behind in the process.
 * @returns undefined when there is no such database here.
 */
export function runMemory(kind: 'postgres' | 'sqlite', options: BenchOptions): Promise<MemoryRun | undefined> {
  return withCast(kind, options, async ({ service, wallets, provider }) => {
    await service.start();
    await wallets.prepare(await setUpTenant(service.origin, provider));
    for (const format of FORMATS) await wallets.collect(format, CREDENTIALS_PER_FORMAT);
    await service.stop();
    await service.start();
    const firstReading = await readMemory(service, 0);
    await wallets.present(WARM);
    const warm = await readMemory(service, WARM);
    await wallets.present(ALL - WARM);
    const end = await readMemory(service, ALL);
    const growth = end.heap - warm.heap;
    return { database: kind, readings: [firstReading, warm, end], growth, met: growth <= GROWTH_LIMIT_MB };
  });
}

async function readMemory(service: ServiceProcess, after: number): Promise<MemoryReading> {
  await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
  // Before the collection, which could give pages back.
  const resident = memoryMegabytes(service.pid, 'VmRSS');
  return { after, resident, heap: await service.heapMegabytes() };
}

export function describeMemory({ database, readings, growth, met }: MemoryRun): string {
  const lines = readings.map(
    ({ after, resident, heap }) =>
      `${String(after).padStart(6)} presentations: ${resident.toFixed(0)} MB resident, ${heap.toFixed(1)} MB heap`,
  );
  const resultLine = `heap grew by ${growth.toFixed(1)} MB, limit ${GROWTH_LIMIT_MB} MB: ${met ? 'ok' : 'MISSED'}`;
  return [`\n${database}, memory`, ...lines, resultLine].join('\n');
}
