import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import {
  type ExpiryDate,
  GAUGES,
  type ListFill,
  Metrics,
  type RequestMeasure,
  type SessionMeasure,
  type Watched,
} from '../../../application/ports/metrics.ts';
import { EndingDays } from './ending-days.ts';
import { TenantLabels } from './tenant-labels.ts';

export const METRIC_PREFIX = 'vidimus_';
// `job` is a label that Prometheus gives itself, so jobs are named by `task`.
const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
const SIGNING_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];
/** Created at start with 0: the growth of a counter that appears with its first value would go unnoticed. */
const UNEXPECTED = 500;
/** Gauges with the same value in all workers, or a value of one for all. */
const ALIKE: ReadonlySet<Watched> = new Set(['draining', 'open_session_bytes_highest', 'open_session_bytes_limit']);
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

type Settings = {
  readonly version: string;
  /** Git commit; null if it is unknown. */
  readonly commit: string | null;
  /** Limit of tenants with labels of their own. */
  readonly tenants: number;
};

export class PrometheusMetrics extends Metrics {
  readonly registry = new Registry();
  readonly #tenants: TenantLabels;
  readonly #requests;
  readonly #unexpected;
  readonly #requestSeconds;
  readonly #sessions;
  readonly #refusedSessions;
  readonly #webhooks;
  readonly #webhookSeconds;
  readonly #signatures;
  readonly #signatureSeconds;
  readonly #outgoing;
  readonly #outgoingSeconds;
  readonly #jobFailures;
  readonly #jobSuccess;
  readonly #jobSeconds;
  readonly #health;
  readonly #endings: EndingDays;
  readonly #lists;
  readonly #removals;

