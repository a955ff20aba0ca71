import { hash } from 'node:crypto';
import { encodeBase64url } from '../../shared/base64url.ts';
import { collectFieldErrors, type FieldError, invalidInput } from '../../shared/failure.ts';
import { isJsonObject, isMemberName, isWithinPropertyLimit, type Json, type JsonObject } from '../../shared/json.ts';
import { claimsTooLarge, MAX_CLAIMS_LENGTH } from '../credential-size.ts';
import { buildSigningInput, joinCompact } from '../jose/compact.ts';
import { PROTOCOL_CLAIMS, RESERVED_NAMES } from './claim-names.ts';
import type { Frame } from './disclosure-frame.ts';
import { MAX_DISCLOSURE_MEMBERS, MAX_DISCLOSURES, MAX_ISSUER_MEMBERS } from './limits.ts';

export type SdJwtContents = {
  /** JOSE header: `typ`, `alg`, `x5c`; a text was encoded by `encodeHeader` before. */
  readonly header: JsonObject | string;
  /** Protocol claims: `vct`, `iss`, `iat`, `exp`, `cnf`, `status`. None of them is ever hidden. */
  readonly alwaysVisible: JsonObject;
  /** Claims about the subject. */
  readonly claims: JsonObject;
  /** Absent if nothing is selectively disclosable. */
  readonly frame?: Frame;
  readonly random: (length: number) => Buffer;
};

export type PreparedSdJwt = {
  readonly signingInput: string;
  readonly disclosures: readonly string[];
  /** Salts of disclosures and decoys. */
  readonly salts: readonly string[];
};

/** 144 bits: above the 128 that RFC 9901 section 9.3 recommends, and whole groups of base64url. */
const SALT_BYTES = 18;
const SALT_LENGTH = 24;
const MAX_CLAIM_DEPTH = 24;

/**
 * Builds an SD-JWT up to its signature (RFC 9901 section 4.2), with SHA-256 digests.
 * @throws Failure `invalid_input` for a claim with a reserved name, or a frame that does not match the claims.
 */
export function prepareSdJwt(contents: SdJwtContents): PreparedSdJwt {
  const { header, alwaysVisible, claims, frame, random } = contents;
  for (const name of Object.keys(claims)) {
    if (Object.hasOwn(alwaysVisible, name)) throw protocolClaimError(name);
  }
  // One call for all salts: a call of the generator costs more than hashing a claim.
  const count = countClaimSalts(claims, frame);
  if (frame === undefined) {
    return { signingInput: buildSigningInput(header, { ...alwaysVisible, ...claims }), disclosures: [], salts: [] };
  }

  const state = { salts: '', offset: 0, disclosures: [] as string[] };
  if (count > 0) state.salts = encodeBase64url(random(count * SALT_BYTES));

  const visible = hideMembers(claims, frame, state);
  const payload: Record<string, Json> = { ...alwaysVisible, ...visible };
  // RFC 9901 section 4.1.1: only at the top level.
  if (count > 0) payload['_sd_alg'] = 'sha-256';
  const salts = Array.from({ length: count }, (_, index) => state.salts.slice(index * SALT_LENGTH, (index + 1) * SALT_LENGTH));
  return { signingInput: buildSigningInput(header, payload), disclosures: state.disclosures, salts };
}

/**
 * Reasons why claims cannot be issued under a frame: reserved names, another shape, or an exceeded limit of verifiers. Paths begin with a
 * dot, or are empty for problems of all claims.
 */
export function findSdJwtClaimProblems(claims: JsonObject, frame: Frame | undefined): readonly FieldError[] {
  return collectFieldErrors(() => assertWithinLimits(claims, frame, countClaimSalts(claims, frame)), 'claims');
}

/** Claims below both numbers satisfy every limit, so they need not be encoded. */
const SMALL_CLAIMS_LENGTH = 1_500;
const FEW_SALTS = 200;
/** Reserve for properties that the protocol adds: `cnf`, `status`, times and names. */
const PROTOCOL_MEMBERS = 100;

