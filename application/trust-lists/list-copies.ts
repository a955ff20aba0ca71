import { hash } from 'node:crypto';
import { SYSTEM } from '../../domain/audit/audit-entry.ts';
import { describeHeldList } from '../../domain/audit/describe-change.ts';
import { defined } from '../../domain/shared/defined.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { fallbackUntil, isSuspicious, type ListSource, type ValidCopy } from '../../domain/trust-lists/stored-list.ts';
import type { TrustListRefusal } from '../../domain/trust-lists/trust-list-refusal.ts';
import type { Log } from '../ports/log.ts';
import type { Store } from '../ports/store.ts';
import { type PinnedSigners, thumbprintOf } from './verify-trust-list.ts';

type Ports = { readonly store: Store; readonly log: Log };

/** An external trust list of a tenant. */
export type FollowedTrustList = { readonly tenantId: TenantId; readonly place: ListSource; readonly signers: PinnedSigners };

/** Larger lists are not stored, and are fetched again after a restart. */
const MAX_COPY_BYTES = 512 * 1024;

/** The signers are part of the id: copies that former signers signed are not used for new ones. */
export function copyIdOf(uri: string, signers: PinnedSigners): string {
  return hash('sha256', `${signers.id} ${uri}`, 'base64url');
}

/** Stores a good copy, so that it outlives this process. */
export async function keepCopy(
  { store }: Ports,
  { tenantId, place, signers }: FollowedTrustList,
  copy: ValidCopy,
  size: number,
): Promise<void> {
  const id = copyIdOf(place.uri, signers);
  const storedLists = store.lists(tenantId);
  if (await storedLists.confirmCopy(id, copy.documentHash, copy.checkedAt)) return;
  // An older release does not stand in for what it was followed by.
  if (size > MAX_COPY_BYTES) await storedLists.forgetList(id);
  else await storedLists.keepCopy(id, place, copy);
}

/**
 * Returns the stored good copy to use while a list is unavailable or invalid, as long as that is allowed.
 * @param shown the signer of the received list, if it is unknown.
 * @returns undefined if there is none.
 */
export async function fallbackCopy(
  ports: Ports,
  followed: FollowedTrustList,
  { fault, message }: TrustListRefusal,
  { now, shown: unknownSigner }: { readonly now: Date; readonly shown: string | undefined },
): Promise<{ readonly copy: ValidCopy; readonly until: Date } | undefined> {
  const { store, log } = ports;
  const { tenantId, place, signers } = followed;
  const id = copyIdOf(place.uri, signers);
  const storedLists = store.lists(tenantId);
  const copy = await storedLists.goodCopy(id);
  const usableUntil = copy && fallbackUntil(copy, fault, now);
  // Problems that an operator cannot decide about are only logged.
  if (isSuspicious(fault) && (copy !== undefined || unknownSigner !== undefined)) {
    const finding = { fault, reason: message, ...defined({ signer: unknownSigner }) };
    if (await storedLists.recordProblem(id, place, finding, now)) {
      const { origin, pathname } = new URL(place.uri);
      const list = origin + pathname;
      const signer = unknownSigner === undefined ? undefined : thumbprintOf(unknownSigner);
      const heldList = { list, reason: message, ...defined({ signer, until: usableUntil?.toISOString() }) };
      const change = describeHeldList(heldList);
      await store.commit(tenantId, { audit: { by: SYSTEM, change } }, now);
      log.warn('a trust list requires an operator', { tenantId, ...heldList });
    }
  }
  return copy && usableUntil && { copy, until: usableUntil };
}
