import type { Json } from '../../shared/json.ts';

/** Gives an object a member whose value is made when it is first looked at, and once. */
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
