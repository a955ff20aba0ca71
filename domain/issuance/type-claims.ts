import { PROTOCOL_CLAIMS } from '../formats/sd-jwt/claim-names.ts';
import type { Frame } from '../formats/sd-jwt/disclosure-frame.ts';
import { isJsonObject, type Json, type JsonObject } from '../shared/json.ts';
import type { CredentialConfiguration } from './configuration.ts';
import type { ClaimPath } from './credential-config.ts';
import { resolveSchema } from './frame-schema.ts';

/** Equals the limit of claims that a configuration may describe. */
const MAX_PATHS = 500;
/** Equals the limit of components in a claims path. */
const MAX_DEPTH = 32;

/** Distinct paths in insertion order; a path follows its prefixes. */
class Paths {
  readonly #paths = new Map<string, ClaimPath>();

  /** @returns false when the limit is reached. */
  add(path: ClaimPath): boolean {
    for (let length = 1; length <= path.length; length++) {
      const prefix = path.slice(0, length);
      const key = JSON.stringify(prefix);
      if (this.#paths.has(key)) continue;
      if (this.#paths.size >= MAX_PATHS || length > MAX_DEPTH) return false;
      this.#paths.set(key, prefix);
    }
    return true;
  }

  list(): readonly ClaimPath[] {
    return [...this.#paths.values()];
  }
}

/**
 * Claims that credentials of a configuration are known to have: described claims, their containers, and claims that only static claims, the
 * schema or the frame name. Readers that validate a credential against its type reject claims that the type does not list.
 * @returns an empty list if nothing is described, because any claim may occur then.
 */
export function describedPaths(
  { config, claims, schema }: Pick<CredentialConfiguration, 'config' | 'claims' | 'schema'>,
  frame: Frame | undefined,
): readonly ClaimPath[] {
  const paths = new Paths();
  for (const { path } of config.claims ?? []) paths.add(path);
  if (isJsonObject(claims)) addValue(paths, [], claims);
  if (isJsonObject(schema)) addSchema(paths, [], schema, schema);
  if (frame !== undefined) addFrame(paths, [], frame);
  // Protocol claims are set by the service, not described by the operator.
  const claimPaths = paths.list().filter(([name]) => !PROTOCOL_CLAIMS.has(String(name)));
  return claimPaths.length === 0 ? [] : [...claimPaths, ['iat']];
}

function addValue(paths: Paths, path: ClaimPath, value: Json): void {
  for (const [component, member] of childrenOf(value)) {
    const childPath = [...path, component];
    if (paths.add(childPath)) addValue(paths, childPath, member);
  }
}

function childrenOf(value: Json): readonly (readonly [string | null, Json])[] {
  if (Array.isArray(value)) return (value as readonly Json[]).map((member) => [null, member]);
  return isJsonObject(value) ? Object.entries(value) : [];
}

/** @param ancestors schemas on the path from the root; they stop the recursion of self-referencing schemas. */
function addSchema(paths: Paths, path: ClaimPath, localSchema: JsonObject, root: JsonObject, ancestors: readonly JsonObject[] = []): void {
  const schema = resolveSchema(localSchema, root);
  if (schema === undefined || ancestors.includes(schema)) return;
  const { properties, items, prefixItems } = schema;
  const entries = Array.isArray(prefixItems) ? (prefixItems as readonly Json[]) : [];
  const members: readonly (readonly [string | null, Json])[] = [
    ...(isJsonObject(properties) ? Object.entries(properties) : []),
    ...[...entries, ...(items === undefined ? [] : [items])].map((entry) => [null, entry] as const),
  ];
  for (const [component, member] of members) {
    if (member === false) continue;
    const childPath = [...path, component];
    if (paths.add(childPath) && isJsonObject(member)) addSchema(paths, childPath, member, root, [...ancestors, schema]);
  }
}

function addFrame(paths: Paths, path: ClaimPath, frame: Frame): void {
  for (const key of frame.hidden) paths.add([...path, typeof key === 'number' ? null : key]);
  for (const [key, child] of frame.children) {
    const isPosition = /^\d+$/.test(key) && !paths.list().some((claimPaths) => isBelow(claimPaths, path, key));
    const childPath = [...path, isPosition ? null : key];
    if (paths.add(childPath)) addFrame(paths, childPath, child);
  }
}

function isBelow(claimPaths: ClaimPath, path: ClaimPath, key: string): boolean {
  return claimPaths[path.length] === key && JSON.stringify(claimPaths.slice(0, path.length)) === JSON.stringify(path);
}
