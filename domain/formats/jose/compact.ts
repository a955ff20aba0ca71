import { decodeBase64url, encodeBase64url } from '../../shared/base64url.ts';
import { decodeJson, isJsonObject, isStringArray, type JsonObject } from '../../shared/json.ts';
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
  /** Limit of the properties and entries of the payload; unlimited by default. */
  readonly members?: number;
};

/** Limit for headers, which contain certificates, a key and some texts. They are parsed before the signature is verified. */
const MAX_HEADER_MEMBERS = 256;
const DEFAULTS = { length: 1024 * 1024, headerBytes: 32 * 1024, depth: 32 } as const;

/**
 * Parses a compact JWS. `undefined` unless it consists of three parts of strict base64url, of which the first two are unambiguous JSON
 * objects within `limits`.
 */
export function parseCompactJws(text: string, limits: CompactLimits = {}): CompactJws | undefined {
  const { length, headerBytes, depth, members } = { ...DEFAULTS, ...limits };
  if (text.length > length) return undefined;
  const firstDot = text.indexOf('.');
  const secondDot = text.indexOf('.', firstDot + 1);
  if (firstDot < 1 || secondDot < 0) return undefined;
  // 4 characters of base64url encode 3 bytes; the length is checked before decoding.
  if (firstDot > Math.ceil(headerBytes / 3) * 4) return undefined;

  const header = decodeObject(text.slice(0, firstDot), depth, MAX_HEADER_MEMBERS);
  const payload = decodeObject(text.slice(firstDot + 1, secondDot), depth, members);
  const signature = decodeBase64url(text.slice(secondDot + 1));
  if (header === undefined || payload === undefined || signature === undefined) return undefined;
  return { header, payload, signingInput: text.slice(0, secondDot), signature };
}

function decodeObject(part: string, depth: number, members?: number): JsonObject | undefined {
  const value = decodeJson(part, depth, members);
  return isJsonObject(value) ? value : undefined;
}

export type HeaderVerdict = { readonly algorithm: SigningAlgorithm; readonly fault?: undefined } | { readonly fault: 'alg' | 'crit' };

/**
 * Parses the algorithm of a JOSE header. The caller must compare it with the algorithm of the key.
 * @param allowed configured names; `EdDSA` and `Ed25519` (RFC 9864 section 2.2) denote the same algorithm.
 * @returns `fault: 'alg'` for an absent or disallowed algorithm, `'crit'` for unknown extensions.
 */
export function parseAlgorithm(header: JsonObject, allowed: readonly string[]): HeaderVerdict {
  const algorithmName = normalizeAlgorithmName(header['alg']);
  const algorithm = SIGNING_ALGORITHMS.find((candidate) => candidate === algorithmName);
  if (algorithm === undefined || !allowed.some((allowedName) => normalizeAlgorithmName(allowedName) === algorithm)) return { fault: 'alg' };
  // RFC 7515 section 4.1.11: an unsupported extension invalidates the message; none is supported.
  if (Object.hasOwn(header, 'crit')) return { fault: 'crit' };
  // RFC 7797 section 6: an unencoded payload requires `crit`, so `b64` alone is unsupported as well.
  if (Object.hasOwn(header, 'b64') && header['b64'] !== true) return { fault: 'crit' };
  return { algorithm };
}

/** RFC 9864 section 2.2: both names of the algorithm are accepted. */
function normalizeAlgorithmName(algorithmName: unknown): unknown {
  return algorithmName === 'Ed25519' ? 'EdDSA' : algorithmName;
}

/** True if the algorithm of a header is supported and equals the algorithm of the key (RFC 8725 section 3.1). */
export function matchesKey(header: JsonObject, key: PublicJwk): boolean {
  const verdict = parseAlgorithm(header, SIGNING_ALGORITHMS);
  return verdict.fault === undefined && verdict.algorithm === algorithmOf(key);
}

/** RFC 7515 section 4.1.11: true if `crit` is absent, or lists distinct names of parameters that are present and processed. */
export function supportsCriticalParameters(header: JsonObject, processed: readonly string[]): boolean {
  if (!Object.hasOwn(header, 'crit')) return true;
  const { crit, ...otherParameters } = header;
  const names: readonly unknown[] = Array.isArray(crit) ? crit : [];
  const isKnown = (algorithmName: unknown) =>
    typeof algorithmName === 'string' && processed.includes(algorithmName) && Object.hasOwn(otherParameters, algorithmName);
  return names.length > 0 && new Set(names).size === names.length && names.every(isKnown);
}

/** Critical parameters that a JAdES signature may have (TS 119 182-1 section 5.1, RFC 7797). */
export const JADES_CRITICAL = ['sigT', 'iat', 'b64'];

const BASE64 = /^(?:[A-Za-z0-9+/]{4})+(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** The certificates in `x5c`: DER in standard base64, leaf first (RFC 7515 section 4.1.6). */
export function parseX5c({ x5c }: JsonObject): readonly string[] | undefined {
  // RFC 7515 section 4.1.6: base64, not base64url
  return isStringArray(x5c) && x5c.length > 0 && x5c.every((entry) => BASE64.test(entry)) ? x5c : undefined;
}

export function encodeHeader(header: JsonObject): string {
  return encodeBase64url(JSON.stringify(header));
}

/**
 * The text that a JWS signature covers (RFC 7515 section 5.1 step 8), ASCII.
 * @param header a text was encoded by `encodeHeader` before.
 */
export function buildSigningInput(header: JsonObject | string, payload: JsonObject): string {
  const encoded = typeof header === 'string' ? header : encodeHeader(header);
  return `${encoded}.${encodeBase64url(JSON.stringify(payload))}`;
}

/** Compact serialization of a signed `signingInput` (RFC 7515 section 7.1). */
export function joinCompact(signingInput: string, signature: Uint8Array): string {
  return `${signingInput}.${encodeBase64url(signature)}`;
}
