import { type Context, TraceFlags, trace } from '@opentelemetry/api';
import { type Sampler, SamplingDecision, type SamplingResult } from '@opentelemetry/sdk-trace';

/**
 * Keeps a part of the traces, by chance: callers choose the ids of theirs, so an id decides nothing. What belongs to a request
 * is kept with it.
 */
export class OwnSampler implements Sampler {
  readonly #ratio: number;

  /** @param ratio from 0 to 1. */
  constructor(ratio: number) {
    this.#ratio = ratio;
  }

  shouldSample(context: Context): SamplingResult {
    const parent = trace.getSpanContext(context);
    const isKept =
      parent === undefined || parent.isRemote === true
        ? Math.random() < this.#ratio
        : (parent.traceFlags & TraceFlags.SAMPLED) !== 0;
    return { decision: isKept ? SamplingDecision.RECORD_AND_SAMPLED : SamplingDecision.NOT_RECORD };
  }

  toString(): string {
    return `OwnSampler{${this.#ratio}}`;
  }
}
