import { hash } from 'node:crypto';
import { encodeBase64url } from '../../shared/base64url.ts';
import { collectFieldErrors, type FieldError, invalidInput } from '../../shared/failure.ts';
import { holdsAtMost, isJsonObject, isMemberName, type Json, type JsonObject } from '../../shared/json.ts';
import { claimsTooLarge, MAX_CLAIMS_LENGTH } from '../credential-size.ts';
import { buildSigningInput, joinCompact } from '../jose/compact.ts';
import { PROTOCOL_CLAIMS, RESERVED_NAMES } from './claim-names.ts';
import type { Frame } from './disclosure-frame.ts';
import { MAX_DISCLOSURE_MEMBERS, MAX_DISCLOSURES, MAX_ISSUER_MEMBERS } from './limits.ts';

export type SdJwtContents = {
  /** JOSE header: `typ`, `alg`, `x5c`; as text when it is encoded already, by `encodeHeader`. */
  readonly header: JsonObject | string;
  /** Claims of the protocol: `vct`, `iss`, `iat`, `exp`, `cnf`, `status`. Nothing here is ever hidden. */
  readonly alwaysVisible: JsonObject;
  /** Claims about the subject. */
  readonly claims: JsonObject;
  /** Absent: nothing is selectively disclosable. */
  readonly frame?: Frame;
  readonly random: (length: number) => Buffer;
};

export type PreparedSdJwt = {
  readonly signingInput: string;
  readonly disclosures: readonly string[];
  /** Of disclosures and decoys. */
  readonly salts: readonly string[];
};

/** 144 bits: above the 128 that RFC 9901 section 9.3 recommends, and whole groups of base64url. */
const SALT_BYTES = 18;
const SALT_LENGTH = 24;
const MAX_CLAIM_DEPTH = 24;

/**
 * Builds an SD-JWT up to its signature (RFC 9901 section 4.2), with SHA-256 digests.
 * @throws Failure `invalid_input` when a claim has a reserved name or the frame does not fit the claims.
 */
export function prepareSdJwt(contents: SdJwtContents): PreparedSdJwt {
  const { header, alwaysVisible, claims, frame, random } = contents;
  for (const name of Object.keys(claims)) {
    if (Object.hasOwn(alwaysVisible, name)) throw setByIssuer(name);
  }
  // One call for all salts: asking the generator once per claim costs more than hashing it.
  const count = countClaimSalts(claims, frame);
  if (frame === undefined) {
    return {
      signingInput: buildSigningInput(header, { ...alwaysVisible, ...claims }),
      disclosures: [],
      salts: [],
    };
  }

  const work = { salts: '', at: 0, disclosures: [] as string[] };
  if (count > 0) work.salts = encodeBase64url(random(count * SALT_BYTES));

  const visible = hideMembers(claims, frame, work);
  const payload: Record<string, Json> = { ...alwaysVisible, ...visible };
  // RFC 9901 section 4.1.1: only at the top level.
  if (count > 0) payload['_sd_alg'] = 'sha-256';
  const salts = Array.from({ length: count }, (_, index) => work.salts.slice(index * SALT_LENGTH, (index + 1) * SALT_LENGTH));
  return { signingInput: buildSigningInput(header, payload), disclosures: work.disclosures, salts };
}

/**
 * The reasons why claims cannot be issued under a frame: reserved names, another shape, or more than a verifier accepts.
 * Paths begin with a dot, or are empty for all of the claims.
 */
export function findSdJwtClaimProblems(claims: JsonObject, frame: Frame | undefined): readonly FieldError[] {
  return collectFieldErrors(() => assertWithinLimits(claims, frame, countClaimSalts(claims, frame)), 'claims');
}

/** Claims below both numbers are far from every limit, so they are not encoded to find out. */
const SMALL_CLAIMS_LENGTH = 1_500;
const FEW_SALTS = 200;
/** Members of the payload that the protocol adds: `cnf`, `status`, times and names. */
const PROTOCOL_MEMBERS = 100;

/**
 * Encodes the claims as they would be issued and compares the result with the limits of `parseSdJwt` and
 * `processDisclosures`, so that a credential of this service can always be presented to it with all its disclosures.
 * @param saltCount as `countClaimSalts` returns it. @throws Failure `invalid_input`
 */
function assertWithinLimits(claims: JsonObject, frame: Frame | undefined, saltCount: number): void {
  if (saltCount <= FEW_SALTS && JSON.stringify(claims).length <= SMALL_CLAIMS_LENGTH) return;
  const work = { salts: 'A'.repeat(saltCount * SALT_LENGTH), at: 0, disclosures: [] as string[] };
  const payload = JSON.stringify(frame === undefined ? claims : hideMembers(claims, frame, work));
  const { disclosures } = work;
  const payloadLength = Math.ceil((Buffer.byteLength(payload) * 4) / 3);
  const length = disclosures.reduce((sum, text) => sum + text.length + 1, payloadLength);
  if (length > MAX_CLAIMS_LENGTH) throw invalidInput('claims', claimsTooLarge(length));
  if (disclosures.length > MAX_DISCLOSURES) {
    const message = `The frame makes ${disclosures.length} disclosures; at most ${MAX_DISCLOSURES} are possible.`;
    throw invalidInput('claims', message);
  }
  const isReadable =
    holdsAtMost(payload, MAX_ISSUER_MEMBERS - PROTOCOL_MEMBERS) &&
    disclosures.every((text) => holdsAtMost(decodedText(text), MAX_DISCLOSURE_MEMBERS));
  if (isReadable) return;
  const limits = `${MAX_ISSUER_MEMBERS - PROTOCOL_MEMBERS} in what is always visible, ${MAX_DISCLOSURE_MEMBERS} in one disclosure`;
  throw invalidInput('claims', `The claims have too many members, entries, commas or escapes; at most ${limits}.`);
}

