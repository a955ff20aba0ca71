import type { Cipher } from '../../../application/ports/cipher.ts';
import type { Change } from '../../../domain/changes/change.ts';
import { defined } from '../../../domain/shared/defined.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import type { FollowedList, WalletStatus } from '../../../domain/status-lists/wallet-status.ts';
import type { Field, Row } from '../statement.ts';
import { DEFERRED } from './authorization-codec.ts';
import { json, sealed, table, text } from './columns.ts';

type StoredListLocation = { readonly id: string; readonly place: Pick<WalletStatus, 'uri' | 'anchor' | 'provider'> };

export const FOLLOWED_LISTS = table<StoredListLocation, keyof StoredListLocation>(
  'followed_lists',
  { id: text(), place: sealed(json()) },
  {},
);

export function readFollowedList(cipher: Cipher, row: Row): FollowedList {
  const { id, place } = FOLLOWED_LISTS.read(cipher, row);
  const { checked_at: checkedAt, failing_since: failingSince } = row;
  return {
    tenantId: row['tenant_id'] as TenantId,
    id,
    ...place,
    checkedAt: checkedAt === null ? null : new Date(Number(checkedAt)),
    failure:
      failingSince === null
        ? null
        : { since: new Date(Number(failingSince)), count: Number(row['failures']), reason: String(row['failure']) },
  };
}

/** Parameters of `follow_wallets_1` besides tenant and time, in its order; undefined for a change that follows nothing. */
export type Following = {
  readonly transaction: readonly [id: string | null, held: Field];
  readonly batch: readonly [session: string | null, id: string | null, endsAt: number | null];
  /** Each list once. */
  readonly lists: readonly (readonly [id: string, place: Field])[];
  readonly statuses: readonly (readonly [listId: string, idx: number])[];
};

export function followingOf(
  cipher: Cipher,
  tenantId: TenantId,
  { follows, holds }: Pick<Change, 'follows' | 'holds'>,
): Following | undefined {
  if (follows === undefined && holds === undefined) return undefined;
  const { statuses = [] } = follows ?? {};
  const locations = new Map(statuses.map(({ listId, uri, anchor, provider }) => [listId, { uri, anchor, ...defined({ provider }) }]));
  return {
    transaction: [holds?.transactionId ?? null, heldBy(cipher, tenantId, holds)],
    batch: [follows?.sessionId ?? null, follows?.batchId ?? null, follows?.endsAt?.getTime() ?? null],
    lists: Array.from(locations, ([id, place]) => [id, FOLLOWED_LISTS.field('place', place, { cipher, tenantId, id })]),
    statuses: statuses.map(({ listId, idx }) => [listId, idx]),
  };
}

function heldBy(cipher: Cipher, tenantId: TenantId, holds: Change['holds']): Field {
  if (holds === undefined || holds.statuses.length === 0) return null;
  const location = { cipher, tenantId, id: holds.transactionId };
  return DEFERRED.field('walletStatuses', holds.statuses, location);
}