  constructor({ version, commit, tenants }: Settings) {
    super();
    this.#tenants = new TenantLabels(tenants);
    const tenantLabelNames = this.#tenants.areTold ? ['tenant'] : [];
    collectDefaultMetrics({ register: this.registry });
    const info = this.#gauge('info', 'Running release', ['version', 'commit'], 'first');
    info.set({ version, commit: commit ?? '' }, 1);
    this.#requests = this.#counter('http_requests_total', 'Answered requests', ['method', 'route', 'status']);
    this.#unexpected = this.#counter('unexpected_failures_total', 'Requests that failed unexpectedly', []);
    this.#requestSeconds = this.#histogram('http_request_duration_seconds', 'Duration of requests', ['method', 'route']);
    this.#sessions = this.#counter('sessions_total', 'Sessions by outcome', ['kind', 'outcome', 'code', ...tenantLabelNames]);
    this.#refusedSessions = this.#counter(
      'session_quota_refusals_total',
      'Sessions and requests of wallets rejected because of QUOTA_SESSION_BYTES',
      tenantLabelNames,
    );
    this.#webhooks = this.#counter('webhooks_total', 'Webhook calls', ['outcome']);
    this.#webhookSeconds = this.#histogram('webhook_duration_seconds', 'Duration of webhook calls', []);
    this.#signatures = this.#counter('signatures_total', 'Signatures', ['provider', 'outcome']);
    this.#signatureSeconds = this.#histogram(
      'signature_duration_seconds',
      'Duration of one call of a key provider, with one or more signatures',
      ['provider'],
      SIGNING_SECONDS,
    );
    this.#outgoing = this.#counter('outgoing_requests_total', 'Outgoing calls, webhooks included', ['outcome']);
    this.#outgoingSeconds = this.#histogram('outgoing_request_duration_seconds', 'Duration of outgoing calls', []);
    this.#jobFailures = this.#counter('job_failures_total', 'Failed runs of jobs', ['task']);
    this.#jobSuccess = this.#gauge('job_last_success_timestamp_seconds', 'Last successful run of a job in this process', ['task'], 'max');
    this.#jobSeconds = this.#gauge('job_last_duration_seconds', 'Duration of its last run', ['task'], 'max');
    this.#health = this.#gauge('health_part_up', 'Parts of GET /health: 1 works, 0 does not', ['part'], 'min');
    this.#endings = new EndingDays(this.registry, `${METRIC_PREFIX}days_until_end`, this.#tenants);
    this.#removals = {
      waiting: this.#gauge('tenants_being_removed', 'Deleted tenants with remaining data', [], 'max'),
      rows: this.#counter('removed_tenant_rows_total', 'Deleted rows of deleted tenants', []),
    };
    this.#lists = {
      count: this.#gauge('status_lists', 'Status lists', [], 'max'),
      used: this.#gauge('status_list_entries_used', 'Used entries of all status lists', [], 'max'),
      capacity: this.#gauge('status_list_entries_capacity', 'Entries of all status lists', [], 'max'),
    };
  }

  override request({ method, route, status, seconds }: RequestMeasure): void {
    const knownMethod = METHODS.has(method) ? method : 'other';
    this.#requests.inc({ method: knownMethod, route, status });
    if (status === UNEXPECTED) this.#unexpected.inc();
    this.#requestSeconds.observe({ method: knownMethod, route }, seconds);
  }

  override session({ tenantId, kind = 'unknown' as never, outcome, code = '' as never }: SessionMeasure): void {
    this.#sessions.inc({ kind, outcome, code, ...this.#labelOf(tenantId) });
  }

  override sessionRefused(tenantId: string): void {
    this.#refusedSessions.inc(this.#labelOf(tenantId));
  }

  #labelOf(tenantId: string): { readonly tenant?: string } {
    return this.#tenants.areTold ? { tenant: this.#tenants.of(tenantId) } : {};
  }

  override webhook(outcome: string, seconds: number): void {
    this.#webhooks.inc({ outcome });
    this.#webhookSeconds.observe(seconds);
  }

  override signatures(provider: string, outcome: string, count: number, seconds: number): void {
    this.#signatures.inc({ provider, outcome }, count);
    this.#signatureSeconds.observe({ provider }, seconds);
  }

  override outgoing(outcome: string, seconds: number): void {
    this.#outgoing.inc({ outcome });
    this.#outgoingSeconds.observe(seconds);
  }

  override job(task: string, outcome: 'done' | 'failed', seconds: number): void {
    this.#jobFailures.inc({ task }, outcome === 'failed' ? 1 : 0);
    this.#jobSeconds.set({ task }, seconds);
    if (outcome === 'done') this.#jobSuccess.set({ task }, Date.now() / 1000);
  }

  override health(part: string, isUp: boolean): void {
    this.#health.set({ part }, Number(isUp));
  }

  override endings(endings: readonly ExpiryDate[]): void {
    this.#endings.keep(endings);
  }

  override listFill({ lists, used, capacity }: ListFill): void {
    this.#lists.count.set(lists);
    this.#lists.used.set(used);
    this.#lists.capacity.set(capacity);
  }

  override tenantRemovals(waiting: number, removedRows: number): void {
    this.#removals.waiting.set(waiting);
    this.#removals.rows.inc(removedRows);
  }

  override observeGauge(what: Watched, read: () => Readonly<Record<string, number>>): void {
    const [label, help]: readonly [string | undefined, string] = GAUGES[what];
    const gauge = new Gauge({
      name: METRIC_PREFIX + what,
      help,
      labelNames: label === undefined ? [] : [label],
      aggregator: ALIKE.has(what) ? 'max' : 'sum',
      registers: [this.registry],
      collect() {
        gauge.reset();
        for (const [value, number] of Object.entries(read())) {
          if (label === undefined) gauge.set(number);
          else gauge.set({ [label]: value }, number);
        }
      },
    });
  }

  #counter<L extends string>(name: string, help: string, labelNames: readonly L[]): Counter<string> {
    return new Counter({ name: METRIC_PREFIX + name, help, labelNames: [...labelNames], registers: [this.registry] });
  }

  #histogram(name: string, help: string, labelNames: readonly string[], buckets = SECONDS): Histogram<string> {
    const registers = [this.registry];
    return new Histogram({ name: METRIC_PREFIX + name, help, labelNames: [...labelNames], buckets, registers });
  }

  /** @param aggregator how the values of several workers are combined. */
  #gauge(name: string, help: string, labelNames: readonly string[], aggregator: 'first' | 'max' | 'min'): Gauge<string> {
    const registers = [this.registry];
    return new Gauge({ name: METRIC_PREFIX + name, help, labelNames: [...labelNames], aggregator, registers });
  }
}
