import { isJsonObject, type Json } from '../shared/json.ts';

type Step = string | number | null;

/** As many as a configuration has of a claim that it describes. */
const MAX_STEPS = 32;
const MAX_STEP_LENGTH = 200;

/** What claims were seen so far below one place. */
type Seen = { kind?: 'object' | 'array'; isNamed: boolean; readonly below: Map<Step, Seen> };

/**
 * What is wrong with the claim descriptions of a request (OpenID4VCI 1.0 appendices B.3 and C): each has a path, none stands
 * there twice, and no two of them contradict each other, one seeing an object where the other sees an array.
 * @returns undefined for claims that can be asked for.
 */
export function claimsPathsFault(claims: Json): string | undefined {
  if (!Array.isArray(claims) || claims.length === 0) return 'must be a non-empty array of claim descriptions';
  const root = unseen();
  for (const claim of claims as readonly Json[]) {
    const path = isJsonObject(claim) ? claim['path'] : undefined;
    if (!isPath(path))
      return `need a path each: a non-empty array of strings, nulls and integers, at most ${MAX_STEPS}`;
    let place = root;
    for (const step of path) {
      const kind = typeof step === 'string' ? 'object' : 'array';
      place.kind ??= kind;
      if (place.kind !== kind) return 'contradict each other';
      const next = place.below.get(step) ?? unseen();
      place.below.set(step, next);
      place = next;
    }
    if (place.isNamed) return 'have a path twice';
    place.isNamed = true;
  }
  return undefined;
}

function unseen(): Seen {
  return { isNamed: false, below: new Map() };
}

function isPath(path: Json | undefined): path is readonly Step[] {
  return Array.isArray(path) && path.length > 0 && path.length <= MAX_STEPS && path.every(isStep);
}

function isStep(step: Json): boolean {
  return typeof step === 'string' ? step.length <= MAX_STEP_LENGTH : step === null || Number.isInteger(step);
}
