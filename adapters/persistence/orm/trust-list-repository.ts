import type { EntityManager } from '@mikro-orm/core';
import type { Cipher } from '../../../application/ports/cipher.ts';
import type { TrustListRepository } from '../../../application/ports/store.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import {
  type ListVersion,
  MAX_VERSIONS,
  type PublishedList,
} from '../../../domain/trust-lists/published-list.ts';
import { decodeDocument, encodeDocument } from './document-codec.ts';
import { insertUnique } from './insert-unique.ts';
import { TrustListRow, TrustListVersionRow } from './rows/trust-list.row.ts';

/** Statements bypass the identity map, so it must not answer with what a row was before. */
const FRESH = { disableIdentityMap: true } as const;
const NEWEST = { sequenceNumber: 'desc' } as const;

/** Trust lists of one tenant inside one transaction; `touched` tells whether something was written. */
export function trustListRepository(
  em: EntityManager,
  cipher: Cipher,
  tenantId: TenantId,
  touched: () => void,
): TrustListRepository {
  const rows = codec(cipher, tenantId);
  const find = async (id: string) => {
    const row = await em.findOne(TrustListRow, { id }, FRESH);
    return row === null ? undefined : rows.readList(row);
  };
  const newestVersions = (trustListId: string, limit: number) =>
    em.find(TrustListVersionRow, { trustListId }, { ...FRESH, orderBy: NEWEST, limit });
  const keep = async (version: ListVersion) => {
    await em.insert(TrustListVersionRow, rows.versionColumns(version));
    touched();
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
  return {
    find,
    async get(id) {
      const list = await find(id);
      if (list === undefined) throw unknown('trust list');
      return list;
    },
    async list() {
      const found = await em.find(TrustListRow, {}, FRESH);
      return found.map(rows.readList).sort((one, other) => (one.id < other.id ? -1 : 1));
    },
    async add(list) {
      const { id, createdAt } = list;
      const row = { tenantId, id, createdAt: createdAt.getTime(), ...rows.listColumns(list) };
      await insertUnique('this id exists already', () => em.insert(TrustListRow, row));
      touched();
    },
    async replace(list, former) {
      const { id, sequenceNumber } = former.list;
      const where = { tenantId, id, sequenceNumber };
      if ((await em.nativeUpdate(TrustListRow, where, rows.listColumns(list))) === 0) return false;
      await keep(former);
      await forget(id, MAX_VERSIONS);
      return true;
    },
    async remove(former) {
      const { id, sequenceNumber } = former.list;
      if ((await em.nativeDelete(TrustListRow, { tenantId, id, sequenceNumber })) === 0) return false;
      await keep(former);
      await forget(id, 1);
      return true;
    },
    async lastNumber(id) {
      const [version] = await newestVersions(id, 1);
      return Math.max(version?.sequenceNumber ?? 0, (await find(id))?.sequenceNumber ?? 0);
    },
    async versions(id) {
      return (await newestVersions(id, MAX_VERSIONS)).map(rows.readVersion);
    },
    async version(trustListId, id) {
      const row = await em.findOne(TrustListVersionRow, { trustListId, id }, FRESH);
      if (row === null) throw unknown('version');
      return rows.readVersion(row);
    },
  };
}

/** Everything but what the database looks at is sealed; a body opens at its own place only. */
function codec(cipher: Cipher, tenantId: TenantId) {
  const listPlace = (id: string) => `trust_lists/body/${tenantId}/${id}`;
  const versionPlace = (id: string, sequenceNumber: number) =>
    `trust_list_versions/body/${tenantId}/${id}/${sequenceNumber}`;
  const open = <T>(body: string, place: string) =>
    decodeDocument<T>(cipher.open(body, place).toString('utf8'));
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
    readList: ({ id, body, jwt }: { id: string; body: string; jwt: string }): PublishedList => ({
      ...open<Omit<PublishedList, 'jwt'>>(body, listPlace(id)),
      jwt,
    }),
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

function unknown(what: string): Failure {
  return new Failure('not_found', `there is no such ${what}`);
}
