import { hash } from 'node:crypto';
import { invalidInput } from '../../shared/failure.ts';
import type { JsonObject } from '../../shared/json.ts';
import type { PublicJwk, SigningAlgorithm } from '../../shared/jwk.ts';
import { embed, encodeCbor } from '../cbor/encode.ts';
import { type Cbor, type CborMap, type EncodedCbor, tdate } from '../cbor/values.ts';
import { coseKeyOf } from '../cose/key.ts';
import { buildCoseSign1, HEADER, protectedHeaderOf, sigStructure, x5chainOf } from '../cose/sign1.ts';
import { readElementValue } from './element-values.ts';

export type MdocContents = {
  readonly docType: string;
  /** Elements by namespace, as JSON: see `readElementValue`. */
  readonly claimsByNamespace: Readonly<Record<string, JsonObject>>;
  readonly holderKey: PublicJwk;
  /** `chain`: DER in standard base64, leaf first, without the root. */
  readonly signer: { readonly algorithm: SigningAlgorithm; readonly chain: readonly string[] };
  /** Fractions of seconds are cut off. */
  readonly validity: { readonly signed: Date; readonly validFrom: Date; readonly validUntil: Date };
  readonly status?: { readonly idx: number; readonly uri: string };
  readonly randomBytes: (length: number) => Buffer;
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
  const { docType, claimsByNamespace, holderKey, signer, validity, status, randomBytes } = contents;
  const deviceKey = coseKeyOf(holderKey);
  if (deviceKey === undefined)
    throw invalidInput('holderKey', 'The key is of no kind that an mdoc can hold.');

  const nameSpaces = new Map<string, readonly EncodedCbor[]>();
  const valueDigests = new Map<string, CborMap>();
  const salts: string[] = [];
  for (const [namespace, claims] of Object.entries(claimsByNamespace)) {
    const { items, digests, salts: own } = buildItems(namespace, claims, randomBytes);
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
  randomBytes: MdocContents['randomBytes'],
): { readonly items: readonly EncodedCbor[]; readonly digests: CborMap; readonly salts: readonly string[] } {
  const entries = Object.entries(claims);
  // One call for all: asking the generator once per element costs more than hashing it.
  const random = randomBytes(entries.length * (RANDOM_BYTES + SHUFFLE_BYTES));
  // ISO/IEC 18013-5 section 9.1.2.4: the numbers must not tell the order of the elements.
  const ids = shuffledIds(random.subarray(entries.length * RANDOM_BYTES));
  const digests: [number, Buffer][] = [];
  const salts: string[] = [];
  const items = entries.map(([name, value], index) => {
    const salt = random.subarray(index * RANDOM_BYTES, (index + 1) * RANDOM_BYTES);
    salts.push(salt.toString('latin1'));
    const digestID = ids[index] ?? index;
    const item = embed(
      encodeCbor({
        random: salt,
        digestID,
        elementValue: readElementValue(namespace, name, value),
        elementIdentifier: name,
      }),
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
