import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stringify } from 'yaml';

export type Sample = { readonly name: string; readonly labels: Readonly<Record<string, string>>; readonly value: number };

/** Parses the samples of a text (Prometheus text exposition format 0.0.4). */
export function parseSamples(text: string): readonly Sample[] {
  return text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const [, name = '', labels = '', value = ''] = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
      if (name === '') throw new Error(`no sample: ${line}`);
      const labelPairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, key, text]) => [key, text]);
      return { name, labels: Object.fromEntries(labelPairs), value: Number(value) };
    });
}

/** The sum of all samples of a name that have these labels. */
export function sumSamples(text: string, name: string, labels: Readonly<Record<string, string>> = {}): number {
  return parseSamples(text)
    .filter((sample) => sample.name === name)
    .filter((sample) => Object.entries(labels).every(([key, value]) => sample.labels[key] === value))
    .reduce((sum, { value }) => sum + value, 0);
}

export const ALERT_RULES = fileURLToPath(new URL('../../deploy/alerts.yaml', import.meta.url));
/** Duration of a cause in minutes: longer than any rule waits. */
const CAUSE_MINUTES = 90;
const MINUTES_BEFORE = 5;

/** Runs promtool. @returns undefined when it is missing; with `CI=true` that throws. */
export function promtool(...parameters: readonly string[]): { readonly status: number; readonly output: string } | undefined {
  const { error, status, stdout, stderr } = spawnSync('promtool', parameters, { encoding: 'utf8' });
  if (error === undefined) return { status: status ?? 1, output: stdout + stderr };
  if (process.env['CI'] === 'true') throw new Error('CI needs promtool, of the package prometheus', { cause: error });
  console.log('    alerts are skipped: promtool is missing (package prometheus)');
  return undefined;
}

/** Metrics before and after the cause of an alert. */
export type Scrapes = {
  readonly before: string;
  /** Undefined when the service did not answer. */
  readonly after: string | undefined;
  /** Seconds since 1970. */
  readonly at: number;
  /** The start time alternates between both scrapes each minute, as for a process that restarts. */
  readonly alternatesStartTime?: true | undefined;
  /** Background jobs have stopped; by default they continue. */
  readonly hasStoppedJobs?: true | undefined;
};

/**
 * Whether the alert fires when the change between two scrapes continues: counters grow by the same amount each minute,
 * gauges stay. Without `after` the service no longer answers.
 * @param alert a regular expression; one matching alert is enough.
 */
export function alertFires(alert: string, scrapes: Scrapes): boolean {
  const folder = mkdtempSync(join(tmpdir(), 'vidimus-test-'));
  try {
    const file = join(folder, 'test.yaml');
    const expr = `count(count by (alertname) (ALERTS{alertname=~"${alert}",alertstate="firing"}))`;
    const test = {
      interval: '1m',
      input_series: toSeries(scrapes),
      promql_expr_test: [{ expr, eval_time: `${MINUTES_BEFORE + CAUSE_MINUTES - 1}m`, exp_samples: [] }],
    };
    writeFileSync(file, stringify({ rule_files: [ALERT_RULES], evaluation_interval: '1m', tests: [test] }));
    const result = promtool('test', 'rules', file);
    if (result === undefined) throw new Error('promtool is missing');
    if (result.status === 0) return false;
    // promtool prints the alerts that it found instead of none.
    if (/exp:\s*nil[\s\S]*got:\s*\{\}/.test(result.output)) return true;
    throw new Error(result.output);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

type Series = { readonly series: string; readonly values: string };

function toSeries(scrapes: Scrapes): readonly Series[] {
  const { before, after } = scrapes;
  const oldSamples = new Map(parseSamples(before).map((sample) => [seriesKey(sample), sample.value]));
  const newSamples = new Map(parseSamples(after ?? before).map((sample) => [seriesKey(sample), sample.value]));
  const counters = new Set([...`${before}\n${after}`.matchAll(/^# TYPE (\S+) (?:counter|histogram)$/gm)].map(([, name]) => name));
  const isCounter = (series: string) => {
    const name = series.slice(0, series.indexOf('{'));
    return counters.has(name) || counters.has(name.replace(/_(bucket|count|sum)$/, ''));
  };
  const up = { series: 'up{job="vidimus"}', values: `1x${MINUTES_BEFORE} ${after === undefined ? 0 : 1}x${CAUSE_MINUTES}` };
  const changedSeries = [...new Set([...oldSamples.keys(), ...newSamples.keys()])].map((series): Series => {
    const [previousValue, nextValue] = [oldSamples.get(series), newSamples.get(series)];
    if (after === undefined) return { series, values: `${formatNumber(previousValue)}x${MINUTES_BEFORE}` };
    if (isCounter(series)) {
      const lastValue = nextValue ?? previousValue ?? 0;
      // A new series starts with its value: Prometheus does not see its growth before.
      const [before, firstValue] = previousValue === undefined ? ['_', lastValue] : [formatNumber(previousValue), previousValue];
      const growth = formatNumber(Math.max(0, lastValue - (previousValue ?? 0)));
      return { series, values: `${before}x${MINUTES_BEFORE} ${formatNumber(firstValue)}+${growth}x${CAUSE_MINUTES}` };
    }
    return { series, values: gaugeValues(series, previousValue, nextValue, scrapes) };
  });
  return [up, ...changedSeries];
}

function gaugeValues(series: string, previousValue: number | undefined, nextValue: number | undefined, scrapes: Scrapes): string {
  if (series.startsWith('vidimus_job_last_success')) {
    // Time begins at 0 in a test.
    const lastValue = (nextValue ?? previousValue ?? 0) - scrapes.at;
    return `${formatNumber(lastValue)}+${scrapes.hasStoppedJobs ? 0 : 60}x${MINUTES_BEFORE + CAUSE_MINUTES}`;
  }
  if (scrapes.alternatesStartTime && series.startsWith('process_start_time_seconds'))
    return Array.from({ length: MINUTES_BEFORE + CAUSE_MINUTES }, (_, minute) => formatNumber(minute % 2 ? nextValue : previousValue)).join(
      ' ',
    );
  return `${formatNumber(previousValue)}x${MINUTES_BEFORE} ${formatNumber(nextValue)}x${CAUSE_MINUTES}`;
}

/** A missing value or one that is not a number is omitted. */
function formatNumber(value: number | undefined): string {
  return value === undefined || Number.isNaN(value) ? '_' : value.toFixed(6);
}

/** The notation of a series, with the job label that Prometheus adds. */
function seriesKey({ name, labels }: Sample): string {
  const seriesLabels = Object.entries({ ...labels, job: 'vidimus', instance: 'a' });
  return `${name}{${seriesLabels.map(([key, value]) => `${key}="${value}"`).join(',')}}`;
}
