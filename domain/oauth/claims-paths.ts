import { isJsonObject, type Json } from '../shared/json.ts';

type Step = string | number | null;

/**
 * What is wrong with the claim descriptions of a request (OpenID4VCI 1.0 appendices B.3 and C): each has a path, none stands
 * there twice, and no two of them contradict each other, one seeing an object where the other sees an array.
 * @returns undefined for claims that can be asked for.
 */
export function claimsPathsFault(claims: Json): string | undefined {
  if (!Array.isArray(claims) || claims.length === 0) return 'must be a non-empty array of claim descriptions';
  const seen = new Set<string>();
  const kinds = new Map<string, 'object' | 'array'>();
  for (const claim of claims as readonly Json[]) {
    const path = isJsonObject(claim) ? claim['path'] : undefined;
    if (!isPath(path)) return 'need a path each: a non-empty array of strings, nulls and integers';
    const name = JSON.stringify(path);
    if (seen.has(name)) return 'have a path twice';
    seen.add(name);
    for (const [index, step] of path.entries()) {
      const parent = JSON.stringify(path.slice(0, index));
      const kind = typeof step === 'string' ? 'object' : 'array';
      if ((kinds.get(parent) ?? kind) !== kind) return 'contradict each other';
      kinds.set(parent, kind);
    }
  }
  return undefined;
}

function isPath(path: Json | undefined): path is readonly Step[] {
  const isStep = (step: Json) => typeof step === 'string' || step === null || Number.isInteger(step);
  return Array.isArray(path) && path.length > 0 && path.every(isStep);
}
