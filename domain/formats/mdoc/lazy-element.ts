import type { Json } from '../../shared/json.ts';

/**
 * An object for lazy properties. It has no prototype, so that the engine stores it as a dictionary: on any other object each getter creates
 * a new hidden class, which stays in memory with everything it refers to until an old-space collection.
 */
export function emptyElements(): Record<string, Json> {
  return Object.create(null);
}

/** Defines a property whose value is computed once, at its first access. */
export function defineLazyProperty(object: Record<string, Json>, name: string, compute: () => Json): void {
  let cached: { readonly value: Json } | undefined;
  Object.defineProperty(object, name, {
    enumerable: true,
    get: () => {
      cached ??= { value: compute() };
      return cached.value;
    },
  });
}
