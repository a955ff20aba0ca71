import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bareEnvironment } from './compile-cache.ts';

const LAUNCHER = fileURLToPath(new URL('../../bootstrap/commands/vidimus.mjs', import.meta.url));

export type CaseResult = {
  readonly family: string;
  readonly name: string;
  readonly outcome: 'held' | 'open' | 'unclear' | 'skipped';
  readonly seen: string;
};
export type AttackRun = {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly families: readonly {
    readonly family: string;
    readonly state: 'run' | 'skipped' | 'not run';
    readonly reason: string;
  }[];
  readonly cases: readonly CaseResult[];
};

/** `npx vidimus attack` as a process of its own, with its report. */
export async function attack(
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<AttackRun> {
  const folder = mkdtempSync(join(tmpdir(), 'vidimus-attack-'));
  const report = join(folder, 'report.json');
  try {
    const child = spawn(process.execPath, [LAUNCHER, 'attack', ...args, '--json', report], {
      env: { ...bareEnvironment(), ...environment },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const said = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const) {
      child[name].setEncoding('utf8').on('data', (text: string) => {
        said[name] += text;
      });
    }
    const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
    const { families = [] } = readReport(report);
    return { code, ...said, families, cases: families.flatMap(({ results }) => results) };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

type Report = { readonly families?: readonly (AttackRun['families'][number] & { results: CaseResult[] })[] };

function readReport(file: string): Report {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return {};
  }
}

/** What somebody reads who has to find out why a run is not good. */
export const linesOf = (cases: readonly CaseResult[], outcome: CaseResult['outcome']): string[] =>
  cases.filter((one) => one.outcome === outcome).map(({ family, name }) => `${family}: ${name}`);
