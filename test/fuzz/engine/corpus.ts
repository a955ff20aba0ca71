import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { Coverage } from './coverage.ts';
import type { Crash } from './fuzz-target.ts';
import { judge } from './judge.ts';
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

/** Keeps these inputs and no others. The order does not depend on how they were found, so that changes are small. */
export function replaceInputs(file: URL, inputs: readonly Buffer[]): void {
  const lines = [...new Set(inputs.map((input) => input.toString('base64')))].sort();
  if (lines.length === 0) rmSync(file, { force: true });
  else writeFileSync(file, `[\n${lines.map((line) => `  "${line}"`).join(',\n')}\n]\n`);
}

const MOST_TRIED = 400;
/** A hang takes its time. */
const MOST_HANGS_TRIED = 2;

/** The shortest input that is found to lead to the same fault. */
export function minimise(target: Target, { input, outcome }: Crash): Buffer {
  let left = outcome.kind === 'error' ? MOST_TRIED : MOST_HANGS_TRIED;
  const isSame = (candidate: Buffer) => left-- > 0 && judge(target, [candidate])[0]?.key === outcome.key;
  let best = input;
  for (let size = Math.ceil(best.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = 0; at < best.length && left > 0; ) {
      const candidate = Buffer.concat([best.subarray(0, at), best.subarray(at + size)]);
      if (isSame(candidate)) best = candidate;
      else at += size;
    }
  }
  return best;
}

/** Those of the pool that are needed to run all that it runs and to be refused in every way, the shortest first. */
export function distil(
  target: Target,
  coverage: Coverage,
  pool: readonly Buffer[],
  bounds: { readonly count: number; readonly bytes: number },
): readonly Buffer[] {
  coverage.forget();
  const keys = new Set<string>();
  const kept: Buffer[] = [];
  const learn = (input: Buffer) => {
    const [outcome] = judge(target, [input]);
    const fresh = coverage.learn(coverage.take());
    return { fresh, key: outcome?.key ?? '' };
  };
  for (const seed of target.seeds) keys.add(learn(Buffer.from(seed)).key);
  for (const input of pool.toSorted((one, other) => one.length - other.length)) {
    if (kept.length === bounds.count) break;
    if (input.length > bounds.bytes) continue;
    const { fresh, key } = learn(input);
    const isOther = !keys.has(key);
    keys.add(key);
    if (fresh > 0 || isOther) kept.push(input);
  }
  return kept;
}
