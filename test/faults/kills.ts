import { setTimeout as pause } from 'node:timers/promises';
import { databases } from '../support/databases.ts';
import { Checker } from './checker.ts';
import { Load } from './load.ts';
import { type Group, rounds } from './rounds.ts';
import { World } from './world.ts';

const SETTLE_MS = 250;

/** Kills processes of the service at a random moment, one of them or all, and starts them anew. */
export async function killService(
  kind: 'postgres' | 'sqlite',
  processes: number,
  group: Group,
): Promise<void> {
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