/**
 * Encodes the claims as they would be issued and compares the result with the limits of `parseSdJwt` and `processDisclosures`, so that our
 * verifier can always accept our credentials with all disclosures.
 * @param saltCount from `countClaimSalts`. @throws Failure `invalid_input`
 */
function assertWithinLimits(claims: JsonObject, frame: Frame | undefined, saltCount: number): void {
  if (saltCount <= FEW_SALTS && JSON.stringify(claims).length <= SMALL_CLAIMS_LENGTH) return;
  const state = { salts: 'A'.repeat(saltCount * SALT_LENGTH), offset: 0, disclosures: [] as string[] };
  const payload = JSON.stringify(frame === undefined ? claims : hideMembers(claims, frame, state));
  const { disclosures } = state;
  const payloadLength = Math.ceil((Buffer.byteLength(payload) * 4) / 3);
  const length = disclosures.reduce((sum, text) => sum + text.length + 1, payloadLength);
  if (length > MAX_CLAIMS_LENGTH) throw invalidInput('claims', claimsTooLarge(length));
  if (disclosures.length > MAX_DISCLOSURES) {
    const message = `The frame creates ${disclosures.length} disclosures; the maximum is ${MAX_DISCLOSURES}.`;
    throw invalidInput('claims', message);
  }
  const isReadable =
    isWithinPropertyLimit(payload, MAX_ISSUER_MEMBERS - PROTOCOL_MEMBERS) &&
    disclosures.every((text) => isWithinPropertyLimit(decodedText(text), MAX_DISCLOSURE_MEMBERS));
  if (isReadable) return;
  const limits = `${MAX_ISSUER_MEMBERS - PROTOCOL_MEMBERS} in what is always visible, ${MAX_DISCLOSURE_MEMBERS} in one disclosure`;
  throw invalidInput('claims', `The claims have too many properties, entries, commas or escapes; at most ${limits}.`);
}

function decodedText(disclosure: string): string {
  return Buffer.from(disclosure, 'base64url').toString('utf8');
}

/** @returns the number of salts needed. @throws Failure `invalid_input` */
function countClaimSalts(claims: JsonObject, frame: Frame | undefined): number {
  for (const name of Object.keys(claims)) {
    // Subject data must not override protocol claims.
    if (PROTOCOL_CLAIMS.has(name)) throw protocolClaimError(name);
  }
  assertNames(claims, 'claims', 1);
  return frame === undefined ? 0 : countSalts(claims, frame, 'claims');
}

function protocolClaimError(name: string): Error {
  return invalidInput(`claims.${name}`, `"${name}" is set by the issuer and cannot be a claim.`);
}

/** The SD-JWT for the wallet: without key binding it ends with `~` (RFC 9901 section 4). */
export function sealSdJwt(prepared: PreparedSdJwt, signature: Uint8Array): string {
  let text = `${joinCompact(prepared.signingInput, signature)}~`;
  for (const disclosure of prepared.disclosures) text += `${disclosure}~`;
  return text;
}

function assertNames(value: Json, path: string, depth: number, parent?: string): void {
  if (typeof value !== 'object' || value === null) return;
  if (depth > MAX_CLAIM_DEPTH) throw invalidInput(path, `Claims may be nested at most ${MAX_CLAIM_DEPTH} levels.`);
  if (Array.isArray(value)) {
    for (const member of value) assertNames(member, path, depth + 1);
    return;
  }
  for (const [name, member] of Object.entries(value)) {
    // RFC 9901 section 4.1: verifiers would interpret these names differently.
    if (RESERVED_NAMES.has(name) || !isMemberName(name, parent)) throw invalidInput(`${path}.${name}`, `"${name}" is a reserved name.`);
    if (typeof member === 'object') assertNames(member, `${path}.${name}`, depth + 1, name);
  }
}

