import { setTimeout as pause } from 'node:timers/promises';
import { type Channel, type ChannelModel, type ConfirmChannel, connect } from 'amqplib';
import type { Log } from '../../../application/ports/log.ts';
import { brokerWithoutCredentials, connectionOptions, explain, socketOptions } from './address.ts';

/** Pauses between attempts grow by half up to this limit. */
const MAX_PAUSE_MS = 20_000;
const GROWTH = 1.5;
/** Each pause is up to this fraction longer, so that processes that lost the broker together do not reconnect together. */
const JITTER = 0.5;
/** While nothing changes, only every n-th attempt is logged: every five minutes at least. */
const ATTEMPTS_PER_LINE = 10;
const CLOSING_MS = 2_000;
/** A part that could not be set up is retried after this time. */
const SETUP_RETRY_MS = 30 * 60_000;

export type BrokerSettings = {
  readonly address: string;
  /** Path of a file with authorities. */
  readonly ca?: string | undefined;
};

/** User of channels on the connection. */
export type ChannelUser = {
  /** Opens its channels and declares its exchanges and queues, on every new connection. */
  setUp(model: ChannelModel): Promise<void>;
  /**
   * Log message of an optional part that cannot be set up: a broken queue may close every connection of its consumer, and must not take the
   * other parts down.
   */
  readonly fallbackMessage?: string;
};

type Recovering = Awaited<ReturnType<typeof openConnection>>;

const ignore = () => {};

/**
 * The only connection of this process to the broker. It is opened in the background and reopened endlessly, so that nothing waits for it.
 * When one channel ends, the whole connection is reopened.
 */
export class RabbitConnection {
  readonly #settings: BrokerSettings;
  readonly #log: Log;
  readonly #parts: ChannelUser[] = [];
  readonly #listeners = new Set<() => void>();
  /** Parts that are left out, with the monotonic time in milliseconds of their next attempt. */
  readonly #retryTimes = new Map<ChannelUser, number>();
  #recovering: Recovering | undefined;
  #isOpen = false;
  #isBlocked = false;
  #fault = 'no connection attempt yet';

  constructor(settings: BrokerSettings, log: Log) {
    this.#settings = settings;
    this.#log = log;
  }

  add(part: ChannelUser): void {
    this.#parts.push(part);
  }

  /** Returns true if the broker accepts messages now, as far as is known. */
  get isWritable(): boolean {
    return this.#isOpen && !this.#isBlocked;
  }

  /** Calls `listener` each time messages can be sent again. @returns a function that stops listening. */
  onWritable(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** @throws Error if the file of the authority cannot be read. */
  async open(): Promise<void> {
    const recovering = await openConnection(this.#settings, (model) => this.#setUp(model));
    this.#recovering = recovering;
    const broker = brokerWithoutCredentials(this.#settings.address);
    recovering.on('error', ignore);
    recovering.on('connect', () => {
      this.#isOpen = true;
      this.#fault = '';
      this.#log.info('the broker is connected', { broker });
      this.#notify();
    });
    recovering.on('disconnect', () => {
      this.#isOpen = false;
    });
    recovering.on('reconnect-scheduled', ({ attempt, delay, error }) => {
      const fault = explain(error);
      const isNew = fault !== this.#fault;
      this.#fault = fault;
      if (!isNew && attempt % ATTEMPTS_PER_LINE !== 0) return;
      const fields = { broker, reason: fault, attempt, nextAttemptMs: delay };
      this.#log.warn('the broker is not connected; the service continues without it', fields);
    });
  }

  /** Resolves if the broker accepts messages. */
  async assertReachable(): Promise<void> {
    if (!this.#isOpen) throw new Error(`the broker is not connected: ${this.#fault}`);
    if (this.#isBlocked) throw new Error('the broker accepts no messages: see its alarms');
  }

  async close(): Promise<void> {
    this.#isOpen = false;
    // On a dead connection, the broker does not answer the close handshake.
    await Promise.race([this.#recovering?.close(), pause(CLOSING_MS, undefined, { ref: false })]);
  }

  async #setUp(model: ChannelModel): Promise<void> {
    this.#isBlocked = false;
    // The end of the connection is reported separately.
    model.on('error', ignore);
    model.on('blocked', (reason) => {
      this.#isBlocked = true;
      this.#log.warn('the broker accepts no messages; they wait', { reason });
    });
    model.on('unblocked', () => {
      this.#isBlocked = false;
      this.#log.info('the broker accepts messages again');
      this.#notify();
    });
    let isClosed = false;
    model.on('close', () => {
      isClosed = true;
    });
    for (const part of this.#parts) {
      const wait = (this.#retryTimes.get(part) ?? 0) - performance.now();
      if (wait <= 0) await this.#setUpPart(part, model);
      else setTimeout(() => isClosed || this.#setUpPart(part, model).catch(ignore), wait).unref();
    }
  }

  async #setUpPart(part: ChannelUser, model: ChannelModel): Promise<void> {
    try {
      await part.setUp(model);
    } catch (error) {
      if (part.fallbackMessage !== undefined) {
        this.#retryTimes.set(part, performance.now() + SETUP_RETRY_MS);
        this.#log.error(part.fallbackMessage, { reason: explain(error as Error) });
      }
      throw error;
    }
  }

  #notify(): void {
    for (const listener of this.#listeners) listener();
  }
}

function openConnection({ address, ca }: BrokerSettings, setup: (model: ChannelModel) => Promise<void>) {
  const calculateDelay = (attempt: number) => Math.min(MAX_PAUSE_MS, 1_000 * GROWTH ** (attempt - 1)) * (1 + JITTER * Math.random());
  const recovery = { waitForConnect: false, calculateDelay, setup };
  return connect(connectionOptions(address), { ...socketOptions(ca), recovery });
}

/** Opens a channel whose end closes its connection. @param highWaterMark number of message pieces that the client buffers for it. */
export async function openChannel(model: ChannelModel, highWaterMark: number): Promise<Channel> {
  return closeWithChannel(model, await model.createChannel({ highWaterMark }));
}

export async function openConfirmChannel(model: ChannelModel): Promise<ConfirmChannel> {
  return closeWithChannel(model, await model.createConfirmChannel());
}

function closeWithChannel<T extends Channel>(model: ChannelModel, channel: T): T {
  channel.on('error', ignore);
  // Deferred, because a connection that ends closes its channels first.
  channel.on('close', () => setImmediate(() => model.close().catch(ignore)));
  return channel;
}
