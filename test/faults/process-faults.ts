import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { databases } from '../support/databases.ts';
import { issueBatch } from '../support/revocable-cards.ts';
import { Checker } from './checker.ts';
import type { DeploymentOptions } from './deployment.ts';
import { canFollowFlushes, FlushedFiles } from './flushed-files.ts';
import { Load } from './load.ts';
import { type Group, runRounds } from './rounds.ts';
import { World } from './world.ts';

const INSIDE = new URL('inside.ts', import.meta.url).href;
const HOUR_MS = 3_600_000;
const NOISY_CALLERS = 40;
const QUIET_MS = 6_000;
/** The worst response time of one tenant while another floods the service. */
const LONGEST_MS = 10_000;

/** Works with two processes on PostgreSQL. */
export async function onPostgres(
  group: Group,
  work: (world: World) => Promise<void>,
  overrides: Partial<DeploymentOptions> = {},
): Promise<void> {
  const database = await databases()
    .find(({ name }) => name === 'postgres')
    ?.open();
  if (database === undefined) return group.skip('there is no server of PostgreSQL here');
  try {
    const world = await World.open({ processes: 2, databaseUrl: database.url, ...overrides });
    try {
      await work(world);
    } finally {
      await world.end();
    }
  } finally {
    await database.drop();
  }
}

/** The clock of one of the processes is wrong by hours for a while. */
export function jumpClocks(group: Group): Promise<void> {
  return onPostgres(
    group,
    async (world) => {
      const { deployment } = world;
      const set = (memberIndex: number, hours: number) => {
        writeFileSync(join(deployment.dataFolder(memberIndex), 'clock'), String(hours * HOUR_MS));
        process.kill(deployment.processId(memberIndex), 'SIGUSR2');
      };
      await runRounds(group, world, new Checker(world), async (number) => {
        const load = new Load(world).start();
        await pause(400);
        load.forgive();
        const memberIndex = number % deployment.members.length;
        set(memberIndex, number % 3 === 0 ? -5 : 3 + Math.floor(Math.random() * 20));
        await pause(500 + Math.random() * 1_500);
        set(memberIndex, 0);
        await pause(400);
        await load.stop();
      });
    },
    { nodeOptions: [`--import=${INSIDE}`] },
  );
}

/** A rolling restart: callers always get responses from the remaining processes. */
export function rollingRestart(group: Group): Promise<void> {
  return onPostgres(group, async (world) => {
    const { deployment, ledger } = world;
    await runRounds(group, world, new Checker(world), async (number) => {
      const countsBefore = { ...ledger.counts };
      const load = new Load(world).start();
      await pause(300);
      for (const memberIndex of deployment.members.keys()) {
        await deployment.stop(memberIndex);
        await deployment.startProcess(memberIndex);
        await pause(200);
      }
      await load.stop();
      const cutCalls = ledger.counts.unanswered - countsBefore.unanswered;
      const refusedCalls = ledger.counts.refused - countsBefore.refused;
      const unavailable = ledger.counts.unavailable - countsBefore.unavailable;
      if (cutCalls > 0) group.violations.push(`round ${number}: ${cutCalls} requests were cut`);
      if (refusedCalls > 0) group.violations.push(`round ${number}: nobody took ${refusedCalls} requests`);
      if (unavailable > 0) group.violations.push(`round ${number}: ${unavailable} requests got 503`);
    });
  });
}

