import { z } from 'zod';
import { MAX_PAGE_ENTRIES, textCursor } from '../../../domain/shared/list-page.ts';
import { type Reply, reply } from '../route.ts';
import { nextPage } from './next-page.ts';

/** How much of a list is asked for; all of it unless stated. */
export const ListQuery = z.object({
  limit: z.coerce.number().int().min(1).max(MAX_PAGE_ENTRIES).optional().describe('Entries of a page; all unless stated'),
  cursor: textCursor(/^[A-Za-z0-9_-]+$/, z.string().max(1_000)),
  sort: z.enum(['asc', 'desc']).optional().describe('By id; as the list says unless stated'),
});
export type ListQuery = z.infer<typeof ListQuery>;

export type Listed<T> = {
  /** Everything that the caller may see, in the order that the list has by itself. */
  readonly all: readonly T[];
  readonly query: ListQuery;
  /** Address of the list, for the link to the next page. */
  readonly address: string;
  /** What an entry is sorted by, different for each. */
  readonly keyOf: (entry: T) => string;
  /** The order of a page unless stated. */
  readonly order?: 'asc' | 'desc';
  readonly toView: (entry: T) => unknown;
};

/**
 * A page of a list that is at hand, with a link to the next one. A page begins after the last entry of the one before,
 * also when that is gone by then.
 */
export async function pageOf<T>({ all, query, address, keyOf, order = 'asc', toView }: Listed<T>): Promise<Reply> {
  const { limit = all.length, cursor, sort } = query;
  const show = (entries: readonly T[]) => Promise.all(entries.map(toView));
  if (query.limit === undefined && cursor === undefined && sort === undefined) return reply(200, await show(all));
  const direction = (sort ?? order) === 'asc' ? 1 : -1;
  const after = cursor === undefined ? undefined : parseCursor(cursor);
  const sorted = all
    .map((entry) => ({ entry, key: keyOf(entry) }))
    .filter(({ key }) => after === undefined || compare(key, after) * direction > 0)
    .toSorted((one, other) => compare(one.key, other.key) * direction);
  const page = sorted.slice(0, limit);
  const last = page.at(-1);
  const next = last !== undefined && sorted.length > page.length ? writeCursor(last.key) : undefined;
  return reply(200, await show(page.map(({ entry }) => entry)), nextPage(address, query, next));
}

function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

function writeCursor(key: string): string {
  return Buffer.from(key).toString('base64url');
}

/** Any other text is a place in the list, too. */
function parseCursor(cursor: string): string {
  return Buffer.from(cursor, 'base64url').toString('utf8');
}
