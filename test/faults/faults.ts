import 'reflect-metadata';
import { useCompileCache } from '../support/compile-cache.ts';
import { halfOpen, killDatabase, promote } from './database-faults.ts';
import { fillDiskOfPostgres, fillDiskOfSqlite } from './full-disk.ts';
import { besideNoise, cutPower, jumpClocks, killService, rollingRestart } from './process-faults.ts';
import { promoteLagging, restore } from './rewinds.ts';
import { Group } from './rounds.ts';
import { loseBroker, loseVault } from './server-faults.ts';
import { soak } from './soak.ts';

/**
 * `npm run test:faults -- [parts]`: repeatedly breaks the infrastructure of the service, and compares the responses to
 * callers with the stored state. Exits with 0 without violations.
 */
useCompileCache();
// What it has started ends with it.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));

type FaultSuite = {
  readonly name: string;
  /** Rounds of the full run; `FAULTS_<NAME>` overrides them. */
  readonly rounds: number;
  readonly run: (group: Group) => Promise<void>;
};

const PARTS: readonly FaultSuite[] = [
  { name: 'kill-postgres', rounds: 200, run: (group) => killService('postgres', 2, group) },
  { name: 'kill-sqlite', rounds: 100, run: (group) => killService('sqlite', 1, group) },
  { name: 'kill-database', rounds: 24, run: killDatabase },
  { name: 'promote', rounds: 10, run: promote },
  { name: 'power-cut', rounds: 60, run: cutPower },
  { name: 'promote-lagging', rounds: 4, run: promoteLagging },
  { name: 'restore-postgres', rounds: 4, run: (group) => restore('postgres', group) },
  { name: 'restore-sqlite', rounds: 4, run: (group) => restore('sqlite', group) },
  { name: 'full-disk-sqlite', rounds: 10, run: fillDiskOfSqlite },
  { name: 'full-disk-postgres', rounds: 10, run: fillDiskOfPostgres },
  { name: 'half-open', rounds: 10, run: halfOpen },
  { name: 'clocks', rounds: 12, run: jumpClocks },
  { name: 'rolling-restart', rounds: 10, run: rollingRestart },
  { name: 'noisy-tenant', rounds: 2, run: besideNoise },
  { name: 'broker', rounds: 6, run: loseBroker },
  { name: 'vault', rounds: 6, run: loseVault },
  // Its rounds are minutes.
  { name: 'soak', rounds: 30, run: soak },
];

const requestedNames = process.argv.slice(2);
const unknownNames = requestedNames.filter((name) => !PARTS.some((suite) => suite.name === name));
if (unknownNames.length > 0) {
  console.error(`there is no ${unknownNames.join(', ')}; there are ${PARTS.map(({ name }) => name).join(' ')}`);
  process.exit(2);
}
let isGood = true;
for (const { name, rounds, run } of PARTS) {
  if (requestedNames.length > 0 && !requestedNames.includes(name)) continue;
  const setting = `FAULTS_${name.toUpperCase().replaceAll('-', '_')}`;
  const group = new Group(name, Number(process.env[setting] ?? rounds));
  try {
    await run(group);
  } catch (error) {
    group.violations.push(`the suite itself: ${(error as Error).stack}`);
  }
  console.log(group.line);
  for (const violation of group.violations.slice(0, 20)) console.log(`  ${violation}`);
  isGood = isGood && group.isGood;
}
process.exit(isGood ? 0 : 1);
