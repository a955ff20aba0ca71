import { LRUCache } from 'lru-cache';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { ConfiguredKind, Revisions, StoredRevisions } from '../../domain/tenants/revisions.ts';
import type { TenantState } from '../ports/store.ts';
import { partOfMemory, watchedCache } from './bounded.ts';
import { sizeOf } from './size-of.ts';

/** Bytes, roughly, that the configurations of all tenants take in memory; what is used least goes first. */
const MAX_BYTES = 48 * 1024 * 1024;
/** Until it is known how large a value is. */
const UNKNOWN_BYTES = 1_000;

/** A value made of a tenant's configuration, and the kinds that it rests on. */
export type Kept = {
  readonly value: unknown;
  readonly kinds: ReadonlySet<ConfiguredKind>;
  /** Whether it is still being made; then its kinds are not all known. */
  readonly isUnderWay: boolean;
  /** Which it is good for: the newest that is known of. */
  state: TenantState;
  readonly bytes: number;
};

/** What was read of configurations and made of it, of all tenants together, bounded by its size. */
export class ConfigurationMemory {
  readonly #kept = watchedCache(
    'configurations',
    new LRUCache<string, Kept>({ maxSize: partOfMemory(MAX_BYTES), sizeCalculation: ({ bytes }) => bytes }),
  );

  clear(): void {
    this.#kept.clear();
  }

  /** @returns what was made under this name, if nothing that it rests on has changed since. */
  find(state: TenantState, name: string): Kept | undefined {
    const kept = this.#kept.get(`${state.id} ${name}`);
    if (kept === undefined) return undefined;
    if (kept.state.revisions.all !== state.revisions.all) return undefined;
    // Of the same revision, nothing at all has changed; which is asked some dozen times for each request.
    if (kept.state.revision === state.revision) return kept;
    if (kept.isUnderWay || !isUnchanged(kept.kinds, kept.state, state)) return undefined;
    if (kept.state.revision < state.revision) kept.state = state;
    return kept;
  }

  /** @returns what was made under this name last, also when it is out of date; undefined while that is under way. */
  former(tenantId: TenantId, name: string): unknown {
    const kept = this.#kept.peek(`${tenantId} ${name}`);
    return kept?.isUnderWay === false ? kept.value : undefined;
  }

  /** @param kinds may grow for as long as `value` is a promise that is pending. A rejected one is not kept. */
  keep(state: TenantState, name: string, value: unknown, kinds: ReadonlySet<ConfiguredKind>): void {
    const key = `${state.id} ${name}`;
    if (!(value instanceof Promise)) {
      this.#kept.set(key, { value, kinds, isUnderWay: false, state, bytes: bytesOf(value) });
      return;
    }
    const underWay = { value, kinds, isUnderWay: true, state, bytes: UNKNOWN_BYTES };
    this.#kept.set(key, underWay);
    const isKept = () => this.#kept.peek(key) === underWay;
    value.then(
      (made) => {
        if (isKept()) this.#kept.set(key, { ...underWay, isUnderWay: false, bytes: bytesOf(made) });
      },
      () => {
        if (isKept()) this.#kept.delete(key);
      },
    );
  }
}

/** Sizes of documents, which stay the same objects while others of their kind change. */
const SIZES = new WeakMap<object, number>();

/** Of lists, maps by id, and what has such a list among its members. */
function bytesOf(value: unknown): number {
  if (Array.isArray(value)) return sumOf(value);
  if (value instanceof Map) return sumOf([...value.values()]) + 50 * value.size;
  const { documents } = (value ?? {}) as { readonly documents?: unknown };
  if (!Array.isArray(documents)) return sizeOf(value);
  return sumOf(documents) + sizeOf({ ...(value as object), documents: undefined });
}

function sumOf(entries: readonly unknown[]): number {
  return entries.reduce((sum: number, entry) => sum + 8 + entryBytes(entry), 48);
}

function entryBytes(entry: unknown): number {
  if (typeof entry !== 'object' || entry === null) return sizeOf(entry);
  const bytes = SIZES.get(entry) ?? sizeOf(entry);
  SIZES.set(entry, bytes);
  return bytes;
}

/** Revisions of these kinds, and that of processes that know of no kinds. */
export function revisionsOf({ revisions }: TenantState, kinds: Iterable<ConfiguredKind>): Revisions {
  const chosen: { -readonly [kind in keyof StoredRevisions]?: number } = { all: revisions.all };
  for (const kind of kinds) chosen[kind] = revisions[kind];
  return chosen;
}

function isUnchanged(kinds: Iterable<ConfiguredKind>, one: TenantState, other: TenantState): boolean {
  for (const kind of kinds) if (one.revisions[kind] !== other.revisions[kind]) return false;
  return true;
}
