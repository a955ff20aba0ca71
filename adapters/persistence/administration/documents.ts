import type { EntityManager, EntityName } from '@mikro-orm/core';
import type { Cipher } from '../../../application/ports/cipher.ts';
import type { Documents, Listing } from '../../../application/ports/repositories.ts';
import type { KeyChain } from '../../../domain/keys/key-chain.ts';
import type { DocumentKind } from '../../../domain/resources.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { documentRows } from '../rows/administration.row.ts';
import { decodeDocument, encodeDocument } from '../rows/document-codec.ts';
import { byId, MARK_LENGTH, placeOf, tableOf } from '../rows/document-tables.ts';
import { insertUnique } from './existing.ts';
import type { ProfileKeeper } from './profiles.ts';
import type { QuotaKeeper } from './quotas.ts';
import { withKeysSealedAnew } from './sealed-keys.ts';

type AnyRow = Record<string, unknown>;
/** Statements bypass the identity map, so it must not answer with what a row was before. */
export const FRESH = { disableIdentityMap: true } as const;
/** More than these are read with all others. */
const MAX_CHANGED = 100;

const NOTHING: Listing<never> = { documents: [], marks: new Map() };

/** What holds for everything that is written. */
export type Keepers = { readonly quotas: QuotaKeeper; readonly profiles: ProfileKeeper };

/** Sealed documents of one kind and tenant. @param touch comes before each write, and locks the tenant. */
export function documentsOf<T extends { readonly id: string }>(
  em: EntityManager,
  cipher: Cipher,
  tenantId: TenantId,
  kind: DocumentKind,
  touch: () => Promise<void>,
  { quotas, profiles }: Keepers,
): Documents<T> {
  // The tables of documents differ by name only.
  const row = documentRows.get(kind) as unknown as EntityName<AnyRow>;
  const table = tableOf(kind);
  const place = (id: string) => placeOf(table, tenantId, id);
  const read = (found: AnyRow): T => decodeDocument<T>(cipher.open(String(found['body']), place(String(found['id']))).toString('utf8'));
  const sealing = (document: T): object => (kind === 'key-chain' ? withKeysSealedAnew(cipher, document as unknown as KeyChain) : document);
  const columns = (document: T) => {
    const { createdAt, updatedAt } = document as unknown as { createdAt: Date; updatedAt: Date };
    return {
      tenantId,
      id: document.id,
      body: cipher.seal(encodeDocument(sealing(document)), place(document.id)),
      createdAt: createdAt.getTime(),
      updatedAt: updatedAt.getTime(),
    };
  };
  const unknownId = () => new Failure('not_found', `there is no ${table.slice(0, -1).replaceAll('_', ' ')} of this id`);
  /** What `where` finds, besides what is known and unchanged. */
  const listing = async (where: AnyRow, known: Listing<T>, unchanged: ReadonlySet<string> = new Set()): Promise<Listing<T>> => {
    const rows = (await em.find(row, where, FRESH)) as AnyRow[];
    const kept = known.documents.filter(({ id }) => unchanged.has(id));
    const marks = new Map(kept.map(({ id }) => [id, known.marks.get(id) ?? '']));
    for (const { id, body } of rows) marks.set(String(id), String(body).slice(0, MARK_LENGTH));
    return { documents: [...kept, ...rows.map(read)].sort(byId), marks };
  };
  return {
    async get(id) {
      const found = await this.find(id);
      if (found === undefined) throw unknownId();
      return found;
    },
    async find(id) {
      const found = await em.findOne(row, { id } as AnyRow, FRESH);
      return found === null ? undefined : read(found as AnyRow);
    },
    list: async () => [...(await listing({}, NOTHING)).documents],
    async relist(known) {
      if (known === undefined || known.documents.length === 0) return listing({}, NOTHING);
      const rows = (await em
        .getConnection()
        .execute(
          `select id, substr(body, 1, ${MARK_LENGTH}) as mark from ${table} where tenant_id = ?`,
          [tenantId],
          'all',
          em.getTransactionContext(),
        )) as { readonly id: string; readonly mark: string }[];
      const changed = rows.filter(({ id, mark }) => known.marks.get(id) !== mark).map(({ id }) => id);
      if (changed.length > MAX_CHANGED) return listing({}, NOTHING);
      const unchanged = new Set(rows.filter(({ id, mark }) => known.marks.get(id) === mark).map(({ id }) => id));
      return listing({ id: { $in: changed } }, known, unchanged);
    },
    async add(document) {
      await touch();
      await profiles.assertFits(kind, document);
      const data = columns(document);
      await insertUnique('this id exists already', () => em.insert(row, data as AnyRow));
      await quotas.assertBytesFit(kind, data.body.length, undefined);
    },
    async put(document) {
      await touch();
      await profiles.assertFits(kind, document, async () => {
        const stored = await em.findOne(row, { id: document.id } as AnyRow, FRESH);
        return stored === null ? undefined : read(stored as AnyRow);
      });
      const before = await quotas.lengthOf(kind, document.id);
      const data = columns(document);
      await em.upsert(row, data as AnyRow);
      await quotas.assertBytesFit(kind, data.body.length, before);
    },
    async remove(id) {
      await touch();
      const removed = await em.nativeDelete(row, { id, tenantId } as AnyRow);
      if (removed === 0) throw unknownId();
    },
  };
}
