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
  /** Fractions of seconds are cut off. */
  readonly validity: { readonly signed: Date; readonly validFrom: Date; readonly validUntil: Date };
  readonly status?: { readonly idx: number; readonly uri: string };
  readonly random: (length: number) => Buffer;
};

export type PreparedMdoc = {
  /** What the document signer signs: the Sig_structure of RFC 9052 section 4.4. */
  readonly toSign: Buffer;
  readonly protectedBytes: Buffer;
  readonly unprotectedHeader: CborMap;
  readonly payload: Buffer;
  readonly nameSpaces: ReadonlyMap<string, readonly EncodedCbor[]>;
  /** The random values of all items. */
  readonly salts: readonly string[];
};

/** 256 bits, above the 128 that ISO/IEC 18013-5 section 9.1.2.5 demands. */
const RANDOM_BYTES = 32;
/** 32 bits decide each place of the shuffle: far more than there are elements. */
const SHUFFLE_BYTES = 4;

/**
 * Builds an mdoc up to its signature (ISO/IEC 18013-5 section 9.1.2), with SHA-256 digests. The bytes that are
 * hashed are the ones that are sent.
 * @throws Failure `invalid_input` for claims without a CBOR form, for times out of order, and for a holder key
 *   that mdoc does not know.
 */
export function prepareMdoc(contents: MdocContents): PreparedMdoc {
  const { docType, claimsByNamespace, holderKey, signer, validity, status, random } = contents;
  const deviceKey = coseKeyOf(holderKey);
  if (deviceKey === undefined) throw invalidInput('holderKey', 'The key is of no kind that an mdoc can hold.');

  const nameSpaces = new Map<string, readonly EncodedCbor[]>();
  const valueDigests = new Map<string, CborMap>();
  const salts: string[] = [];
  for (const [namespace, claims] of Object.entries(claimsByNamespace)) {
    const { items, digests, salts: own } = buildItems(namespace, claims, random);
    // ISO/IEC 18013-5 section 8.3.2.1.2.2: a namespace that is there has items.
    if (items.length === 0) continue;
    nameSpaces.set(namespace, items);
    valueDigests.set(namespace, digests);
    salts.push(...own);
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
  const payload = embed(mso).whole;
  const protectedBytes = protectedHeaderOf(signer.algorithm);
  const unprotectedHeader = new Map([[HEADER.x5chain, x5chainOf(signer.chain)]]);
  const toSign = sigStructure(protectedBytes, payload);
  return { toSign, protectedBytes, unprotectedHeader, payload, nameSpaces, salts };
}

/** Claims below this number, without a long text or name, are far from every limit, so they are not encoded to find out. */
const SMALL_CLAIMS_LENGTH = 2_000;
const LONG_TEXT = /"[^"]{257}/;
/** Each element takes two CBOR items in the response and two in the security object. */
const MAX_ELEMENTS = (MAX_ITEMS - 200) / 2;
/** Bytes that an element adds to the security object: its digest with head and number. */
const DIGEST_BYTES = 40;

/**
 * Encodes the elements as they would be issued and compares the result with the limits of `parseDeviceResponse` and
 * `verifyItems`, so that a credential of this service can always be presented to it with all its elements.
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
  if (elements > MAX_ELEMENTS) throw invalidInput('claims', `An mdoc has at most ${MAX_ELEMENTS} elements; these are ${elements}.`);
  const length = Math.ceil((bytes * 4) / 3);
  if (length > MAX_CLAIMS_LENGTH) throw invalidInput('claims', claimsTooLarge(length));
}

/** @returns bytes of the encoded item. @throws Failure `invalid_input` when a verifier could not read it. */
function readableLength(item: { readonly elementIdentifier: string; readonly elementValue: Cbor }, path: string) {
  const encoded = embed(encodeCbor(item as unknown as Cbor));
  // An item that is too large by itself is reported with the size of all claims.
  if (encoded.content.length > MAX_CLAIMS_LENGTH) return encoded.whole.length;
  try {
    parsePropertyName(item.elementIdentifier);
    decodeCbor(encoded.content);
    toJson(item.elementValue);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    throw invalidInput(path, `No verifier of this service could read this element: ${error.message}.`);
  }
  return encoded.whole.length;
}

/**
 * The IssuerSigned structure as the wallet receives it, base64url (OpenID4VCI 1.0 appendix A.2.4).
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
  // One call for all: asking the generator once per element costs more than hashing it.
  const bytes = random(entries.length * (RANDOM_BYTES + SHUFFLE_BYTES));
  // ISO/IEC 18013-5 section 9.1.2.4: the numbers must not tell the order of the elements.
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
    digests.push([digestID, sha256(item.whole)]);
    return item;
  });
  return { items, digests: new Map(digests), salts };
}

/** Making a buffer of a text is faster than having node:crypto make one. */
function sha256(bytes: Buffer): Buffer {
  return Buffer.from(hash('sha256', bytes, 'binary'), 'binary');
}

/** The numbers from 0 on, as many as `random` has words, in an order that it decides (Fisher-Yates). */
function shuffledIds(random: Buffer): number[] {
  const ids = Array.from({ length: random.length / SHUFFLE_BYTES }, (_, index) => index);
  for (let last = ids.length - 1; last > 0; last--) {
    const other = random.readUInt32BE(last * SHUFFLE_BYTES) % (last + 1);
    const id = ids[last] ?? last;
    ids[last] = ids[other] ?? other;
    ids[other] = id;
  }
  return ids;
}

function validityInfo({ signed, validFrom, validUntil }: MdocContents['validity']): Cbor {
  const seconds = [signed, validFrom, validUntil].map((time) => Math.floor(time.getTime() / 1000));
  const [signedAt = Number.NaN, from = Number.NaN, until = Number.NaN] = seconds;
  // ISO/IEC 18013-5 section 9.1.2.4
  if (!(signedAt <= from && from < until)) {
    throw invalidInput('validity', 'An mdoc is signed before it is valid, and valid before it expires.');
  }
  return { signed: tdate(signed), validFrom: tdate(validFrom), validUntil: tdate(validUntil) };
}
