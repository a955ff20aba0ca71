import type { Beats } from '../../../application/ports/store.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import type { StatusToken } from '../../../domain/status-lists/status-list.ts';
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
>;

export function statusBeats(state: State, pass: Pass, tenantId: TenantId): StatusBeats {
  const { statusLists, statusEntries } = state;
  const raise = (listId: string) => {
    const list = statusLists.find(tenantId, listId);
    if (list === undefined) return undefined;
    statusLists.put(tenantId, listId, { ...list, version: list.version + 1 });
    return list.version + 1;
  };

  return {
    takeStatusRun: (listId, count) =>
      pass(() => {
        const list = statusLists.find(tenantId, listId);
        if (list === undefined || list.usedEntries + count > list.capacity) return undefined;
        statusLists.put(tenantId, listId, { ...list, usedEntries: list.usedEntries + count });
        return list.usedEntries;
      }),
    changeStatuses: (changes) =>
      pass(() => {
        const versions = new Map<string, number | undefined>();
        for (const { listId, index, status } of changes) {
          if (!versions.has(listId)) versions.set(listId, raise(listId));
          const changedVersion = versions.get(listId);
          if (changedVersion === undefined) continue;
          statusEntries.put(tenantId, `${listId} ${index}`, { listId, index, status, changedVersion });
        }
      }),
    findStatusList: (id) => pass(() => statusLists.find(tenantId, id)),
    statusListHeads: (ids) =>
      pass(() =>
        statusLists.list(tenantId, ({ id }) => ids.includes(id)).map(({ id, version }) => ({ id, version })),
      ),
    statusEntries: (listId, afterVersion) =>
      pass(() =>
        statusEntries
          .list(tenantId, (entry) => entry.listId === listId && entry.changedVersion > afterVersion)
          .map(({ index, status }) => ({ index, status })),
      ),
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
