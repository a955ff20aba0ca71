import { hash } from 'node:crypto';
import { invalidInput } from '../../shared/failure.ts';
import type { JsonObject } from '../../shared/json.ts';
import type { PublicJwk, SigningAlgorithm } from '../../shared/jwk.ts';
import { Refusal } from '../../shared/refusal.ts';
import { decodeCbor, MAX_ITEMS } from '../cbor/decode.ts';
import { embed, encodeCbor } from '../cbor/encode.ts';
import { parsePropertyName, toJson } from '../cbor/to-json.ts';
import { type Cbor, type CborMap, type EncodedCbor, tdate } from '../cbor/values.ts';
import { coseKeyOf } from '../cose/key.ts';
import { buildCoseSign1, HEADER, protectedHeaderOf, sigStructure, x5chainOf } from '../cose/sign1.ts';
import { claimsTooLarge, MAX_CLAIMS_LENGTH } from '../credential-size.ts';
import { parseElementValue } from './element-values.ts';

export type MdocContents = {
  readonly docType: string;
  /** Elements by namespace, as JSON: see `parseElementValue`. */
  readonly claimsByNamespace: Readonly<Record<string, JsonObject>>;
  readonly holderKey: PublicJwk;
  /** `chain`: DER in standard base64, leaf first, without the root. */
  readonly signer: { readonly algorithm: SigningAlgorithm; readonly chain: readonly string[] };
  /** Fractions of seconds are truncated. */
  readonly validity: { readonly signed: Date; readonly validFrom: Date; readonly validUntil: Date };
  readonly status?: { readonly idx: number; readonly uri: string };
  readonly random: (length: number) => Buffer;
};

export type PreparedMdoc = {
  /** The bytes that the document signer signs: the Sig_structure of RFC 9052 section 4.4. */
  readonly toSign: Buffer;
  readonly protectedBytes: Buffer;
  readonly unprotectedHeader: CborMap;
  readonly payload: Buffer;
  readonly nameSpaces: ReadonlyMap<string, readonly EncodedCbor[]>;
  readonly salts: readonly string[];
};

/** 256 bits, above the 128 that ISO/IEC 18013-5 section 9.1.2.5 demands. */
const RANDOM_BYTES = 32;
/** 32 bits determine each position of the shuffle, far more than there are elements. */
const SHUFFLE_BYTES = 4;

/**
 * Builds an mdoc up to its signature (ISO/IEC 18013-5 section 9.1.2), with SHA-256 digests over the bytes that are sent.
 * @throws Failure `invalid_input` for claims without a CBOR form, for inconsistent times, and for an unsupported holder key.
 */
export function prepareMdoc(contents: MdocContents): PreparedMdoc {
  const { docType, claimsByNamespace, holderKey, signer, validity, status, random } = contents;
  const deviceKey = coseKeyOf(holderKey);
  if (deviceKey === undefined) throw invalidInput('holderKey', 'An mdoc cannot contain a key of this type.');

  const nameSpaces = new Map<string, readonly EncodedCbor[]>();
  const valueDigests = new Map<string, CborMap>();
  const salts: string[] = [];
  for (const [namespace, claims] of Object.entries(claimsByNamespace)) {
    const { items, digests, salts: namespaceSalts } = buildItems(namespace, claims, random);
    // ISO/IEC 18013-5 section 8.3.2.1.2.2: an empty namespace is omitted.
    if (items.length === 0) continue;
    nameSpaces.set(namespace, items);
    valueDigests.set(namespace, digests);
    salts.push(...namespaceSalts);
  }

  const mso = encodeCbor({
    version: '1.0',
    digestAlgorithm: 'SHA-256',
    valueDigests,
    deviceKeyInfo: { deviceKey },
    docType,
    validityInfo: validityInfo(validity),
    // Token Status List section 6.3
    ...(status !== undefined && { status: { status_list: { idx: status.idx, uri: status.uri } } }),
  });
  const payload = embed(mso).encoded;
  const protectedBytes = protectedHeaderOf(signer.algorithm);
  const unprotectedHeader = new Map([[HEADER.x5chain, x5chainOf(signer.chain)]]);
  const toSign = sigStructure(protectedBytes, payload);
  return { toSign, protectedBytes, unprotectedHeader, payload, nameSpaces, salts };
}

/** Claims below this size without a long text or name satisfy every limit, so they need not be encoded. */
const SMALL_CLAIMS_LENGTH = 2_000;
const LONG_TEXT = /"[^"]{257}/;
/** Each element takes two CBOR items in the response and two in the security object. */
const MAX_ELEMENTS = (MAX_ITEMS - 200) / 2;
/** Size of an element in the security object: its digest with head and number. */
const DIGEST_BYTES = 40;

/**
 * Encodes the elements as they would be issued and compares the result with the limits of `parseDeviceResponse` and `verifyItems`, so that
 * our verifier can always accept our credentials with all elements.
 * @throws Failure `invalid_input`
 */
