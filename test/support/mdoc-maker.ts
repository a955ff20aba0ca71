import { createHash, randomBytes, sign } from 'node:crypto';
import { decodeCbor } from '../../domain/formats/cbor/decode.ts';
import { embed, encodeCbor } from '../../domain/formats/cbor/encode.ts';
import { type Cbor, type CborMap, type EncodedCbor, tdate } from '../../domain/formats/cbor/values.ts';
import { parseX5chain } from '../../domain/formats/cose/sign1.ts';
import { type JsonNameSpaces, verifyItems } from '../../domain/formats/mdoc/items.ts';
import { type MobileSecurityObject, parseMso } from '../../domain/formats/mdoc/mso.ts';
import { type ParsedMdoc, parseDeviceResponse } from '../../domain/formats/mdoc/parse.ts';
import type { HolderKey } from './raw-wallet.ts';
import type { Signer } from './sd-jwt-maker.ts';

export type IssuerSigned = {
  readonly parsed: ParsedMdoc;
  readonly mso: MobileSecurityObject;
  readonly elements: JsonNameSpaces;
  /** DER in standard base64, leaf first. */
  readonly chain: readonly string[];
};

/** Parses an issued mdoc with the parser of presentations. Digests are verified, the signature is not. */
export function readIssuerSigned(credential: string, docType: string): IssuerSigned {
  const issuerSigned = decodeCbor(Buffer.from(credential, 'base64url')) as CborMap;
  const response = { version: '1.0', documents: [{ docType, issuerSigned }], status: 0 };
  const parsedMdoc = parseDeviceResponse(encodeCbor(response).toString('base64url'));
  const mso = parseMso(parsedMdoc.issuerAuth.payload ?? Buffer.alloc(0));
  return {
    parsed: parsedMdoc,
    mso,
    elements: verifyItems(parsedMdoc.items, mso),
    chain: parseX5chain(parsedMdoc.issuerAuth.unprotectedHeader) ?? [],
  };
}

type Document = Record<string, Cbor>;
type Items = ReadonlyMap<string, readonly EncodedCbor[]>;

/** The input for a DeviceResponse of one mdoc. */
export type MdocBase = {
  readonly issuer: Signer;
  readonly holder: HolderKey;
  readonly docType: string;
  /** Element values by namespace and name. */
  readonly elements: Readonly<Record<string, Readonly<Record<string, Cbor>>>>;
  /** SessionTranscript, CBOR. */
  readonly transcript: Buffer;
  /** Seconds. */
  readonly now: number;
};

/** Deviations from a valid response. */
export type MdocOverrides = {
  /** Changes one item before it is hashed. */
  readonly item?: (item: Map<string, Cbor>) => void;
  readonly mso?: (mso: Map<string, Cbor>) => void;
  /** Replaces the payload that the issuer signs. */
  readonly payload?: (payload: Buffer) => Buffer;
  /** Changes the disclosed items after hashing. */
  readonly changeItems?: (items: Items) => Cbor;
  readonly issuer?: Signer;
  /** Signs instead of the issuer's key, under the issuer's certificates. */
  readonly issuerKey?: HolderKey;
  readonly issuerHeader?: (protectedHeader: Map<number, Cbor>, unprotectedHeader: Map<number, Cbor>) => void;
  /** Changes the COSE_Sign1 after it was signed. */
  readonly issuerAuth?: (parts: readonly Cbor[]) => Cbor;
  readonly transcript?: Buffer;
  readonly holder?: HolderKey;
  readonly deviceHeader?: (protectedHeader: Map<number, Cbor>) => void;
  readonly deviceNameSpaces?: Cbor;
  /** Changes DeviceAuth after the device has signed. */
  readonly deviceAuth?: (deviceSignature: readonly Cbor[]) => Cbor;
  readonly document?: (document: Document) => Cbor;
  readonly response?: (response: Document) => Cbor;
  readonly bytes?: (bytes: Buffer) => Buffer;
  readonly text?: (text: string) => string;
};

const DAY = 86_400;
const EMPTY = Buffer.alloc(0);
const ES256 = -7;
const fromBase64url = (text: string) => Buffer.from(text, 'base64url');

/** COSE_Key of a P-256 key (RFC 9053 section 7.1.1). */
export function coseKey({ jwk }: HolderKey): Map<number, Cbor> {
  return new Map<number, Cbor>([
    [1, 2],
    [-1, 1],
    [-2, fromBase64url(jwk.x)],
    [-3, fromBase64url(jwk.y)],
  ]);
}

