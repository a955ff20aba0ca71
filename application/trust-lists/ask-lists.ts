import { defined } from '../../domain/shared/defined.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { ListPointer } from '../../domain/trust-lists/list-pointer.ts';
import type { TrustList } from '../../domain/trust-lists/lote.ts';
import { TrustListRefusal } from '../../domain/trust-lists/trust-list-refusal.ts';
import { StoreUnavailable } from '../ports/store.ts';
import type { AskedList, ListSource } from './listed-anchors.ts';
import type { TrustLists } from './remote-trust-lists.ts';
import { signersOf } from './verify-trust-list.ts';

/** Whoever checks waits no longer for all of them together; what is under way is read on, and the next check has it. */
const MAX_WAIT_MS = 10_000;
/** Lists of one list of lists that are asked for at the same time. */
const AT_ONCE = 8;

/**
 * Asks for all lists at once, and for those that lists of lists point to. Those that cannot be had vouch for nobody; the others still do.
 */
export async function askLists(
  trustLists: TrustLists,
  tenantId: TenantId,
  sources: readonly ListSource[],
  waitMs = MAX_WAIT_MS,
): Promise<readonly AskedList[]> {
  const until = performance.now() + waitMs;
  const groups = sources.map(async (source) => {
    const one = await ask(trustLists, tenantId, source, until);
    const pointed = 'list' in one ? pointedBy(source, one.list) : [];
    return [one, ...(await someAtOnce(pointed, (each) => ask(trustLists, tenantId, each, until)))];
  });
  return (await Promise.all(groups)).flat();
}

async function ask(trustLists: TrustLists, tenantId: TenantId, source: ListSource, until: number): Promise<AskedList> {
  try {
    if (performance.now() >= until) throw new TrustListRefusal('unavailable', 'there is no time left to look');
    const list = await inTime(trustLists.get(tenantId, source.uri, source.signers, source.via), until);
    assertFits(list, source);
    return { source, list };
  } catch (error) {
    if (error instanceof TrustListRefusal) return { source, refusal: error };
    // Without the database nothing is known of any list: that is not a list's fault.
    if (error instanceof StoreUnavailable) throw error;
    return { source, refusal: trustLists.failed(tenantId, source.uri, error) };
  }
}

/** @throws TrustListRefusal for what a configuration, or the list of lists that points there, does not mean. */
function assertFits(list: TrustList, { follow, via, territory }: ListSource): void {
  const isPointing = list.isListOfLists === true || (list.entities.length === 0 && list.pointers !== undefined);
  if (isPointing && follow === undefined) {
    const why = via === undefined ? 'a person says with `follow` that they count' : 'lists are followed one step far';
    throw new TrustListRefusal('malformed', `it only points to other lists: ${why}`);
  }
  if (territory !== undefined && territory !== list.territory) {
    throw new TrustListRefusal('another_list', `of ${list.territory ?? 'no territory'} instead of ${territory}`);
  }
}

/** What was made of the pointers of a list, so that it stays the same while they do. */
const followed = new WeakMap<ListSource, { readonly pointers: readonly ListPointer[]; readonly sources: readonly ListSource[] }>();

/** Lists that a list of lists names, each once, under who signs it there. None points back, or on to further ones. */
function pointedBy(source: ListSource, { pointers }: TrustList): readonly ListSource[] {
  const { follow, uri, purpose } = source;
  if (follow === undefined || pointers === undefined) return [];
  const known = followed.get(source);
  if (known?.pointers === pointers) return known.sources;
  const { territories } = follow;
  const wanted = pointers.filter(
    (pointer) =>
      pointer.uri !== uri && !pointer.isListOfLists && (territories === undefined || territories.includes(pointer.territory ?? '')),
  );
  const sources = [...Map.groupBy(wanted, (pointer) => pointer.uri)].map(([pointed, same]): ListSource => {
    const [first] = same;
    return {
      uri: pointed,
      purpose,
      via: uri,
      signers: signersOf(same.flatMap(({ signers }) => signers)),
      ...defined({ territory: first?.territory }),
    };
  });
  followed.set(source, { pointers, sources });
  return sources;
}

/**
 * @param until in milliseconds of `performance.now()`.
 * @throws TrustListRefusal `unavailable` when the time is over.
 */
export async function inTime<T>(list: Promise<T>, until: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    const refuse = () => reject(new TrustListRefusal('unavailable', 'it is still being read'));
    timer = setTimeout(refuse, Math.max(0, until - performance.now()));
  });
  try {
    return await Promise.race([list, late]);
  } finally {
    clearTimeout(timer);
  }
}

async function someAtOnce<T, R>(all: readonly T[], work: (one: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (let from = 0; from < all.length; from += AT_ONCE) {
    results.push(...(await Promise.all(all.slice(from, from + AT_ONCE).map(work))));
  }
  return results;
}
