import type { EntityManager } from '@mikro-orm/core';
import type { Cipher } from '../../../application/ports/cipher.ts';
import type { TrustListRepository, VersionPage } from '../../../application/ports/repositories.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { normalizeNotices } from '../../../domain/trust-lists/legal-notice.ts';
import { type ListVersion, MAX_VERSIONS, type PublishedList } from '../../../domain/trust-lists/published-list.ts';
import { decodeDocument, encodeDocument } from '../rows/document-codec.ts';
import { byId } from '../rows/document-tables.ts';
import { TermRow } from '../rows/term.row.ts';
import { TrustListRow, TrustListVersionRow } from '../rows/trust-list.row.ts';
import { FRESH } from './documents.ts';
import { assertFound, insertUnique } from './not-found.ts';

const NEWEST = { sequenceNumber: 'desc' } as const;
const OLDEST = { sequenceNumber: 'asc' } as const;
const ALL_VERSIONS: VersionPage = { limit: MAX_VERSIONS };
/** Body of the last version of a removed list, of which only the sequence number is still needed. */
const REMOVED_BODY = '';

/** Trust lists of one tenant within one transaction. @param touch runs before each write. */
export function trustListRepository(
  em: EntityManager,
  cipher: Cipher,
  tenantId: TenantId,
  touch: () => Promise<void>,
): TrustListRepository {
  const listCodec = codec(cipher, tenantId);
  const find = async (id: string) => {
    const row = await em.findOne(TrustListRow, { id }, FRESH);
    return row === null ? undefined : listCodec.readList(row);
  };
  /** Deletes all but the newest versions. */
  const pruneVersions = async (trustListId: string, retainedCount: number) => {
    const options = { ...FRESH, orderBy: NEWEST, offset: retainedCount, limit: 1, fields: ['sequenceNumber'] } as const;
    const [newestSurplus] = await em.find(TrustListVersionRow, { trustListId }, options);
    if (newestSurplus === undefined) return;
    const sequenceNumber = { $lte: newestSurplus.sequenceNumber };
    await em.nativeDelete(TrustListVersionRow, { tenantId, trustListId, sequenceNumber });
  };
  const storedNumber = async (id: string) => {
    const fields = ['sequenceNumber'] as const;
    const list = await em.findOne(TrustListRow, { id }, { ...FRESH, fields });
    if (list !== null) return list.sequenceNumber;
    const options = { ...FRESH, fields, orderBy: NEWEST, limit: 1 };
    const [version] = await em.find(TrustListVersionRow, { trustListId: id }, options);
    return version?.sequenceNumber ?? 0;
  };
  return {
    find,
    get: async (id) => assertFound(await find(id), 'trust list'),
    async list() {
      const rows = await em.find(TrustListRow, {}, FRESH);
      return rows.map(listCodec.readList).sort(byId);
    },
    async add(list) {
      await touch();
      const { id, createdAt } = list;
      const row = { tenantId, id, createdAt: createdAt.getTime(), ...listCodec.listColumns(list) };
      await insertUnique('this id already exists', () => em.insert(TrustListRow, row));
    },
    async replace(list, replacedVersion) {
      await touch();
      const { id, sequenceNumber } = replacedVersion.list;
      const where = { tenantId, id, sequenceNumber };
      if ((await em.nativeUpdate(TrustListRow, where, listCodec.listColumns(list))) === 0) return false;
      await em.insert(TrustListVersionRow, listCodec.versionColumns(replacedVersion));
      await pruneVersions(id, MAX_VERSIONS);
      return true;
    },
    async remove(removedVersion) {
      await touch();
      const { id, sequenceNumber } = removedVersion.list;
      if ((await em.nativeDelete(TrustListRow, { tenantId, id, sequenceNumber })) === 0) return false;
      await em.insert(TrustListVersionRow, { ...listCodec.versionColumns(removedVersion), body: REMOVED_BODY });
      await pruneVersions(id, 1);
      return true;
    },
    async lastNumber(id) {
      // Lost versions may have been published under any number up to the floor, also for a list that is no longer stored.
      const [term] = await em.find(TermRow, {}, { ...FRESH, orderBy: { number: 'desc' }, limit: 1 });
      return Math.max(await storedNumber(id), term?.listFloor ?? 0);
    },
    async versions(trustListId, { limit, after: cursor, ascending = false } = ALL_VERSIONS) {
      const where = {
        trustListId,
        body: { $ne: REMOVED_BODY },
        ...(cursor !== undefined && { sequenceNumber: ascending ? { $gt: cursor } : { $lt: cursor } }),
      };
      const orderBy = ascending ? OLDEST : NEWEST;
      const options = { ...FRESH, orderBy, limit: Math.min(limit, MAX_VERSIONS) };
      return (await em.find(TrustListVersionRow, where, options)).map(listCodec.readVersion);
    },
    async version(trustListId, id) {
      const where = { trustListId, id, body: { $ne: REMOVED_BODY } };
      const row = await em.findOne(TrustListVersionRow, where, FRESH);
      return listCodec.readVersion(assertFound(row, 'version'));
    },
  };
}

/** Everything except the columns that queries use is sealed, each body with a context of its own. */
function codec(cipher: Cipher, tenantId: TenantId) {
  const listContext = (id: string) => `trust_lists/body/${tenantId}/${id}`;
  const versionContext = (id: string, sequenceNumber: number) => `trust_list_versions/body/${tenantId}/${id}/${sequenceNumber}`;
  const open = <T>(body: string, context: string) => decodeDocument<T>(cipher.open(body, context).toString('utf8'));
  return {
    listColumns({ jwt, ...list }: PublishedList) {
      return {
        body: cipher.seal(encodeDocument(list), listContext(list.id)),
        sequenceNumber: list.sequenceNumber,
        jwt,
        nextUpdate: list.nextUpdate.getTime(),
        updatedAt: list.updatedAt.getTime(),
      };
    },
    readList({ id, body, jwt }: { id: string; body: string; jwt: string }): PublishedList {
      const { data, ...listProperties } = open<Omit<PublishedList, 'jwt'>>(body, listContext(id));
      return { ...listProperties, ...(data !== undefined && { data: normalizeNotices(data) }), jwt };
    },
    versionColumns(version: ListVersion) {
      const { id, sequenceNumber, updatedAt } = version.list;
      return {
        tenantId,
        trustListId: id,
        sequenceNumber,
        id: version.id,
        body: cipher.seal(encodeDocument(version), versionContext(id, sequenceNumber)),
        createdAt: updatedAt.getTime(),
      };
    },
    readVersion: (row: { trustListId: string; sequenceNumber: number; body: string }): ListVersion =>
      open(row.body, versionContext(row.trustListId, row.sequenceNumber)),
  };
}
