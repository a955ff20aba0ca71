/** A claims path pointer (OpenID4VP 1.0 section 7): a name, a place in an array, or null for all places. */
export type Path = readonly (string | number | null)[];
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type JsonObject = { [name: string]: Json };
export type Claim = { readonly path: Path; readonly value: Json };

/** Whether one of the paths leads to the place, to something in it, or to something that it is in. */
export function isTouched(place: Path, paths: readonly Path[]): boolean {
  return paths.some((path) => {
    const length = Math.min(place.length, path.length);
    for (let at = 0; at < length; at++) {
      const [one, other] = [place[at], path[at]];
      const isAny = (one === null && typeof other === 'number') || (other === null && typeof one === 'number');
      if (one !== other && !isAny) return false;
    }
    return true;
  });
}

/** What stands at a path: several values where it has a null. */
export function valuesAt(claims: Json, path: Path): Json[] {
  let found: Json[] = [claims];
  for (const step of path)
    found = found.flatMap((value) => {
      if (Array.isArray(value)) {
        if (step === null) return value;
        return typeof step === 'number' && step in value ? [value[step] as Json] : [];
      }
      if (typeof value !== 'object' || value === null || typeof step !== 'string') return [];
      return Object.hasOwn(value, step) ? [value[step] as Json] : [];
    });
  return found;
}

/** The claims at the paths, as they are shown to a person. */
export function claimsAt(claims: Json, paths: readonly Path[]): Claim[] {
  return paths.flatMap((path) => {
    const values = valuesAt(claims, path);
    if (values.length === 0) return [];
    return [{ path, value: path.includes(null) ? values : (values[0] as Json) }];
  });
}

/** A value of the same kind that is not this one, as somebody would choose who wants more than the issuer said. */
export function another(value: Json): Json {
  if (typeof value === 'boolean') return !value;
  if (typeof value === 'number') return value + 1;
  if (typeof value === 'string') return `${value}x`;
  return Array.isArray(value) ? [...value, 'x'] : { ...value, x: 'x' };
}
