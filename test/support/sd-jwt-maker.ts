import { createHash, randomBytes, sign } from 'node:crypto';
import { type DisclosedObject, isUndisclosed } from '../../domain/formats/sd-jwt/disclosures.ts';
import type { Json, JsonObject } from '../../domain/shared/json.ts';
import type { HolderKey } from './raw-wallet.ts';

// biome-ignore lint/suspicious/noExplicitAny: tokens of every shape
export type JsonProperties = Record<string, any>;

/** A key with the certificates that vouch for it, DER in standard base64, leaf first. */
export type Signer = { readonly key: HolderKey; readonly chain: readonly string[] };

/** The input for a presentation of an SD-JWT VC. */
export type SdJwtBase = {
  readonly issuer: Signer;
  readonly holder: HolderKey;
  /** Claims that are always disclosed. */
  readonly visible: JsonProperties;
  /** Selectively disclosable claims. */
  readonly hidden: JsonProperties;
  readonly audience: string;
  readonly nonce: string;
  /** Seconds. */
  readonly now: number;
};

/** Deviations from a valid presentation; undefined removes a property. */
export type SdJwtOverrides = {
  readonly visible?: JsonProperties;
  readonly hidden?: JsonProperties;
  readonly header?: JsonProperties;
  /** The issuer's payload before it is signed, digests and all. */
  readonly payload?: JsonProperties | ((payload: JsonProperties) => JsonProperties);
  readonly issuer?: Signer;
  /** Signs instead of the issuer's key, under the issuer's certificates. */
  readonly issuerKey?: HolderKey;
  /** Changes the issuer's JWT after it is signed. */
  readonly issuerJwt?: (jwt: string) => string;
  /** Changes what is disclosed, before it is bound. */
  readonly changeDisclosures?: (disclosures: readonly string[]) => readonly string[];
  /** Input of `sd_hash`; the SD-JWT by default. */
  readonly hashedText?: (text: string) => string;
  /** Hash algorithm of `sd_hash`, as named by node:crypto. */
  readonly hashAlgorithm?: string;
  readonly kbHeader?: JsonProperties;
  readonly kb?: JsonProperties;
  readonly kbKey?: HolderKey;
  readonly kbJwt?: (jwt: string) => string;
  /** Changes the whole presentation. */
  readonly text?: (text: string) => string;
};

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
export const digestOf = (text: string, algorithm = 'sha256') => createHash(algorithm).update(text).digest('base64url');

/** RFC 9901 section 4.2.1. @param parts salt, name and value; salt and value for a member of an array. */
export const disclosureOf = (...parts: readonly unknown[]) => encode(parts);
export const saltedDisclosure = (...parts: readonly unknown[]) => disclosureOf(randomBytes(12).toString('base64url'), ...parts);

export function signJws(input: string, { privateKey }: HolderKey): string {
  const signature = sign('sha256', Buffer.from(input), { key: privateKey, dsaEncoding: 'ieee-p1363' });
  return `${input}.${signature.toString('base64url')}`;
}

/** Signs any header and payload with ES256; undefined properties are omitted. */
export function jws(header: JsonProperties, payload: JsonProperties, key: HolderKey): string {
  return signJws(`${encode(header)}.${encode(payload)}`, key);
}

/** A valid SD-JWT with key binding and overrides (RFC 9901 section 4.3). */
export function presentSdJwt(base: SdJwtBase, overrides: SdJwtOverrides = {}): string {
  const credential = makeSdJwt(base, overrides);
  const kb = {
    iat: base.now,
    aud: base.audience,
    nonce: base.nonce,
    sd_hash: digestOf(overrides.hashedText?.(credential) ?? credential, overrides.hashAlgorithm),
    ...overrides.kb,
  };
  const binding = jws({ alg: 'ES256', typ: 'kb+jwt', ...overrides.kbHeader }, kb, overrides.kbKey ?? base.holder);
  const text = credential + (overrides.kbJwt?.(binding) ?? binding);
  return overrides.text?.(text) ?? text;
}

/** The same without key binding, up to and including the last `~`. */
export function makeSdJwt(base: SdJwtBase, overrides: SdJwtOverrides = {}): string {
  const issuer = overrides.issuer ?? base.issuer;
  const disclosures = Object.entries({ ...base.hidden, ...overrides.hidden })
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => saltedDisclosure(name, value));
  const decoy = digestOf(randomBytes(16).toString('hex'));
  const defaultPayload = {
    cnf: { jwk: base.holder.jwk },
    iat: base.now - 100,
    ...base.visible,
    ...overrides.visible,
    _sd: [...disclosures.map((text) => digestOf(text)), decoy].sort(),
    _sd_alg: 'sha-256',
  };
  const payload = typeof overrides.payload === 'function' ? overrides.payload(defaultPayload) : { ...defaultPayload, ...overrides.payload };
  const header = { alg: 'ES256', typ: 'dc+sd-jwt', x5c: issuer.chain, ...overrides.header };
  const jwt = jws(header, payload, overrides.issuerKey ?? issuer.key);
  const shownDisclosures = overrides.changeDisclosures?.(disclosures) ?? disclosures;
  return [overrides.issuerJwt?.(jwt) ?? jwt, ...shownDisclosures, ''].join('~');
}

/** Changes one part of a text that a character separates. */
export const changePart =
  (separator: string, partIndex: number, change: (part: string) => string) =>
  (text: string): string =>
    text
      .split(separator)
      .map((piece, index, pieces) => (index === (partIndex < 0 ? pieces.length + partIndex : partIndex) ? change(piece) : piece))
      .join(separator);

/** Changes the first byte of base64url, so that it stays base64url. */
export const flipFirstByte = (text: string) => (text.startsWith('A') ? 'B' : 'A') + text.slice(1);

/** The claims without undisclosed array elements (RFC 9901 section 7.1 step 3d). */
export function withoutUndisclosed(claims: DisclosedObject): JsonObject {
  return removeUndisclosed(claims) as JsonObject;
}

function removeUndisclosed(value: unknown): Json {
  if (typeof value !== 'object' || value === null) return value as Json;
  if (Array.isArray(value)) return value.filter((item) => !isUndisclosed(item)).map(removeUndisclosed);
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, removeUndisclosed(item)]));
}
