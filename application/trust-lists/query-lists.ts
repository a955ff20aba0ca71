import { defined } from '../../domain/shared/defined.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { ListPointer } from '../../domain/trust-lists/list-pointer.ts';
import type { TrustList } from '../../domain/trust-lists/lote.ts';
import { TrustListRefusal } from '../../domain/trust-lists/trust-list-refusal.ts';
import { StoreUnavailableError } from '../ports/store.ts';
import type { ListSource, QueriedList } from './listed-anchors.ts';
import type { TrustLists } from './remote-trust-lists.ts';
import { signersOf } from './verify-trust-list.ts';

/** Limit of the time for which a verification waits for lists. Downloads continue in the background for the next verification. */
const MAX_WAIT_MS = 10_000;
const MAX_CONCURRENT = 8;

/**
 * Reads all lists concurrently, and the lists that lists of lists point to. An unavailable list vouches for no issuer and does not affect
 * the others.
 */
export async function queryLists(
  trustLists: TrustLists,
  tenantId: TenantId,
  sources: readonly ListSource[],
  waitMs = MAX_WAIT_MS,
): Promise<readonly QueriedList[]> {
  const deadline = performance.now() + waitMs;
  const groups = sources.map(async (source) => {
    const result = await queryList(trustLists, tenantId, source, deadline);
    const pointedSources = 'list' in result ? sourcesOfPointers(source, result.list) : [];
    return [
      result,
      ...(await mapConcurrently(pointedSources, (pointedSource) => queryList(trustLists, tenantId, pointedSource, deadline))),
    ];
  });
  return (await Promise.all(groups)).flat();
}

async function queryList(trustLists: TrustLists, tenantId: TenantId, source: ListSource, deadline: number): Promise<QueriedList> {
  try {
    if (performance.now() >= deadline) throw new TrustListRefusal('unavailable', 'the time limit is reached');
    const list = await withDeadline(trustLists.get(tenantId, source.uri, source.signers, source.via), deadline);
    assertAllowed(list, source);
    return { source, list };
  } catch (error) {
    if (error instanceof TrustListRefusal) return { source, refusal: error };
    // Without the database no list can be read, which is not a fault of this one.
    if (error instanceof StoreUnavailableError) throw error;
    return { source, refusal: trustLists.failed(tenantId, source.uri, error) };
  }
}

/** @throws TrustListRefusal for a list that the configuration, or the pointing list of lists, does not allow. */
function assertAllowed(list: TrustList, { follow, via, territory }: ListSource): void {
  const isPointing = list.isListOfLists === true || (list.entities.length === 0 && list.pointers !== undefined);
  if (isPointing && follow === undefined) {
    const reason = via === undefined ? 'they are only trusted with `follow`' : 'lists are followed one level deep';
    throw new TrustListRefusal('malformed', `it only points to other lists: ${reason}`);
  }
  if (territory !== undefined && territory !== list.territory) {
    throw new TrustListRefusal('another_list', `its territory is ${list.territory ?? 'missing'}, not ${territory}`);
  }
}

/** Sources by list of lists. They are cached so that unchanged pointers give the same objects. */
const cachedSources = new WeakMap<ListSource, { readonly pointers: readonly ListPointer[]; readonly sources: readonly ListSource[] }>();

/** Returns the lists that a list of lists points to, each once, with its signers. Pointers to lists of lists are ignored. */
function sourcesOfPointers(source: ListSource, { pointers }: TrustList): readonly ListSource[] {
  const { follow, uri, purpose } = source;
  if (follow === undefined || pointers === undefined) return [];
  const cached = cachedSources.get(source);
  if (cached?.pointers === pointers) return cached.sources;
  const { territories } = follow;
  const followedPointers = pointers.filter(
    (pointer) =>
      pointer.uri !== uri && !pointer.isListOfLists && (territories === undefined || territories.includes(pointer.territory ?? '')),
  );
  const sources = [...Map.groupBy(followedPointers, (pointer) => pointer.uri)].map(([address, samePointers]): ListSource => {
    const [firstPointer] = samePointers;
    return {
      uri: address,
      purpose,
      via: uri,
      signers: signersOf(samePointers.flatMap(({ signers }) => signers)),
      ...defined({ territory: firstPointer?.territory }),
    };
  });
  cachedSources.set(source, { pointers, sources });
  return sources;
}

/**
 * Waits for a list until the deadline.
 * @param deadline in milliseconds of `performance.now()`.
 * @throws TrustListRefusal `unavailable` after the deadline.
 */
export async function withDeadline<T>(list: Promise<T>, deadline: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_resolve, reject) => {
    const rejectOnTimeout = () => reject(new TrustListRefusal('unavailable', 'it was not downloaded and parsed in time'));
    timer = setTimeout(rejectOnTimeout, Math.max(0, deadline - performance.now()));
  });
  try {
    return await Promise.race([list, timeout]);
  } finally {
    clearTimeout(timer);
  }
}

async function mapConcurrently<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (let from = 0; from < items.length; from += MAX_CONCURRENT) {
    results.push(...(await Promise.all(items.slice(from, from + MAX_CONCURRENT).map(work))));
  }
  return results;
}
