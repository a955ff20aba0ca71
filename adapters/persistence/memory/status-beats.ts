import type { Beats, Revocation } from '../../../application/ports/store.ts';
import { describeRevocation } from '../../../domain/audit/describe-change.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import type { StatusToken } from '../../../domain/status-lists/status-list.ts';
import type { AuditChains } from './audit-chains.ts';
import type { Pass } from './memory-store.ts';
import type { State } from './state.ts';

type StatusBeats = Pick<
  Beats,
  | 'takeStatusRun'
  | 'changeStatuses'
  | 'findStatusList'
  | 'statusListHeads'
  | 'statusEntries'
  | 'saveStatusToken'
  | 'findTrustList'
  | 'noteRelease'
>;

export function statusBeats(state: State, pass: Pass, chains: AuditChains, tenantId: TenantId): StatusBeats {
  const { statusLists, statusEntries, seenReleases } = state;
  const raise = (listId: string) => {
    const list = statusLists.find(tenantId, listId);
    if (list === undefined) return undefined;
    statusLists.put(tenantId, listId, { ...list, version: list.version + 1 });
    return list.version + 1;
  };

  /** @returns whether the session is gone, or issued exactly what the caller knows of. */
  const bar = ({ sessionId, mask, barred, issuedCount }: Revocation) => {
    if (!state.sessions.has(tenantId, sessionId)) return true;
    const issued = state.batches.list(tenantId, (batch) => batch.sessionId === sessionId).length;
    if (issued !== issuedCount) return false;
    const before = state.bars.find(tenantId, sessionId)?.mask ?? 0;
    state.bars.put(tenantId, sessionId, { mask: barred ? before | mask : before & ~mask });
    return true;
  };

  return {
    takeStatusRun: ({ id, keyChainId }, count) =>
      pass(() => {
        const list = statusLists.find(tenantId, id);
        if (list?.keyChainId !== keyChainId || list.usedEntries + count > list.capacity) return undefined;
        statusLists.put(tenantId, id, { ...list, usedEntries: list.usedEntries + count });
        return list.usedEntries;
      }),
    changeStatuses: (changes, _now, revocation) =>
      pass(() => {
        if (revocation !== undefined && !bar(revocation)) return false;
        const versions = new Map<string, number | undefined>();
        for (const { listId, index, status } of changes) {
          if (!versions.has(listId)) versions.set(listId, raise(listId));
          const changedVersion = versions.get(listId);
          if (changedVersion === undefined) continue;
          statusEntries.put(tenantId, `${listId} ${index}`, { listId, index, status, changedVersion });
        }
        if (revocation !== undefined) {
          chains.note(tenantId, revocation.by, describeRevocation(revocation, changes));
        }
        return true;
      }),
    findStatusList: (id) => pass(() => statusLists.find(tenantId, id)),
    statusListHeads: (ids) =>
      pass(() =>
        statusLists
          .list(tenantId, ({ id }) => ids.includes(id))
          .map(({ id, version, keyChainId }) => ({ id, version, keyChainId })),
      ),
    statusEntries: (listId, afterVersion) =>
      pass(() =>
        statusEntries
          .list(tenantId, (entry) => entry.listId === listId && entry.changedVersion > afterVersion)
          .map(({ index, status }) => ({ index, status })),
      ),
    noteRelease: (id, release) =>
      pass(() => {
        const seen = seenReleases.find(tenantId, id);
        if (seen !== undefined && seen.sequenceNumber >= release.sequenceNumber) return seen;
        seenReleases.put(tenantId, id, release);
        return release;
      }),
    findTrustList: (id) =>
      pass(() => {
        const list = state.trustLists.find(tenantId, id);
        return list === undefined ? undefined : { jwt: list.jwt, nextUpdate: list.nextUpdate };
      }),
    saveStatusToken: (listId, jwt, version, issuedAt, expiresAt) =>
      pass(() => {
        const list = statusLists.find(tenantId, listId);
        const token: StatusToken = { jwt, version, issuedAt, expiresAt };
        if (list !== undefined && isNewer(token, list.token)) {
          statusLists.put(tenantId, listId, { ...list, token });
        }
      }),
  };
}

function isNewer(token: StatusToken, stored: StatusToken | null): boolean {
  if (stored === null) return true;
  return token.version === stored.version ? token.issuedAt > stored.issuedAt : token.version > stored.version;
}