function decodedText(disclosure: string): string {
  return Buffer.from(disclosure, 'base64url').toString('utf8');
}

/** @returns how many salts it takes. @throws Failure `invalid_input` */
function countClaimSalts(claims: JsonObject, frame: Frame | undefined): number {
  for (const name of Object.keys(claims)) {
    // What the issuer's protocol says is not for the subject's data to override.
    if (PROTOCOL_CLAIMS.has(name)) throw setByIssuer(name);
  }
  assertNames(claims, 'claims', 1);
  return frame === undefined ? 0 : countSalts(claims, frame, 'claims');
}

function setByIssuer(name: string): Error {
  return invalidInput(`claims.${name}`, `"${name}" is set by the issuer and cannot be a claim.`);
}

/** The SD-JWT as the wallet receives it: no key binding, so it ends with `~` (RFC 9901 section 4). */
export function sealSdJwt(prepared: PreparedSdJwt, signature: Uint8Array): string {
  let text = `${joinCompact(prepared.signingInput, signature)}~`;
  for (const disclosure of prepared.disclosures) text += `${disclosure}~`;
  return text;
}

function assertNames(value: Json, path: string, depth: number, parent?: string): void {
  if (typeof value !== 'object' || value === null) return;
  if (depth > MAX_CLAIM_DEPTH) throw invalidInput(path, `Claims nest at most ${MAX_CLAIM_DEPTH} levels.`);
  if (Array.isArray(value)) {
    for (const member of value) assertNames(member, path, depth + 1);
    return;
  }
  for (const [name, member] of Object.entries(value)) {
    // RFC 9901 section 4.1: these names mean something else to the one who reads the credential.
    if (RESERVED_NAMES.has(name) || !isMemberName(name, parent)) throw invalidInput(`${path}.${name}`, `"${name}" is a reserved name.`);
    if (typeof member === 'object') assertNames(member, `${path}.${name}`, depth + 1, name);
  }
}

/** How many salts `frame` takes, decoys included. Looks at whether frame and claims have the same shape, too. */
function countSalts(value: Json, frame: Frame, path: string): number {
  let count = frame.decoys;
  const isArray = Array.isArray(value);
  if (!isArray && !isJsonObject(value)) throw invalidInput(path, 'The disclosure frame expects members here.');
  for (const key of frame.hidden) {
    if (isArray !== (typeof key === 'number')) {
      throw invalidInput(path, 'A disclosure frame names members of objects and positions of arrays.');
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

type Work = { salts: string; at: number; readonly disclosures: string[] };

function nextSalt(work: Work): string {
  const salt = work.salts.slice(work.at, work.at + SALT_LENGTH);
  work.at += SALT_LENGTH;
  return salt;
}

/** RFC 9901 section 4.2.3: over the ASCII form of the disclosure. */
function digestOf(text: string): string {
  return hash('sha256', text, 'base64url');
}

/** Children first, so that a hidden value contains its own digests already (RFC 9901 section 4.2.6). */
function hideBelow(value: Json, frame: Frame | undefined, work: Work): Json {
  if (frame === undefined || typeof value !== 'object' || value === null) return value;
  return Array.isArray(value) ? hidePositions(value, frame, work) : hideMembers(value as JsonObject, frame, work);
}

function hideMembers(claims: JsonObject, frame: Frame, work: Work): JsonObject {
  const visible: Record<string, Json> = {};
  const digests: string[] = [];
  for (const [name, member] of Object.entries(claims)) {
    const value = hideBelow(member, frame.children.get(name), work);
    if (frame.hidden.has(name)) {
      const salt = nextSalt(work);
      const disclosure = encodeBase64url(`["${salt}",${JSON.stringify(name)},${JSON.stringify(value)}]`);
      work.disclosures.push(disclosure);
      digests.push(digestOf(disclosure));
    } else visible[name] = value;
  }
  for (let decoy = decoysFor(claims, frame); decoy > 0; decoy--) digests.push(digestOf(nextSalt(work)));
  // RFC 9901 section 4.2.4.1: the order must not tell the order of the claims.
  if (digests.length > 0) visible['_sd'] = digests.sort();
  return visible;
}

function hidePositions(values: readonly Json[], frame: Frame, work: Work): Json[] {
  const visible = values.map((member, position): Json => {
    const value = hideBelow(member, frame.children.get(String(position)), work);
    if (!frame.hidden.has(position)) return value;
    const disclosure = encodeBase64url(`["${nextSalt(work)}",${JSON.stringify(value)}]`);
    work.disclosures.push(disclosure);
    // RFC 9901 section 4.2.4.2
    return { '...': digestOf(disclosure) };
  });
  // Decoys follow the members, so that a position keeps its meaning for path queries.
  for (let decoy = decoysFor(values, frame); decoy > 0; decoy--) visible.push({ '...': digestOf(nextSalt(work)) });
  return visible;
}

/** Those that were asked for, and one for each member that is absent and must not be missed. */
function decoysFor(value: object, { decoys, padded }: Frame): number {
  if (padded === undefined) return decoys;
  let count = decoys;
  for (const key of padded) if (!Object.hasOwn(value, key)) count++;
  return count;
}
