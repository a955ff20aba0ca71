import { hash } from 'node:crypto';
import type { Cipher } from '../../application/ports/cipher.ts';
import type { StoredTrustLists } from '../../application/ports/stored-trust-lists.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import {
  type ListProblem,
  type ListSource,
  problemKey,
  type StoredListSummary,
  type ValidCopy,
} from '../../domain/trust-lists/stored-list.ts';
import type { TenantQuery } from './reads.ts';
import { document, optional, sealed, table, text } from './rows/columns.ts';
import { brief, namedStatement, type Row } from './statement.ts';

type StoredTrustList = {
  readonly id: string;
  readonly place: ListSource;
  readonly copy: ValidCopy | null;
  readonly finding: ListProblem | null;
};

export const STORED_TRUST_LISTS = table<StoredTrustList, keyof StoredTrustList>(
  'kept_trust_lists',
  { id: text(), place: sealed(document()), copy: optional(sealed(document())), finding: optional(sealed(document())) },
  {},
);

const MAX_LISTS = 128;
/** The tenant exists and is below its limit; an update of a stored list needs no capacity. */
const WITHIN_LIMIT = `from tenants t where t.id = $1 and ((select count(*) from kept_trust_lists k where k.tenant_id = $1) < ${MAX_LISTS}
  or exists (select 1 from kept_trust_lists k where k.tenant_id = $1 and k.id = $2))`;

const FIND_COPY = brief('find_good_copy', 'select tenant_id, id, copy, checked_at from kept_trust_lists where tenant_id = $1 and id = $2');
const KEEP_COPY = namedStatement(
  'keep_copy',
  `insert into kept_trust_lists (tenant_id, id, place, copy, sequence_number, document_hash, ends_at, checked_at, seen_at)
   select t.id, cast($2 as text), cast($3 as text), cast($4 as text), cast($5 as bigint), cast($6 as text),
     cast($7 as bigint), cast($8 as bigint), cast($8 as bigint) ${WITHIN_LIMIT}
   on conflict (tenant_id, id) do update set place = excluded.place, copy = excluded.copy,
     sequence_number = excluded.sequence_number, document_hash = excluded.document_hash, ends_at = excluded.ends_at,
     checked_at = excluded.checked_at, seen_at = excluded.seen_at, held_since = null, finding = null, finding_key = null,
     told_key = null
   where kept_trust_lists.sequence_number <= excluded.sequence_number`,
);
const CONFIRM_COPY = namedStatement(
  'confirm_copy',
  `update kept_trust_lists set checked_at = $4, seen_at = $4, held_since = null, finding = null, finding_key = null,
     told_key = null
   where tenant_id = $1 and id = $2 and document_hash = $3 returning id`,
);
/** The second writer finds the row of the first one, so only one of several processes reports the problem as new. */
const HOLD = namedStatement(
  'hold_against',
  `insert into kept_trust_lists (tenant_id, id, place, sequence_number, seen_at, held_since, finding, finding_key)
   select t.id, cast($2 as text), cast($3 as text), 0, cast($4 as bigint), cast($4 as bigint), cast($5 as text),
     cast($6 as text) ${WITHIN_LIMIT}
   on conflict (tenant_id, id) do update set seen_at = excluded.seen_at, held_since = excluded.held_since,
     finding = excluded.finding, finding_key = excluded.finding_key
   where kept_trust_lists.finding_key is null or kept_trust_lists.finding_key <> excluded.finding_key
   returning id`,
);
const SEEN = namedStatement('seen_again', 'update kept_trust_lists set seen_at = $3 where tenant_id = $1 and id = $2 and finding_key = $4');
const LIST = namedStatement(
  'list_kept',
  `select tenant_id, id, place, sequence_number, ends_at, checked_at, seen_at, held_since, finding from kept_trust_lists
   where tenant_id = $1
   order by case when held_since is null then 1 else 0 end, coalesce(ends_at, 0), id limit $2`,
);
const DISTRUST = namedStatement('distrust_copies', 'update kept_trust_lists set checked_at = 0 where tenant_id = $1');
const FORGET = namedStatement('forget_kept_list', 'delete from kept_trust_lists where tenant_id = $1 and id = $2');
const DROP = namedStatement('drop_copies', 'delete from kept_trust_lists where tenant_id = $1');

/** Hash of the finding that fits the column. */
export function keyOfFinding(finding: ListProblem): string {
  return hash('sha256', problemKey(finding), 'base64url');
}

export function storedTrustLists(query: TenantQuery, cipher: Cipher, tenantId: TenantId): StoredTrustLists {
  const contextOf = (id: string) => ({ cipher, tenantId, id });
  return {
    async goodCopy(id) {
      const [row] = await query(FIND_COPY, id);
      if (row === undefined) return undefined;
      const copy = STORED_TRUST_LISTS.readField('copy', row['copy'], contextOf(id));
      return copy === null ? undefined : { ...copy, checkedAt: new Date(Number(row['checked_at'])) };
    },
    async keepCopy(id, place, copy) {
      const { list, documentHash, checkedAt } = copy;
      await query(
        KEEP_COPY,
        id,
        String(STORED_TRUST_LISTS.field('place', place, contextOf(id))),
        String(STORED_TRUST_LISTS.field('copy', copy, contextOf(id))),
        list.sequenceNumber,
        documentHash,
        list.nextUpdate?.getTime() ?? null,
        checkedAt.getTime(),
      );
    },
    confirmCopy: async (id, documentHash, now) => (await query(CONFIRM_COPY, id, documentHash, now.getTime())).length > 0,
    async recordProblem(id, place, finding, now) {
      const key = keyOfFinding(finding);
      const sealedPlace = String(STORED_TRUST_LISTS.field('place', place, contextOf(id)));
      const sealedFinding = String(STORED_TRUST_LISTS.field('finding', finding, contextOf(id)));
      const rows = await query(HOLD, id, sealedPlace, now.getTime(), sealedFinding, key);
      if (rows.length === 0) await query(SEEN, id, now.getTime(), key);
      return rows.length > 0;
    },
    storedLists: async (limit) => (await query(LIST, limit)).map((row) => readSummary(cipher, row)),
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

function readSummary(cipher: Cipher, row: Row): StoredListSummary {
  const id = String(row['id']);
  const context = { cipher, tenantId: String(row['tenant_id']), id };
  const finding = STORED_TRUST_LISTS.readField('finding', row['finding'], context);
  const timeOf = (column: string) => (row[column] === null ? null : new Date(Number(row[column])));
  const heldSince = timeOf('held_since');
  return {
    id,
    place: STORED_TRUST_LISTS.readField('place', row['place'], context),
    sequenceNumber: Number(row['sequence_number']),
    endsAt: timeOf('ends_at'),
    // `DISTRUST` stores 0.
    checkedAt: Number(row['checked_at']) === 0 ? null : timeOf('checked_at'),
    seenAt: new Date(Number(row['seen_at'])),
    held: finding === null || heldSince === null ? null : { ...finding, since: heldSince },
  };
}
