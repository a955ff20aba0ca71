import { setTimeout as pause } from 'node:timers/promises';
import type { Container } from 'inversify';
import { RelayEvents, type Relayed } from '../../application/events/relay-events.ts';
import { EventBus } from '../../application/ports/event-bus.ts';
import { EventPublisher } from '../../application/ports/event-publisher.ts';
import { Log } from '../../application/ports/log.ts';
import { Random } from '../../application/ports/random.ts';
import { Store } from '../../application/ports/store.ts';
import { find } from '../wiring/wire.ts';

/** Changes of so long are handed on together. */
const GATHER_MS = 50;
/** A wake-up can be lost, and a new session gives none. */
const LOOK_MS = 2_000;
/** Another process hands on; this one takes its place when it is silent. */
const ELSEWHERE_MS = 2_500;
const MAX_PAUSE_MS = 30_000;
const STOPPING_MS = 2_000;

/**
 * Hands on events for as long as this process runs, if there is a broker.
 * @returns what stops that.
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
  let isHere = false;
  const unsubscribe = [
    container.get(EventBus).subscribe(({ type }) => {
      if (type === 'session' && isHere) bell.ring();
    }),
    publisher.onReady(() => bell.ring()),
  ];
  const stopping = new AbortController();
  const running = run();

  async function run(): Promise<void> {
    let failures = 0;
    let hasBegun = false;
    while (!stopping.signal.aborted) {
      let outcome: Relayed | 'failed';
      try {
        if (!hasBegun) await relay.begin();
        hasBegun = true;
        outcome = await relay.execute();
      } catch (error) {
        outcome = 'failed';
        if (!stopping.signal.aborted) relay.failed(error);
      }
      isHere = outcome !== 'elsewhere';
      const isWell = outcome !== 'failed' && outcome !== 'refused';
      failures = isWell ? 0 : failures + 1;
      if (outcome === 'more') continue;
      const longest = outcome === 'elsewhere' ? ELSEWHERE_MS : LOOK_MS;
      const waiting = isWell ? longest : Math.min(MAX_PAUSE_MS, 500 * 2 ** failures);
      await bell.wait(waiting, isWell ? GATHER_MS : waiting);
    }
  }

  return async () => {
    stopping.abort();
    for (const stop of unsubscribe) stop();
    bell.end();
    // What is under way may wait for a broker that takes nothing.
    const isOver = await Promise.race([running.then(() => true), pause(STOPPING_MS, false, { ref: false })]);
    if (isOver) await relay.leave().catch(() => {});
  };
}

/** What somebody waits for, who then wants to hear of it no more often than at intervals. */
class Bell {
  #isRung = false;
  #isOver = false;
  #wake = () => {};

  ring(): void {
    this.#isRung = true;
    this.#wake();
  }

  end(): void {
    this.#isOver = true;
    this.#wake();
  }

  /** Waits until it rings; in milliseconds at most `longest`, and at least `shortest`. */
  async wait(longest: number, shortest: number): Promise<void> {
    await this.#sleep(shortest, () => this.#isOver);
    await this.#sleep(longest - shortest, () => this.#isOver || this.#isRung);
    this.#isRung = false;
  }

  async #sleep(milliseconds: number, isEnough: () => boolean): Promise<void> {
    const until = performance.now() + milliseconds;
    while (!isEnough()) {
      const rest = until - performance.now();
      if (rest <= 0) return;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, rest);
        timer.unref();
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }
}