/** Number of salts for `frame`, including decoys. Also checks that frame and claims have the same shape. */
function countSalts(value: Json, frame: Frame, path: string): number {
  let count = frame.decoys;
  const isArray = Array.isArray(value);
  if (!isArray && !isJsonObject(value)) throw invalidInput(path, 'The disclosure frame expects properties here.');
  for (const key of frame.hidden) {
    if (isArray !== (typeof key === 'number')) {
      throw invalidInput(path, 'A disclosure frame names properties of objects and positions of arrays.');
    }
    if (Object.hasOwn(value, key) || frame.padded?.has(key)) count++;
  }
  for (const [key, child] of frame.children) {
    const member = memberAt(value, key);
    if (member !== undefined) count += countSalts(member, child, `${path}.${key}`);
  }
  return count;
}

function memberAt(value: Json, key: string): Json | undefined {
  if (Array.isArray(value)) return /^(0|[1-9]\d{0,8})$/.test(key) ? (value[Number(key)] as Json) : undefined;
  return isJsonObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
}

type HidingState = { salts: string; offset: number; readonly disclosures: string[] };

function nextSalt(state: HidingState): string {
  const salt = state.salts.slice(state.offset, state.offset + SALT_LENGTH);
  state.offset += SALT_LENGTH;
  return salt;
}

/** RFC 9901 section 4.2.3: over the ASCII form of the disclosure. */
function digestOf(text: string): string {
  return hash('sha256', text, 'base64url');
}

/** Children are hidden first, so that a hidden value contains its digests already (RFC 9901 section 4.2.6). */
function hideNested(value: Json, frame: Frame | undefined, state: HidingState): Json {
  if (frame === undefined || typeof value !== 'object' || value === null) return value;
  return Array.isArray(value) ? hidePositions(value, frame, state) : hideMembers(value as JsonObject, frame, state);
}

function hideMembers(claims: JsonObject, frame: Frame, state: HidingState): JsonObject {
  const visible: Record<string, Json> = {};
  const digests: string[] = [];
  for (const [name, member] of Object.entries(claims)) {
    const value = hideNested(member, frame.children.get(name), state);
    if (frame.hidden.has(name)) {
      const salt = nextSalt(state);
      const disclosure = encodeBase64url(`["${salt}",${JSON.stringify(name)},${JSON.stringify(value)}]`);
      state.disclosures.push(disclosure);
      digests.push(digestOf(disclosure));
    } else visible[name] = value;
  }
  for (let decoy = decoysFor(claims, frame); decoy > 0; decoy--) digests.push(digestOf(nextSalt(state)));
  // RFC 9901 section 4.2.4.1: the order must not reveal the order of the claims.
  if (digests.length > 0) visible['_sd'] = digests.sort();
  return visible;
}

function hidePositions(values: readonly Json[], frame: Frame, state: HidingState): Json[] {
  const visible = values.map((member, position): Json => {
    const value = hideNested(member, frame.children.get(String(position)), state);
    if (!frame.hidden.has(position)) return value;
    const disclosure = encodeBase64url(`["${nextSalt(state)}",${JSON.stringify(value)}]`);
    state.disclosures.push(disclosure);
    // RFC 9901 section 4.2.4.2
    return { '...': digestOf(disclosure) };
  });
  // Decoys follow the elements, so that positions keep their meaning for claims paths.
  for (let decoy = decoysFor(values, frame); decoy > 0; decoy--) visible.push({ '...': digestOf(nextSalt(state)) });
  return visible;
}

/** The configured decoys, plus one for each absent padded entry. */
function decoysFor(value: object, { decoys, padded }: Frame): number {
  if (padded === undefined) return decoys;
  let count = decoys;
  for (const key of padded) if (!Object.hasOwn(value, key)) count++;
  return count;
}
