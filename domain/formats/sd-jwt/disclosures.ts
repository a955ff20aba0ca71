import { hash } from 'node:crypto';
import { decodeJson, isJsonObject, isMemberName, type Json, type JsonObject, type JsonPrimitive } from '../../shared/json.ts';
import { Refusal } from '../../shared/refusal.ts';
import { MAX_DEPTH, RESERVED_NAMES } from './claim-names.ts';
import { MAX_DISCLOSURE_MEMBERS } from './limits.ts';

/** Replaces a withheld array element, so that positions are those of the issued array. */
export const UNDISCLOSED: unique symbol = Symbol('undisclosed');

export function isUndisclosed(value: unknown): value is typeof UNDISCLOSED {
  return value === UNDISCLOSED;
}

/** Claims after processing. Objects have no prototype; arrays may contain `UNDISCLOSED`. */
export type Disclosed = JsonPrimitive | readonly (Disclosed | typeof UNDISCLOSED)[] | DisclosedObject;
export type DisclosedObject = { readonly [member: string]: Disclosed };

export type ProcessedClaims = {
  readonly claims: DisclosedObject;
  /** Top-level claims that came from a disclosure. */
  readonly disclosedNames: ReadonlySet<string>;
  /** The hash in `_sd_alg`, by its name in node:crypto. `sd_hash` uses it as well. */
  readonly hashName: string;
};

/** RFC 9901 section 9.4: no weak or truncated functions. Names are case-sensitive (section 4.1.1). */
const HASH_NAMES: ReadonlyMap<unknown, string> = new Map([
  ['sha-256', 'sha256'],
  ['sha-384', 'sha384'],
  ['sha-512', 'sha512'],
]);

/** The node:crypto name of a hash in the IANA registry that RFC 9901 section 4.1.1 refers to. */
export function hashNameOf(ianaName: Json | undefined): string | undefined {
  return HASH_NAMES.get(ianaName);
}

type Disclosure = { readonly name?: string; readonly value: Json };
type DisclosureState = {
  readonly byDigest: ReadonlyMap<string, Disclosure>;
  readonly seenDigests: Set<string>;
  readonly disclosedNames: Set<string>;
  used: number;
};

/**
 * Replaces digests by the disclosed values (RFC 9901 section 7.1 steps 2 to 6).
 * @param payload of the issuer-signed JWT with verified signature.
 * @throws Refusal for a violation of that section.
 */
export function processDisclosures(payload: JsonObject, disclosures: readonly string[]): ProcessedClaims {
  const hashName = Object.hasOwn(payload, '_sd_alg') ? hashNameOf(payload['_sd_alg']) : 'sha256';
  // RFC 9901 section 7.1 step 2d
  if (hashName === undefined) throw new Refusal('unsupported_hash');

  const byDigest = new Map<string, Disclosure>();
  for (const text of disclosures) {
    const digest = hash(hashName, text, 'base64url');
    // RFC 9901 section 7.1 step 4
    if (byDigest.has(digest)) throw new Refusal('duplicate_disclosure');
    byDigest.set(digest, parseDisclosure(text));
  }

  const state: DisclosureState = { byDigest, seenDigests: new Set(), disclosedNames: new Set(), used: 0 };
  const claims = processObject(payload, state, 1);
  // RFC 9901 section 7.1 step 5
  if (state.used !== byDigest.size) throw new Refusal('unreferenced_disclosure');
  return { claims, disclosedNames: state.disclosedNames, hashName };
}

/** RFC 9901 sections 4.2.1 and 4.2.2 */
function parseDisclosure(text: string): Disclosure {
  const parts = decodeJson(text, MAX_DEPTH + 1, MAX_DISCLOSURE_MEMBERS);
  if (!Array.isArray(parts)) {
    const form = `a JSON array of at most ${MAX_DISCLOSURE_MEMBERS} properties and entries`;
    throw new Refusal('malformed_disclosure', `a disclosure is ${form}`);
  }
  const [salt, second, third] = parts as readonly Json[];
  if (typeof salt !== 'string' || second === undefined) throw new Refusal('malformed_disclosure');
  if (parts.length === 2) return { value: second };
  if (parts.length !== 3 || typeof second !== 'string' || third === undefined) throw new Refusal('malformed_disclosure');
  return { name: second, value: third };
}

