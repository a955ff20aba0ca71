import { setTimeout as pause } from 'node:timers/promises';
import type { Container } from 'inversify';
import { RelayEvents, type RelayResult } from '../../application/events/relay-events.ts';
import { EventBus } from '../../application/ports/event-bus.ts';
import { EventPublisher } from '../../application/ports/event-publisher.ts';
import { Log } from '../../application/ports/log.ts';
import { Random } from '../../application/ports/random.ts';
import { Store } from '../../application/ports/store.ts';
import { find } from '../wiring/wire.ts';

/** Changes within this time are published together. */
const GATHER_MS = 50;
/** A wake-up can be lost, and a new session gives none. */
const POLL_MS = 2_000;
/** Another process publishes; this process takes over when the other one is silent. */
const STANDBY_MS = 2_500;
const MAX_PAUSE_MS = 30_000;
const STOPPING_MS = 2_000;

/**
 * Publishes events while this process runs, if there is a broker.
 * @returns a function that stops it.
 */
export function startRelay(container: Container): () => Promise<void> {
  const publisher = find(container, EventPublisher);
  if (publisher === undefined) return () => Promise.resolve();
  const relay = new RelayEvents({
    eventLog: container.get(Store).maintenance,
    publisher,
    log: container.get(Log),
    random: container.get(Random),
  });
  const bell = new Bell();
  let isPublishing = false;
  const unsubscribe = [
    container.get(EventBus).subscribe(({ type }) => {
      if (type === 'session' && isPublishing) bell.ring();
    }),
    publisher.onReady(() => bell.ring()),
  ];
  const stopping = new AbortController();
  const running = run();

  async function run(): Promise<void> {
    let failures = 0;
    let hasBegun = false;
    while (!stopping.signal.aborted) {
      let outcome: RelayResult | 'failed';
      try {
        if (!hasBegun) await relay.begin();
        hasBegun = true;
        outcome = await relay.execute();
      } catch (error) {
        outcome = 'failed';
        if (!stopping.signal.aborted) relay.logFailure(error);
      }
      isPublishing = outcome !== 'elsewhere';
      const isSuccessful = outcome !== 'failed' && outcome !== 'refused';
      failures = isSuccessful ? 0 : failures + 1;
      if (outcome === 'more') continue;
      const longestMs = outcome === 'elsewhere' ? STANDBY_MS : POLL_MS;
      const waitMs = isSuccessful ? longestMs : Math.min(MAX_PAUSE_MS, 500 * 2 ** failures);
      await bell.wait(waitMs, isSuccessful ? GATHER_MS : waitMs);
    }
  }

  return async () => {
    stopping.abort();
    for (const stop of unsubscribe) stop();
    bell.end();
    // The running call may wait for a broker that accepts nothing.
    const hasEnded = await Promise.race([running.then(() => true), pause(STOPPING_MS, false, { ref: false })]);
    if (hasEnded) await relay.release().catch(() => {});
  };
}

/** Wakes a waiting loop, at most once per interval. */
class Bell {
  #isRung = false;
  #hasEnded = false;
  #wake = () => {};

  ring(): void {
    this.#isRung = true;
    this.#wake();
  }

  end(): void {
    this.#hasEnded = true;
    this.#wake();
  }

  /** Waits until the bell rings, for at most `longest` and at least `shortest` milliseconds. */
  async wait(longest: number, shortest: number): Promise<void> {
    await this.#sleep(shortest, () => this.#hasEnded);
    await this.#sleep(longest - shortest, () => this.#hasEnded || this.#isRung);
    this.#isRung = false;
  }

  async #sleep(milliseconds: number, isEnough: () => boolean): Promise<void> {
    const deadline = performance.now() + milliseconds;
    while (!isEnough()) {
      const restMs = deadline - performance.now();
      if (restMs <= 0) return;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, restMs);
        timer.unref();
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }
}
