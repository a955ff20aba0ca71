import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { memoryMegabytes } from '../bench/processor-time.ts';
import { Checker } from './checker.ts';
import { Load } from './load.ts';
import { INSIDE, onPostgres } from './process-faults.ts';
import { type Group, reportGroup } from './rounds.ts';
import type { World } from './world.ts';

const READINGS_A_MINUTE = 6;
/** The first part warms caches up. */
const WARM_UP = 0.34;
/** Caches are bounded by bytes and fill for a while, so the heap may grow by so much, and the process by more. */
const HEAP_MB = 12;
const RESIDENT_MB = 48;
const DESCRIPTORS = 12;

type ResourceReading = { readonly resident: number; readonly held: number; readonly descriptors: number; readonly handles: number };

/** Mixed load with administration for so many minutes: what a process holds stays as it is. */
export function soak(group: Group): Promise<void> {
  return onPostgres(
    group,
    async (world) => {
      const load = new Load(world).start();
      const readings: ResourceReading[] = [];
      for (let minute = 0; minute < group.planned; minute++) {
        for (let i = 0; i < READINGS_A_MINUTE; i++) {
          await pause(60_000 / READINGS_A_MINUTE);
          readings.push(await readResources(world));
        }
        group.done = minute + 1;
        const lastReading = readings.at(-1);
        console.log(`  ${group.name}: ${group.done} min, ${lastReading && describe(lastReading)}`);
      }
      await load.stop();
      group.violations.push(...(await new Checker(world).check({ all: true, deliveries: true })));
      reportGrowth(group, readings);
      reportGroup(group, world);
    },
    { processes: 1, nodeOptions: [`--import=${INSIDE}`] },
  );
}

async function readResources({ deployment }: World): Promise<ResourceReading> {
  const pid = deployment.processId(0);
  const file = join(deployment.dataFolder(0), 'inside.json');
  const resident = memoryMegabytes(pid, 'VmRSS');
  rmSync(file, { force: true });
  process.kill(pid, 'SIGUSR2');
  for (let attempts = 100; attempts > 0; attempts--) {
    await pause(50);
    try {
      const { held, handles } = JSON.parse(readFileSync(file, 'utf8')) as { held: number; handles: number };
      const descriptors = readdirSync(`/proc/${pid}/fd`).length;
      return { resident, held: held / 1024 ** 2, descriptors, handles };
    } catch {
      // Not written yet, or not whole.
    }
  }
  throw new Error('the process does not report its memory');
}

const describe = ({ resident, held, descriptors, handles }: ResourceReading) =>
  `${resident.toFixed(0)} MB resident, ${held.toFixed(1)} MB held, ${descriptors} descriptors, ${handles} handles`;

/** Growth from the end of the warm-up to the last reading, by linear regression. */
function reportGrowth(group: Group, readings: readonly ResourceReading[]): void {
  const warm = readings.slice(Math.ceil(readings.length * WARM_UP));
  const growth = (metric: (reading: ResourceReading) => number) => linearSlope(warm.map(metric)) * (warm.length - 1);
  const limits = [
    ['resident', growth(({ resident }) => resident), RESIDENT_MB, 'MB'],
    ['held', growth(({ held }) => held), HEAP_MB, 'MB'],
    ['descriptors', growth(({ descriptors }) => descriptors), DESCRIPTORS, ''],
    ['handles', growth(({ handles }) => handles), DESCRIPTORS, ''],
  ] as const;
  for (const [description, grown, limit, unit] of limits) {
    group.facts.push(`${description} ${grown >= 0 ? '+' : ''}${grown.toFixed(1)} ${unit}`.trim());
    if (grown > limit) group.violations.push(`${description} grew by ${grown.toFixed(1)} ${unit}, limit ${limit}`);
  }
}

/** Least squares over equal steps. */
export function linearSlope(values: readonly number[]): number {
  const middle = (values.length - 1) / 2;
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const numerator = values.reduce((sum, value, index) => sum + (index - middle) * (value - mean), 0);
  const denominator = values.reduce((sum, _, index) => sum + (index - middle) ** 2, 0);
  return denominator === 0 ? 0 : numerator / denominator;
}
