import { isJsonObject, type Json, type JsonObject } from '../shared/json.ts';
import { Refusal } from '../shared/refusal.ts';
import type { Match, PresentedCredential } from './match.ts';
import type { ClaimsPath, IsUndisclosed } from './path.ts';

/** Protocol claims, which are not returned to clients. */
const PROTOCOL_MEMBERS: ReadonlySet<unknown> = new Set(['cnf', 'status', '_sd', '_sd_alg']);

/**
 * Claims of a matching credential for a client: the requested claims in the structure of the credential, and nothing else that was
 * disclosed (OpenID4VP 1.0 section 15.4). Array elements that were not requested leave no gap. A query without claims yields the always
 * visible part of an SD-JWT and nothing of an mdoc.
 */
export function pickRequested(match: Match, credential: PresentedCredential, isUndisclosed: IsUndisclosed): JsonObject {
  const isMdoc = credential.format === 'mso_mdoc';
  if (match.paths === undefined) return isMdoc ? {} : pickVisible(credential.alwaysVisible, isUndisclosed);

  const paths = isMdoc ? match.paths : match.paths.filter(([component]) => !PROTOCOL_MEMBERS.has(component));
  const picked = pick(paths, 0, credential.claims, isUndisclosed);
  return isJsonObject(picked) ? picked : {};
}

/**
 * All disclosed claims of a credential, except holder binding and status reference. Unrequested mdoc elements without a JSON form are
 * omitted.
 */
export function pickDisclosed(credential: PresentedCredential, isUndisclosed: IsUndisclosed): JsonObject {
  if (credential.format !== 'mso_mdoc') return pickVisible(credential.claims, isUndisclosed);
  return pickMembers(credential.claims, Object.keys(credential.claims), (_, elements) =>
    isJsonObject(elements)
      ? Object.fromEntries(
          Object.keys(elements).flatMap((name) => {
            const value = readIfConvertible(elements, name);
            return value === undefined ? [] : [[name, value]];
          }),
        )
      : undefined,
  );
}

function readIfConvertible(elements: JsonObject, name: string): Json | undefined {
  try {
    return elements[name];
  } catch (error) {
    if (error instanceof Refusal) return undefined;
    throw error;
  }
}

function pickVisible(payload: Readonly<Record<string, unknown>>, isUndisclosed: IsUndisclosed): JsonObject {
  return pickMembers(payload, Object.keys(payload), (name, value) =>
    PROTOCOL_MEMBERS.has(name) ? undefined : copyDisclosed(value, isUndisclosed),
  );
}

/** `paths` led to `value` with their first `depth` components. `undefined` if nothing of it is requested. */
function pick(paths: readonly ClaimsPath[], depth: number, value: unknown, isUndisclosed: IsUndisclosed): Json | undefined {
  if (paths.some((path) => path.length === depth)) return copyDisclosed(value, isUndisclosed);
  if (Array.isArray(value)) {
    const members = value.flatMap((member, position): Json[] => {
      if (isUndisclosed(member)) return [];
      const through = paths.filter((path) => path[depth] === null || path[depth] === position);
      const picked = pick(through, depth + 1, member, isUndisclosed);
      return picked === undefined ? [] : [picked];
    });
    return members.length === 0 ? undefined : members;
  }
  if (!isJsonObject(value)) return undefined;
  const requestedNames = new Set(paths.map((path) => path[depth]));
  const names = [...requestedNames].filter((name) => typeof name === 'string');
  const picked = pickMembers(value, names, (name, member) => {
    const through = paths.filter((path) => path[depth] === name);
    return pick(through, depth + 1, member, isUndisclosed);
  });
  return Object.keys(picked).length === 0 ? undefined : picked;
}

/** Copies a selected value without undisclosed elements and SD-JWT structures (RFC 9901 section 7.3). */
function copyDisclosed(value: unknown, isUndisclosed: IsUndisclosed): Json | undefined {
  if (Array.isArray(value)) {
    return value.flatMap((member): Json[] => {
      if (isUndisclosed(member) || (isJsonObject(member) && Object.hasOwn(member, '...'))) return [];
      const copy = copyDisclosed(member, isUndisclosed);
      return copy === undefined ? [] : [copy];
    });
  }
  if (isJsonObject(value)) {
    return pickMembers(value, Object.keys(value), (name, member) => (name === '_sd' ? undefined : copyDisclosed(member, isUndisclosed)));
  }
  return isPrimitive(value) ? value : undefined;
}

/** `Object.fromEntries` defines properties, so that no name reaches the prototype. */
function pickMembers(
  source: Readonly<Record<string, unknown>>,
  names: readonly string[],
  choose: (name: string, value: unknown) => Json | undefined,
): JsonObject {
  const members: [string, Json][] = [];
  for (const name of names) {
    const chosen = Object.hasOwn(source, name) ? choose(name, source[name]) : undefined;
    if (chosen !== undefined) members.push([name, chosen]);
  }
  return Object.fromEntries(members);
}

function isPrimitive(value: unknown): value is string | number | boolean | null {
  return value === null || typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
}
