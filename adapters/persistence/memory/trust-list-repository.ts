import type { TrustListRepository, VersionPortion } from '../../../application/ports/store.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { type ListVersion, MAX_VERSIONS } from '../../../domain/trust-lists/published-list.ts';
import type { State } from './state.ts';

const ALL: VersionPortion = { limit: MAX_VERSIONS, before: undefined };

/** Trust lists of one tenant inside one transaction; `touched` tells whether something was written. */
export function trustListRepository(
  { trustLists, trustListVersions, trustListNumbers }: State,
  tenantId: TenantId,
  touched: () => void,
): TrustListRepository {
  const find = async (id: string) => trustLists.find(tenantId, id);
  const placeOf = ({ list }: ListVersion) => `${list.id} ${list.sequenceNumber}`;
  const newestVersions = (id: string) =>
    trustListVersions
      .list(tenantId, ({ list }) => list.id === id)
      .sort((one, other) => other.list.sequenceNumber - one.list.sequenceNumber);
  const isCurrent = ({ list: { id, sequenceNumber } }: ListVersion) =>
    trustLists.find(tenantId, id)?.sequenceNumber === sequenceNumber;
  /** Forgets all versions but the newest. */
  const forget = (id: string, kept: number) => {
    for (const old of newestVersions(id).slice(kept)) trustListVersions.remove(tenantId, placeOf(old));
  };
  return {
    find,
    async get(id) {
      const list = await find(id);
      if (list === undefined) throw unknown('trust list');
      return list;
    },
    list: async () => trustLists.list(tenantId).sort((one, other) => (one.id < other.id ? -1 : 1)),
    async add(list) {
      if (trustLists.has(tenantId, list.id)) throw new Failure('conflict', 'this id exists already');
      trustLists.put(tenantId, list.id, list);
      touched();
    },
    async replace(list, former) {
      if (!isCurrent(former)) return false;
      trustLists.put(tenantId, list.id, list);
      trustListVersions.put(tenantId, placeOf(former), former);
      forget(list.id, MAX_VERSIONS);
      touched();
      return true;
    },
    async remove(former) {
      if (!isCurrent(former)) return false;
      const { id, sequenceNumber } = former.list;
      trustLists.remove(tenantId, id);
      forget(id, 0);
      trustListNumbers.put(tenantId, id, { sequenceNumber });
      touched();
      return true;
    },
    async lastNumber(id) {
      return (await find(id))?.sequenceNumber ?? trustListNumbers.find(tenantId, id)?.sequenceNumber ?? 0;
    },
    async versions(id, { limit, before = Number.POSITIVE_INFINITY } = ALL) {
      return newestVersions(id)
        .filter(({ list }) => list.sequenceNumber < before)
        .slice(0, Math.min(limit, MAX_VERSIONS));
    },
    async version(id, versionId) {
      const version = newestVersions(id).find((candidate) => candidate.id === versionId);
      if (version === undefined) throw unknown('version');
      return version;
    },
  };
}

function unknown(what: string): Failure {
  return new Failure('not_found', `there is no such ${what}`);
}
