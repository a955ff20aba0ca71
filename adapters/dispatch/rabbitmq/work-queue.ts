import type { ChannelModel, ConfirmChannel, ConsumeMessage } from 'amqplib';
import { z } from 'zod';
import type { Log } from '../../../application/ports/log.ts';
import { type Task, WorkQueue } from '../../../application/ports/work-queue.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { valueOrUndefined } from '../../../domain/shared/value-or-undefined.ts';
import { openConfirmChannel, type RabbitConnection } from './connection.ts';

/** Exchange, queue and routing key. */
export const WORK = 'vidimus.work';

/** So often a task is begun that ended its process, or failed. */
const MAX_DELIVERIES = 3;
/** A task that nobody began is offered again by its job. */
const TTL_MS = 240_000;
const QUEUE = {
  durable: true,
  arguments: {
    'x-queue-type': 'quorum',
    // Where no process is left that says so in its log.
    'x-delivery-limit': MAX_DELIVERIES + 2,
    'x-max-length': 10_000,
    'x-overflow': 'reject-publish',
  },
};
/** For the broker to say that it has a task. */
const PATIENCE_MS = 5_000;

const Id = z.string().min(1).max(255);
const tenantId = Id.transform((id) => id as TenantId);
const TaskMessage = z.discriminatedUnion('type', [
  z.object({ type: z.literal('trust-list'), tenantId, id: Id, nextUpdate: z.iso.datetime().pipe(z.coerce.date()) }),
  z.object({ type: z.literal('key-chains'), tenantId }),
]);

/** One queue for all processes, each of which does one task at a time. */
export class RabbitWorkQueue extends WorkQueue {
  readonly #connection: RabbitConnection;
  readonly #log: Log;
  #channel: ConfirmChannel | undefined;
  #work: ((task: Task) => Promise<void>) | undefined;
  #running: Promise<void> = Promise.resolve();
  /** Offers that are under way. */
  readonly #waiting = new Set<() => void>();

  constructor(connection: RabbitConnection, log: Log) {
    super();
    this.#connection = connection;
    this.#log = log;
    connection.add({
      setUp: (model) => this.#setUp(model),
      otherwise: 'the work queue cannot be used; each process does the background work that it finds',
    });
  }

  override readonly offer = async (task: Task): Promise<boolean> => {
    const channel = this.#channel;
    if (channel === undefined || !this.#connection.isWritable) return false;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const giveUp = () => resolve(false);
    const timer = setTimeout(giveUp, PATIENCE_MS);
    this.#waiting.add(giveUp);
    try {
      const options = { persistent: true, expiration: TTL_MS, contentType: 'application/json' };
      const content = Buffer.from(JSON.stringify(task));
      channel.publish(WORK, WORK, content, options, (error) => resolve(error === null));
      return await promise;
    } catch {
      // The channel ended a moment ago.
      return false;
    } finally {
      clearTimeout(timer);
      this.#waiting.delete(giveUp);
    }
  };

  override serve(work: (task: Task) => Promise<void>): () => Promise<void> {
    this.#work = work;
    // It fails with its channel; the next one is served as soon as it is set up.
    if (this.#channel !== undefined) this.#consume(this.#channel).catch(() => {});
    return async () => {
      this.#work = undefined;
      await this.#running;
    };
  }

  async #setUp(model: ChannelModel): Promise<void> {
    model.on('blocked', () => {
      for (const giveUp of this.#waiting) giveUp();
    });
    const channel = await openConfirmChannel(model);
    channel.on('close', () => {
      if (this.#channel === channel) this.#channel = undefined;
    });
    await channel.assertExchange(WORK, 'direct', { durable: true });
    await channel.assertQueue(WORK, QUEUE);
    await channel.bindQueue(WORK, WORK, WORK);
    await channel.prefetch(1);
    if (this.#work !== undefined) await this.#consume(channel);
    this.#channel = channel;
  }

  async #consume(channel: ConfirmChannel): Promise<void> {
    await channel.consume(WORK, (message) => {
      // Somebody deleted the queue. A channel that is closed already is what is wanted.
      if (message === null) channel.close().catch(() => {});
      else this.#running = this.#take(channel, message);
    });
  }

  async #take(channel: ConfirmChannel, message: ConsumeMessage): Promise<void> {
    // A process that stops leaves it to others, which get it when the connection ends.
    if (this.#work === undefined) return;
    const isDone = await this.#do(this.#work, message);
    try {
      if (isDone) channel.ack(message);
      else channel.nack(message, false, true);
    } catch {
      // The channel ended meanwhile, so the task comes again and finds nothing to do.
    }
  }

  /** @returns false when somebody should try again. */
  async #do(work: (task: Task) => Promise<void>, message: ConsumeMessage): Promise<boolean> {
    const task = read(message.content);
    if (task === undefined) {
      this.#log.warn('a message of the work queue is no task and is dropped', { queue: WORK });
      return true;
    }
    const about = { task: task.type, tenantId: task.tenantId };
    const deliveries = Number(message.properties.headers?.['x-delivery-count'] ?? 0);
    if (deliveries >= MAX_DELIVERIES) {
      this.#log.error('a task was begun too often and is dropped until its job offers it again', about);
      return true;
    }
    try {
      await work(task);
      return true;
    } catch (error) {
      this.#log.error('a task failed and is tried again', { ...about, attempt: deliveries + 1 }, error);
      return false;
    }
  }
}

function read(content: Buffer): Task | undefined {
  return valueOrUndefined(() => TaskMessage.safeParse(JSON.parse(content.toString('utf8'))).data);
}
