import { LRUCache } from 'lru-cache';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { ConfiguredKind, Revisions, StoredRevisions } from '../../domain/tenants/revisions.ts';
import type { TenantState } from '../ports/store.ts';
import { registerCache, shareOfCacheMemory } from './cache-memory.ts';
import { sizeOf } from './size-of.ts';

/** Approximate memory of the cached configurations of all tenants; the least recently used are evicted. */
const MAX_BYTES = 48 * 1024 * 1024;
/** Size of an entry while its value is pending. */
const UNKNOWN_BYTES = 1_000;

/** A value derived from a tenant's configuration, and the configuration kinds that it depends on. */
export type CachedValue = {
  readonly value: unknown;
  readonly kinds: ReadonlySet<ConfiguredKind>;
  /** True while the value is pending; its kinds are incomplete then. */
  readonly isPending: boolean;
  /** The newest state of the tenant for which the value is known to be valid. */
  state: TenantState;
  readonly bytes: number;
};

/** Cache of the read configurations of all tenants and of values derived from them, bounded by size. */
export class ConfigurationCache {
  readonly #values = registerCache(
    'configurations',
    new LRUCache<string, CachedValue>({ maxSize: shareOfCacheMemory(MAX_BYTES), sizeCalculation: ({ bytes }) => bytes }),
  );

  clear(): void {
    this.#values.clear();
  }

  /** @returns the value of this name, if nothing that it depends on has changed since. */
  find(state: TenantState, name: string): CachedValue | undefined {
    const cached = this.#values.get(`${state.id} ${name}`);
    if (cached === undefined) return undefined;
    if (cached.state.revisions.all !== state.revisions.all) return undefined;
    // The common case, checked some dozen times per request: nothing at all has changed in the same revision.
    if (cached.state.revision === state.revision) return cached;
    if (cached.isPending || !isUnchanged(cached.kinds, cached.state, state)) return undefined;
    if (cached.state.revision < state.revision) cached.state = state;
    return cached;
  }

  /** @returns the last value of this name, even if it is out of date; undefined while it is pending. */
  latestValue(tenantId: TenantId, name: string): unknown {
    const cached = this.#values.peek(`${tenantId} ${name}`);
    return cached?.isPending === false ? cached.value : undefined;
  }

  /** @param kinds may grow while `value` is a pending promise. A rejected promise is removed. */
  set(state: TenantState, name: string, value: unknown, kinds: ReadonlySet<ConfiguredKind>): void {
    const key = `${state.id} ${name}`;
    if (!(value instanceof Promise)) {
      this.#values.set(key, { value, kinds, isPending: false, state, bytes: bytesOf(value) });
      return;
    }
    const pending = { value, kinds, isPending: true, state, bytes: UNKNOWN_BYTES };
    this.#values.set(key, pending);
    const isCurrent = () => this.#values.peek(key) === pending;
    value.then(
      (resolvedValue) => {
        if (isCurrent()) this.#values.set(key, { ...pending, isPending: false, bytes: bytesOf(resolvedValue) });
      },
      () => {
        if (isCurrent()) this.#values.delete(key);
      },
    );
  }
}

/** Sizes of documents, which stay the same objects while others of their kind change. */
const SIZES = new WeakMap<object, number>();

/** Size of a list, of a map by id, or of an object with a `documents` list. */
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

/** Revisions of these kinds, and `all`, which processes without support for kinds raise. */
export function revisionsOf({ revisions }: TenantState, kinds: Iterable<ConfiguredKind>): Revisions {
  const revisionsByKind: { -readonly [kind in keyof StoredRevisions]?: number } = { all: revisions.all };
  for (const kind of kinds) revisionsByKind[kind] = revisions[kind];
  return revisionsByKind;
}

function isUnchanged(kinds: Iterable<ConfiguredKind>, state: TenantState, otherState: TenantState): boolean {
  for (const kind of kinds) if (state.revisions[kind] !== otherState.revisions[kind]) return false;
  return true;
}
