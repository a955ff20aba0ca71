import { randomUUID } from 'node:crypto';
import type { Channel, ChannelModel, ConsumeMessage } from 'amqplib';
import { z } from 'zod';
import { EventBus, type WakeUp } from '../../../application/ports/event-bus.ts';
import type { Log } from '../../../application/ports/log.ts';
import type { SessionId, TenantId } from '../../../domain/shared/ids.ts';
import { InProcessEventBus } from '../in-process/event-bus.ts';
import { openChannel, type RabbitConnection } from './connection.ts';

export const WAKE_EXCHANGE = 'vidimus.wake';

/** Wake-ups are collected for this long and sent in one message. */
const COLLECT_MS = 5;
const MAX_COLLECTED = 500;
const MAX_BYTES = 256 * 1024;
/** Two pieces per message of less than 64 KiB: the buffer takes 2 MiB at most. */
const MAX_PIECES = 64;
/** Limits of the broker's queue for a process that does not read. */
const QUEUE = { exclusive: true, autoDelete: true, durable: false, maxLength: 1_000, messageTtl: 10_000 };

const Id = z.string().min(1).max(255);
const tenantId = Id.transform((id) => id as TenantId);
const Messages = z
  .array(
    z.discriminatedUnion('type', [
      z.object({ type: z.literal('tenant'), tenantId }),
      z.object({ type: z.literal('session'), tenantId, sessionId: Id.transform((id) => id as SessionId) }),
      z.object({ type: z.literal('status-list'), tenantId, listId: Id }),
      z.object({ type: z.literal('cache'), tenantId, lists: z.enum(['trust-lists', 'status-lists', 'revocation-lists']) }),
      z.object({ type: z.literal('missed') }),
    ]),
  )
  .max(MAX_COLLECTED);

/**
 * Delivers wake-ups within this process at once, and to all other processes by the broker. While the broker accepts none, they are dropped:
 * listeners also re-read by themselves. Only caches of lists do not, which `missed` makes up for.
 */
export class RabbitEventBus extends EventBus {
  readonly #local = new InProcessEventBus();
  readonly #name = randomUUID();
  readonly #connection: RabbitConnection;
  readonly #log: Log;
  #channel: Channel | undefined;
  #isFull = false;
  #collected: WakeUp[] = [];
  #timer: NodeJS.Timeout | undefined;
  /** A dropped wake-up has to be made up for, because other processes cannot detect it. */
  #hasDropped = false;

  constructor(connection: RabbitConnection, log: Log) {
    super();
    this.#connection = connection;
    this.#log = log;
    connection.add({ setUp: (model) => this.#setUp(model) });
    connection.onWritable(() => this.#sendMissed());
  }

  override publish(wakeUp: WakeUp): void {
    this.#local.publish(wakeUp);
    this.#send(wakeUp);
  }

  override subscribe(listener: (wakeUp: WakeUp) => void): () => void {
    return this.#local.subscribe(listener);
  }

  async #setUp(model: ChannelModel): Promise<void> {
    const channel = await openChannel(model, MAX_PIECES);
    channel.on('close', () => {
      if (this.#channel === channel) this.#channel = undefined;
    });
    channel.on('drain', () => {
      this.#isFull = false;
      this.#sendMissed();
    });
    await channel.assertExchange(WAKE_EXCHANGE, 'fanout', { durable: true });
    // The queue of a lost connection may still exist.
    const { queue } = await channel.assertQueue(`${WAKE_EXCHANGE}.${randomUUID()}`, QUEUE);
    await channel.bindQueue(queue, WAKE_EXCHANGE, '');
    await channel.consume(queue, (message) => this.#receive(channel, message), { noAck: true });
    this.#isFull = false;
    this.#channel = channel;
    // Makes up for messages that were sent before this queue existed.
    this.#deliver({ type: 'missed' });
  }

  #send(wakeUp: WakeUp): void {
    if (!this.#canSend) this.#drop([wakeUp]);
    else if (this.#collected.push(wakeUp) >= MAX_COLLECTED) this.#flush();
    else this.#timer ??= setTimeout(() => this.#flush(), COLLECT_MS);
  }

  get #canSend(): boolean {
    return this.#channel !== undefined && this.#connection.isWritable && !this.#isFull;
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const wakeUps = this.#collected;
    this.#collected = [];
    if (!this.#canSend || this.#channel === undefined) {
      this.#drop(wakeUps);
      return;
    }
    try {
      const options = { appId: this.#name, contentType: 'application/json' };
      // The client buffers what it cannot write, so nothing more is sent until it has written that.
      this.#isFull = !this.#channel.publish(WAKE_EXCHANGE, '', Buffer.from(JSON.stringify(wakeUps)), options);
    } catch {
      // The channel has just ended.
      this.#drop(wakeUps);
    }
  }

  #drop(wakeUps: readonly WakeUp[]): void {
    if (wakeUps.some(({ type }) => type === 'cache' || type === 'missed')) this.#hasDropped = true;
  }

  #sendMissed(): void {
    if (!this.#hasDropped || !this.#canSend) return;
    this.#hasDropped = false;
    this.#send({ type: 'missed' });
  }

  #receive(channel: Channel, message: ConsumeMessage | null): void {
    if (message === null) {
      // The queue was deleted. A channel that is closed already is fine.
      channel.close().catch(() => {});
      return;
    }
    if (message.properties.appId === this.#name || message.content.length > MAX_BYTES) return;
    for (const wakeUp of parseWakeUps(message.content)) this.#deliver(wakeUp);
  }

  #deliver(wakeUp: WakeUp): void {
    try {
      this.#local.publish(wakeUp);
    } catch (error) {
      this.#log.error('a wake-up could not be delivered', { type: wakeUp.type }, error);
    }
  }
}

/** Every user of the broker may have written the message, so it is validated. */
function parseWakeUps(content: Buffer): readonly WakeUp[] {
  try {
    return Messages.safeParse(JSON.parse(content.toString('utf8'))).data ?? [];
  } catch {
    return [];
  }
}
