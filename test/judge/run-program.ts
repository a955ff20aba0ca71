import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { errorReason, type Row, type Tool } from './verdict.ts';

export type ProgramResult = { readonly code: number | undefined; readonly output: string };

/** Runs a program to its end, or for so long. @returns no code where it was ended. */
export function runProgram(
  program: string,
  options: readonly string[],
  seconds: number,
  environment: Readonly<Record<string, string | undefined>> = process.env,
): Promise<ProgramResult> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, options, { stdio: ['ignore', 'pipe', 'pipe'], env: environment, detached: true });
    // Its child processes end with it.
    const timer = setTimeout(() => process.kill(-(child.pid ?? 0), 'SIGKILL'), seconds * 1000);
    let output = '';
    const keep = (chunk: Buffer) => {
      output = (output + chunk.toString()).slice(-MAX_OUTPUT);
    };
    child.stdout.on('data', keep);
    child.stderr.on('data', keep);
    child.once('error', (error) => {
      clearTimeout(timer);
      reject(error);
    });
    child.once('close', (code, signal) => {
      clearTimeout(timer);
      resolve({ code: signal === null ? (code ?? 1) : undefined, output });
    });
  });
}

/** The end of the output contains the error. */
const MAX_OUTPUT = 100_000;

const RUN = fileURLToPath(new URL('../schemathesis/run.ts', import.meta.url));
const FLOW = 'requests that are generated from the API document, as three accounts';
const SECONDS = 1800;

/** @param program Schemathesis. It gets a service of its own, whose data it may break. */
export async function runSchemathesis(program: string, examples: number): Promise<{ readonly tool: Tool; readonly row: Row }> {
  const { output } = await runProgram(program, ['--version'], 30);
  const version = /[\d.]+\d/.exec(output)?.[0] ?? '?';
  const about = `generated requests, up to ${examples} for each operation; it knows no profiles`;
  const tool = { name: 'Schemathesis', version, about };
  const rowContext = { tool: tool.name, flow: FLOW };
  const environment = { ...process.env, SCHEMATHESIS: program };
  const options = [RUN, '--', '--max-examples', String(examples)];
  const { code, output: report } = await runProgram(process.execPath, options, SECONDS, environment);
  if (code === 0) return { tool, row: { ...rowContext, result: 'works' } };
  if (code === undefined) return { tool, row: { ...rowContext, result: 'fails', detail: `not done in ${SECONDS} s` } };
  console.error(report);
  const detail = errorReason(
    report
      .split('\n')
      .filter((line) => line.startsWith(REFUSED))
      .join('; ') || 'reports',
  );
  return { tool, row: { ...rowContext, result: 'fails', detail } };
}

/** Label of a request that the document allows and the service rejects; all other results are reports. */
const REFUSED = 'allowed by the document';
