import { setTimeout as pause } from 'node:timers/promises';
import { type Channel, type ChannelModel, type ConfirmChannel, connect } from 'amqplib';
import type { Log } from '../../../application/ports/log.ts';
import { connectionOptions, explain, placeOf, socketOptions } from './address.ts';

/** Pauses between two attempts grow by half, up to here. */
const MAX_PAUSE_MS = 20_000;
const GROWTH = 1.5;
/** Each pause is up to so much longer, so that processes that lost the broker together do not come back together. */
const JITTER = 0.5;
/** While nothing changes, the log says so every so many attempts: every five minutes at least. */
const ATTEMPTS_PER_LINE = 10;
const CLOSING_MS = 2_000;
/** A part that could not be set up is tried again after so long. */
const LEFT_OUT_MS = 30 * 60_000;

export type BrokerSettings = {
  readonly address: string;
  /** Path of a file with authorities. */
  readonly ca?: string | undefined;
};

/** What has channels on the connection. */
export type Part = {
  /** Opens them and declares what it needs, on every new connection. */
  setUp(model: ChannelModel): Promise<void>;
  /**
   * What the service does without when it cannot be set up: a queue that is broken may end every connection of the one who
   * reads it, and the other parts are not to go down with it.
   */
  readonly otherwise?: string;
};

type Recovering = Awaited<ReturnType<typeof begin>>;

const ignore = () => {};

/**
 * The one connection of this process to the broker. It is opened in the background and again for ever, so that nobody
 * waits for it. When one channel ends, the whole connection is made anew.
 */
export class RabbitConnection {
  readonly #settings: BrokerSettings;
  readonly #log: Log;
  readonly #parts: Part[] = [];
  readonly #listeners = new Set<() => void>();
  /** Until when, in milliseconds of this process. */
  readonly #leftOut = new Map<Part, number>();
  #recovering: Recovering | undefined;
  #isOpen = false;
  #isBlocked = false;
  #fault = 'it was not called yet';

  constructor(settings: BrokerSettings, log: Log) {
    this.#settings = settings;
    this.#log = log;
  }

  add(part: Part): void {
    this.#parts.push(part);
  }

  /** Whether the broker takes messages now, as far as can be known. */
  get isWritable(): boolean {
    return this.#isOpen && !this.#isBlocked;
  }

  /** Calls `listener` each time messages can be sent again. @returns how to stop listening. */
  onWritable(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** @throws Error when the file of the authority cannot be read. */
  async open(): Promise<void> {
    const recovering = await begin(this.#settings, (model) => this.#setUp(model));
    this.#recovering = recovering;
    const broker = placeOf(this.#settings.address);
    recovering.on('error', ignore);
    recovering.on('connect', () => {
      this.#isOpen = true;
      this.#fault = '';
      this.#log.info('the broker is connected', { broker });
      this.#tell();
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
      this.#log.warn('the broker is not connected; the service goes on without it', fields);
    });
  }

  /** Resolves when the broker takes messages. */
  async assertReachable(): Promise<void> {
    if (!this.#isOpen) throw new Error(`the broker is not connected: ${this.#fault}`);
    if (this.#isBlocked) throw new Error('the broker takes no messages: see its alarms');
  }

  async close(): Promise<void> {
    this.#isOpen = false;
    // Where nothing passes on the connection, the broker does not say goodbye either.
    await Promise.race([this.#recovering?.close(), pause(CLOSING_MS, undefined, { ref: false })]);
  }

  async #setUp(model: ChannelModel): Promise<void> {
    this.#isBlocked = false;
    // That it ends is told besides.
    model.on('error', ignore);
    model.on('blocked', (reason) => {
      this.#isBlocked = true;
      this.#log.warn('the broker takes no messages; they wait', { reason });
    });
    model.on('unblocked', () => {
      this.#isBlocked = false;
      this.#log.info('the broker takes messages again');
      this.#tell();
    });
    let isClosed = false;
    model.on('close', () => {
      isClosed = true;
    });
    for (const part of this.#parts) {
      const wait = (this.#leftOut.get(part) ?? 0) - performance.now();
      if (wait <= 0) await this.#setUpPart(part, model);
      else setTimeout(() => isClosed || this.#setUpPart(part, model).catch(ignore), wait).unref();
    }
  }

  async #setUpPart(part: Part, model: ChannelModel): Promise<void> {
    try {
      await part.setUp(model);
    } catch (error) {
      if (part.otherwise !== undefined) {
        this.#leftOut.set(part, performance.now() + LEFT_OUT_MS);
        this.#log.error(part.otherwise, { reason: explain(error as Error) });
      }
      throw error;
    }
  }

  #tell(): void {
    for (const listener of this.#listeners) listener();
  }
}

function begin({ address, ca }: BrokerSettings, setup: (model: ChannelModel) => Promise<void>) {
  const calculateDelay = (attempt: number) => Math.min(MAX_PAUSE_MS, 1_000 * GROWTH ** (attempt - 1)) * (1 + JITTER * Math.random());
  const recovery = { waitForConnect: false, calculateDelay, setup };
  return connect(connectionOptions(address), { ...socketOptions(ca), recovery });
}

/** A channel whose end ends its connection. @param highWaterMark pieces of messages that the client keeps for it. */
export async function openChannel(model: ChannelModel, highWaterMark: number): Promise<Channel> {
  return tied(model, await model.createChannel({ highWaterMark }));
}

/** The same, where the broker says what it took. */
export async function openConfirmChannel(model: ChannelModel): Promise<ConfirmChannel> {
  return tied(model, await model.createConfirmChannel());
}

function tied<T extends Channel>(model: ChannelModel, channel: T): T {
  channel.on('error', ignore);
  // Later, since a connection that ends closes its channels first.
  channel.on('close', () => setImmediate(() => model.close().catch(ignore)));
  return channel;
}
