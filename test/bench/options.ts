import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { KEY_STORES, type KeyStoreName } from './key-store.ts';
import { GROWTHS, type Growth, SCENARIOS, type ScenarioName } from './scenarios.ts';
import type { Variant } from './service-process.ts';
import { DATABASES, type DatabaseKind } from './world.ts';

export type BenchOptions = {
  /** Names of the scenarios to run; empty means all. */
  readonly only: ReadonlySet<ScenarioName>;
  readonly databases: readonly DatabaseKind[];
  readonly warmUpSeconds: number;
  readonly measuredSeconds: number;
  /** Rows that are put into the tables before the main part. */
  readonly preloadedSessions: number;
  readonly preloadedEntries: number;
  readonly help: boolean;
  readonly strict: boolean;
  /** Folder that takes a CPU profile of each service process. */
  readonly profileFolder: string | undefined;
  /** Look at the memory of many presentations, and run no scenario. */
  readonly memory: boolean;
  /** Count instead of measuring. */
  readonly count: boolean;
  /** Dimensions of growth; empty unless growth is measured. */
  readonly grow: readonly Growth[];
  /** Measure what a flood of another tenant does. */
  readonly noisy: boolean;
  /** Measure how long requests wait while many large trust lists are read. */
  readonly lists: boolean;
  /** Measure background work with so many sessions stored. */
  readonly stored: number | undefined;
  readonly quick: boolean;
  /** Number of processes that share the requests round-robin. */
  readonly processes: number;
  /** Key provider of the tenant. */
  readonly kms: KeyStoreName;
  /** The build for the comparison. */
  readonly against: Variant | undefined;
  /** Files of what is kept, compared with and drawn. */
  readonly save: string | undefined;
  readonly baseline: string | undefined;
  readonly otherMachine: boolean;
  readonly svg: string | undefined;
  /** Number of measurements of each service. */
  readonly pairs: number;
  /** Number of processes of each service over which the pairs are distributed. */
  readonly starts: number;
};

export const USAGE = `npm run bench -- [options]
  --only <name,…>       scenarios: ${SCENARIOS.map(({ name }) => name).join(', ')}
  --database <name>     postgres or sqlite; both unless stated
  --seconds <n>         measured seconds per scenario (8), or of each window of a pair (3)
  --quick               1 second to warm up, 2 measured, fewer preloaded rows: to look, not to judge
  --help                this text
  --processes <n>       so many behind a balancer that gives each request to the next; PostgreSQL only (1)
  --kms <name>          local, vault (OpenBao) or pkcs11 (SoftHSM): where keys live, and what that does alone (local)
  --profile <folder>    write a CPU profile of each service process there
  --save <file>         keep what the flows cost, with the machine and the noise
  --baseline <file>     compare with what --save kept; exit code 1 when a flow is dearer than the noise explains
    --other-machine     although it was kept elsewhere
  --svg <file>          draw what the flows cost beside their goals
  --strict              exit code 1 when a goal is missed or an answer was wrong
instead of the table:
  --against <folder>    the built service of this folder (B) and the present one (A) in turn; "." shows the noise
    --pairs <n>         windows of each (6)
    --starts <n>        processes of each that the pairs are spread over (2; with --grow 5)
    --env NAME=value    a setting of B alone; {database} stands for the name of its database
    --node-option <o>   an option of Node for B alone, as --node-option=--max-semi-space-size=16
  --count               write what each request asks of database and cryptography to test/bench/counts.json
  --grow                little stored (A) against a million sessions, 1,000 tenants, status lists of a million entries
                        and 1,000 key chains (B); exit code 1 when a flow is dearer than by 5 % and noise. A tenth
                        of it with --quick
    --grow-by <what,…>  some of it alone: ${GROWTHS.join(', ')}
  --noisy               how long 8 wallets of a tenant wait beside 200 of another one, which floods the service
  --lists               how long /health/live takes, and the peak memory, while 20 trust lists of 250 KiB in XML and 20 of
                        1.7 MiB in JSON are read at once; with --against <folder> the same of that service first
  --stored              what each background job costs with 10,000 and with a million sessions stored and nothing due, how quickly
                        backlogs go, and how long another tenant waits meanwhile; with --strict a miss is exit code 1
    --sessions <n>      so many instead of a million
  --memory              10,000 presentations; exit code 1 when their memory stays behind`;

const MIN_PAIRS = 5;

