/** A claims path pointer (OpenID4VP 1.0 section 7): a name, an array position, or null for all positions. */
export type Path = readonly (string | number | null)[];
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type JsonObject = { [name: string]: Json };
export type Claim = { readonly path: Path; readonly value: Json };

/** True if one of the paths leads to the location, to a value in it, or to one of its parents. */
export function overlapsPaths(location: Path, paths: readonly Path[]): boolean {
  return paths.some((path) => {
    const length = Math.min(location.length, path.length);
    for (let index = 0; index < length; index++) {
      const [component, otherComponent] = [location[index], path[index]];
      const isAny =
        (component === null && typeof otherComponent === 'number') || (otherComponent === null && typeof component === 'number');
      if (component !== otherComponent && !isAny) return false;
    }
    return true;
  });
}

/** Values at a path: several for a path with null. */
export function valuesAt(claims: Json, path: Path): Json[] {
  let values: Json[] = [claims];
  for (const step of path)
    values = values.flatMap((value) => {
      if (Array.isArray(value)) {
        if (step === null) return value;
        return typeof step === 'number' && step in value ? [value[step] as Json] : [];
      }
      if (typeof value !== 'object' || value === null || typeof step !== 'string') return [];
      return Object.hasOwn(value, step) ? [value[step] as Json] : [];
    });
  return values;
}

/** Claims at the paths, for display. */
export function claimsAt(claims: Json, paths: readonly Path[]): Claim[] {
  return paths.flatMap((path) => {
    const values = valuesAt(claims, path);
    if (values.length === 0) return [];
    return [{ path, value: path.includes(null) ? values : (values[0] as Json) }];
  });
}

/** A different value of the same type, for attacks on integrity. */
export function differentValue(value: Json): Json {
  if (typeof value === 'boolean') return !value;
  if (typeof value === 'number') return value + 1;
  if (typeof value === 'string') return `${value}x`;
  return Array.isArray(value) ? [...value, 'x'] : { ...value, x: 'x' };
}
