import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { databases } from '../support/databases.ts';
import { issueBatch } from '../support/revocable-cards.ts';
import { Checker } from './checker.ts';
import type { DeploymentOptions } from './deployment.ts';
import { canFollowFlushes, FlushedFiles } from './flushed-files.ts';
import { Load } from './load.ts';
import { type Group, rounds } from './rounds.ts';
import { World } from './world.ts';

const INSIDE = new URL('inside.ts', import.meta.url).href;
const HOUR_MS = 3_600_000;
const NOISY_CALLERS = 40;
const QUIET_MS = 6_000;
/** For what one tenant is answered beside another that floods the service. */
const LONGEST_MS = 10_000;

/** Works with two processes on PostgreSQL. */
export async function onPostgres(
  group: Group,
  work: (world: World) => Promise<void>,
  more: Partial<DeploymentOptions> = {},
): Promise<void> {
  const database = await databases()
    .find(({ name }) => name === 'postgres')
    ?.open();
  if (database === undefined) return group.skip('there is no server of PostgreSQL here');
  try {
    const world = await World.open({ processes: 2, databaseUrl: database.url, ...more });
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
      const set = (at: number, hours: number) => {
        writeFileSync(join(deployment.folderOf(at), 'clock'), String(hours * HOUR_MS));
        process.kill(deployment.pidOf(at), 'SIGUSR2');
      };
      await rounds(group, world, new Checker(world), async (number) => {
        const load = new Load(world).start();
        await pause(400);
        load.forgive();
        const at = number % deployment.members.length;
        set(at, number % 3 === 0 ? -5 : 3 + Math.floor(Math.random() * 20));
        await pause(500 + Math.random() * 1_500);
        set(at, 0);
        await pause(400);
        await load.stop();
      });
    },
    { nodeOptions: [`--import=${INSIDE}`] },
  );
}

/** One process after the other is stopped in order and started anew: whoever calls gets an answer from the one that is there. */
export function rollingRestart(group: Group): Promise<void> {
  return onPostgres(group, async (world) => {
    const { deployment, ledger } = world;
    await rounds(group, world, new Checker(world), async (number) => {
      const before = { ...ledger.counts };
      const load = new Load(world).start();
      await pause(300);
      for (const at of deployment.members.keys()) {
        await deployment.stop(at);
        await deployment.begin(at);
        await pause(200);
      }
      await load.stop();
      const cut = ledger.counts.unanswered - before.unanswered;
      const refused = ledger.counts.refused - before.refused;
      const unavailable = ledger.counts.unavailable - before.unavailable;
      if (cut > 0) group.violations.push(`round ${number}: ${cut} requests were cut`);
      if (refused > 0) group.violations.push(`round ${number}: nobody took ${refused} requests`);
      if (unavailable > 0) group.violations.push(`round ${number}: ${unavailable} requests got 503`);
    });
  });
}

/** A tenant that issues now and then, beside one that never rests. */
export function besideNoise(group: Group): Promise<void> {
  return onPostgres(group, async (world) => {
    const { deployment } = world;
    const quiet = await World.beside(deployment, world.databaseUrl, 'quiet');
    try {
      const own = new Checker(quiet);
      await rounds(group, world, new Checker(world), async () => {
        const alone = await worst(quiet, group);
        let isOver = false;
        const flood = Array.from({ length: NOISY_CALLERS }, async () => {
          while (!isOver) await issueBatch(deployment, world.tenant, 2).catch(() => pause(20));
        });
        const load = new Load(world).start();
        const beside = await worst(quiet, group);
        isOver = true;
        await Promise.all([load.stop(), ...flood]);
        group.facts.push(`an issuance ${alone.toFixed(0)} ms at the 95th percentile alone, ${beside.toFixed(0)} beside`);
        if (beside > LONGEST_MS) group.violations.push(`the quiet tenant waits ${beside.toFixed(0)} ms`);
        const load2 = new Load(quiet).start();
        await pause(500);
        await load2.stop();
        group.violations.push(...(await own.check({ all: true, deliveries: true })));
      });
    } finally {
      await quiet.backend.close();
    }
  });
}

/** @returns milliseconds within which 95 of 100 issuances are over. */
async function worst({ deployment, tenant }: World, group: Group): Promise<number> {
  const times: number[] = [];
  for (const end = performance.now() + QUIET_MS; performance.now() < end; ) {
    const began = performance.now();
    try {
      await issueBatch(deployment, tenant, 1);
      times.push(performance.now() - began);
    } catch (error) {
      group.violations.push(`the quiet tenant is refused: ${(error as Error).message}`);
      await pause(100);
    }
    await pause(20);
  }
  times.sort((one, other) => one - other);
  return times[Math.floor(times.length * 0.95)] ?? 0;
}

export { INSIDE };

const SETTLE_MS = 250;

/** Kills processes of the service at a random moment, one of them or all, and starts them anew. */
export async function killService(kind: 'postgres' | 'sqlite', processes: number, group: Group): Promise<void> {
  const database = await databases()
    .find(({ name }) => name === kind)
    ?.open();
  if (database === undefined) return group.skip('there is no server of PostgreSQL here');
  const world = await World.open({ processes, databaseUrl: database.url });
  const checker = new Checker(world);
  try {
    await rounds(group, world, checker, async () => {
      const load = new Load(world).start();
      await pause(150 + Math.random() * 850);
      const all = [...world.deployment.members.keys()];
      const one = Math.floor(Math.random() * all.length);
      const hit = Math.random() < 0.5 ? all : [one];
      await Promise.all(hit.map((at) => world.deployment.kill(at)));
      await Promise.all(hit.map((at) => world.deployment.begin(at)));
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
  files.settle();
  const world = await World.open({ processes: 1, databaseUrl: database.url, environment: files.environment });
  const checker = new Checker(world);
  try {
    await rounds(group, world, checker, async () => {
      const load = new Load(world).start();
      await pause(200 + Math.random() * 1_000);
      await world.deployment.kill(0);
      files.cut(Math.random() < 0.5 ? undefined : () => Math.random() < 0.5);
      files.settle();
      await world.deployment.begin(0);
      await pause(200);
      await load.stop();
    });
  } finally {
    await world.end();
    await database.drop();
  }
}
