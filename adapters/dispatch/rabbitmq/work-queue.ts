import type { ChannelModel, ConfirmChannel, ConsumeMessage } from 'amqplib';
import { z } from 'zod';
import type { Log } from '../../../application/ports/log.ts';
import { type BackgroundTask, WorkQueue } from '../../../application/ports/work-queue.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { valueOrUndefined } from '../../../domain/shared/value-or-undefined.ts';
import { openConfirmChannel, type RabbitConnection } from './connection.ts';

/** Name of the exchange, the queue and the routing key. */
export const WORK_QUEUE = 'vidimus.work';

/** Number of times that a task is started if it ends its process or fails. */
const MAX_DELIVERIES = 3;
/** An unstarted task expires, and its job offers it again. */
const TTL_MS = 240_000;
const QUEUE = {
  durable: true,
  arguments: {
    'x-queue-type': 'quorum',
    // Applies if no process is left that could log it.
    'x-delivery-limit': MAX_DELIVERIES + 2,
    'x-max-length': 10_000,
    'x-overflow': 'reject-publish',
  },
};
/** Time within which the broker has to confirm a task. */
const CONFIRM_TIMEOUT_MS = 5_000;

const Id = z.string().min(1).max(255);
const tenantId = Id.transform((id) => id as TenantId);
const TaskMessage = z.discriminatedUnion('type', [
  z.object({ type: z.literal('trust-list'), tenantId, id: Id, nextUpdate: z.iso.datetime().pipe(z.coerce.date()) }),
  z.object({ type: z.literal('key-chains'), tenantId }),
]);

/** One queue for all processes, each of which runs one task at a time. */
export class RabbitWorkQueue extends WorkQueue {
  readonly #connection: RabbitConnection;
  readonly #log: Log;
  #channel: ConfirmChannel | undefined;
  #work: ((task: BackgroundTask) => Promise<void>) | undefined;
  #running: Promise<void> = Promise.resolve();
  /** Pending offers. */
  readonly #waiting = new Set<() => void>();

  constructor(connection: RabbitConnection, log: Log) {
    super();
    this.#connection = connection;
    this.#log = log;
    connection.add({
      setUp: (model) => this.#setUp(model),
      fallbackMessage: 'the work queue cannot be used; each process does the background work itself',
    });
  }

  override readonly offer = async (task: BackgroundTask): Promise<boolean> => {
    const channel = this.#channel;
    if (channel === undefined || !this.#connection.isWritable) return false;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const giveUp = () => resolve(false);
    const timer = setTimeout(giveUp, CONFIRM_TIMEOUT_MS);
    this.#waiting.add(giveUp);
    try {
      const options = { persistent: true, expiration: TTL_MS, contentType: 'application/json' };
      const content = Buffer.from(JSON.stringify(task));
      channel.publish(WORK_QUEUE, WORK_QUEUE, content, options, (error) => resolve(error === null));
      return await promise;
    } catch {
      // The channel has just ended.
      return false;
    } finally {
      clearTimeout(timer);
      this.#waiting.delete(giveUp);
    }
  };

  override serve(work: (task: BackgroundTask) => Promise<void>): () => Promise<void> {
    this.#work = work;
    // Fails together with its channel; the next channel is served as soon as it is set up.
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
    await channel.assertExchange(WORK_QUEUE, 'direct', { durable: true });
    await channel.assertQueue(WORK_QUEUE, QUEUE);
    await channel.bindQueue(WORK_QUEUE, WORK_QUEUE, WORK_QUEUE);
    await channel.prefetch(1);
    if (this.#work !== undefined) await this.#consume(channel);
    this.#channel = channel;
  }

  async #consume(channel: ConfirmChannel): Promise<void> {
    await channel.consume(WORK_QUEUE, (message) => {
      // The queue was deleted. A channel that is closed already is fine.
      if (message === null) channel.close().catch(() => {});
      else this.#running = this.#handle(channel, message);
    });
  }

  async #handle(channel: ConfirmChannel, message: ConsumeMessage): Promise<void> {
    // A stopping process leaves the task to other processes, which get it when the connection ends.
    if (this.#work === undefined) return;
    const isDone = await this.#run(this.#work, message);
    try {
      if (isDone) channel.ack(message);
      else channel.nack(message, false, true);
    } catch {
      // The channel ended meanwhile, so the task is delivered again and finds nothing to do.
    }
  }

  /** @returns false if the task should be retried. */
  async #run(work: (task: BackgroundTask) => Promise<void>, message: ConsumeMessage): Promise<boolean> {
    const task = parseTask(message.content);
    if (task === undefined) {
      this.#log.warn('a message of the work queue is not a task and is dropped', { queue: WORK_QUEUE });
      return true;
    }
    const logFields = { task: task.type, tenantId: task.tenantId };
    const deliveries = Number(message.properties.headers?.['x-delivery-count'] ?? 0);
    if (deliveries >= MAX_DELIVERIES) {
      this.#log.error('a task was started too often and is dropped until its job offers it again', logFields);
      return true;
    }
    try {
      await work(task);
      return true;
    } catch (error) {
      this.#log.error('a task failed and is retried', { ...logFields, attempt: deliveries + 1 }, error);
      return false;
    }
  }
}

function parseTask(content: Buffer): BackgroundTask | undefined {
  return valueOrUndefined(() => TaskMessage.safeParse(JSON.parse(content.toString('utf8'))).data);
}
