import { z } from 'zod';
import type { SessionId } from '../../domain/shared/ids.ts';
import type { IssuedBatch, StatusList } from '../../domain/status-lists/status-list.ts';
import type { TenantCaller } from '../caller.ts';
import { needs } from '../needs.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { Store, type TenantReads } from '../ports/store.ts';
import { assertMayKnow } from './issued-session.ts';
import { StatusAllocator, statusListUri } from './status-allocator.ts';

const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 500;
/** How many entries stand on the pages before. */
const CURSOR = /^[1-9]\d{0,8}$/;

export const SessionStatusesQuery = z.object({
  limit: z.coerce.number().int().min(1).max(MAX_LIMIT).default(DEFAULT_LIMIT),
  cursor: z
    .string()
    .regex(CURSOR, 'take the cursor from the link of the page before')
    .transform(Number)
    .optional()
    .describe('From the `next` link of the page before'),
});
export type SessionStatusesQuery = z.infer<typeof SessionStatusesQuery>;

/** Where the status of one credential stands, and what it is. */
export type CredentialStatus = {
  readonly statusListId: string;
  readonly uri: string;
  readonly index: number;
  /** As it is recorded; readers of the list see it once its token is signed anew. */
  readonly status: number;
  readonly credentialConfigurationId: string;
  readonly issuedAt: Date;
};

type Run = { readonly batch: IssuedBatch; readonly list: StatusList; readonly first: number };

/** The entries of a session's credentials in the status lists, in the order of their issuance. */
export class ListSessionStatuses extends needs({
  store: Store,
  statusAllocator: StatusAllocator,
  settings: ServiceSettings,
}) {
  /**
   * @returns nothing of credentials without a status, and of lists that are gone.
   * @throws Failure `not_found` for a session of somebody else, and one that issued no credentials because it issues none.
   */
  async execute(
    caller: TenantCaller,
    id: SessionId,
    { limit, cursor: skipped = 0 }: SessionStatusesQuery,
  ): Promise<{ readonly entries: readonly CredentialStatus[]; readonly next?: string }> {
    const reads = this.ports.store.read(caller.tenantId);
    const { batches = [], ...issued } = (await reads.issued(id)) ?? {};
    await assertMayKnow(reads, caller, id, { ...issued, batches });
    const lists = new Map((await caller.configured.statusLists()).map((list) => [list.id, list]));
    const runs = batches.flatMap((batch): Run[] => {
      const list = lists.get(batch.statusListId ?? '');
      return list === undefined || batch.firstCounter === null
        ? []
        : [{ batch, list, first: batch.firstCounter }];
    });
    const entries: CredentialStatus[] = [];
    let passed = 0;
    for (const { batch, list, first } of runs) {
      const from = Math.max(0, skipped - passed);
      const count = Math.min(batch.count - from, limit - entries.length);
      passed += batch.count;
      if (count > 0)
        entries.push(...(await this.#read(reads, caller, { batch, list, first: first + from }, count)));
    }
    const seen = skipped + entries.length;
    return { entries, ...(seen < passed && entries.length > 0 && { next: String(seen) }) };
  }

  async #read(
    reads: TenantReads,
    { tenantId }: TenantCaller,
    { batch, list, first }: Run,
    count: number,
  ): Promise<CredentialStatus[]> {
    const { statusAllocator, settings } = this.ports;
    const indices = statusAllocator.indicesOf(tenantId, list, first, count);
    const known = new Map(
      (await reads.statusEntriesAt(list.id, indices)).map(({ index, status }) => [index, status]),
    );
    const uri = statusListUri(settings, tenantId, list.id);
    const { credentialConfigurationId, issuedAt } = batch;
    return indices.map((index) => ({
      ...{ statusListId: list.id, uri, index, status: known.get(index) ?? 0 },
      ...{ credentialConfigurationId, issuedAt },
    }));
  }
}
