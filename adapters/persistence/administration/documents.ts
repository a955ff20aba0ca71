import type { EntityManager, EntityName } from '@mikro-orm/core';
import type { Cipher } from '../../../application/ports/cipher.ts';
import type { Documents, Listing } from '../../../application/ports/repositories.ts';
import type { KeyChain } from '../../../domain/keys/key-chain.ts';
import type { DocumentKind } from '../../../domain/resources.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { documentRows } from '../rows/administration.row.ts';
import { decodeDocument, encodeDocument } from '../rows/document-codec.ts';
import { byId, documentContext, MARK_LENGTH, tableOf } from '../rows/document-tables.ts';
import { insertUnique } from './not-found.ts';
import type { ProfileGuard } from './profiles.ts';
import type { QuotaGuard } from './quotas.ts';
import { withResealedKeys } from './sealed-keys.ts';

type AnyRow = Record<string, unknown>;
/** Native statements bypass the identity map, so the map could return stale rows. */
export const FRESH = { disableIdentityMap: true } as const;
/** If more documents than this changed, all are read. */
const MAX_CHANGED_DOCUMENTS = 100;

const EMPTY_LISTING: Listing<never> = { documents: [], marks: new Map() };

/** Checks that apply to every document that is written. */
export type WriteGuards = { readonly quotas: QuotaGuard; readonly profiles: ProfileGuard };

/** Sealed documents of one kind and tenant. @param touch runs before each write and locks the tenant. */
export function documentsOf<T extends { readonly id: string }>(
  em: EntityManager,
  cipher: Cipher,
  tenantId: TenantId,
  kind: DocumentKind,
  touch: () => Promise<void>,
  { quotas, profiles }: WriteGuards,
): Documents<T> {
  // The tables of documents differ by name only.
  const entity = documentRows.get(kind) as unknown as EntityName<AnyRow>;
  const table = tableOf(kind);
  const contextOf = (id: string) => documentContext(table, tenantId, id);
  const read = (row: AnyRow): T => decodeDocument<T>(cipher.open(String(row['body']), contextOf(String(row['id']))).toString('utf8'));
  const resealed = (document: T): object => (kind === 'key-chain' ? withResealedKeys(cipher, document as unknown as KeyChain) : document);
  const columns = (document: T) => {
    const { createdAt, updatedAt } = document as unknown as { createdAt: Date; updatedAt: Date };
    return {
      tenantId,
      id: document.id,
      body: cipher.seal(encodeDocument(resealed(document)), contextOf(document.id)),
      createdAt: createdAt.getTime(),
      updatedAt: updatedAt.getTime(),
    };
  };
  const unknownId = () => new Failure('not_found', `there is no ${table.slice(0, -1).replaceAll('_', ' ')} with this id`);
  /** Reads the documents that match `where` and adds the unchanged ones of the previous listing. */
  const listing = async (where: AnyRow, previousListing: Listing<T>, unchanged: ReadonlySet<string> = new Set()): Promise<Listing<T>> => {
    const rows = (await em.find(entity, where, FRESH)) as AnyRow[];
    const unchangedDocuments = previousListing.documents.filter(({ id }) => unchanged.has(id));
    const marks = new Map(unchangedDocuments.map(({ id }) => [id, previousListing.marks.get(id) ?? '']));
    for (const { id, body } of rows) marks.set(String(id), String(body).slice(0, MARK_LENGTH));
    return { documents: [...unchangedDocuments, ...rows.map(read)].sort(byId), marks };
  };
  return {
    async get(id) {
      const document = await this.find(id);
      if (document === undefined) throw unknownId();
      return document;
    },
    async find(id) {
      const row = await em.findOne(entity, { id } as AnyRow, FRESH);
      return row === null ? undefined : read(row as AnyRow);
    },
    list: async () => [...(await listing({}, EMPTY_LISTING)).documents],
    async relist(previousListing) {
      if (previousListing === undefined || previousListing.documents.length === 0) return listing({}, EMPTY_LISTING);
      const rows = (await em
        .getConnection()
        .execute(
          `select id, substr(body, 1, ${MARK_LENGTH}) as mark from ${table} where tenant_id = ?`,
          [tenantId],
          'all',
          em.getTransactionContext(),
        )) as { readonly id: string; readonly mark: string }[];
      const changedIds = rows.filter(({ id, mark }) => previousListing.marks.get(id) !== mark).map(({ id }) => id);
      if (changedIds.length > MAX_CHANGED_DOCUMENTS) return listing({}, EMPTY_LISTING);
      const unchanged = new Set(rows.filter(({ id, mark }) => previousListing.marks.get(id) === mark).map(({ id }) => id));
      return listing({ id: { $in: changedIds } }, previousListing, unchanged);
    },
    async add(document) {
      await touch();
      await profiles.assertFits(kind, document);
      const data = columns(document);
      await insertUnique('this id already exists', () => em.insert(entity, data as AnyRow));
      await quotas.assertBytesFit(kind, data.body.length, undefined);
    },
    async put(document) {
      await touch();
      await profiles.assertFits(kind, document, async () => {
        const row = await em.findOne(entity, { id: document.id } as AnyRow, FRESH);
        return row === null ? undefined : read(row as AnyRow);
      });
      const previousLength = await quotas.lengthOf(kind, document.id);
      const data = columns(document);
      await em.upsert(entity, data as AnyRow);
      await quotas.assertBytesFit(kind, data.body.length, previousLength);
    },
    async remove(id) {
      await touch();
      const removed = await em.nativeDelete(entity, { id, tenantId } as AnyRow);
      if (removed === 0) throw unknownId();
    },
  };
}
