import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { minimalEnvironment } from '../support/compile-cache.ts';

/** Output of `fuzz.ts --report`. */
export type FuzzReport = {
  readonly reports: readonly {
    readonly name: string;
    readonly executions: number;
    readonly covered: number;
    readonly found: number;
    /** `input` is base64. */
    readonly crashes: readonly { readonly kind: string; readonly key: string; readonly input: string }[];
  }[];
  /** Functions of the service that were run, as `<address of the file>#<name>`. */
  readonly functions: readonly string[];
};

const SCRIPT = fileURLToPath(new URL('fuzz.ts', import.meta.url));
const MAX_OUTPUT = 16 * 1024 * 1024;

/** Runs in a process of its own: what is loaded already cannot be counted block by block. */
export function runFuzz(args: readonly string[]): Promise<FuzzReport> {
  return new Promise((resolve, reject) => {
    const options = { env: minimalEnvironment(), maxBuffer: MAX_OUTPUT };
    execFile(process.execPath, [SCRIPT, '--report', ...args], options, (_error, stdout, stderr) => {
      // It ends with 1 where anything crashed.
      if (stdout === '') reject(new Error(stderr));
      else resolve(JSON.parse(stdout) as FuzzReport);
    });
  });
}
