import { randomUUID } from 'node:crypto';
import type { Channel, ChannelModel, ConsumeMessage } from 'amqplib';
import { z } from 'zod';
import { EventBus, type WakeUp } from '../../../application/ports/event-bus.ts';
import type { Log } from '../../../application/ports/log.ts';
import type { SessionId, TenantId } from '../../../domain/shared/ids.ts';
import { InProcessEventBus } from '../in-process/event-bus.ts';
import { openChannel, type RabbitConnection } from './connection.ts';

export const WAKE_EXCHANGE = 'vidimus.wake';

/** Wake-ups of so long travel in one message. */
const GATHER_MS = 5;
const MAX_GATHERED = 500;
const MAX_BYTES = 256 * 1024;
/** Two for each message, of less than 64 KiB together: what waits to be written takes 2 MiB at most. */
const MAX_PIECES = 64;
/** What the broker keeps for a process that does not read. */
const QUEUE = { exclusive: true, autoDelete: true, durable: false, maxLength: 1_000, messageTtl: 10_000 };

const Id = z.string().min(1).max(255);
const tenantId = Id.transform((id) => id as TenantId);
const Messages = z
  .array(
    z.discriminatedUnion('type', [
      z.object({ type: z.literal('tenant'), tenantId }),
      z.object({ type: z.literal('session'), tenantId, sessionId: Id.transform((id) => id as SessionId) }),
      z.object({ type: z.literal('status-list'), tenantId, listId: Id }),
      z.object({
        type: z.literal('cache'),
        tenantId,
        lists: z.enum(['trust-lists', 'status-lists', 'revocation-lists']),
      }),
      z.object({ type: z.literal('missed') }),
    ]),
  )
  .max(MAX_GATHERED);

/**
 * Delivers wake-ups within this process at once, and to all other processes by the broker. While the broker takes none,
 * they are dropped: listeners also re-read by themselves. Only copies of lists do not, which `missed` makes up for.
 */
export class RabbitEventBus extends EventBus {
  readonly #own = new InProcessEventBus();
  readonly #name = randomUUID();
  readonly #connection: RabbitConnection;
  readonly #log: Log;
  #channel: Channel | undefined;
  #isFull = false;
  #gathered: WakeUp[] = [];
  #timer: NodeJS.Timeout | undefined;
  /** Something was dropped that the others cannot find out. */
  #owes = false;

  constructor(connection: RabbitConnection, log: Log) {
    super();
    this.#connection = connection;
    this.#log = log;
    connection.add({ setUp: (model) => this.#setUp(model) });
    connection.onWritable(() => this.#makeUp());
  }

  override publish(wakeUp: WakeUp): void {
    this.#own.publish(wakeUp);
    this.#send(wakeUp);
  }

  override subscribe(listener: (wakeUp: WakeUp) => void): () => void {
    return this.#own.subscribe(listener);
  }

  async #setUp(model: ChannelModel): Promise<void> {
    const channel = await openChannel(model, MAX_PIECES);
    channel.on('close', () => {
      if (this.#channel === channel) this.#channel = undefined;
    });
    channel.on('drain', () => {
      this.#isFull = false;
      this.#makeUp();
    });
    await channel.assertExchange(WAKE_EXCHANGE, 'fanout', { durable: true });
    // The queue of a connection that got lost may still be there.
    const { queue } = await channel.assertQueue(`${WAKE_EXCHANGE}.${randomUUID()}`, QUEUE);
    await channel.bindQueue(queue, WAKE_EXCHANGE, '');
    await channel.consume(queue, (message) => this.#receive(channel, message), { noAck: true });
    this.#isFull = false;
    this.#channel = channel;
    // Whatever others sent before this queue was there.
    this.#deliver({ type: 'missed' });
  }

  #send(wakeUp: WakeUp): void {
    if (!this.#isTaken) this.#drop([wakeUp]);
    else if (this.#gathered.push(wakeUp) >= MAX_GATHERED) this.#flush();
    else this.#timer ??= setTimeout(() => this.#flush(), GATHER_MS);
  }

  get #isTaken(): boolean {
    return this.#channel !== undefined && this.#connection.isWritable && !this.#isFull;
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const wakeUps = this.#gathered;
    this.#gathered = [];
    if (!this.#isTaken || this.#channel === undefined) {
      this.#drop(wakeUps);
      return;
    }
    try {
      const options = { appId: this.#name, contentType: 'application/json' };
      // What the client cannot write yet it keeps, so nothing more comes until it could.
      this.#isFull = !this.#channel.publish(WAKE_EXCHANGE, '', Buffer.from(JSON.stringify(wakeUps)), options);
    } catch {
      // The channel ended a moment ago.
      this.#drop(wakeUps);
    }
  }

  #drop(wakeUps: readonly WakeUp[]): void {
    if (wakeUps.some(({ type }) => type === 'cache' || type === 'missed')) this.#owes = true;
  }

  #makeUp(): void {
    if (!this.#owes || !this.#isTaken) return;
    this.#owes = false;
    this.#send({ type: 'missed' });
  }

  #receive(channel: Channel, message: ConsumeMessage | null): void {
    if (message === null) {
      // Somebody deleted the queue. A channel that is closed already is what is wanted.
      channel.close().catch(() => {});
      return;
    }
    if (message.properties.appId === this.#name || message.content.length > MAX_BYTES) return;
    for (const wakeUp of read(message.content)) this.#deliver(wakeUp);
  }

  #deliver(wakeUp: WakeUp): void {
    try {
      this.#own.publish(wakeUp);
    } catch (error) {
      this.#log.error('a wake-up could not be delivered', { type: wakeUp.type }, error);
    }
  }
}

/** Anybody with rights at the broker may have written it. */
function read(content: Buffer): readonly WakeUp[] {
  try {
    return Messages.safeParse(JSON.parse(content.toString('utf8'))).data ?? [];
  } catch {
    return [];
  }
}
