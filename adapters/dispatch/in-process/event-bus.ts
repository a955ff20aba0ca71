import { EventBus, type WakeUp } from '../../../application/ports/event-bus.ts';

/** Delivers wake-ups within this process. That is enough with several instances, too, because listeners also re-read. */
export class InProcessEventBus extends EventBus {
  readonly #listeners = new Set<(wakeUp: WakeUp) => void>();

  override publish(wakeUp: WakeUp): void {
    for (const listener of this.#listeners) listener(wakeUp);
  }

  override subscribe(listener: (wakeUp: WakeUp) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
