import { isDeepStrictEqual } from 'node:util';
import { Failure } from '../../domain/shared/failure.ts';

export type Outcome = 'created' | 'changed' | 'unchanged';

/** Properties of stored documents that documents of a folder do not have. */
const STORE_PROPERTIES = new Set(['createdAt', 'updatedAt']);

/**
 * True if two documents are equal, regardless of order; null equals absent.
 * @param storedDocument its times are ignored.
 */
export function isSame(storedDocument: object, document: object): boolean {
  return isDeepStrictEqual(plain(storedDocument), plain(document));
}

function plain(document: object): unknown {
  const members = Object.entries(document).filter(([name, value]) => value !== null && !STORE_PROPERTIES.has(name));
  return JSON.parse(JSON.stringify(Object.fromEntries(members)));
}

/**
 * Processes items that may depend on each other: rejected ones are retried after the others, as long as there is progress.
 * @returns the finally rejected ones.
 */
export async function processWithRetries<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<ReadonlyMap<T, Failure>> {
  let pending = items;
  for (;;) {
    const failures = new Map<T, Failure>();
    for (const item of pending) {
      try {
        await work(item);
      } catch (error) {
        if (!(error instanceof Failure)) throw error;
        failures.set(item, error);
      }
    }
    if (failures.size === 0 || failures.size === pending.length) return failures;
    pending = [...failures.keys()];
  }
}
