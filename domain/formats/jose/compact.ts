import { decodeBase64url, encodeBase64url } from '../../shared/base64url.ts';
import { decodeJson, isJsonObject, isTexts, type JsonObject } from '../../shared/json.ts';
import { algorithmOf, type PublicJwk, SIGNING_ALGORITHMS, type SigningAlgorithm } from '../../shared/jwk.ts';

/** A JWS in compact form (RFC 7515 section 7.1) whose payload is a JSON object. Nothing is verified yet. */
export type CompactJws = {
  readonly header: JsonObject;
  readonly payload: JsonObject;
  /** The exact ASCII text that the signature covers. */
  readonly signingInput: string;
  /** Raw signature; empty when the third part is. */
  readonly signature: Buffer;
};

export type CompactLimits = {
  /** Largest length of the whole text in characters. */
  readonly length?: number;
  /** Largest size of the decoded header in bytes. */
  readonly headerBytes?: number;
  /** Deepest nesting of header and payload. */
  readonly depth?: number;
  /** Most members and entries of the payload; any number unless told. */
  readonly members?: number;
};

/** Of a header: certificates, a key and some texts. It is read before anybody knows whose it is. */
const MAX_HEADER_MEMBERS = 256;
const DEFAULTS = { length: 1024 * 1024, headerBytes: 32 * 1024, depth: 32 } as const;

/**
 * Takes a compact JWS apart. `undefined` unless it is three parts of strict base64url, of which the first two
 * are unambiguous JSON objects within `limits`.
 */
export function parseCompactJws(text: string, limits: CompactLimits = {}): CompactJws | undefined {
  const { length, headerBytes, depth, members } = { ...DEFAULTS, ...limits };
  if (text.length > length) return undefined;
  const first = text.indexOf('.');
  const second = text.indexOf('.', first + 1);
  if (first < 1 || second < 0) return undefined;
  // 4 characters of base64url carry 3 bytes; look before decoding.
  if (first > Math.ceil(headerBytes / 3) * 4) return undefined;

  const header = decodeObject(text.slice(0, first), depth, MAX_HEADER_MEMBERS);
  const payload = decodeObject(text.slice(first + 1, second), depth, members);
  const signature = decodeBase64url(text.slice(second + 1));
  if (header === undefined || payload === undefined || signature === undefined) return undefined;
  return { header, payload, signingInput: text.slice(0, second), signature };
}

function decodeObject(part: string, depth: number, members?: number): JsonObject | undefined {
  const value = decodeJson(part, depth, members);
  return isJsonObject(value) ? value : undefined;
}

export type HeaderVerdict = { readonly algorithm: SigningAlgorithm; readonly fault?: undefined } | { readonly fault: 'alg' | 'crit' };

/**
 * Reads the algorithm that a JOSE header announces. The caller still compares it with the one its key has.
 * @param allowed names from the configuration; `EdDSA` and `Ed25519` (RFC 9864 section 2.2) mean one algorithm.
 * @returns `fault: 'alg'` for an absent or not allowed algorithm, `'crit'` for extensions we do not know.
 */
export function parseAlgorithm(header: JsonObject, allowed: readonly string[]): HeaderVerdict {
  const name = plainName(header['alg']);
  const algorithm = SIGNING_ALGORITHMS.find((known) => known === name);
  if (algorithm === undefined || !allowed.some((other) => plainName(other) === algorithm)) return { fault: 'alg' };
  // RFC 7515 section 4.1.11: an extension that is not understood refuses the message; we understand none.
  if (Object.hasOwn(header, 'crit')) return { fault: 'crit' };
  // RFC 7797 section 6: an unencoded payload announces itself in `crit`, so `b64` alone is just as foreign.
  if (Object.hasOwn(header, 'b64') && header['b64'] !== true) return { fault: 'crit' };
  return { algorithm };
}

/** RFC 9864 section 2.2: two names of one algorithm, of which either may be listed and used. */
function plainName(name: unknown): unknown {
  return name === 'Ed25519' ? 'EdDSA' : name;
}

/** Whether the algorithm that a header announces is one of this service and that of the key (RFC 8725 section 3.1). */
export function fitsKey(header: JsonObject, key: PublicJwk): boolean {
  const verdict = parseAlgorithm(header, SIGNING_ALGORITHMS);
  return verdict.fault === undefined && verdict.algorithm === algorithmOf(key);
}

/**
 * RFC 7515 section 4.1.11: whether `crit`, where it stands, lists names without repetition, of parameters that are there
 * and that the reader processes.
 */
export function understandsCritical(header: JsonObject, processed: readonly string[]): boolean {
  if (!Object.hasOwn(header, 'crit')) return true;
  const { crit, ...others } = header;
  const names: readonly unknown[] = Array.isArray(crit) ? crit : [];
  const isKnown = (name: unknown) => typeof name === 'string' && processed.includes(name) && Object.hasOwn(others, name);
  return names.length > 0 && new Set(names).size === names.length && names.every(isKnown);
}

/** What a signer of a JAdES signature may mark as critical (TS 119 182-1 section 5.1, RFC 7797). */
export const JADES_CRITICAL = ['sigT', 'iat', 'b64'];

const BASE64 = /^(?:[A-Za-z0-9+/]{4})+(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** The certificates of `x5c` as they stand there: DER in standard base64, leaf first (RFC 7515 section 4.1.6). */
export function parseX5c({ x5c }: JsonObject): readonly string[] | undefined {
  // RFC 7515 section 4.1.6: base64, not base64url
  return isTexts(x5c) && x5c.length > 0 && x5c.every((entry) => BASE64.test(entry)) ? x5c : undefined;
}

/** The JOSE header as it stands in a compact JWS. */
export function encodeHeader(header: JsonObject): string {
  return encodeBase64url(JSON.stringify(header));
}

/**
 * The text that a JWS signature covers (RFC 7515 section 5.1 step 8), ASCII.
 * @param header as text: encoded already, by `encodeHeader`.
 */
export function buildSigningInput(header: JsonObject | string, payload: JsonObject): string {
  const encoded = typeof header === 'string' ? header : encodeHeader(header);
  return `${encoded}.${encodeBase64url(JSON.stringify(payload))}`;
}

/** Compact serialization of a signed `signingInput` (RFC 7515 section 7.1). */
export function joinCompact(signingInput: string, signature: Uint8Array): string {
  return `${signingInput}.${encodeBase64url(signature)}`;
}
