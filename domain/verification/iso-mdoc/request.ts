import { embed, encodeCbor } from '../../formats/cbor/encode.ts';
import type { Cbor, EncodedCbor } from '../../formats/cbor/values.ts';
import { coseKeyOf } from '../../formats/cose/key.ts';
import { buildCoseSign1, HEADER, protectedHeaderOf, sigStructure, x5chainOf } from '../../formats/cose/sign1.ts';
import { readerAuthenticationBytes } from '../../formats/mdoc/reader-auth.ts';
import { encodeBase64url } from '../../shared/base64url.ts';
import type { PublicJwk, SigningAlgorithm } from '../../shared/jwk.ts';
import type { IsoMdocQuery } from './query.ts';

/** The protocol name for `navigator.credentials.get` (ISO/IEC TS 18013-7 section C.1). */
export const ISO_MDOC_PROTOCOL = 'org-iso-mdoc';
/** The identifier in all structures of the protocol. */
export const DC_API = 'dcapi';

/**
 * The encryption parameters for the wallet (ISO/IEC TS 18013-7 section C.2).
 * @returns EncryptionInfo, CBOR as base64url; the transcript covers these exact characters.
 */
export function encryptionInfo(nonce: Buffer, recipient: PublicJwk): string {
  const recipientPublicKey = coseKeyOf(recipient);
  if (recipientPublicKey === undefined) throw new Error('the key cannot be encoded in COSE');
  return encodeBase64url(encodeCbor([DC_API, { nonce, recipientPublicKey }]));
}

/** The signer of a request: `chain` is DER in standard base64, leaf first, without the root. */
export type Reader = { readonly algorithm: SigningAlgorithm; readonly chain: readonly string[] };

/** @returns ItemsRequestBytes (ISO/IEC 18013-5 section 8.3.2.1.2.1). */
export function itemsRequest({ docType, nameSpaces }: IsoMdocQuery): EncodedCbor {
  return embed(encodeCbor({ docType, nameSpaces }));
}

/** The bytes that a reader signs: the Sig_structure of RFC 9052 section 4.4 over ISO/IEC 18013-5 section 9.1.4.5. */
export function readerToSign(items: EncodedCbor, { algorithm }: Reader, transcript: Buffer): Buffer {
  return sigStructure(protectedHeaderOf(algorithm), readerAuthenticationBytes(transcript, items));
}

/** @param signature absent in an unsigned request. */
export function docRequest(items: EncodedCbor, reader?: Reader, signature?: Uint8Array): Cbor {
  if (reader === undefined || signature === undefined) return { itemsRequest: items };
  const readerAuth = buildCoseSign1({
    protectedBytes: protectedHeaderOf(reader.algorithm),
    unprotectedHeader: new Map([[HEADER.x5chain, x5chainOf(reader.chain)]]),
    signature: Buffer.from(signature),
  });
  return { itemsRequest: items, readerAuth };
}

/** @returns DeviceRequest, CBOR as base64url. */
export function deviceRequest(docRequests: readonly Cbor[]): string {
  return encodeBase64url(encodeCbor({ version: '1.0', docRequests }));
}
