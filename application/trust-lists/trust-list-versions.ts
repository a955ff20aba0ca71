import { z } from 'zod';
import { type ListVersion, MAX_VERSIONS } from '../../domain/trust-lists/published-list.ts';
import type { TenantCaller } from '../caller.ts';
import { needs } from '../needs.ts';
import { Store } from '../ports/store.ts';

/** Versions of one read; each can have megabytes. */
const BATCH = 4;
/** Characters of signed lists after which a page ends early. */
const MAX_PAGE_LENGTH = 4 * 1024 * 1024;

export const VersionListQuery = z.object({
  limit: z.coerce.number().int().min(1).max(MAX_VERSIONS).default(MAX_VERSIONS),
  cursor: z
    .string()
    .regex(/^\d{1,9}$/, 'take the cursor from the link of the page before')
    .transform(Number)
    .optional()
    .describe('From the `next` link of the page before'),
});
export type VersionListQuery = z.infer<typeof VersionListQuery>;

export type VersionPage = {
  readonly versions: readonly ListVersion[];
  /** Where the next page begins; absent on the last one. */
  readonly next?: string;
};

/** What a list was before, newest first, page by page. Versions of a list that was removed are not kept. */
export class ListTrustListVersions extends needs({ store: Store }) {
  /** @throws Failure `not_found`. */
  async execute(
    { tenantId }: TenantCaller,
    id: string,
    { limit, cursor }: VersionListQuery,
  ): Promise<VersionPage> {
    return this.ports.store.forTenant(tenantId, async ({ trustLists }) => {
      await trustLists.get(id);
      const versions: ListVersion[] = [];
      let length = 0;
      let before = cursor;
      for (;;) {
        const batch = await trustLists.versions(id, { limit: BATCH, before });
        for (const version of batch) {
          if (versions.length === limit || length >= MAX_PAGE_LENGTH) {
            return { versions, next: String(before) };
          }
          // The rest of a version is what its signed list says.
          length += version.list.jwt.length;
          versions.push(version);
          before = version.list.sequenceNumber;
        }
        if (batch.length < BATCH) return { versions };
      }
    });
  }
}

/** One of these. */
export class GetTrustListVersion extends needs({ store: Store }) {
  /** @throws Failure `not_found` for an unknown list and an unknown version. */
  async execute({ tenantId }: TenantCaller, id: string, versionId: string): Promise<ListVersion> {
    return this.ports.store.forTenant(tenantId, async ({ trustLists }) => {
      await trustLists.get(id);
      return trustLists.version(id, versionId);
    });
  }
}
