import { decodeCbor } from '../formats/cbor/decode.ts';
import { encodeCbor } from '../formats/cbor/encode.ts';
import { type Cbor, type CborMap, isBytes, isMap, Tagged } from '../formats/cbor/values.ts';
import { coseAlgorithm } from '../formats/cose/algorithms.ts';
import {
  buildCoseSign1,
  HEADER,
  parseCoseAlgorithm,
  parseCoseSign1,
  parseX5chain,
  sigStructure,
  x5chainOf,
} from '../formats/cose/sign1.ts';
import type { Json, JsonObject } from '../shared/json.ts';
import { SIGNING_ALGORITHMS, type SigningAlgorithm } from '../shared/jwk.ts';
import { Refusal } from '../shared/refusal.ts';
import type { StatusListClaims } from './token.ts';

export const STATUS_LIST_CWT_TYPE = 'application/statuslist+cwt';

/** Equals the limit for the JWT form. */
const MAX_BYTES = 2 * 1024 * 1024;
const COSE_SIGN1 = 18;

/** A parsed Status List Token in CWT form (Token Status List section 5.2). Nothing is verified yet. */
export type ParsedStatusListCwt = {
  readonly algorithm: SigningAlgorithm;
  /** DER in standard base64, leaf first; absent when the token carries none. */
  readonly chain?: readonly string[];
  readonly toVerify: Buffer;
  readonly signature: Buffer;
  /** The claims by their names in a JWT, `lst` as base64url: the input of `parseStatusListClaims`. */
  readonly payload: JsonObject;
};

/** The claims of Token Status List section 5.2 by their names in section 5.1. */
const CLAIMS: readonly (readonly [number, 'sub' | 'iat' | 'exp' | 'ttl'])[] = [
  [2, 'sub'],
  [6, 'iat'],
  [4, 'exp'],
  [65534, 'ttl'],
];
/** Claims that restrict the validity of a token (RFC 8392 section 3.1). */
const LIMITS: readonly (readonly [number, 'aud' | 'nbf'])[] = [
  [3, 'aud'],
  [5, 'nbf'],
];
const STATUS_LIST = 65533;

/** @throws Refusal `status_invalid` unless it is a typed COSE_Sign1, tagged or not, with a supported algorithm. */
export function parseStatusListCwt(bytes: Uint8Array): ParsedStatusListCwt {
  try {
    return parseToken(bytes);
  } catch (error) {
    if (error instanceof Refusal) throw new Refusal('status_invalid', error.message);
    throw error;
  }
}

function parseToken(bytes: Uint8Array): ParsedStatusListCwt {
  const token = decodeCbor(bytes, { bytes: MAX_BYTES });
  // Draft 14 of Token Status List, which HAIP 1.0 references, shows the token without a tag, later drafts with tag 18. An untagged MAC has
  // parts of the same types, and fails at the signature.
  if (token instanceof Tagged && token.tag !== COSE_SIGN1) throw invalid('not a COSE_Sign1');
  const signed = parseCoseSign1(token);
  const { protectedHeader, protectedBytes, unprotectedHeader, payload, signature } = signed;
  // Token Status List section 5.2: the type is explicit and protected.
  if (protectedHeader.get(HEADER.type) !== STATUS_LIST_CWT_TYPE) throw invalid('typ');
  const algorithm = parseCoseAlgorithm(signed, SIGNING_ALGORITHMS, 'status_invalid');
  if (payload === undefined) throw invalid('payload');
  const claims = decodeCbor(payload, { bytes: MAX_BYTES });
  if (!isMap(claims)) throw invalid('payload');
  // RFC 9360 section 2: either header may contain it.
  const chain = parseX5chain(protectedHeader) ?? parseX5chain(unprotectedHeader);
  return {
    algorithm,
    ...(chain !== undefined && { chain }),
    toVerify: sigStructure(protectedBytes, payload),
    signature,
    payload: parseClaims(claims),
  };
}

function parseClaims(claims: CborMap): JsonObject {
  const payload: Record<string, Json> = {};
  for (const [key, name] of [...CLAIMS, ...LIMITS]) {
    if (claims.has(key)) payload[name] = primitive(claims.get(key), name);
  }
  const list = claims.get(STATUS_LIST);
  const lst = isMap(list) ? list.get('lst') : undefined;
  // Token Status List section 4.3: the compressed list is a byte string.
  if (!isMap(list) || !isBytes(lst)) throw invalid('status_list');
  payload['status_list'] = { bits: primitive(list.get('bits'), 'bits'), lst: lst.toString('base64url') };
  return payload;
}

export type StatusListCwtToBuild = {
  readonly claims: StatusListClaims;
  readonly algorithm: SigningAlgorithm;
  /** DER in standard base64, leaf first. */
  readonly chain: readonly string[];
};

/** @returns the bytes to sign, and a function that builds the token from the raw signature (Token Status List section 5.2). */
export function prepareStatusListCwt({ claims, algorithm, chain }: StatusListCwtToBuild) {
  const { bits, lst, aggregation_uri } = claims.status_list;
  const list = new Map<string, Cbor>([
    ['bits', bits],
    ['lst', Buffer.from(lst, 'base64url')],
    ...(aggregation_uri === undefined ? [] : [['aggregation_uri', aggregation_uri] as const]),
  ]);
  const payload = encodeCbor(new Map<number, Cbor>([...CLAIMS.map(([key, name]) => [key, claims[name]] as const), [STATUS_LIST, list]]));
  const protectedBytes = encodeCbor(
    new Map<number, Cbor>([
      [HEADER.alg, coseAlgorithm(algorithm)],
      [HEADER.type, STATUS_LIST_CWT_TYPE],
      [HEADER.x5chain, x5chainOf(chain)],
    ]),
  );
  return {
    toSign: sigStructure(protectedBytes, payload),
    seal(signature: Buffer): Buffer {
      const parts = { protectedBytes, unprotectedHeader: new Map(), payload, signature };
      return encodeCbor(new Tagged(COSE_SIGN1, buildCoseSign1(parts)));
    },
  };
}

function primitive(value: Cbor, name: string): string | number {
  if (typeof value !== 'string' && typeof value !== 'number') throw invalid(name);
  return value;
}

function invalid(detail: string): Refusal {
  return new Refusal('status_invalid', detail);
}
