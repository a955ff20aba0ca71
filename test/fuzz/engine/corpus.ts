import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { Coverage } from './coverage.ts';
import type { Crash } from './fuzz-target.ts';
import { runInputs } from './judge.ts';
import type { Target } from './target.ts';

/** Reads the inputs that are kept for one target. @param file a JSON array with an input in base64 on each line. */
export function readInputs(file: URL): readonly Buffer[] {
  if (!existsSync(file)) return [];
  const inputs = JSON.parse(readFileSync(file, 'utf8')) as readonly string[];
  return inputs.map((input) => Buffer.from(input, 'base64'));
}

export function addInput(file: URL, input: Buffer): void {
  replaceInputs(file, [...readInputs(file), input]);
}

/** Replaces the corpus by these inputs, in a stable order, so that diffs are small. */
export function replaceInputs(file: URL, inputs: readonly Buffer[]): void {
  const lines = [...new Set(inputs.map((input) => input.toString('base64')))].sort();
  if (lines.length === 0) rmSync(file, { force: true });
  else writeFileSync(file, `[\n${lines.map((line) => `  "${line}"`).join(',\n')}\n]\n`);
}

const MAX_TRIES = 400;
/** A hang takes its time. */
const MAX_HANG_TRIES = 2;

/** The shortest input that is found to lead to the same fault. */
export function minimise(target: Target, { input, outcome }: Crash): Buffer {
  let remainingTries = outcome.kind === 'error' ? MAX_TRIES : MAX_HANG_TRIES;
  const isSame = (candidate: Buffer) => remainingTries-- > 0 && runInputs(target, [candidate])[0]?.key === outcome.key;
  let best = input;
  for (let size = Math.ceil(best.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let position = 0; position < best.length && remainingTries > 0; ) {
      const candidate = Buffer.concat([best.subarray(0, position), best.subarray(position + size)]);
      if (isSame(candidate)) best = candidate;
      else position += size;
    }
  }
  return best;
}

/** The shortest inputs of the pool that together have its full coverage and all its kinds of rejections. */
export function distil(
  target: Target,
  coverage: Coverage,
  pool: readonly Buffer[],
  bounds: { readonly count: number; readonly bytes: number },
): readonly Buffer[] {
  coverage.forget();
  const keys = new Set<string>();
  const keptInputs: Buffer[] = [];
  const learn = (input: Buffer) => {
    const [outcome] = runInputs(target, [input]);
    const newlyCovered = coverage.learn(coverage.takeCounts());
    return { fresh: newlyCovered, key: outcome?.key ?? '' };
  };
  for (const seed of target.seeds) keys.add(learn(Buffer.from(seed)).key);
  for (const input of pool.toSorted((first, second) => first.length - second.length)) {
    if (keptInputs.length === bounds.count) break;
    if (input.length > bounds.bytes) continue;
    const { fresh: newlyCovered, key } = learn(input);
    const isNew = !keys.has(key);
    keys.add(key);
    if (newlyCovered > 0 || isNew) keptInputs.push(input);
  }
  return keptInputs;
}
