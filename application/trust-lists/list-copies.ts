import { hash } from 'node:crypto';
import { SYSTEM } from '../../domain/audit/audit-entry.ts';
import { describeHeldList } from '../../domain/audit/describe-change.ts';
import { defined } from '../../domain/shared/defined.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { type GoodCopy, isHeld, type ListPlace, standsInUntil } from '../../domain/trust-lists/kept-list.ts';
import type { TrustListRefusal } from '../../domain/trust-lists/trust-list-refusal.ts';
import type { Log } from '../ports/log.ts';
import type { Store } from '../ports/store.ts';
import { type PinnedSigners, thumbprintOf } from './verify-trust-list.ts';

type Ports = { readonly store: Store; readonly log: Log };

/** A list that is followed, and where its good copy is. */
export type FollowedTrustList = { readonly tenantId: TenantId; readonly place: ListPlace; readonly signers: PinnedSigners };

/** A larger one is fetched again after a restart. */
const MAX_COPY_BYTES = 512 * 1024;

/** Another set of signers is another list: nobody is vouched for by what former ones signed. */
export function copyIdOf(uri: string, signers: PinnedSigners): string {
  return hash('sha256', `${signers.id} ${uri}`, 'base64url');
}

/** Keeps what was found good, so that it outlives this process. */
export async function keepCopy(
  { store }: Ports,
  { tenantId, place, signers }: FollowedTrustList,
  copy: GoodCopy,
  size: number,
): Promise<void> {
  const id = copyIdOf(place.uri, signers);
  const kept = store.lists(tenantId);
  if (await kept.confirmCopy(id, copy.documentHash, copy.checkedAt)) return;
  // An older release does not stand in for what it was followed by.
  if (size > MAX_COPY_BYTES) await kept.forgetList(id);
  else await kept.keepCopy(id, place, copy);
}

/**
 * What counts while a list cannot be used: the copy that was good, for as long as nothing speaks against that.
 * @param shown who signed what came, where that is the question.
 * @returns undefined: nothing.
 */
export async function goodCopyInstead(
  ports: Ports,
  followed: FollowedTrustList,
  { fault, message }: TrustListRefusal,
  { now, shown }: { readonly now: Date; readonly shown: string | undefined },
): Promise<{ readonly copy: GoodCopy; readonly until: Date } | undefined> {
  const { store, log } = ports;
  const { tenantId, place, signers } = followed;
  const id = copyIdOf(place.uri, signers);
  const kept = store.lists(tenantId);
  const copy = await kept.goodCopy(id);
  const until = copy && standsInUntil(copy, fault, now);
  // What nobody can decide about is in the log alone.
  if (isHeld(fault) && (copy !== undefined || shown !== undefined)) {
    const finding = { fault, reason: message, ...defined({ signer: shown }) };
    if (await kept.holdAgainst(id, place, finding, now)) {
      const { origin, pathname } = new URL(place.uri);
      const list = origin + pathname;
      const signer = shown === undefined ? undefined : thumbprintOf(shown);
      const about = { list, reason: message, ...defined({ signer, until: until?.toISOString() }) };
      const change = describeHeldList(about);
      await store.commit(tenantId, { audit: { by: SYSTEM, change } }, now);
      log.warn('a trust list needs somebody to look at it', { tenantId, ...about });
    }
  }
  return copy && until && { copy, until };
}
