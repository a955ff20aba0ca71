import { PROTOCOL_CLAIMS } from '../formats/sd-jwt/claim-names.ts';
import type { Frame } from '../formats/sd-jwt/disclosure-frame.ts';
import { isJsonObject, type Json, type JsonObject } from '../shared/json.ts';
import type { CredentialConfiguration } from './configuration.ts';
import type { ClaimPath } from './credential-config.ts';
import { referredSchema } from './frame-schema.ts';

/** As many as a configuration may describe itself. */
const MAX_PATHS = 500;
/** What a path may have at most. */
const MAX_DEPTH = 32;

/** Paths without repeats, in the order in which they come; a path comes after what contains it. */
class Paths {
  readonly #known = new Map<string, ClaimPath>();

  /** @returns false when there is no place for more. */
  add(path: ClaimPath): boolean {
    for (let length = 1; length <= path.length; length++) {
      const part = path.slice(0, length);
      const key = JSON.stringify(part);
      if (this.#known.has(key)) continue;
      if (this.#known.size >= MAX_PATHS || length > MAX_DEPTH) return false;
      this.#known.set(key, part);
    }
    return true;
  }

  list(): readonly ClaimPath[] {
    return [...this.#known.values()];
  }
}

/**
 * Every claim that credentials of a configuration are known to have: those that are described, what contains them, and those that
 * only static claims, the schema or the frame name. Readers that hold a credential against its type refuse it for a claim
 * that the type does not list.
 * @returns none where nothing is known, for then any claim may come.
 */
export function knownPaths(
  { config, claims, schema }: Pick<CredentialConfiguration, 'config' | 'claims' | 'schema'>,
  frame: Frame | undefined,
): readonly ClaimPath[] {
  const paths = new Paths();
  for (const { path } of config.claims ?? []) paths.add(path);
  if (isJsonObject(claims)) addValue(paths, [], claims);
  if (isJsonObject(schema)) addSchema(paths, [], schema, schema);
  if (frame !== undefined) addFrame(paths, [], frame);
  // What the service sets is another matter than what the operator said.
  const known = paths.list().filter(([first]) => !PROTOCOL_CLAIMS.has(String(first)));
  return known.length === 0 ? [] : [...known, ['iat']];
}

function addValue(paths: Paths, path: ClaimPath, value: Json): void {
  for (const [component, member] of membersOf(value)) {
    const below = [...path, component];
    if (paths.add(below)) addValue(paths, below, member);
  }
}

function membersOf(value: Json): readonly (readonly [string | null, Json])[] {
  if (Array.isArray(value)) return (value as readonly Json[]).map((member) => [null, member]);
  return isJsonObject(value) ? Object.entries(value) : [];
}

/** @param above schemas that lead here: what contains itself is not listed without end. */
function addSchema(paths: Paths, path: ClaimPath, here: JsonObject, root: JsonObject, above: readonly JsonObject[] = []): void {
  const schema = referredSchema(here, root);
  if (schema === undefined || above.includes(schema)) return;
  const { properties, items, prefixItems } = schema;
  const entries = Array.isArray(prefixItems) ? (prefixItems as readonly Json[]) : [];
  const members: readonly (readonly [string | null, Json])[] = [
    ...(isJsonObject(properties) ? Object.entries(properties) : []),
    ...[...entries, ...(items === undefined ? [] : [items])].map((entry) => [null, entry] as const),
  ];
  for (const [component, member] of members) {
    if (member === false) continue;
    const below = [...path, component];
    if (paths.add(below) && isJsonObject(member)) addSchema(paths, below, member, root, [...above, schema]);
  }
}

function addFrame(paths: Paths, path: ClaimPath, frame: Frame): void {
  for (const key of frame.hidden) paths.add([...path, typeof key === 'number' ? null : key]);
  for (const [key, child] of frame.children) {
    const isPosition = /^\d+$/.test(key) && !paths.list().some((known) => isBelow(known, path, key));
    const below = [...path, isPosition ? null : key];
    if (paths.add(below)) addFrame(paths, below, child);
  }
}

function isBelow(known: ClaimPath, path: ClaimPath, key: string): boolean {
  return known[path.length] === key && JSON.stringify(known.slice(0, path.length)) === JSON.stringify(path);
}
