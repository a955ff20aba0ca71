import { z } from 'zod';
import { defined } from '../../domain/shared/defined.ts';
import { Failure, invalidInput } from '../../domain/shared/failure.ts';
import { numberCursor, pageLimit } from '../../domain/shared/list-page.ts';
import { assertAddressed } from '../../domain/trust-lists/entity-address.ts';
import { assertListable } from '../../domain/trust-lists/entity-certificates.ts';
import { assertDistinct } from '../../domain/trust-lists/entity-identity.ts';
import { assertStatusesFit } from '../../domain/trust-lists/entity-status.ts';
import {
  configurationOf,
  type TrustListConfiguration,
  type TrustListReplacement,
  type TrustListUpdate,
} from '../../domain/trust-lists/list-configuration.ts';
import { assertExplicit, assertSignedByOperator } from '../../domain/trust-lists/list-operator.ts';
import { type ListVersion, MAX_VERSIONS, type PublishedList } from '../../domain/trust-lists/published-list.ts';
import type { TenantCaller } from '../caller.ts';
import { needs } from '../needs.ts';
import { Random } from '../ports/random.ts';
import { Store } from '../ports/store.ts';
import { type Ground, TrustListPublisher } from './trust-list-publisher.ts';

const PUBLISHER = { trustListPublisher: TrustListPublisher };

/** The trust lists of the caller's tenant, in order of their ids. */
export class ListTrustLists extends needs({ store: Store }) {
  async execute({ tenantId }: TenantCaller): Promise<readonly PublishedList[]> {
    return this.ports.store.forTenant(tenantId, ({ trustLists }) => trustLists.list());
  }
}

export class GetTrustList extends needs({ store: Store }) {
  /** @throws Failure `not_found`. */
  async execute({ tenantId }: TenantCaller, id: string): Promise<PublishedList> {
    return this.ports.store.forTenant(tenantId, ({ trustLists }) => trustLists.get(id));
  }
}

export class CreateTrustList extends needs({ ...PUBLISHER, random: Random }) {
  /** @throws Failure `conflict` when the id is taken, `invalid_input` for what cannot be listed or signed. */
  async execute(caller: TenantCaller, wanted: TrustListReplacement): Promise<PublishedList> {
    const { trustListPublisher, random } = this.ports;
    const id = wanted.id ?? random.token();
    return release(trustListPublisher, caller, id, ({ known }) => {
      if (known !== undefined) throw new Failure('conflict', 'a trust list of this id exists already; PUT replaces it');
      return configurationOf(id, wanted);
    });
  }
}

/** Replaces what a trust list is made of. */
export class ReplaceTrustList extends needs(PUBLISHER) {
  /** @throws Failure `not_found`, or `invalid_input` for what cannot be listed or signed. */
  async execute(caller: TenantCaller, id: string, wanted: TrustListReplacement): Promise<PublishedList> {
    assertSameId(id, wanted.id);
    return release(this.ports.trustListPublisher, caller, id, (ground) => {
      knownIn(ground);
      return configurationOf(id, wanted);
    });
  }
}

/** Changes members of a trust list; null resets one to its default. Without any it is signed anew. */
export class UpdateTrustList extends needs(PUBLISHER) {
  /** @throws Failure `not_found`, or `invalid_input` when the result cannot be listed or signed. */
  async execute(caller: TenantCaller, id: string, changes: TrustListUpdate): Promise<PublishedList> {
    assertSameId(id, changes.id);
    const changed = new Set(Object.keys(defined(changes)));
    const next = (ground: Ground) => merge(knownIn(ground), changes);
    return release(this.ports.trustListPublisher, caller, id, next, (property) => changed.has(property));
  }
}

/** Takes a trust list out of publication. A later list of its id goes on from its last number. */
export class DeleteTrustList extends needs(PUBLISHER) {
  /** @throws Failure `not_found`. */
  async execute(caller: TenantCaller, id: string): Promise<void> {
    await this.ports.trustListPublisher.remove(caller.tenantId, id, caller);
  }
}

