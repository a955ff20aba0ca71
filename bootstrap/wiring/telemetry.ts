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
import { cacheBytes } from '../../application/tenant-cache/cache-memory.ts';
import { type Settings, SettingsError } from '../../config/settings.ts';
import type { HttpServer } from './http-server.ts';
import { currentRelease } from './release.ts';
import { find } from './wire.ts';

export type { MeasuredProcess };

/** The parts of the health are checked for metrics in this interval, besides the checks on request. */
const HEALTH_MS = 15_000;

export type Telemetry = {
  readonly metrics?: Metrics;
  readonly traces?: Traces;
  /** Wraps ports; undefined when neither metrics nor traces are on. */
  readonly observer?: Observer;
  readonly measure?: () => Promise<MeasuredProcess>;
  /** The same metrics of this process as text. */
  readonly metricsText?: () => Promise<string>;
  close(): Promise<void>;
};

export function isMeasuring({ METRICS_ADDRESS, METRICS_TOKEN }: Settings): boolean {
  return METRICS_ADDRESS !== undefined || METRICS_TOKEN !== undefined;
}

/** Loads the modules for metrics and traces only when they are on. */
export async function openTelemetry(settings: Settings): Promise<Telemetry> {
  const metricsPart = isMeasuring(settings) ? await openMetrics(settings) : {};
  const tracesPart = await openTraces(settings);
  const { metrics } = metricsPart;
  const { traces, close } = tracesPart;
  if (metrics === undefined && traces === undefined) return { close };
  const { Observer: ObserverClass } = await import('../../adapters/system/observed/observer.ts');
  return { ...metricsPart, ...tracesPart, observer: new ObserverClass(metrics, traces) };
}

/** @throws SettingsError when the packages for traces are not installed. */
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

export function observeStore(metrics: Metrics | undefined, { connections, sessionBytes }: OrmStore, poolSize: number): void {
  if (sessionBytes !== undefined) {
    metrics?.observeGauge('open_session_bytes_highest', () => ({ '': sessionBytes.highest() }));
    metrics?.observeGauge('open_session_bytes_limit', () => ({ '': sessionBytes.quota }));
  }
  if (connections === undefined) return;
  metrics?.observeGauge('database_connections', connections);
  metrics?.observeGauge('database_connections_limit', () => ({ '': poolSize }));
}

/** Observes values that change without calls. @returns a function that ends it. */
export function startObserving(container: Container, server: HttpServer): () => void {
  const metrics = find(container, Metrics);
  if (metrics === undefined) return () => {};
  const draining = container.get(Draining);
  const admission = container.get(Admission);
  metrics.observeGauge('cache_bytes', cacheBytes);
  metrics.observeGauge('heap_limit_bytes', () => ({ '': getHeapStatistics().heap_size_limit }));
  metrics.observeGauge('draining', () => ({ '': Number(draining.isDraining) }));
  metrics.observeGauge('requests_waiting', () => ({ '': admission.waitingCount }));
  metrics.observeGauge('http_connections', () => ({ '': server.connectionCount }));
  metrics.observeGauge('http_connections_limit', () => ({ '': server.maxConnections }));
  const checkHealth = container.get(CheckHealth);
  const checkNow = () => void checkHealth.execute();
  checkNow();
  const timer = setInterval(checkNow, HEALTH_MS);
  timer.unref();
  return () => clearInterval(timer);
}
