import { z } from 'zod';
import type { SessionId } from '../../domain/shared/ids.ts';
import { numberCursor, pageLimit } from '../../domain/shared/list-page.ts';
import type { EntryBits } from '../../domain/status-lists/bits.ts';
import type { IssuedBatch, StatusList } from '../../domain/status-lists/status-list.ts';
import type { TenantCaller } from '../caller.ts';
import { needs } from '../needs.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { Store, type TenantReads } from '../ports/store.ts';
import { assertMayAccess } from './issued-session.ts';
import { StatusAllocator, statusListUri } from './status-allocator.ts';

const DEFAULT_LIMIT = 100;
/** The cursor is the number of entries that are older than the begin of the page. */
const CURSOR = /^[1-9]\d{0,8}$/;

export const SessionStatusesQuery = z.object({
  limit: pageLimit(DEFAULT_LIMIT),
  cursor: numberCursor(CURSOR),
  sort: z.enum(['asc', 'desc']).default('asc').describe('By time of issuance'),
});
export type SessionStatusesQuery = z.infer<typeof SessionStatusesQuery>;

export type CredentialStatus = {
  readonly statusListId: string;
  readonly uri: string;
  readonly index: number;
  /** Bits per entry: one bit cannot express suspended. */
  readonly bits: EntryBits;
  /** Recorded status; readers see it after the token of the list was renewed. */
  readonly status: number;
  readonly credentialConfigurationId: string;
  readonly issuedAt: Date;
};

type Run = { readonly batch: IssuedBatch; readonly list: StatusList; readonly firstCounter: number };

/** Lists the status entries of a session's credentials, in the order of issuance. */
export class ListSessionStatuses extends needs({ store: Store, statusAllocator: StatusAllocator, settings: ServiceSettings }) {
  /**
   * @returns no entry for credentials without a status, and for removed lists.
   * @throws Failure `not_found` for a session that the caller must not see, and for one of another kind.
   */
  async execute(
    caller: TenantCaller,
    id: SessionId,
    { limit, cursor, sort }: SessionStatusesQuery,
  ): Promise<{ readonly entries: readonly CredentialStatus[]; readonly next?: string }> {
    const reads = this.ports.store.read(caller.tenantId);
    const { batches = [], ...issued } = (await reads.issued(id)) ?? {};
    await assertMayAccess(reads, caller, id, { ...issued, batches });
    const lists = new Map((await caller.tenant.statusLists()).map((list) => [list.id, list]));
    const runs = batches.flatMap((batch): Run[] => {
      const list = lists.get(batch.statusListId ?? '');
      return list === undefined || batch.firstCounter === null ? [] : [{ batch, list, firstCounter: batch.firstCounter }];
    });
    const total = runs.reduce((sum, { batch: { count } }) => sum + count, 0);
    const [from, to] =
      sort === 'asc'
        ? [cursor ?? 0, Math.min(total, (cursor ?? 0) + limit)]
        : [Math.max(0, Math.min(cursor ?? total, total) - limit), Math.min(cursor ?? total, total)];
    const entries: CredentialStatus[] = [];
    let position = 0;
    for (const { batch, list, firstCounter } of runs) {
      const [begin, end] = [Math.max(from, position), Math.min(to, position + batch.count)];
      const run = { batch, list, firstCounter: firstCounter + begin - position };
      if (begin < end) entries.push(...(await this.#read(reads, caller, run, end - begin)));
      position += batch.count;
    }
    if (sort === 'asc') return { entries, ...(to < total && { next: String(to) }) };
    return { entries: entries.toReversed(), ...(from > 0 && { next: String(from) }) };
  }

  async #read(
    reads: TenantReads,
    { tenantId }: TenantCaller,
    { batch, list, firstCounter }: Run,
    count: number,
  ): Promise<CredentialStatus[]> {
    const { statusAllocator, settings } = this.ports;
    const indices = statusAllocator.indicesOf(tenantId, list, firstCounter, count);
    const statusByIndex = new Map((await reads.statusEntriesAt(list.id, indices)).map(({ index, status }) => [index, status]));
    const uri = statusListUri(settings, tenantId, list.id);
    const { credentialConfigurationId, issuedAt } = batch;
    return indices.map((index) => ({
      statusListId: list.id,
      uri,
      index,
      bits: list.bits,
      status: statusByIndex.get(index) ?? 0,
      credentialConfigurationId,
      issuedAt,
    }));
  }
}