/** The disclosure of `digest`; `undefined` for a decoy or a withheld value. */
function resolveDigest(digest: string, state: DisclosureState): Disclosure | undefined {
  // RFC 9901 section 7.1 step 4: a repeated digest is invalid, even without a disclosure.
  if (state.seenDigests.has(digest)) throw new Refusal('duplicate_digest');
  state.seenDigests.add(digest);
  const disclosure = state.byDigest.get(digest);
  if (disclosure !== undefined) state.used++;
  return disclosure;
}

function processValue(value: Json, state: DisclosureState, depth: number, name?: string): Disclosed {
  if (typeof value !== 'object' || value === null) return value;
  return Array.isArray(value)
    ? processArray(value as readonly Json[], state, depth)
    : processObject(value as JsonObject, state, depth, name);
}

/** @param parent name of the claim with this value. */
function processObject(source: JsonObject, state: DisclosureState, depth: number, parent?: string): DisclosedObject {
  if (depth > MAX_DEPTH) throw new Refusal('too_deep');
  const result: Record<string, Disclosed> = Object.create(null);
  for (const name of Object.keys(source)) {
    if (name === '_sd') continue;
    if (name === '_sd_alg') {
      // RFC 9901 section 4.1.1: at the top level only
      if (depth > 1) throw new Refusal('nested_sd_alg');
      continue;
    }
    // RFC 9901 section 4.1: "..." is reserved for array elements
    if (name === '...' || !isMemberName(name, parent)) throw new Refusal('reserved_key');
    result[name] = processValue(source[name] as Json, state, depth + 1, name);
  }
  if (Object.hasOwn(source, '_sd')) insertDisclosed(source, result, { work: state, depth, parent });
  return result;
}

function insertDisclosed(
  source: JsonObject,
  result: Record<string, Disclosed>,
  { work: state, depth, parent }: { readonly work: DisclosureState; readonly depth: number; readonly parent: string | undefined },
): void {
  const digests = source['_sd'];
  // RFC 9901 section 4.2.4.1
  if (!Array.isArray(digests)) throw new Refusal('malformed_sd');
  for (const digest of digests as readonly Json[]) {
    if (typeof digest !== 'string') throw new Refusal('malformed_sd');
    const disclosure = resolveDigest(digest, state);
    if (disclosure === undefined) continue;
    const { name, value } = disclosure;
    // RFC 9901 section 7.1 step 3c
    if (name === undefined) throw new Refusal('wrong_disclosure_length');
    if (RESERVED_NAMES.has(name) || !isMemberName(name, parent)) throw new Refusal('reserved_claim_name');
    if (Object.hasOwn(source, name) || Object.hasOwn(result, name)) throw new Refusal('claim_exists');
    if (depth === 1) state.disclosedNames.add(name);
    result[name] = processValue(value, state, depth + 1, name);
  }
}

function processArray(source: readonly Json[], state: DisclosureState, depth: number): Disclosed {
  if (depth > MAX_DEPTH) throw new Refusal('too_deep');
  return source.map((member) => {
    if (!isJsonObject(member) || !Object.hasOwn(member, '...')) return processValue(member, state, depth + 1);
    const digest = member['...'];
    // RFC 9901 section 4.2.4.2: no other key
    if (typeof digest !== 'string' || Object.keys(member).length !== 1) throw new Refusal('malformed_array_digest');
    const disclosure = resolveDigest(digest, state);
    if (disclosure === undefined) return UNDISCLOSED;
    // RFC 9901 section 7.1 step 3c
    if (disclosure.name !== undefined) throw new Refusal('wrong_disclosure_length');
    return processValue(disclosure.value, state, depth + 1);
  });
}
