import { copyFileSync, rmSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { type DatabaseKind, databases, type TestDatabase } from '../support/databases.ts';
import { rawSql } from '../support/postgres-server.ts';
import { runProcess } from '../support/programs.ts';
import { Cluster, canMakeClusters, MovingAddress, waitUntil } from '../support/standby.ts';
import { withRetries } from './calls.ts';
import { Checker } from './checker.ts';
import { waitForRecovery } from './database-faults.ts';
import { Load } from './load.ts';
import { type Group, runRounds } from './rounds.ts';
import { World } from './world.ts';

const OFFER = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['card'] };

async function runLoad(world: World, milliseconds: number): Promise<void> {
  const load = new Load(world).start();
  await pause(milliseconds);
  await load.stop();
}

/** The operator's word, and what callers may forget by it. */
async function fence(world: World, checker: Checker, group: Group): Promise<void> {
  checker.remember();
  const { code, stderr } = await runProcess('commands/restore-fence', [], {
    ...world.deployment.environment,
    DATA_FOLDER: world.deployment.dataFolder(0),
  });
  if (code !== 0) group.violations.push(`restore:fence ended with ${code}: ${stderr}`);
  world.ledger.lose();
  checker.forgive();
}

/** A standby without the last changes becomes the primary: nothing is issued until it is fenced. */
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
    await runRounds(group, world, checker, async () => {
      await primary.stop();
      const lagging = await primary.standby();
      standby = lagging;
      await primary.start();
      await lagging.start(primary.followed);
      await waitForRecovery(world);
      await runLoad(world, 400);
      await primary.waitForReplication();
      world.ledger.mark();
      await lagging.stop();
      await runLoad(world, 1_200);
      await primary.kill();
      await lagging.start(primary.followed);
      await lagging.promote();
      address.moveTo(lagging.port);
      for (const memberIndex of world.deployment.members.keys()) {
        await waitUntil(async () => {
          const { body } = await world.deployment.callAt(memberIndex, 'GET', '/health');
          return body.details.history.status === 'down';
        });
        const { status } = await world.deployment.callAt(memberIndex, 'POST', '/issuer/offer', { token: world.tenant.token, json: OFFER });
        if (status !== 503) group.violations.push(`process ${memberIndex} offers on a database that lost something: ${status}`);
      }
      await fence(world, checker, group);
      await waitForRecovery(world);
      await withRetries(() => world.call('POST', '/issuer/offer', OFFER));
      await runLoad(world, 400);
      await primary.remove();
      primary = lagging;
      standby = undefined;
    });
  } finally {
    await world.end();
    await address.close();
    for (const resource of [standby, primary]) await resource?.remove();
  }
}

/** A backup takes the place of the database: no process starts on it before it is fenced. */
export async function restore(name: DatabaseKind['name'], group: Group): Promise<void> {
  const kind = databases().find((resource) => resource.name === name);
  const database = await kind?.open();
  if (kind === undefined || database === undefined) return group.skip('there is no server of PostgreSQL here');
  const openDatabases: TestDatabase[] = [database];
  const world = await World.open({ processes: name === 'postgres' ? 2 : 1, databaseUrl: database.url });
  const checker = new Checker(world);
  const memberIndices = [...world.deployment.members.keys()];
  const stop = () => Promise.all(memberIndices.map((memberIndex) => world.deployment.stop(memberIndex)));
  const startMembers = async () => {
    for (const memberIndex of memberIndices) await world.deployment.startProcess(memberIndex);
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
    await runRounds(group, world, checker, async () => {
      await runLoad(world, 500);
      await stop();
      const backup = await kind.backUp(current);
      openDatabases.push(backup);
      world.ledger.mark();
      await startMembers();
      await runLoad(world, 1_000);
      await stop();
      current = await putBack(current, backup);
      openDatabases.push(current);
      world.deployment.moveTo(current.url);
      world.databaseUrl = current.url;
      const startError = await world.deployment.startProcess(0).catch((error: Error) => error.message);
      if (startError === undefined) group.violations.push('the service starts on a database that was put back');
      else if (!startError.includes('restore:fence')) group.violations.push(`another refusal: ${startError}`);
      await fence(world, checker, group);
      await startMembers();
      await runLoad(world, 500);
    });
  } finally {
    await world.end();
    for (const resource of new Set(openDatabases)) await resource.drop();
  }
}