export function assertMdocWithinLimits(claimsByNamespace: MdocContents['claimsByNamespace']): void {
  const text = JSON.stringify(claimsByNamespace);
  if (text.length <= SMALL_CLAIMS_LENGTH && !LONG_TEXT.test(text)) return;
  const random = Buffer.alloc(RANDOM_BYTES);
  let bytes = 0;
  let elements = 0;
  for (const [namespace, claims] of Object.entries(claimsByNamespace)) {
    for (const [name, value] of Object.entries(claims)) {
      const elementValue = parseElementValue(namespace, name, value);
      const item = { random, digestID: MAX_ELEMENTS, elementValue, elementIdentifier: name };
      bytes += DIGEST_BYTES + readableLength(item, `claims.${namespace}.${name}`);
      elements++;
    }
  }
  if (elements > MAX_ELEMENTS) throw invalidInput('claims', `An mdoc has at most ${MAX_ELEMENTS} elements; this one has ${elements}.`);
  const length = Math.ceil((bytes * 4) / 3);
  if (length > MAX_CLAIMS_LENGTH) throw invalidInput('claims', claimsTooLarge(length));
}

/** @returns bytes of the encoded item. @throws Failure `invalid_input` for an item that a verifier could not decode. */
function readableLength(item: { readonly elementIdentifier: string; readonly elementValue: Cbor }, path: string) {
  const encoded = embed(encodeCbor(item as unknown as Cbor));
  // An oversized item is reported with the size of all claims.
  if (encoded.content.length > MAX_CLAIMS_LENGTH) return encoded.encoded.length;
  try {
    parsePropertyName(item.elementIdentifier);
    decodeCbor(encoded.content);
    toJson(item.elementValue);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    throw invalidInput(path, `No verifier of this service could read this element: ${error.message}.`);
  }
  return encoded.encoded.length;
}

/**
 * The IssuerSigned structure for the wallet, base64url (OpenID4VCI 1.0 appendix A.2.4).
 * @param signature raw: `r || s` for ECDSA.
 */
export function sealMdoc(prepared: PreparedMdoc, signature: Uint8Array): string {
  const { nameSpaces } = prepared;
  const issuerAuth = buildCoseSign1({ ...prepared, signature: Buffer.from(signature) });
  return encodeCbor({ ...(nameSpaces.size > 0 && { nameSpaces }), issuerAuth }).toString('base64url');
}

function buildItems(
  namespace: string,
  claims: JsonObject,
  random: MdocContents['random'],
): { readonly items: readonly EncodedCbor[]; readonly digests: CborMap; readonly salts: readonly string[] } {
  const entries = Object.entries(claims);
  // One call for all elements: a call of the generator costs more than hashing an element.
  const bytes = random(entries.length * (RANDOM_BYTES + SHUFFLE_BYTES));
  // ISO/IEC 18013-5 section 9.1.2.4: the digest ids must not reveal the order of the elements.
  const ids = shuffledIds(bytes.subarray(entries.length * RANDOM_BYTES));
  const digests: [number, Buffer][] = [];
  const salts: string[] = [];
  const items = entries.map(([name, value], index) => {
    const salt = bytes.subarray(index * RANDOM_BYTES, (index + 1) * RANDOM_BYTES);
    salts.push(salt.toString('latin1'));
    const digestID = ids[index] ?? index;
    const item = embed(
      encodeCbor({ random: salt, digestID, elementValue: parseElementValue(namespace, name, value), elementIdentifier: name }),
    );
    // ISO/IEC 18013-5 section 9.1.2.5: over tag, head of the byte string and content
    digests.push([digestID, sha256(item.encoded)]);
    return item;
  });
  return { items, digests: new Map(digests), salts };
}

/** Converting a binary string is faster than a buffer of node:crypto. */
function sha256(bytes: Buffer): Buffer {
  return Buffer.from(hash('sha256', bytes, 'binary'), 'binary');
}

/** A random permutation of the numbers from 0, one per word of `random` (Fisher-Yates). */
function shuffledIds(random: Buffer): number[] {
  const ids = Array.from({ length: random.length / SHUFFLE_BYTES }, (_, index) => index);
  for (let index = ids.length - 1; index > 0; index--) {
    const swapIndex = random.readUInt32BE(index * SHUFFLE_BYTES) % (index + 1);
    const id = ids[index] ?? index;
    ids[index] = ids[swapIndex] ?? swapIndex;
    ids[swapIndex] = id;
  }
  return ids;
}

function validityInfo({ signed, validFrom, validUntil }: MdocContents['validity']): Cbor {
  const seconds = [signed, validFrom, validUntil].map((time) => Math.floor(time.getTime() / 1000));
  const [signedAt = Number.NaN, validFromSeconds = Number.NaN, validUntilSeconds = Number.NaN] = seconds;
  // ISO/IEC 18013-5 section 9.1.2.4
  if (!(signedAt <= validFromSeconds && validFromSeconds < validUntilSeconds)) {
    throw invalidInput('validity', 'The signing time of an mdoc must not be after validFrom, and validFrom not after validUntil.');
  }
  return { signed: tdate(signed), validFrom: tdate(validFrom), validUntil: tdate(validUntil) };
}
