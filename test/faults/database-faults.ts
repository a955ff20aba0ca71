import { setTimeout as pause } from 'node:timers/promises';
import { databases } from '../support/databases.ts';
import { rawSql } from '../support/postgres-server.ts';
import { hangingProxy } from '../support/proxies.ts';
import { Cluster, canMakeClusters, MovingAddress } from '../support/standby.ts';
import { Checker } from './checker.ts';
import { Load } from './load.ts';
import { type Group, runRounds } from './rounds.ts';
import { World } from './world.ts';

const PROCESSES = 2;
const SYNCHRONOUS = { synchronous_standby_names: '*' };

/** Waits until all processes work again. @throws Error after a timeout. */
export async function waitForRecovery(world: World, withinMs = 40_000): Promise<number> {
  const startedAt = performance.now();
  for (const memberIndex of world.deployment.members.keys()) {
    while (!(await world.deployment.isHealthy(memberIndex))) {
      if (performance.now() - startedAt > withinMs) throw new Error(`process ${memberIndex} does not recover`);
      await pause(50);
    }
  }
  return performance.now() - startedAt;
}

async function cluster(): Promise<Cluster> {
  const cluster = await Cluster.make();
  await cluster.start();
  await rawSql(cluster.urlOf('postgres'), (run) => run('create database vidimus'));
  return cluster;
}

/** Kills all processes of the database simultaneously. */
export async function killDatabase(group: Group): Promise<void> {
  if (!canMakeClusters()) return group.skip('there is no server of PostgreSQL for this machine');
  const primary = await cluster();
  const world = await World.open({ processes: PROCESSES, databaseUrl: primary.urlOf('vidimus') });
  const checker = new Checker(world);
  try {
    await runRounds(group, world, checker, async () => {
      const load = new Load(world).start();
      await pause(300 + Math.random() * 900);
      await primary.kill();
      await pause(Math.random() * 1_000);
      await primary.start();
      await waitForRecovery(world);
      await pause(300);
      await load.stop();
    });
  } finally {
    await world.end();
    await primary.remove();
  }
}

/** Kills a primary whose standby has everything, and promotes that; a copy of it becomes the next standby. */
export async function promote(group: Group): Promise<void> {
  if (!canMakeClusters()) return group.skip('there is no server of PostgreSQL for this machine');
  let primary = await cluster();
  await primary.stop();
  let standby = await primary.standby();
  await primary.start(SYNCHRONOUS);
  await standby.start(primary.followed);
  const address = await MovingAddress.to(primary.port);
  const databaseUrl = primary.urlOf('vidimus', address.port);
  const world = await World.open({ processes: PROCESSES, databaseUrl });
  const checker = new Checker(world);
  try {
    await runRounds(group, world, checker, async (number) => {
      const load = new Load(world).start();
      await pause(300 + Math.random() * 900);
      await primary.kill();
      await standby.promote();
      address.moveTo(standby.port);
      await waitForRecovery(world);
      await pause(500);
      await load.stop();
      if (number === group.planned) return;
      await standby.stop();
      await primary.remove();
      primary = standby;
      standby = await primary.standby();
      await primary.start(SYNCHRONOUS);
      await standby.start(primary.followed);
      await primary.waitForReplication();
      await waitForRecovery(world);
    });
  } finally {
    await world.end();
    await address.close();
    for (const cluster3 of [standby, primary]) await cluster3.remove();
  }
}

/** Database connections that stay open without traffic. */
export async function halfOpen(group: Group): Promise<void> {
  const database = await databases()
    .find(({ name }) => name === 'postgres')
    ?.open();
  if (database === undefined) return group.skip('there is no server of PostgreSQL here');
  const proxy = await hangingProxy(database.url);
  const world = await World.open({ processes: PROCESSES, databaseUrl: proxy.url, environment: { DATABASE_TIMEOUT: '2' } });
  const checker = new Checker(world);
  let longest = 0;
  try {
    await runRounds(group, world, checker, async () => {
      const load = new Load(world).start();
      await pause(300 + Math.random() * 700);
      proxy.hang(Math.random() < 0.5 ? 'everything' : 'answers');
      const startedAt = performance.now();
      await pause(Math.random() * 1_000);
      proxy.forward();
      await waitForRecovery(world);
      longest = Math.max(longest, performance.now() - startedAt);
      await pause(500);
      await load.stop();
    });
    group.facts.push(`healthy again after ${(longest / 1000).toFixed(1)} s at most`);
  } finally {
    await world.end();
    await proxy.end();
    await database.drop();
  }
}
