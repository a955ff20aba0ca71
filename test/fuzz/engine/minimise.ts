import type { Coverage } from './coverage.ts';
import type { Crash } from './fuzz-target.ts';
import { judge } from './judge.ts';
import type { Target } from './target.ts';

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