/** A tenant that issues now and then, beside one that never rests. */
export function besideNoise(group: Group): Promise<void> {
  return onPostgres(group, async (world) => {
    const { deployment } = world;
    const quietWorld = await World.createBeside(deployment, world.databaseUrl, 'quiet');
    try {
      const ownChecker = new Checker(quietWorld);
      await runRounds(group, world, new Checker(world), async () => {
        const soloWorst = await measureWorst(quietWorld, group);
        let isStopped = false;
        const flood = Array.from({ length: NOISY_CALLERS }, async () => {
          while (!isStopped) await issueBatch(deployment, world.tenant, 2).catch(() => pause(20));
        });
        const load = new Load(world).start();
        const worstBesideLoad = await measureWorst(quietWorld, group);
        isStopped = true;
        await Promise.all([load.stop(), ...flood]);
        group.facts.push(`an issuance ${soloWorst.toFixed(0)} ms at the 95th percentile alone, ${worstBesideLoad.toFixed(0)} beside`);
        if (worstBesideLoad > LONGEST_MS) group.violations.push(`the quiet tenant waits ${worstBesideLoad.toFixed(0)} ms`);
        const load2 = new Load(quietWorld).start();
        await pause(500);
        await load2.stop();
        group.violations.push(...(await ownChecker.check({ all: true, deliveries: true })));
      });
    } finally {
      await quietWorld.backend.close();
    }
  });
}

/** @returns milliseconds within which 95 of 100 issuances are over. */
async function measureWorst({ deployment, tenant }: World, group: Group): Promise<number> {
  const durations: number[] = [];
  for (const end = performance.now() + QUIET_MS; performance.now() < end; ) {
    const startedAt = performance.now();
    try {
      await issueBatch(deployment, tenant, 1);
      durations.push(performance.now() - startedAt);
    } catch (error) {
      group.violations.push(`the quiet tenant is refused: ${(error as Error).message}`);
      await pause(100);
    }
    await pause(20);
  }
  durations.sort((first, second) => first - second);
  return durations[Math.floor(durations.length * 0.95)] ?? 0;
}

export { INSIDE };

const SETTLE_MS = 250;

/** Kills one or all processes of the service at random times, and restarts them. */
export async function killService(kind: 'postgres' | 'sqlite', processes: number, group: Group): Promise<void> {
  const database = await databases()
    .find(({ name }) => name === kind)
    ?.open();
  if (database === undefined) return group.skip('there is no server of PostgreSQL here');
  const world = await World.open({ processes, databaseUrl: database.url });
  const checker = new Checker(world);
  try {
    await runRounds(group, world, checker, async () => {
      const load = new Load(world).start();
      await pause(150 + Math.random() * 850);
      const memberIndices = [...world.deployment.members.keys()];
      const chosenIndex = Math.floor(Math.random() * memberIndices.length);
      const killedMembers = Math.random() < 0.5 ? memberIndices : [chosenIndex];
      await Promise.all(killedMembers.map((memberIndex) => world.deployment.kill(memberIndex)));
      await Promise.all(killedMembers.map((memberIndex) => world.deployment.startProcess(memberIndex)));
      await pause(SETTLE_MS);
      await load.stop();
    });
  } finally {
    await world.end();
    await database.drop();
  }
}

/** Cuts the power of the machine of a service on SQLite: what was not flushed is gone, or a part of it. */
export async function cutPower(group: Group): Promise<void> {
  if (!canFollowFlushes()) return group.skip('there is no C compiler');
  const database = await databases()
    .find(({ name }) => name === 'sqlite')
    ?.open();
  if (database === undefined) throw new Error('SQLite is always there');
  const file = database.url.slice('sqlite:'.length);
  const files = new FlushedFiles(file, `${file}-flushed`);
  files.waitForFlush();
  const world = await World.open({ processes: 1, databaseUrl: database.url, environment: files.environment });
  const checker = new Checker(world);
  try {
    await runRounds(group, world, checker, async () => {
      const load = new Load(world).start();
      await pause(200 + Math.random() * 1_000);
      await world.deployment.kill(0);
      files.cutPower(Math.random() < 0.5 ? undefined : () => Math.random() < 0.5);
      files.waitForFlush();
      await world.deployment.startProcess(0);
      await pause(200);
      await load.stop();
    });
  } finally {
    await world.end();
    await database.drop();
  }
}
