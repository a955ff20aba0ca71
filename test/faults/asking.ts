import { setTimeout as pause } from 'node:timers/promises';

const AT_ONCE = 8;
const PATIENCE_MS = 60_000;

/** While something comes back, a question may need another attempt; it changes nothing. */
export async function retried<T>(ask: () => Promise<T>): Promise<T> {
  const end = performance.now() + PATIENCE_MS;
  for (;;) {
    try {
      const answer = await ask();
      const status = (answer as { status?: number } | undefined)?.status ?? 0;
      if (status < 500 || performance.now() > end) return answer;
    } catch (error) {
      if (performance.now() > end) throw error;
    }
    await pause(100);
  }
}

export async function inParallel<T>(all: readonly T[], work: (one: T) => Promise<void>): Promise<void> {
  const left = [...all];
  const one = async () => {
    for (let next = left.pop(); next !== undefined; next = left.pop()) await work(next);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, one));
}

/** Some of them, by chance. */
export function sampleOf<T>(all: readonly T[], count: number): readonly T[] {
  if (all.length <= count) return all;
  return Array.from({ length: count }, () => all[Math.floor(Math.random() * all.length)] as T);
}