function assertSameId(id: string, wanted: string | undefined): void {
  if (wanted !== undefined && wanted !== id) throw invalidInput('id', 'An id cannot be changed.');
}

/** @throws Failure `not_found`. */
function knownIn({ known }: Ground): PublishedList {
  if (known === undefined) throw new Failure('not_found', 'there is no such trust list');
  return known;
}

async function release(
  publisher: TrustListPublisher,
  caller: TenantCaller,
  id: string,
  next: (ground: Ground) => TrustListConfiguration,
  isWritten: (property: 'entities' | 'data' | 'keyChainId') => boolean = () => true,
): Promise<PublishedList> {
  const change = (ground: Ground) => {
    const wanted = next(ground);
    // What a change does not contain stays as it was accepted once.
    if (isWritten('data')) assertExplicit(wanted, ground.tenant);
    if (isWritten('data') || isWritten('entities')) assertStatusesFit(wanted, ground.now);
    if (isWritten('entities')) {
      assertListable(wanted.entities, ground.chains, ground.now);
      assertDistinct(wanted.entities, ground.chains, ground.tenant);
    }
    return wanted;
  };
  const list = await publisher.publish(caller.tenantId, id, caller, change, (document, signer, tenant) => {
    if (isWritten('data') || isWritten('keyChainId')) assertSignedByOperator(document, signer);
    if (isWritten('data') || isWritten('entities')) assertAddressed(document, tenant.profile);
  });
  if (list === undefined) throw new Error('A write always makes a release.');
  return list;
}

/** Members are replaced whole. */
function merge(known: PublishedList, changes: TrustListUpdate): TrustListConfiguration {
  const { description = known.description, keyChainId = known.keyChainId } = changes;
  const { entities = known.entities, data = known.data } = changes;
  return configurationOf(known.id, { description, keyChainId, entities, data });
}

/** Versions of one read; each can have megabytes. */
const BATCH = 4;
/** Characters of signed lists after which a page ends early. */
const MAX_PAGE_LENGTH = 4 * 1024 * 1024;

export const VersionListQuery = z.object({
  limit: pageLimit(MAX_VERSIONS),
  cursor: numberCursor(/^\d{1,9}$/),
  sort: z.enum(['asc', 'desc']).default('desc').describe('By number'),
});
export type VersionListQuery = z.infer<typeof VersionListQuery>;

export type VersionPage = {
  readonly versions: readonly ListVersion[];
  /** Where the next page begins; absent on the last one. */
  readonly next?: string;
};

/** What a list was before, page by page. Versions of a list that was removed are not kept. */
export class ListTrustListVersions extends needs({ store: Store }) {
  /** @throws Failure `not_found`. */
  async execute({ tenantId }: TenantCaller, id: string, { limit, cursor, sort }: VersionListQuery): Promise<VersionPage> {
    return this.ports.store.forTenant(tenantId, async ({ trustLists }) => {
      await trustLists.get(id);
      const versions: ListVersion[] = [];
      let length = 0;
      let after = cursor;
      for (;;) {
        const batch = await trustLists.versions(id, { limit: BATCH, after, ascending: sort === 'asc' });
        for (const version of batch) {
          if (versions.length === limit || length >= MAX_PAGE_LENGTH) return { versions, next: String(after) };
          // The rest of a version is what its signed list says.
          length += version.list.jwt.length;
          versions.push(version);
          after = version.list.sequenceNumber;
        }
        if (batch.length < BATCH) return { versions };
      }
    });
  }
}

export class GetTrustListVersion extends needs({ store: Store }) {
  /** @throws Failure `not_found` for an unknown list and an unknown version. */
  async execute({ tenantId }: TenantCaller, id: string, versionId: string): Promise<ListVersion> {
    return this.ports.store.forTenant(tenantId, async ({ trustLists }) => {
      await trustLists.get(id);
      return trustLists.version(id, versionId);
    });
  }
}
