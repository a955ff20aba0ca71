import { copyFileSync, rmSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { type DatabaseKind, databases, type TestDatabase } from '../support/databases.ts';
import { rawSql } from '../support/postgres-server.ts';
import { runProcess } from '../support/programs.ts';
import { Cluster, canMakeClusters, MovingAddress, waitUntil } from '../support/standby.ts';
import { retried } from './calls.ts';
import { Checker } from './checker.ts';
import { recovered } from './database-faults.ts';
import { Load } from './load.ts';
import { type Group, rounds } from './rounds.ts';
import { World } from './world.ts';

const OFFER = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['card'] };

async function loadFor(world: World, milliseconds: number): Promise<void> {
  const load = new Load(world).start();
  await pause(milliseconds);
  await load.stop();
}

/** The operator's word, and what callers may forget by it. */
async function fence(world: World, checker: Checker, group: Group): Promise<void> {
  checker.remember();
  const { code, stderr } = await runProcess('commands/restore-fence', [], {
    ...world.deployment.environment,
    DATA_FOLDER: world.deployment.folderOf(0),
  });
  if (code !== 0) group.violations.push(`restore:fence ended with ${code}: ${stderr}`);
  world.ledger.lose();
  checker.forgive();
}

/** A standby that had not heard of the last changes becomes the primary: nothing is given away until somebody fenced it. */
export async function promoteLagging(group: Group): Promise<void> {
  if (!canMakeClusters()) return group.skip('there is no server of PostgreSQL for this machine');
  let primary = await Cluster.make();
  await primary.start();
  await rawSql(primary.urlOf('postgres'), (run) => run('create database vidimus'));
  const address = await MovingAddress.to(primary.port);
  const databaseUrl = primary.urlOf('vidimus', address.port);
  const world = await World.open({ processes: 2, databaseUrl });
  const checker = new Checker(world);
  let standby: Cluster | undefined;
  try {
    await rounds(group, world, checker, async () => {
      await primary.stop();
      const lagging = await primary.standby();
      standby = lagging;
      await primary.start();
      await lagging.start(primary.followed);
      await recovered(world);
      await loadFor(world, 400);
      await primary.waitForReplication();
      world.ledger.mark();
      await lagging.stop();
      await loadFor(world, 1_200);
      await primary.kill();
      await lagging.start(primary.followed);
      await lagging.promote();
      address.moveTo(lagging.port);
      for (const at of world.deployment.members.keys()) {
        await waitUntil(async () => {
          const { body } = await world.deployment.callAt(at, 'GET', '/health');
          return body.details.history.status === 'down';
        });
        const { status } = await world.deployment.callAt(at, 'POST', '/issuer/offer', { token: world.tenant.token, json: OFFER });
        if (status !== 503) group.violations.push(`process ${at} offers on a database that lost something: ${status}`);
      }
      await fence(world, checker, group);
      await recovered(world);
      await retried(() => world.call('POST', '/issuer/offer', OFFER));
      await loadFor(world, 400);
      await primary.remove();
      primary = lagging;
      standby = undefined;
    });
  } finally {
    await world.end();
    await address.close();
    for (const one of [standby, primary]) await one?.remove();
  }
}

/** A backup takes the place of the database: no process starts on it before it is fenced. */
export async function restore(name: DatabaseKind['name'], group: Group): Promise<void> {
  const kind = databases().find((one) => one.name === name);
  const database = await kind?.open();
  if (kind === undefined || database === undefined) return group.skip('there is no server of PostgreSQL here');
  const all: TestDatabase[] = [database];
  const world = await World.open({ processes: name === 'postgres' ? 2 : 1, databaseUrl: database.url });
  const checker = new Checker(world);
  const members = [...world.deployment.members.keys()];
  const stop = () => Promise.all(members.map((at) => world.deployment.stop(at)));
  const begin = async () => {
    for (const at of members) await world.deployment.begin(at);
  };
  const putBack = async (current: TestDatabase, backup: TestDatabase): Promise<TestDatabase> => {
    if (name === 'postgres') return kind.backUp(backup);
    const file = current.url.slice('sqlite:'.length);
    for (const end of ['', '-wal', '-shm']) rmSync(file + end, { force: true });
    copyFileSync(backup.url.slice('sqlite:'.length), file);
    return current;
  };
  let current = database;
  try {
    await rounds(group, world, checker, async () => {
      await loadFor(world, 500);
      await stop();
      const backup = await kind.backUp(current);
      all.push(backup);
      world.ledger.mark();
      await begin();
      await loadFor(world, 1_000);
      await stop();
      current = await putBack(current, backup);
      all.push(current);
      world.deployment.moveTo(current.url);
      world.databaseUrl = current.url;
      const started = await world.deployment.begin(0).catch((error: Error) => error.message);
      if (started === undefined) group.violations.push('the service starts on a database that was put back');
      else if (!started.includes('restore:fence')) group.violations.push(`another refusal: ${started}`);
      await fence(world, checker, group);
      await begin();
      await loadFor(world, 500);
    });
  } finally {
    await world.end();
    for (const one of new Set(all)) await one.drop();
  }
}
