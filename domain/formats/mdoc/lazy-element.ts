import type { Json } from '../../shared/json.ts';

/**
 * What lazy members are set on. Without a prototype, since then the engine keeps them as entries: for any other object each of
 * their functions makes a description of the object's form, which lives, with what it refers to, until old objects are collected.
 */
export function emptyElements(): Record<string, Json> {
  return Object.create(null);
}

/** Gives elements a member whose value is made when it is first looked at, and once. */
export function setLazily(object: Record<string, Json>, name: string, make: () => Json): void {
  let made: { readonly value: Json } | undefined;
  Object.defineProperty(object, name, {
    enumerable: true,
    get: () => {
      made ??= { value: make() };
      return made.value;
    },
  });
}
