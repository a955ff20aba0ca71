import { z } from 'zod';
import { defined } from '../../domain/shared/defined.ts';
import { Failure, invalidInput } from '../../domain/shared/failure.ts';
import { numberCursor, pageLimit } from '../../domain/shared/list-page.ts';
import { assertAddressesComplete } from '../../domain/trust-lists/entity-address.ts';
import { assertCertificatesValid } from '../../domain/trust-lists/entity-certificates.ts';
import { assertDistinctIdentities } from '../../domain/trust-lists/entity-identity.ts';
import { assertStatusesValid } from '../../domain/trust-lists/entity-status.ts';
import {
  configurationOf,
  type TrustListConfiguration,
  type TrustListReplacement,
  type TrustListUpdate,
} from '../../domain/trust-lists/list-configuration.ts';
import { assertSchemeComplete, assertSignedByOperator } from '../../domain/trust-lists/list-operator.ts';
import { type ListVersion, MAX_VERSIONS, type PublishedList } from '../../domain/trust-lists/published-list.ts';
import type { TenantCaller } from '../caller.ts';
import { needs } from '../needs.ts';
import { Random } from '../ports/random.ts';
import { Store } from '../ports/store.ts';
import { TrustListPublisher, type VersionBasis } from './trust-list-publisher.ts';

const PUBLISHER = { trustListPublisher: TrustListPublisher };

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
  async execute(caller: TenantCaller, creation: TrustListReplacement): Promise<PublishedList> {
    const { trustListPublisher, random } = this.ports;
    const id = creation.id ?? random.token();
    return publishVersion(trustListPublisher, caller, id, ({ storedList }) => {
      if (storedList !== undefined) throw new Failure('conflict', 'a trust list with this id already exists; replace it by PUT');
      return configurationOf(id, creation);
    });
  }
}

export class ReplaceTrustList extends needs(PUBLISHER) {
  /** @throws Failure `not_found`, or `invalid_input` for what cannot be listed or signed. */
  async execute(caller: TenantCaller, id: string, replacement: TrustListReplacement): Promise<PublishedList> {
    assertSameId(id, replacement.id);
    return publishVersion(this.ports.trustListPublisher, caller, id, (basis) => {
      currentList(basis);
      return configurationOf(id, replacement);
    });
  }
}

/** Changes properties of a trust list; null resets one to its default. Without changes it is signed again. */
export class UpdateTrustList extends needs(PUBLISHER) {
  /** @throws Failure `not_found`, or `invalid_input` when the result cannot be listed or signed. */
  async execute(caller: TenantCaller, id: string, changes: TrustListUpdate): Promise<PublishedList> {
    assertSameId(id, changes.id);
    const changedProperties = new Set(Object.keys(defined(changes)));
    const changeOf = (basis: VersionBasis) => merge(currentList(basis), changes);
    return publishVersion(this.ports.trustListPublisher, caller, id, changeOf, (property) => changedProperties.has(property));
  }
}

/** Removes a trust list. A later list of the same id continues from its last number. */
export class DeleteTrustList extends needs(PUBLISHER) {
  /** @throws Failure `not_found`. */
  async execute(caller: TenantCaller, id: string): Promise<void> {
    await this.ports.trustListPublisher.remove(caller.tenantId, id, caller);
  }
}

function assertSameId(id: string, requestedId: string | undefined): void {
  if (requestedId !== undefined && requestedId !== id) throw invalidInput('id', 'An id cannot be changed.');
}

/** @throws Failure `not_found`. */
function currentList({ storedList }: VersionBasis): PublishedList {
  if (storedList === undefined) throw new Failure('not_found', 'there is no such trust list');
  return storedList;
}

async function publishVersion(
  publisher: TrustListPublisher,
  caller: TenantCaller,
  id: string,
  configurationFor: (ground: VersionBasis) => TrustListConfiguration,
  isWritten: (property: 'entities' | 'data' | 'keyChainId') => boolean = () => true,
): Promise<PublishedList> {
  const change = (basis: VersionBasis) => {
    const configuration = configurationFor(basis);
    // Properties that are not part of a change are not checked again.
    if (isWritten('data')) assertSchemeComplete(configuration, basis.tenant);
    if (isWritten('data') || isWritten('entities')) assertStatusesValid(configuration, basis.now);
    if (isWritten('entities')) {
      assertCertificatesValid(configuration.entities, basis.chains, basis.now);
      assertDistinctIdentities(configuration.entities, basis.chains, basis.tenant);
    }
    return configuration;
  };
  const list = await publisher.publish(caller.tenantId, id, caller, change, (document, signer, tenant) => {
    if (isWritten('data') || isWritten('keyChainId')) assertSignedByOperator(document, signer);
    if (isWritten('data') || isWritten('entities')) assertAddressesComplete(document, tenant.profile);
  });
  if (list === undefined) throw new Error('A write always makes a release.');
  return list;
}

/** Properties are replaced as a whole. */
function merge(current: PublishedList, changes: TrustListUpdate): TrustListConfiguration {
  const { description = current.description, keyChainId = current.keyChainId } = changes;
  const { entities = current.entities, data = current.data } = changes;
  return configurationOf(current.id, { description, keyChainId, entities, data });
}

/** Versions per read; each can have megabytes. */
const BATCH = 4;
const MAX_PAGE_LENGTH = 4 * 1024 * 1024;

export const VersionListQuery = z.object({
  limit: pageLimit(MAX_VERSIONS),
  cursor: numberCursor(/^\d{1,9}$/),
  sort: z.enum(['asc', 'desc']).default('desc').describe('By number'),
});
export type VersionListQuery = z.infer<typeof VersionListQuery>;

export type VersionPage = {
  readonly versions: readonly ListVersion[];
  /** Cursor of the next page; absent on the last one. */
  readonly next?: string;
};

/** Lists former versions, page by page. Versions of a removed list are not available. */
export class ListTrustListVersions extends needs({ store: Store }) {
  /** @throws Failure `not_found`. */
  async execute({ tenantId }: TenantCaller, id: string, { limit, cursor, sort }: VersionListQuery): Promise<VersionPage> {
    return this.ports.store.forTenant(tenantId, async ({ trustLists }) => {
      await trustLists.get(id);
      const versions: ListVersion[] = [];
      let length = 0;
      let lastNumber = cursor;
      for (;;) {
        const batch = await trustLists.versions(id, { limit: BATCH, after: lastNumber, ascending: sort === 'asc' });
        for (const version of batch) {
          if (versions.length === limit || length >= MAX_PAGE_LENGTH) return { versions, next: String(lastNumber) };
          // The other fields of a version are contained in its signed list.
          length += version.list.jwt.length;
          versions.push(version);
          lastNumber = version.list.sequenceNumber;
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