/** COSE_Sign1 with ES256, untagged; `payload` is left out of it when it is detached. */
export function coseSign1(
  payload: Buffer,
  key: HolderKey,
  headers: { readonly protected?: Map<number, Cbor>; readonly unprotected?: Map<number, Cbor> } = {},
  detached = false,
): readonly Cbor[] {
  const header = headers.protected ?? new Map<number, Cbor>([[1, ES256]]);
  const protectedBytes = header.size === 0 ? EMPTY : encodeCbor(header);
  const toSign = encodeCbor(['Signature1', protectedBytes, EMPTY, payload]);
  const signature = sign('sha256', toSign, { key: key.privateKey, dsaEncoding: 'ieee-p1363' });
  return [protectedBytes, headers.unprotected ?? new Map(), detached ? null : payload, signature];
}

/** A valid DeviceResponse with overrides, base64url. */
export function presentMdoc(base: MdocBase, overrides: MdocOverrides = {}): string {
  const { docType } = base;
  const issuerSigned = makeIssuerSigned(base, overrides);
  const document = { docType, issuerSigned, deviceSigned: deviceSigned(base, overrides) };
  const response = { version: '1.0', documents: [overrides.document?.(document) ?? document], status: 0 };
  const bytes = encodeCbor(overrides.response?.(response) ?? response);
  const text = (overrides.bytes?.(bytes) ?? bytes).toString('base64url');
  return overrides.text?.(text) ?? text;
}

function makeIssuerSigned(base: MdocBase, overrides: MdocOverrides): Cbor {
  const { items, digests } = makeItems(base, overrides);
  const dateAfterDays = (days: number) => tdate(new Date((base.now + days * DAY) * 1000));
  const mso = new Map<string, Cbor>([
    ['version', '1.0'],
    ['digestAlgorithm', 'SHA-256'],
    ['valueDigests', digests],
    ['deviceKeyInfo', { deviceKey: coseKey(base.holder) }],
    ['docType', base.docType],
    ['validityInfo', { signed: dateAfterDays(-1), validFrom: dateAfterDays(-1), validUntil: dateAfterDays(30) }],
  ]);
  overrides.mso?.(mso);
  const encodedMso = embed(encodeCbor(mso)).encoded;
  const payload = overrides.payload?.(encodedMso) ?? encodedMso;
  const { key, chain } = overrides.issuer ?? base.issuer;
  const certificates = chain.map((certificate) => Buffer.from(certificate, 'base64'));
  const protectedHeader = new Map<number, Cbor>([[1, ES256]]);
  const unprotected = new Map<number, Cbor>([[33, chain.length === 1 ? certificates[0] : certificates]]);
  overrides.issuerHeader?.(protectedHeader, unprotected);
  const parts = coseSign1(payload, overrides.issuerKey ?? key, { protected: protectedHeader, unprotected });
  return { nameSpaces: overrides.changeItems?.(items) ?? items, issuerAuth: overrides.issuerAuth?.(parts) ?? parts };
}

function makeItems({ elements }: MdocBase, overrides: MdocOverrides) {
  const items = new Map<string, readonly EncodedCbor[]>();
  const digests = new Map<string, Cbor>();
  for (const [namespace, itemValues] of Object.entries(elements)) {
    const encoded = Object.entries(itemValues).map(([name, value], digestID) => {
      const item = new Map<string, Cbor>([
        ['digestID', digestID],
        ['random', randomBytes(24)],
        ['elementIdentifier', name],
        ['elementValue', value],
      ]);
      overrides.item?.(item);
      return embed(encodeCbor(item));
    });
    items.set(namespace, encoded);
    digests.set(namespace, new Map(encoded.map(({ encoded: itemBytes }, id) => [id, sha256(itemBytes)])));
  }
  return { items, digests };
}

export const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest();

function deviceSigned(base: MdocBase, overrides: MdocOverrides): Cbor {
  const nameSpaces = embed(encodeCbor(overrides.deviceNameSpaces ?? new Map()));
  const transcript = overrides.transcript ?? base.transcript;
  const authentication = Buffer.concat([
    Buffer.of(0x84),
    encodeCbor('DeviceAuthentication'),
    transcript,
    encodeCbor(base.docType),
    nameSpaces.encoded,
  ]);
  const header = new Map<number, Cbor>([[1, ES256]]);
  overrides.deviceHeader?.(header);
  const payload = embed(authentication).encoded;
  const signature = coseSign1(payload, overrides.holder ?? base.holder, { protected: header }, true);
  return { nameSpaces, deviceAuth: overrides.deviceAuth?.(signature) ?? { deviceSignature: signature } };
}
