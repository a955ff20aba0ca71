import type { MeasuredProcess } from '../telemetry.ts';

/** A worker, as far as metrics are concerned. */
type Measured = { measure(): Promise<MeasuredProcess | undefined> };

/**
 * The metrics of all workers, those that ended too: a sum that becomes smaller looks like one that began anew, and what was counted long
 * ago like something that happens now.
 */
export class WorkerMetrics<Worker extends Measured> {
  readonly #last = new Map<Worker, MeasuredProcess>();
  #ended: readonly MeasuredProcess[] = [];

  /** A worker that says nothing in time counts with what it said last. @param restarts how many workers came in place of one that ended. */
  async text(workers: Iterable<Worker>, restarts: number): Promise<string> {
    const { mergedText } = await import('../../adapters/system/metrics/merged-text.ts');
    await Promise.all(
      Array.from(workers, async (worker) => {
        const measured = await worker.measure();
        if (measured !== undefined) this.#last.set(worker, measured);
      }),
    );
    return mergedText([...this.#ended, ...this.#last.values()], restarts);
  }

  /** It ended: what it counted stays. */
  async remove(worker: Worker): Promise<void> {
    const last = this.#last.get(worker);
    this.#last.delete(worker);
    if (last === undefined) return;
    const { mergedCounts } = await import('../../adapters/system/metrics/merged-text.ts');
    this.#ended = [await mergedCounts([...this.#ended, last])];
  }
}