/** @throws Error with the usage for arguments that are not understood. */
export function readOptions(args: readonly string[]): BenchOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: 'string', multiple: true, default: [] },
      database: { type: 'string', multiple: true, default: [] },
      seconds: { type: 'string' },
      help: { type: 'boolean', default: false },
      quick: { type: 'boolean', default: false },
      strict: { type: 'boolean', default: false },
      memory: { type: 'boolean', default: false },
      count: { type: 'boolean', default: false },
      grow: { type: 'boolean', default: false },
      'grow-by': { type: 'string', multiple: true, default: [] },
      noisy: { type: 'boolean', default: false },
      lists: { type: 'boolean', default: false },
      stored: { type: 'boolean', default: false },
      sessions: { type: 'string' },
      profile: { type: 'string' },
      processes: { type: 'string', default: '1' },
      kms: { type: 'string', default: 'local' },
      save: { type: 'string' },
      baseline: { type: 'string' },
      'other-machine': { type: 'boolean', default: false },
      svg: { type: 'string' },
      against: { type: 'string' },
      pairs: { type: 'string', default: '6' },
      starts: { type: 'string' },
      env: { type: 'string', multiple: true, default: [] },
      'node-option': { type: 'string', multiple: true, default: [] },
    },
  });
  const against = variant(values.against, values.env, values['node-option']);
  const starts = parseInteger('--starts', values.starts ?? (values.grow ? '5' : '2'), 1);
  const isPaired = against !== undefined || values.grow || values.noisy;
  const measuredSeconds = Number(values.seconds ?? (isPaired ? 3 : values.quick ? 2 : 8));
  if (!(measuredSeconds > 0)) throw misunderstood('--seconds wants a positive number');
  const processes = parseInteger('--processes', values.processes, 1);
  const split = (entries: readonly string[]) => entries.flatMap((entry) => entry.split(','));
  const databases = split(values.database).map((name) => parseChoice(DATABASES, name, 'database'));
  // SQLite belongs to one process.
  if (processes > 1 && databases.includes('sqlite')) throw misunderstood('--processes is for PostgreSQL only');
  const keeping = (['baseline', 'save', 'svg'] as const).find((name) => values[name] !== undefined);
  if (keeping !== undefined && (isPaired || values.memory || values.count))
    throw misunderstood(`--${keeping} is about the table, and goes with nothing that comes instead of it`);
  return {
    only: new Set(split(values.only).map(scenarioName)),
    databases: values.lists ? ['sqlite'] : processes > 1 ? ['postgres'] : databases.length === 0 ? DATABASES : databases,
    help: values.help,
    warmUpSeconds: isPaired ? 4 : values.quick ? 1 : 3,
    measuredSeconds,
    preloadedSessions: values.quick ? 20_000 : 100_000,
    preloadedEntries: 20_000,
    strict: values.strict,
    memory: values.memory,
    count: values.count,
    grow: values.grow ? parseGrowth(split(values['grow-by'])) : [],
    noisy: values.noisy,
    lists: values.lists,
    stored: values.stored ? parseInteger('--sessions', values.sessions ?? '1000000', 1_000) : undefined,
    quick: values.quick,
    kms: parseChoice(KEY_STORES, values.kms, 'key store'),
    profileFolder: values.profile,
    processes,
    save: values.save,
    baseline: values.baseline,
    otherMachine: values['other-machine'],
    svg: values.svg,
    against,
    pairs: Math.max(starts, parseInteger('--pairs', values.pairs, MIN_PAIRS)),
    starts,
  };
}

function parseGrowth(names: readonly string[]): readonly Growth[] {
  return names.length === 0 ? GROWTHS : names.map((name) => parseChoice(GROWTHS, name, 'growth'));
}

function variant(folder: string | undefined, settings: readonly string[], nodeOptions: readonly string[]): Variant | undefined {
  if (folder === undefined) {
    if (settings.length + nodeOptions.length > 0) throw misunderstood('--env and --node-option are of the service that --against names');
    return undefined;
  }
  const environment = settings.map((setting): [string, string] => {
    const [, name, value] = /^([A-Za-z_]\w*)=(.*)$/s.exec(setting) ?? [];
    if (name === undefined || value === undefined) throw misunderstood('--env wants NAME=value');
    return [name, value];
  });
  return { tree: resolve(folder), environment: Object.fromEntries(environment), nodeOptions };
}

function scenarioName(text: string): ScenarioName {
  return parseChoice(
    SCENARIOS.map(({ name }) => name),
    text,
    'scenario',
  );
}

function parseChoice<T extends string>(choices: readonly T[], text: string, description: string): T {
  const choice = choices.find((candidate) => candidate === text);
  if (choice === undefined) throw misunderstood(`there is no ${description} "${text}"`);
  return choice;
}

function parseInteger(option: string, text: string, minimum: number): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < minimum) throw misunderstood(`${option} wants a number from ${minimum} on`);
  return value;
}

function misunderstood(message: string): Error {
  return new Error(`${USAGE}\n\n${message}`);
}
