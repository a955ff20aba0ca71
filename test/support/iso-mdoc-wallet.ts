import { createCipheriv, createECDH, createHash, createHmac, verify, X509Certificate } from 'node:crypto';
import { decodeCbor } from '../../domain/formats/cbor/decode.ts';
import { encodeCbor } from '../../domain/formats/cbor/encode.ts';
import { type CborMap, EncodedCbor } from '../../domain/formats/cbor/values.ts';

/**
 * A sender of HPKE, implemented from RFC 9180 independently of the product: mode base (section 5.1.1), DHKEM(P-256,
 * HKDF-SHA256), HKDF-SHA256, AES-128-GCM, no additional data.
 */
const KEM = Buffer.concat([Buffer.from('KEM'), bigEndian(0x0010)]);
const HPKE = Buffer.concat([Buffer.from('HPKE'), bigEndian(0x0010), bigEndian(0x0001), bigEndian(0x0001)]);
const EMPTY = Buffer.alloc(0);

function bigEndian(value: number): Buffer {
  return Buffer.from([value >> 8, value & 0xff]);
}

function hmac(key: Buffer, ...parts: readonly Buffer[]): Buffer {
  return createHmac('sha256', key).update(Buffer.concat(parts)).digest();
}

/** Section 4, LabeledExtract. */
function extract(suite: Buffer, salt: Buffer, label: string, value: Buffer): Buffer {
  return hmac(salt, Buffer.from('HPKE-v1'), suite, Buffer.from(label), value);
}

/** Section 4, LabeledExpand, for at most one block. */
function expand(suite: Buffer, secret: Buffer, label: string, info: Buffer, length: number): Buffer {
  const labeled = [bigEndian(length), Buffer.from('HPKE-v1'), suite, Buffer.from(label), info];
  return hmac(secret, ...labeled, Buffer.from([1])).subarray(0, length);
}

/** @param recipient an uncompressed point. */
export function sealHpke(recipient: Buffer, info: Buffer, plaintext: Uint8Array) {
  const ephemeral = createECDH('prime256v1');
  const enc = ephemeral.generateKeys();
  // Section 4.1, Encap
  const shared = extract(KEM, EMPTY, 'eae_prk', ephemeral.computeSecret(recipient));
  const secret = expand(KEM, shared, 'shared_secret', Buffer.concat([enc, recipient]), 32);
  // Section 5.1, KeySchedule
  const pskIdHash = extract(HPKE, EMPTY, 'psk_id_hash', EMPTY);
  const infoHash = extract(HPKE, EMPTY, 'info_hash', info);
  const context = Buffer.concat([Buffer.from([0]), pskIdHash, infoHash]);
  const scheduled = extract(HPKE, secret, 'secret', EMPTY);
  const key = expand(HPKE, scheduled, 'key', context, 16);
  const nonce = expand(HPKE, scheduled, 'base_nonce', context, 12);
  const cipher = createCipheriv('aes-128-gcm', key, nonce);
  const sealResponse = [cipher.update(plaintext), cipher.final(), cipher.getAuthTag()];
  return { enc, cipherText: Buffer.concat(sealResponse) };
}

/** The data of a page, as the browser passes it to a wallet. */
export type IsoMdocData = { readonly deviceRequest: string; readonly encryptionInfo: string };

/** One requested document, as a wallet parses it. */
export type RequestedDocument = {
  readonly docType: string;
  /** `intentToRetain` of each element, by namespace. */
  readonly elements: Record<string, Record<string, boolean>>;
  /** Certificate of the reader; undefined without a signature. */
  readonly signer: X509Certificate | undefined;
  readonly isSigned: boolean;
};

const fromBase64url = (text: string) => Buffer.from(text, 'base64url');
const decoded = (text: string) => decodeCbor(fromBase64url(text));

/** The SessionTranscript, implemented from ISO/IEC TS 18013-7 section C.5. */
export function sessionTranscript({ encryptionInfo }: IsoMdocData, origin: string): Buffer {
  const info = encodeCbor([encryptionInfo, origin]);
  return encodeCbor([null, null, ['dcapi', createHash('sha256').update(info).digest()]]);
}

/** Parses a DeviceRequest and verifies its signature. */
export function parseRequestedDocuments(data: IsoMdocData, origin: string): readonly RequestedDocument[] {
  const request = decoded(data.deviceRequest) as CborMap;
  if (request.get('version') !== '1.0') throw new Error('another version');
  return (request.get('docRequests') as readonly CborMap[]).map((docRequest) => {
    const items = docRequest.get('itemsRequest') as EncodedCbor;
    if (!(items instanceof EncodedCbor)) throw new Error('ItemsRequestBytes without tag 24');
    const documents = decodeCbor(items.content) as CborMap;
    const nameSpaces = [...(documents.get('nameSpaces') as ReadonlyMap<string, ReadonlyMap<string, boolean>>)];
    const elements = Object.fromEntries(nameSpaces.map(([name, elements]) => [name, Object.fromEntries(elements)]));
    const signer = signerOf(docRequest);
    const isSigned = signer !== undefined && isSignatureValid(docRequest, items, sessionTranscript(data, origin), signer);
    return { docType: String(documents.get('docType')), elements, signer, isSigned };
  });
}

function signerOf(docRequest: CborMap): X509Certificate | undefined {
  const auth = docRequest.get('readerAuth') as readonly unknown[] | undefined;
  const chain = (auth?.[1] as CborMap | undefined)?.get(33);
  const leaf = Array.isArray(chain) ? chain[0] : chain;
  return leaf === undefined ? undefined : new X509Certificate(leaf as Buffer);
}

function isSignatureValid(docRequest: CborMap, items: EncodedCbor, transcript: Buffer, signer: X509Certificate) {
  const [protectedHeader, , payload, signature] = docRequest.get('readerAuth') as readonly Buffer[];
  if (payload !== null) throw new Error('the payload is not detached');
  // Tag 24, then the array that ISO/IEC 18013-5 section 9.1.4.5 names.
  const parts = [Buffer.from([0x83]), encodeCbor('ReaderAuthentication'), transcript, items.encoded];
  const content = encodeCbor(Buffer.concat(parts));
  const detached = Buffer.concat([Buffer.from([0xd8, 24]), content]);
  const toBeSigned = encodeCbor(['Signature1', protectedHeader ?? null, Buffer.alloc(0), detached]);
  const key = { key: signer.publicKey, dsaEncoding: 'ieee-p1363' } as const;
  return verify('sha256', toBeSigned, key, signature ?? Buffer.alloc(0));
}

/**
 * Seals a DeviceResponse for the verifier (ISO/IEC TS 18013-7 section C.3).
 * @param info HPKE info; the transcript of the page by default.
 */
export function sealResponse(data: IsoMdocData, origin: string, plaintext: Uint8Array, info = sessionTranscript(data, origin)): string {
  const [name, cborParameters] = decoded(data.encryptionInfo) as readonly [string, CborMap];
  if (name !== 'dcapi' || (cborParameters.get('nonce') as Buffer).length < 16) throw new Error('EncryptionInfo');
  const key = cborParameters.get('recipientPublicKey') as CborMap;
  const point = Buffer.concat([Buffer.from([4]), key.get(-2) as Buffer, key.get(-3) as Buffer]);
  return encodeCbor(['dcapi', sealHpke(point, info, plaintext)]).toString('base64url');
}
