import { type Context, TraceFlags, trace } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, type Sampler, SamplingDecision, type SamplingResult, TracerProvider } from '@opentelemetry/sdk-trace';
import { OtelTraces } from './otel-traces.ts';

/** Limit of spans that wait for the collector; further ones are dropped, so that a missing collector costs nothing else. */
const QUEUE = { maxQueueSize: 4_096, maxExportBatchSize: 512, scheduledDelayMillis: 2_000, exportTimeoutMillis: 5_000 };
const CLOSE_MS = 2_000;

type Settings = {
  /** Address without the path of the signal. */
  readonly endpoint: string;
  readonly ratio: number;
  readonly version: string;
};

/** Sends spans to a collector by OTLP over HTTP. */
export function openTraces({ endpoint, ratio, version }: Settings): { readonly traces: OtelTraces; close(): Promise<void> } {
  const exporter = new OTLPTraceExporter({ url: `${endpoint.replace(/\/+$/, '')}/v1/traces` });
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ 'service.name': 'vidimus', 'service.version': version }),
    sampler: new OwnSampler(ratio),
    spanProcessors: [new BatchSpanProcessor({ exporter, ...QUEUE })],
  });
  return {
    traces: new OtelTraces(provider.getTracer('vidimus', version)),
    close: async () => {
      const late = new Promise((done) => setTimeout(done, CLOSE_MS).unref());
      await Promise.race([provider.shutdown().catch(() => {}), late]);
    },
  };
}

/** Samples traces at random: callers choose the ids of theirs, so an id decides nothing. Spans of a sampled request are kept with it. */
export class OwnSampler implements Sampler {
  readonly #ratio: number;

  /** @param ratio from 0 to 1. */
  constructor(ratio: number) {
    this.#ratio = ratio;
  }

  shouldSample(context: Context): SamplingResult {
    const parent = trace.getSpanContext(context);
    const isKept =
      parent === undefined || parent.isRemote === true ? Math.random() < this.#ratio : (parent.traceFlags & TraceFlags.SAMPLED) !== 0;
    return { decision: isKept ? SamplingDecision.RECORD_AND_SAMPLED : SamplingDecision.NOT_RECORD };
  }

  toString(): string {
    return `OwnSampler{${this.#ratio}}`;
  }
}
