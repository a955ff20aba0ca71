import { parseArgs } from 'node:util';
import { KEY_STORES, type KeyStoreName } from './key-store.ts';
import { SCENARIOS, type ScenarioName } from './scenarios.ts';

export type BenchOptions = {
  /** Names of the scenarios to run; empty means all. */
  readonly only: ReadonlySet<ScenarioName>;
  readonly databases: readonly ('postgres' | 'sqlite')[];
  readonly warmUpSeconds: number;
  readonly measuredSeconds: number;
  /** Rows that are put into the tables before the main part. */
  readonly preloadedSessions: number;
  readonly preloadedEntries: number;
  readonly strict: boolean;
  /** Folder that takes a CPU profile of each service process. */
  readonly profileFolder: string | undefined;
  /** Look at the memory of many presentations, and run no scenario. */
  readonly memory: boolean;
  /** How many processes share the requests, each the next one. */
  readonly processes: number;
  /** Where the keys of the tenant live. */
  readonly kms: KeyStoreName;
};

export const USAGE = `node test/bench/bench.ts [options]
  --only <name,…>       scenarios: ${SCENARIOS.map(({ name }) => name).join(', ')}
  --database <name>     postgres or sqlite; both unless stated
  --seconds <n>         measured seconds per scenario (8)
  --quick               1 second to warm up, 2 measured, fewer preloaded rows
  --memory              10,000 presentations instead of the scenarios; exit code 1 when their memory stays behind
  --processes <n>       so many behind a balancer that gives each request to the next; PostgreSQL only (1)
  --kms <name>          local, vault (OpenBao) or pkcs11 (SoftHSM): where keys live, and what that does alone (local)
  --profile <folder>    write a CPU profile of each service process there
  --strict              exit code 1 when a limit is missed or an answer was wrong`;

/** @throws Error with the usage for arguments that are not understood. */
export function readOptions(args: readonly string[]): BenchOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: 'string', multiple: true, default: [] },
      database: { type: 'string', multiple: true, default: [] },
      seconds: { type: 'string' },
      quick: { type: 'boolean', default: false },
      strict: { type: 'boolean', default: false },
      memory: { type: 'boolean', default: false },
      profile: { type: 'string' },
      processes: { type: 'string', default: '1' },
      kms: { type: 'string', default: 'local' },
    },
  });
  const measuredSeconds = Number(values.seconds ?? (values.quick ? 2 : 8));
  if (!(measuredSeconds > 0)) throw new Error(`--seconds wants a positive number\n\n${USAGE}`);
  const processes = Number(values.processes);
  if (!Number.isInteger(processes) || processes < 1)
    throw new Error(`--processes wants a number from 1 on\n\n${USAGE}`);
  const split = (entries: readonly string[]) => entries.flatMap((entry) => entry.split(','));
  return {
    only: new Set(split(values.only).map(scenarioName)),
    // SQLite belongs to one process.
    databases:
      processes > 1
        ? ['postgres']
        : values.database.length === 0
          ? ['postgres', 'sqlite']
          : split(values.database).map(database),
    warmUpSeconds: values.quick ? 1 : 3,
    measuredSeconds,
    preloadedSessions: values.quick ? 20_000 : 100_000,
    preloadedEntries: 20_000,
    strict: values.strict,
    memory: values.memory,
    kms: keyStore(values.kms),
    profileFolder: values.profile,
    processes,
  };
}

function keyStore(text: string): KeyStoreName {
  const found = KEY_STORES.find((name) => name === text);
  if (found === undefined) throw new Error(`there is no key store "${text}"\n\n${USAGE}`);
  return found;
}

function scenarioName(text: string): ScenarioName {
  const scenario = SCENARIOS.find(({ name }) => name === text);
  if (scenario === undefined) throw new Error(`there is no scenario "${text}"\n\n${USAGE}`);
  return scenario.name;
}

function database(text: string): 'postgres' | 'sqlite' {
  if (text !== 'postgres' && text !== 'sqlite') throw new Error(`there is no database "${text}"\n\n${USAGE}`);
  return text;
}
