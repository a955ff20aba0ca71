import { z } from 'zod';
import type { SessionId } from '../../domain/shared/ids.ts';
import { numberCursor, pageLimit } from '../../domain/shared/list-page.ts';
import type { EntryBits } from '../../domain/status-lists/bits.ts';
import type { IssuedBatch, StatusList } from '../../domain/status-lists/status-list.ts';
import type { TenantCaller } from '../caller.ts';
import { needs } from '../needs.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { Store, type TenantReads } from '../ports/store.ts';
import { assertMayKnow } from './issued-session.ts';
import { StatusAllocator, statusListUri } from './status-allocator.ts';

const DEFAULT_LIMIT = 100;
/** How many entries are older than where the page begins. */
const CURSOR = /^[1-9]\d{0,8}$/;

export const SessionStatusesQuery = z.object({
  limit: pageLimit(DEFAULT_LIMIT),
  cursor: numberCursor(CURSOR),
  sort: z.enum(['asc', 'desc']).default('asc').describe('By time of issuance'),
});
export type SessionStatusesQuery = z.infer<typeof SessionStatusesQuery>;

/** Where the status of one credential stands, and what it is. */
export type CredentialStatus = {
  readonly statusListId: string;
  readonly uri: string;
  readonly index: number;
  /** Of an entry of its list: one has no room for suspended. */
  readonly bits: EntryBits;
  /** As it is recorded; readers of the list see it once its token is signed anew. */
  readonly status: number;
  readonly credentialConfigurationId: string;
  readonly issuedAt: Date;
};

type Run = { readonly batch: IssuedBatch; readonly list: StatusList; readonly first: number };

/** The entries of a session's credentials in the status lists, in the order of their issuance. */
export class ListSessionStatuses extends needs({ store: Store, statusAllocator: StatusAllocator, settings: ServiceSettings }) {
  /**
   * @returns nothing of credentials without a status, and of lists that are gone.
   * @throws Failure `not_found` for a session of somebody else, and one that issued no credentials because it issues none.
   */
  async execute(
    caller: TenantCaller,
    id: SessionId,
    { limit, cursor, sort }: SessionStatusesQuery,
  ): Promise<{ readonly entries: readonly CredentialStatus[]; readonly next?: string }> {
    const reads = this.ports.store.read(caller.tenantId);
    const { batches = [], ...issued } = (await reads.issued(id)) ?? {};
    await assertMayKnow(reads, caller, id, { ...issued, batches });
    const lists = new Map((await caller.configured.statusLists()).map((list) => [list.id, list]));
    const runs = batches.flatMap((batch): Run[] => {
      const list = lists.get(batch.statusListId ?? '');
      return list === undefined || batch.firstCounter === null ? [] : [{ batch, list, first: batch.firstCounter }];
    });
    const total = runs.reduce((sum, { batch: { count } }) => sum + count, 0);
    const [from, to] =
      sort === 'asc'
        ? [cursor ?? 0, Math.min(total, (cursor ?? 0) + limit)]
        : [Math.max(0, Math.min(cursor ?? total, total) - limit), Math.min(cursor ?? total, total)];
    const entries: CredentialStatus[] = [];
    let passed = 0;
    for (const { batch, list, first } of runs) {
      const [begin, end] = [Math.max(from, passed), Math.min(to, passed + batch.count)];
      const run = { batch, list, first: first + begin - passed };
      if (begin < end) entries.push(...(await this.#read(reads, caller, run, end - begin)));
      passed += batch.count;
    }
    if (sort === 'asc') return { entries, ...(to < total && { next: String(to) }) };
    return { entries: entries.toReversed(), ...(from > 0 && { next: String(from) }) };
  }

  async #read(reads: TenantReads, { tenantId }: TenantCaller, { batch, list, first }: Run, count: number): Promise<CredentialStatus[]> {
    const { statusAllocator, settings } = this.ports;
    const indices = statusAllocator.indicesOf(tenantId, list, first, count);
    const known = new Map((await reads.statusEntriesAt(list.id, indices)).map(({ index, status }) => [index, status]));
    const uri = statusListUri(settings, tenantId, list.id);
    const { credentialConfigurationId, issuedAt } = batch;
    return indices.map((index) => ({
      statusListId: list.id,
      uri,
      index,
      bits: list.bits,
      status: known.get(index) ?? 0,
      credentialConfigurationId,
      issuedAt,
    }));
  }
}
