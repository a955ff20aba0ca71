import { hash } from 'node:crypto';
import type { Cipher } from '../../application/ports/cipher.ts';
import type { KeptTrustLists } from '../../application/ports/kept-trust-lists.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { findingKey, type GoodCopy, type KeptListSummary, type ListFinding, type ListPlace } from '../../domain/trust-lists/kept-list.ts';
import type { TenantQuery } from './reads.ts';
import { document, optional, sealed, table, text } from './rows/columns.ts';
import { brief, named, type Row } from './statement.ts';

type Stored = { readonly id: string; readonly place: ListPlace; readonly copy: GoodCopy | null; readonly finding: ListFinding | null };

export const KEPT_TRUST_LISTS = table<Stored, keyof Stored>(
  'kept_trust_lists',
  { id: text(), place: sealed(document()), copy: optional(sealed(document())), finding: optional(sealed(document())) },
  {},
);

/** Whoever follows more names fewer lists. */
const MAX_LISTS = 128;
/** There is a tenant of this id, and room: one that is kept already takes none. */
const ROOM = `from tenants t where t.id = $1 and ((select count(*) from kept_trust_lists k where k.tenant_id = $1) < ${MAX_LISTS}
  or exists (select 1 from kept_trust_lists k where k.tenant_id = $1 and k.id = $2))`;

const FIND_COPY = brief('find_good_copy', 'select tenant_id, id, copy, checked_at from kept_trust_lists where tenant_id = $1 and id = $2');
const KEEP_COPY = named(
  'keep_copy',
  `insert into kept_trust_lists (tenant_id, id, place, copy, sequence_number, document_hash, ends_at, checked_at, seen_at)
   select t.id, cast($2 as text), cast($3 as text), cast($4 as text), cast($5 as bigint), cast($6 as text),
     cast($7 as bigint), cast($8 as bigint), cast($8 as bigint) ${ROOM}
   on conflict (tenant_id, id) do update set place = excluded.place, copy = excluded.copy,
     sequence_number = excluded.sequence_number, document_hash = excluded.document_hash, ends_at = excluded.ends_at,
     checked_at = excluded.checked_at, seen_at = excluded.seen_at, held_since = null, finding = null, finding_key = null,
     told_key = null
   where kept_trust_lists.sequence_number <= excluded.sequence_number`,
);
const CONFIRM_COPY = named(
  'confirm_copy',
  `update kept_trust_lists set checked_at = $4, seen_at = $4, held_since = null, finding = null, finding_key = null,
     told_key = null
   where tenant_id = $1 and id = $2 and document_hash = $3 returning id`,
);
/** The second row lock finds what the first one wrote, so of several processes one hears that it is new. */
const HOLD = named(
  'hold_against',
  `insert into kept_trust_lists (tenant_id, id, place, sequence_number, seen_at, held_since, finding, finding_key)
   select t.id, cast($2 as text), cast($3 as text), 0, cast($4 as bigint), cast($4 as bigint), cast($5 as text),
     cast($6 as text) ${ROOM}
   on conflict (tenant_id, id) do update set seen_at = excluded.seen_at, held_since = excluded.held_since,
     finding = excluded.finding, finding_key = excluded.finding_key
   where kept_trust_lists.finding_key is null or kept_trust_lists.finding_key <> excluded.finding_key
   returning id`,
);
const SEEN = named('seen_again', 'update kept_trust_lists set seen_at = $3 where tenant_id = $1 and id = $2 and finding_key = $4');
const LIST = named(
  'list_kept',
  `select tenant_id, id, place, sequence_number, ends_at, checked_at, seen_at, held_since, finding from kept_trust_lists
   where tenant_id = $1
   order by case when held_since is null then 1 else 0 end, coalesce(ends_at, 0), id limit $2`,
);
const DISTRUST = named('distrust_copies', 'update kept_trust_lists set checked_at = 0 where tenant_id = $1');
const FORGET = named('forget_kept_list', 'delete from kept_trust_lists where tenant_id = $1 and id = $2');
const DROP = named('drop_copies', 'delete from kept_trust_lists where tenant_id = $1');

/** As a column has room for it. */
export function keyOfFinding(finding: ListFinding): string {
  return hash('sha256', findingKey(finding), 'base64url');
}

export function keptTrustLists(query: TenantQuery, cipher: Cipher, tenantId: TenantId): KeptTrustLists {
  const placeOf = (id: string) => ({ cipher, tenantId, id });
  return {
    async goodCopy(id) {
      const [row] = await query(FIND_COPY, id);
      if (row === undefined) return undefined;
      const copy = KEPT_TRUST_LISTS.readField('copy', row['copy'], placeOf(id));
      return copy === null ? undefined : { ...copy, checkedAt: new Date(Number(row['checked_at'])) };
    },
    async keepCopy(id, place, copy) {
      const { list, documentHash, checkedAt } = copy;
      await query(
        KEEP_COPY,
        id,
        String(KEPT_TRUST_LISTS.field('place', place, placeOf(id))),
        String(KEPT_TRUST_LISTS.field('copy', copy, placeOf(id))),
        list.sequenceNumber,
        documentHash,
        list.nextUpdate?.getTime() ?? null,
        checkedAt.getTime(),
      );
    },
    confirmCopy: async (id, documentHash, now) => (await query(CONFIRM_COPY, id, documentHash, now.getTime())).length > 0,
    async holdAgainst(id, place, finding, now) {
      const key = keyOfFinding(finding);
      const sealedPlace = String(KEPT_TRUST_LISTS.field('place', place, placeOf(id)));
      const sealedFinding = String(KEPT_TRUST_LISTS.field('finding', finding, placeOf(id)));
      const rows = await query(HOLD, id, sealedPlace, now.getTime(), sealedFinding, key);
      if (rows.length === 0) await query(SEEN, id, now.getTime(), key);
      return rows.length > 0;
    },
    keptLists: async (limit) => (await query(LIST, limit)).map((row) => readSummary(cipher, row)),
    async forgetList(id) {
      await query(FORGET, id);
    },
    async distrustCopies() {
      await query(DISTRUST);
    },
    async dropCopies() {
      await query(DROP);
    },
  };
}

function readSummary(cipher: Cipher, row: Row): KeptListSummary {
  const id = String(row['id']);
  const at = { cipher, tenantId: String(row['tenant_id']), id };
  const finding = KEPT_TRUST_LISTS.readField('finding', row['finding'], at);
  const timeOf = (column: string) => (row[column] === null ? null : new Date(Number(row[column])));
  const since = timeOf('held_since');
  return {
    id,
    place: KEPT_TRUST_LISTS.readField('place', row['place'], at),
    sequenceNumber: Number(row['sequence_number']),
    endsAt: timeOf('ends_at'),
    // 0 is what `DISTRUST` leaves.
    checkedAt: Number(row['checked_at']) === 0 ? null : timeOf('checked_at'),
    seenAt: new Date(Number(row['seen_at'])),
    held: finding === null || since === null ? null : { ...finding, since },
  };
}
