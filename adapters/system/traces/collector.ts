import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import { OtelTraces } from './otel-traces.ts';
import { OwnSampler } from './own-sampler.ts';

/** Spans that wait for the collector; further ones are let go, so that one that is gone costs nothing but this. */
const QUEUE = {
  maxQueueSize: 4_096,
  maxExportBatchSize: 512,
  scheduledDelayMillis: 2_000,
  exportTimeoutMillis: 5_000,
};
const CLOSE_MS = 2_000;

type Settings = {
  /** Without the path of the signal. */
  readonly endpoint: string;
  /** Part of the traces that is kept, from 0 to 1. */
  readonly ratio: number;
  readonly version: string;
};

/** Sends spans to a collector by OTLP over HTTP. */
export function openTraces({ endpoint, ratio, version }: Settings): {
  readonly traces: OtelTraces;
  close(): Promise<void>;
} {
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
