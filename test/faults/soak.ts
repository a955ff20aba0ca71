import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { memoryMegabytes } from '../bench/processor-time.ts';
import { Checker } from './checker.ts';
import { Load } from './load.ts';
import { INSIDE, onPostgres } from './process-faults.ts';
import { type Group, tell } from './rounds.ts';
import type { World } from './world.ts';

const READINGS_A_MINUTE = 6;
/** The first part warms caches up. */
const WARM_UP = 0.34;
/** Caches are bounded by bytes and fill for a while, so the heap may grow by so much, and the process by more. */
const HEAP_MB = 12;
const RESIDENT_MB = 48;
const DESCRIPTORS = 12;

type Reading = { readonly resident: number; readonly held: number; readonly descriptors: number; readonly handles: number };

/** Mixed load with administration for so many minutes: what a process holds stays as it is. */
export function soak(group: Group): Promise<void> {
  return onPostgres(
    group,
    async (world) => {
      const load = new Load(world).start();
      const readings: Reading[] = [];
      for (let minute = 0; minute < group.planned; minute++) {
        for (let i = 0; i < READINGS_A_MINUTE; i++) {
          await pause(60_000 / READINGS_A_MINUTE);
          readings.push(await read(world));
        }
        group.done = minute + 1;
        const last = readings.at(-1);
        console.log(`  ${group.name}: ${group.done} min, ${last && describe(last)}`);
      }
      await load.stop();
      group.violations.push(...(await new Checker(world).check({ all: true, deliveries: true })));
      judge(group, readings);
      tell(group, world);
    },
    { processes: 1, nodeOptions: [`--import=${INSIDE}`] },
  );
}

async function read({ deployment }: World): Promise<Reading> {
  const pid = deployment.pidOf(0);
  const file = join(deployment.folderOf(0), 'inside.json');
  const resident = memoryMegabytes(pid, 'VmRSS');
  rmSync(file, { force: true });
  process.kill(pid, 'SIGUSR2');
  for (let left = 100; left > 0; left--) {
    await pause(50);
    try {
      const { held, handles } = JSON.parse(readFileSync(file, 'utf8')) as { held: number; handles: number };
      const descriptors = readdirSync(`/proc/${pid}/fd`).length;
      return { resident, held: held / 1024 ** 2, descriptors, handles };
    } catch {
      // Not written yet, or not whole.
    }
  }
  throw new Error('the process does not say what it holds');
}

const describe = ({ resident, held, descriptors, handles }: Reading) =>
  `${resident.toFixed(0)} MB resident, ${held.toFixed(1)} MB held, ${descriptors} descriptors, ${handles} handles`;

/** By the line that fits best: what it grows by from the end of the warm-up to the last reading. */
function judge(group: Group, readings: readonly Reading[]): void {
  const warm = readings.slice(Math.ceil(readings.length * WARM_UP));
  const growth = (of: (reading: Reading) => number) => slopeOf(warm.map(of)) * (warm.length - 1);
  const limits = [
    ['resident', growth(({ resident }) => resident), RESIDENT_MB, 'MB'],
    ['held', growth(({ held }) => held), HEAP_MB, 'MB'],
    ['descriptors', growth(({ descriptors }) => descriptors), DESCRIPTORS, ''],
    ['handles', growth(({ handles }) => handles), DESCRIPTORS, ''],
  ] as const;
  for (const [what, grown, limit, unit] of limits) {
    group.facts.push(`${what} ${grown >= 0 ? '+' : ''}${grown.toFixed(1)} ${unit}`.trim());
    if (grown > limit) group.violations.push(`${what} grew by ${grown.toFixed(1)} ${unit}, limit ${limit}`);
  }
}

/** Least squares over equal steps. */
export function slopeOf(values: readonly number[]): number {
  const middle = (values.length - 1) / 2;
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const over = values.reduce((sum, value, at) => sum + (at - middle) * (value - mean), 0);
  const under = values.reduce((sum, _, at) => sum + (at - middle) ** 2, 0);
  return under === 0 ? 0 : over / under;
}
