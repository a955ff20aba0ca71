import type { EntityManager } from '@mikro-orm/core';
import type { Cipher } from '../../../application/ports/cipher.ts';
import type { TrustListRepository, VersionPage } from '../../../application/ports/repositories.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { withNoticeTexts } from '../../../domain/trust-lists/legal-notice.ts';
import { type ListVersion, MAX_VERSIONS, type PublishedList } from '../../../domain/trust-lists/published-list.ts';
import { decodeDocument, encodeDocument } from '../rows/document-codec.ts';
import { byId } from '../rows/document-tables.ts';
import { TermRow } from '../rows/term.row.ts';
import { TrustListRow, TrustListVersionRow } from '../rows/trust-list.row.ts';
import { FRESH } from './documents.ts';
import { existing, insertUnique } from './existing.ts';

const NEWEST = { sequenceNumber: 'desc' } as const;
const OLDEST = { sequenceNumber: 'asc' } as const;
const ALL: VersionPage = { limit: MAX_VERSIONS };
/** In the place of what the last release of a removed list was: of that only the number is of use. */
const REMOVED = '';

/** Trust lists of one tenant inside one transaction; `touch` comes before each write. */
export function trustListRepository(
  em: EntityManager,
  cipher: Cipher,
  tenantId: TenantId,
  touch: () => Promise<void>,
): TrustListRepository {
  const rows = codec(cipher, tenantId);
  const find = async (id: string) => {
    const row = await em.findOne(TrustListRow, { id }, FRESH);
    return row === null ? undefined : rows.readList(row);
  };
  /** Forgets all versions but the newest. */
  const forget = async (trustListId: string, kept: number) => {
    const options = {
      ...FRESH,
      orderBy: NEWEST,
      offset: kept,
      limit: 1,
      fields: ['sequenceNumber'],
    } as const;
    const [first] = await em.find(TrustListVersionRow, { trustListId }, options);
    if (first === undefined) return;
    const sequenceNumber = { $lte: first.sequenceNumber };
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
    get: async (id) => existing(await find(id), 'trust list'),
    async list() {
      const found = await em.find(TrustListRow, {}, FRESH);
      return found.map(rows.readList).sort(byId);
    },
    async add(list) {
      await touch();
      const { id, createdAt } = list;
      const row = { tenantId, id, createdAt: createdAt.getTime(), ...rows.listColumns(list) };
      await insertUnique('this id exists already', () => em.insert(TrustListRow, row));
    },
    async replace(list, former) {
      await touch();
      const { id, sequenceNumber } = former.list;
      const where = { tenantId, id, sequenceNumber };
      if ((await em.nativeUpdate(TrustListRow, where, rows.listColumns(list))) === 0) return false;
      await em.insert(TrustListVersionRow, rows.versionColumns(former));
      await forget(id, MAX_VERSIONS);
      return true;
    },
    async remove(former) {
      await touch();
      const { id, sequenceNumber } = former.list;
      if ((await em.nativeDelete(TrustListRow, { tenantId, id, sequenceNumber })) === 0) return false;
      await em.insert(TrustListVersionRow, { ...rows.versionColumns(former), body: REMOVED });
      await forget(id, 1);
      return true;
    },
    async lastNumber(id) {
      // What was lost may have been published under any number up to there, also of a list that is not known any more.
      const [term] = await em.find(TermRow, {}, { ...FRESH, orderBy: { number: 'desc' }, limit: 1 });
      return Math.max(await storedNumber(id), term?.listFloor ?? 0);
    },
    async versions(trustListId, { limit, after, ascending = false } = ALL) {
      const where = {
        trustListId,
        body: { $ne: REMOVED },
        ...(after !== undefined && { sequenceNumber: ascending ? { $gt: after } : { $lt: after } }),
      };
      const orderBy = ascending ? OLDEST : NEWEST;
      const options = { ...FRESH, orderBy, limit: Math.min(limit, MAX_VERSIONS) };
      return (await em.find(TrustListVersionRow, where, options)).map(rows.readVersion);
    },
    async version(trustListId, id) {
      const where = { trustListId, id, body: { $ne: REMOVED } };
      const row = await em.findOne(TrustListVersionRow, where, FRESH);
      return rows.readVersion(existing(row, 'version'));
    },
  };
}

/** Everything but what the database looks at is sealed; a body opens at its own place only. */
function codec(cipher: Cipher, tenantId: TenantId) {
  const listPlace = (id: string) => `trust_lists/body/${tenantId}/${id}`;
  const versionPlace = (id: string, sequenceNumber: number) => `trust_list_versions/body/${tenantId}/${id}/${sequenceNumber}`;
  const open = <T>(body: string, place: string) => decodeDocument<T>(cipher.open(body, place).toString('utf8'));
  return {
    listColumns({ jwt, ...rest }: PublishedList) {
      return {
        body: cipher.seal(encodeDocument(rest), listPlace(rest.id)),
        sequenceNumber: rest.sequenceNumber,
        jwt,
        nextUpdate: rest.nextUpdate.getTime(),
        updatedAt: rest.updatedAt.getTime(),
      };
    },
    readList({ id, body, jwt }: { id: string; body: string; jwt: string }): PublishedList {
      const { data, ...rest } = open<Omit<PublishedList, 'jwt'>>(body, listPlace(id));
      return { ...rest, ...(data !== undefined && { data: withNoticeTexts(data) }), jwt };
    },
    versionColumns(version: ListVersion) {
      const { id, sequenceNumber, updatedAt } = version.list;
      return {
        tenantId,
        trustListId: id,
        sequenceNumber,
        id: version.id,
        body: cipher.seal(encodeDocument(version), versionPlace(id, sequenceNumber)),
        createdAt: updatedAt.getTime(),
      };
    },
    readVersion: (row: { trustListId: string; sequenceNumber: number; body: string }): ListVersion =>
      open(row.body, versionPlace(row.trustListId, row.sequenceNumber)),
  };
}
