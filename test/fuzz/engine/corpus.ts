import { hash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';

/** Inputs as files, each named after its content. */
export function readInputs(folder: URL): readonly Buffer[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .sort()
    .map((name) => readFileSync(new URL(name, folder)));
}

export function writeInput(folder: URL, input: Buffer): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(new URL(hash('sha256', input, 'hex').slice(0, 16), folder), input);
}

/** Writes these and removes all others. */
export function replaceInputs(folder: URL, inputs: readonly Buffer[]): void {
  rmSync(folder, { recursive: true, force: true });
  for (const input of inputs) writeInput(folder, input);
}
