import type { SigningAlgorithm } from '../../shared/jwk.ts';
import { Refusal, type RefusalReason } from '../../shared/refusal.ts';
import { decodeCbor } from '../cbor/decode.ts';
import { encodeCbor } from '../cbor/encode.ts';
import { type Cbor, type CborMap, isArray, isBytes, isMap, Tagged } from '../cbor/values.ts';
import { algorithmOfCose, coseAlgorithm } from './algorithms.ts';

/** Labels of RFC 9052 section 3.1, RFC 9360 section 2 and RFC 9596 section 2. */
export const HEADER = { alg: 1, crit: 2, type: 16, x5chain: 33 } as const;

const COSE_SIGN1 = 18;
const EMPTY_BYTES = Buffer.alloc(0);
const EMPTY_MAP = 0xa0;

/** A parsed COSE_Sign1 (RFC 9052 section 4.2). Nothing is verified yet. */
export type CoseSign1 = {
  /** The protected header as received; the signature covers exactly these bytes. */
  readonly protectedBytes: Buffer;
  readonly protectedHeader: CborMap;
  readonly unprotectedHeader: CborMap;
  /** `undefined` when it is detached. */
  readonly payload?: Buffer;
  readonly signature: Buffer;
};

/** Parses the array of four, with or without tag 18. @throws Refusal `malformed` */
export function parseCoseSign1(value: Cbor): CoseSign1 {
  const parts = value instanceof Tagged && value.tag === COSE_SIGN1 ? value.value : value;
  if (!isArray(parts) || parts.length !== 4) throw malformed('not an array of four');
  const [protectedBytes, unprotectedHeader, payload, signature] = parts;
  if (!isBytes(protectedBytes) || !isMap(unprotectedHeader) || !isBytes(signature)) throw malformed('an element has the wrong type');
  if (payload !== null && !isBytes(payload)) throw malformed('payload');
  const protectedHeader = protectedBytes.length === 0 ? new Map() : decodeCbor(protectedBytes);
  if (!isMap(protectedHeader)) throw malformed('protected header');
  for (const label of protectedHeader.keys()) {
    // RFC 9052 section 3: a label must not occur in both.
    if (unprotectedHeader.has(label)) throw malformed('a label is in both headers');
  }
  return { protectedBytes, protectedHeader, unprotectedHeader, ...(payload !== null && { payload }), signature };
}

/**
 * The algorithm in the protected header; the caller must compare it with the algorithm of the key.
 * @throws Refusal `reason` for a missing or disallowed algorithm; `unsupported_crit` for an unknown extension.
 */
export function parseCoseAlgorithm({ protectedHeader }: CoseSign1, allowed: readonly string[], reason: RefusalReason): SigningAlgorithm {
  // RFC 9052 section 3.1: alg must be protected; an unprotected one is ignored.
  const algorithm = algorithmOfCose(protectedHeader.get(HEADER.alg));
  if (algorithm === undefined || !allowed.includes(algorithm)) throw new Refusal(reason);
  // RFC 9052 section 3.1: an unsupported critical header invalidates the message; none is supported.
  if (protectedHeader.has(HEADER.crit)) throw new Refusal('unsupported_crit');
  return algorithm;
}

/** The signed bytes, without external data (RFC 9052 section 4.4). */
export function sigStructure(protectedBytes: Buffer, payload: Buffer): Buffer {
  // RFC 9052 section 4.4: an empty map is encoded as an empty string.
  const isEmpty = protectedBytes.length === 1 && protectedBytes[0] === EMPTY_MAP;
  return encodeCbor(['Signature1', isEmpty ? EMPTY_BYTES : protectedBytes, EMPTY_BYTES, payload]);
}

export function protectedHeaderOf(algorithm: SigningAlgorithm): Buffer {
  return encodeCbor(new Map([[HEADER.alg, coseAlgorithm(algorithm)]]));
}

/** The untagged array; without `payload` it is detached. */
export function buildCoseSign1(parts: Pick<CoseSign1, 'protectedBytes' | 'unprotectedHeader' | 'payload' | 'signature'>): Cbor {
  return [parts.protectedBytes, parts.unprotectedHeader, parts.payload ?? null, parts.signature];
}

/**
 * The certificates of an `x5chain`, leaf first, as DER in standard base64 (RFC 9360 section 2).
 * @returns `undefined` for a missing or invalid header.
 */
export function parseX5chain(header: CborMap): readonly string[] | undefined {
  const value = header.get(HEADER.x5chain);
  const certificates = isArray(value) ? value : [value];
  const bytes = certificates.filter(isBytes);
  if (bytes.length === 0 || bytes.length !== certificates.length) return undefined;
  return bytes.map((certificate) => certificate.toString('base64'));
}

/** @param chain DER in standard base64, leaf first. A single certificate is not wrapped in an array. */
export function x5chainOf(chain: readonly string[]): Cbor {
  const certificates = chain.map((certificate) => Buffer.from(certificate, 'base64'));
  return certificates.length === 1 ? certificates[0] : certificates;
}

function malformed(detail: string): Refusal {
  return new Refusal('malformed', `COSE_Sign1: ${detail}`);
}
