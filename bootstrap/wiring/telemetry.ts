import { getHeapStatistics } from 'node:v8';
import type { Container } from 'inversify';
import { Admission } from '../../adapters/http/limits/admission.ts';
import type { OrmStore } from '../../adapters/persistence/orm-store.ts';
import type { MeasuredProcess } from '../../adapters/system/metrics/merged-text.ts';
import type { Observer } from '../../adapters/system/observed/observer.ts';
import { CheckHealth } from '../../application/health/check-health.ts';
import { Draining } from '../../application/health/draining.ts';
import { Metrics } from '../../application/ports/metrics.ts';
import type { Traces } from '../../application/ports/traces.ts';
import { cacheBytes } from '../../application/tenant-cache/bounded.ts';
import { type Settings, SettingsError } from '../../config/settings.ts';
import type { HttpServer } from './http-server.ts';
import { currentRelease } from './release.ts';
import { find } from './wire.ts';

export type { MeasuredProcess };

/** How often the parts of the health answer are looked at for metrics, besides when somebody asks. */
const HEALTH_MS = 15_000;

export type Telemetry = {
  readonly metrics?: Metrics;
  readonly traces?: Traces;
  /** Wraps ports; there is none where nobody looks. */
  readonly observer?: Observer;
  readonly measure?: () => Promise<MeasuredProcess>;
  /** The same as text, of this process alone. */
  readonly metricsText?: () => Promise<string>;
  close(): Promise<void>;
};

export function isMeasuring({ METRICS_ADDRESS, METRICS_TOKEN }: Settings): boolean {
  return METRICS_ADDRESS !== undefined || METRICS_TOKEN !== undefined;
}

/** Loads what measures and traces where somebody looks, and nothing otherwise. */
export async function openTelemetry(settings: Settings): Promise<Telemetry> {
  const measured = isMeasuring(settings) ? await openMetrics(settings) : {};
  const traced = await openTraces(settings);
  const { metrics } = measured;
  const { traces, close } = traced;
  if (metrics === undefined && traces === undefined) return { close };
  const { Observer: Made } = await import('../../adapters/system/observed/observer.ts');
  return { ...measured, ...traced, observer: new Made(metrics, traces) };
}

/** @throws SettingsError where the packages for it are not installed. */
async function openTraces({
  OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
  OTEL_TRACES_SAMPLER_ARG: ratio,
}: Settings): Promise<Pick<Telemetry, 'traces' | 'close'>> {
  if (endpoint === undefined) return { close: async () => {} };
  const collector = await import('../../adapters/system/traces/collector.ts').catch((error: unknown) => {
    if ((error as { code?: unknown }).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new SettingsError(['OTEL_EXPORTER_OTLP_ENDPOINT: packages for traces are not installed; run npm ci without --omit=optional']);
  });
  return collector.openTraces({ endpoint, ratio, version: currentRelease().version });
}

async function openMetrics({ METRICS_TENANTS: tenants }: Settings): Promise<Pick<Telemetry, 'metrics' | 'measure' | 'metricsText'>> {
  const { PrometheusMetrics } = await import('../../adapters/system/metrics/prometheus-metrics.ts');
  const metrics = new PrometheusMetrics({ ...currentRelease(), tenants });
  const { registry } = metrics;
  return { metrics, measure: () => registry.getMetricsAsJSON(), metricsText: () => registry.metrics() };
}

/** Bytes of open sessions, and connections of the pool where there is one. */
export function watchStore(metrics: Metrics | undefined, { connections, sessionBytes }: OrmStore, poolSize: number): void {
  if (sessionBytes !== undefined) {
    metrics?.watch('open_session_bytes_highest', () => ({ '': sessionBytes.highest() }));
    metrics?.watch('open_session_bytes_limit', () => ({ '': sessionBytes.quota }));
  }
  if (connections === undefined) return;
  metrics?.watch('database_connections', connections);
  metrics?.watch('database_connections_limit', () => ({ '': poolSize }));
}

/** Looks at what changes by itself. @returns what ends that. */
export function startWatching(container: Container, server: HttpServer): () => void {
  const metrics = find(container, Metrics);
  if (metrics === undefined) return () => {};
  const draining = container.get(Draining);
  const admission = container.get(Admission);
  metrics.watch('cache_bytes', cacheBytes);
  metrics.watch('heap_limit_bytes', () => ({ '': getHeapStatistics().heap_size_limit }));
  metrics.watch('draining', () => ({ '': Number(draining.isUnderWay) }));
  metrics.watch('requests_waiting', () => ({ '': admission.waitingCount }));
  metrics.watch('http_connections', () => ({ '': server.connectionCount }));
  metrics.watch('http_connections_limit', () => ({ '': server.maxConnections }));
  const checkHealth = container.get(CheckHealth);
  const look = () => void checkHealth.execute();
  look();
  const timer = setInterval(look, HEALTH_MS);
  timer.unref();
  return () => clearInterval(timer);
}
