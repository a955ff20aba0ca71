import { z } from 'zod';
import {
  type ListVersion,
  MAX_VERSIONS,
  type PublishedList,
} from '../../domain/trust-lists/published-list.ts';
import type { TenantCaller } from '../caller.ts';
import type { Store } from '../ports/store.ts';

type Ports = { readonly store: Store };

/** The trust lists of the caller's tenant, in order of their ids. */
export class ListTrustLists {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  async execute(caller: TenantCaller): Promise<readonly PublishedList[]> {
    return this.#ports.store.forTenant(caller.tenantId, ({ trustLists }) => trustLists.list());
  }
}

export class GetTrustList {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /** @throws Failure `not_found`. */
  async execute(caller: TenantCaller, id: string): Promise<PublishedList> {
    return this.#ports.store.forTenant(caller.tenantId, ({ trustLists }) => trustLists.get(id));
  }
}

/** Versions of one read; each can have megabytes. */
const PORTION = 4;
/** Characters after which a page ends early. */
const MAX_PAGE_LENGTH = 8 * 1024 * 1024;

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
  /** Each as `write` wrote it. */
  readonly versions: readonly string[];
  /** Where the next page begins; absent on the last one. */
  readonly next?: string;
};

/** What a list was before, newest first, page by page. Versions of a list that was removed are not kept. */
export class ListTrustListVersions {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /**
   * @param write turns a version into the text that the page shows; of the version itself nothing is kept.
   * @throws Failure `not_found`.
   */
  async execute(
    caller: TenantCaller,
    id: string,
    { limit, cursor }: VersionListQuery,
    write: (version: ListVersion) => string,
  ): Promise<VersionPage> {
    return this.#ports.store.forTenant(caller.tenantId, async ({ trustLists }) => {
      await trustLists.get(id);
      const versions: string[] = [];
      let length = 0;
      let before = cursor;
      for (;;) {
        const portion = await trustLists.versions(id, { limit: PORTION, before });
        for (const version of portion) {
          if (versions.length === limit || length >= MAX_PAGE_LENGTH) {
            return { versions, next: String(before) };
          }
          const text = write(version);
          length += text.length;
          versions.push(text);
          before = version.list.sequenceNumber;
        }
        if (portion.length < PORTION) return { versions };
      }
    });
  }
}

export class GetTrustListVersion {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /** @throws Failure `not_found` for an unknown list and an unknown version. */
  async execute(caller: TenantCaller, id: string, versionId: string): Promise<ListVersion> {
    return this.#ports.store.forTenant(caller.tenantId, async ({ trustLists }) => {
      await trustLists.get(id);
      return trustLists.version(id, versionId);
    });
  }
}
