import { setTimeout as pause } from 'node:timers/promises';
import { findOpenBao, startOpenBao } from '../support/openbao.ts';
import { startRabbitMq } from '../support/rabbitmq.ts';
import { Checker } from './checker.ts';
import { waitForRecovery } from './database-faults.ts';
import { Load } from './load.ts';
import { onPostgres } from './process-faults.ts';
import { type Group, runRounds } from './rounds.ts';
import type { World } from './world.ts';

const QUEUE = 'vidimus.faults';
const EVENTS_MS = 30_000;

/** The broker is killed and comes back: no event of a session that was completed is lost. */
export async function loseBroker(group: Group): Promise<void> {
  const broker = await startRabbitMq();
  if (broker === undefined) return group.skip('there is no RabbitMQ here');
  const completed = new Set<string>();
  const listen = async () => {
    const connection = await broker.connect();
    const channel = await connection.createChannel();
    channel.on('error', () => {});
    await channel.assertExchange('vidimus.events', 'topic', { durable: true });
    await channel.assertQueue(QUEUE, { durable: true });
    await channel.bindQueue(QUEUE, 'vidimus.events', '#');
    await channel.consume(QUEUE, (message) => {
      if (message === null) return;
      const { type, subject } = JSON.parse(message.content.toString());
      if (type === 'vidimus.session.completed') completed.add(subject);
      channel.ack(message);
    });
    return connection;
  };
  try {
    let connection = await listen();
    await onPostgres(
      group,
      async (world) => {
        await runRounds(group, world, new Checker(world), async () => {
          const load = new Load(world).start();
          await pause(300 + Math.random() * 700);
          await connection.close().catch(() => {});
          await broker.kill();
          await pause(Math.random() * 2_000);
          await broker.restart();
          connection = await listen();
          await pause(500);
          await load.stop();
          await waitForDeliveries(world, completed, group);
        });
        group.facts.push(`${completed.size} sessions told as completed`);
      },
      { environment: { AMQP_URL: broker.url } },
    );
    await connection.close().catch(() => {});
  } finally {
    await broker.stop();
  }
}

async function waitForDeliveries({ ledger }: World, completed: ReadonlySet<string>, group: Group): Promise<void> {
  const end = performance.now() + EVENTS_MS;
  const findMissing = () => {
    const issuedSessions = [...ledger.issuances.values()].filter(({ entries }) => entries.length > 0);
    const presentedSessions = [...ledger.presentations.values()].filter((presentation) => presentation.presented > 0);
    return [...issuedSessions, ...presentedSessions].filter(({ session }) => !completed.has(session));
  };
  while (findMissing().length > 0 && performance.now() < end) await pause(100);
  for (const { session } of findMissing().slice(0, 5)) group.violations.push(`nobody was told that ${session} is completed`);
}

/** The key store is killed and comes back. */
export async function loseVault(group: Group): Promise<void> {
  const binary = findOpenBao();
  if (binary === undefined) return group.skip('there is no OpenBao here');
  const vault = await startOpenBao(binary);
  try {
    const settings = await vault.settings();
    const providers = { local: { type: 'local' }, vault: { ...settings, type: 'vault' } };
    await onPostgres(
      group,
      async (world) => {
        await runRounds(group, world, new Checker(world), async () => {
          const load = new Load(world).start();
          await pause(300 + Math.random() * 700);
          await vault.kill();
          await pause(Math.random() * 1_500);
          await vault.restart();
          await waitForRecovery(world);
          await pause(500);
          await load.stop();
        });
      },
      { environment: { KMS_CONFIG: JSON.stringify({ default: 'vault', providers }) } },
    );
  } finally {
    await vault.stop();
  }
}
