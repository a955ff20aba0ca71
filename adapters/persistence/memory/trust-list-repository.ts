import type { TrustListRepository } from '../../../application/ports/store.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { type ListVersion, MAX_VERSIONS } from '../../../domain/trust-lists/published-list.ts';
import type { State } from './state.ts';

/** Trust lists of one tenant inside one transaction; `touched` tells whether something was written. */
export function trustListRepository(
  { trustLists, trustListVersions }: State,
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
  /** Keeps a version, and forgets all but the newest. */
  const keep = (version: ListVersion, kept: number) => {
    trustListVersions.put(tenantId, placeOf(version), version);
    for (const old of newestVersions(version.list.id).slice(kept)) {
      trustListVersions.remove(tenantId, placeOf(old));
    }
    touched();
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
      keep(former, MAX_VERSIONS);
      return true;
    },
    async remove(former) {
      if (!isCurrent(former)) return false;
      trustLists.remove(tenantId, former.list.id);
      keep(former, 1);
      return true;
    },
    async lastNumber(id) {
      const [version] = newestVersions(id);
      return Math.max(version?.list.sequenceNumber ?? 0, (await find(id))?.sequenceNumber ?? 0);
    },
    versions: async (id) => newestVersions(id).slice(0, MAX_VERSIONS),
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
