import { setTimeout as pause } from 'node:timers/promises';
import { databases } from '../support/databases.ts';
import { Checker } from './checker.ts';
import { canFollowFlushes, FlushedFiles } from './flushed-files.ts';
import { Load } from './load.ts';
import { type Group, rounds } from './rounds.ts';
import { World } from './world.ts';

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
  const world = await World.open({
    processes: 1,
    databaseUrl: database.url,
    environment: files.environment,
  });
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
