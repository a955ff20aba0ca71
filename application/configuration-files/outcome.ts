import { isDeepStrictEqual } from 'node:util';
import { Failure } from '../../domain/shared/failure.ts';

export type Outcome = 'created' | 'changed' | 'unchanged';

/** Members of stored documents that no document of the folder has. */
const OF_THE_STORE = new Set(['createdAt', 'updatedAt']);

/**
 * Whether two documents say the same, in whatever order; a member that is null says what an absent one says.
 * @param stored its times do not count.
 */
export function isSame(stored: object, wanted: object): boolean {
  return isDeepStrictEqual(plain(stored), plain(wanted));
}

function plain(document: object): unknown {
  const members = Object.entries(document).filter(([name, value]) => value !== null && !OF_THE_STORE.has(name));
  return JSON.parse(JSON.stringify(Object.fromEntries(members)));
}

/**
 * Does all the work in an order in which it can be done: what is refused is tried again after the others, as long as
 * that gets anywhere, since things name each other.
 * @returns what was refused to the end.
 */
export async function settle<T>(all: readonly T[], work: (each: T) => Promise<void>): Promise<ReadonlyMap<T, Failure>> {
  let pending = all;
  for (;;) {
    const refused = new Map<T, Failure>();
    for (const each of pending) {
      try {
        await work(each);
      } catch (error) {
        if (!(error instanceof Failure)) throw error;
        refused.set(each, error);
      }
    }
    if (refused.size === 0 || refused.size === pending.length) return refused;
    pending = [...refused.keys()];
  }
}
