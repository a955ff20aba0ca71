import { z } from 'zod';
import { MAX_PAGE_ENTRIES, textCursor } from '../../../domain/shared/list-page.ts';
import { type Reply, reply } from '../route.ts';
import { nextPage } from './next-page.ts';

/** Query of a list. Without `limit`, a response has all entries. */
export const ListQuery = z.object({
  limit: z.coerce.number().int().min(1).max(MAX_PAGE_ENTRIES).optional().describe('Entries of a page. Default: all'),
  cursor: textCursor(/^[A-Za-z0-9_-]+$/, z.string().max(1_000)),
  sort: z.enum(['asc', 'desc']).optional().describe('Sort order by id. Default: that of the list'),
});
export type ListQuery = z.infer<typeof ListQuery>;

export type PageOptions<T> = {
  /** All entries that the caller may see, in the default order of the list. */
  readonly all: readonly T[];
  readonly query: ListQuery;
  /** Address of the list, for the link to the next page. */
  readonly address: string;
  /** Sort key, unique for each entry. */
  readonly keyOf: (entry: T) => string;
  readonly order?: 'asc' | 'desc';
  readonly toView: (entry: T) => unknown;
};

/**
 * Returns a page of a list in memory, with a link to the next page. A page begins after the last entry of the previous page, even if that
 * entry was removed since.
 */
export async function pageOf<T>({ all, query, address, keyOf, order = 'asc', toView }: PageOptions<T>): Promise<Reply> {
  const { limit = all.length, cursor, sort } = query;
  const toViews = (entries: readonly T[]) => Promise.all(entries.map(toView));
  if (query.limit === undefined && cursor === undefined && sort === undefined) return reply(200, await toViews(all));
  const direction = (sort ?? order) === 'asc' ? 1 : -1;
  const previousKey = cursor === undefined ? undefined : parseCursor(cursor);
  const sorted = all
    .map((entry) => ({ entry, key: keyOf(entry) }))
    .filter(({ key }) => previousKey === undefined || compare(key, previousKey) * direction > 0)
    .toSorted((a, b) => compare(a.key, b.key) * direction);
  const page = sorted.slice(0, limit);
  const lastEntry = page.at(-1);
  const nextCursor = lastEntry !== undefined && sorted.length > page.length ? writeCursor(lastEntry.key) : undefined;
  return reply(200, await toViews(page.map(({ entry }) => entry)), nextPage(address, query, nextCursor));
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function writeCursor(key: string): string {
  return Buffer.from(key).toString('base64url');
}

/** Accepts any text: a cursor that this service did not write also decodes to a position in the list. */
function parseCursor(cursor: string): string {
  return Buffer.from(cursor, 'base64url').toString('utf8');
}
