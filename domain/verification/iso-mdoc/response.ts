import { decodeCbor } from '../../formats/cbor/decode.ts';
import { encodeCbor } from '../../formats/cbor/encode.ts';
import { type CborMap, isArray, isBytes, isMap } from '../../formats/cbor/values.ts';
import { decodeBase64url, encodeBase64url } from '../../shared/base64url.ts';
import type { JsonObject } from '../../shared/json.ts';
import { Refusal } from '../../shared/refusal.ts';
import { DC_API } from './request.ts';

/** An HPKE message: the sender's key, and the ciphertext with its tag. */
export type SealedResponse = { readonly enc: Buffer; readonly cipherText: Buffer };

/** An uncompressed point of P-256. */
const ENC_BYTES = 65;

/**
 * Parses an EncryptedResponse (ISO/IEC TS 18013-7 section C.3).
 * @param text CBOR as base64url.
 * @returns undefined for any other text.
 */
export function parseSealedResponse(text: string): SealedResponse | undefined {
  const bytes = decodeBase64url(text);
  if (bytes === undefined) return undefined;
  const response = parseCbor(bytes);
  if (!isArray(response) || response.length !== 2 || response[0] !== DC_API) return undefined;
  const [, data] = response;
  if (!isMap(data)) return undefined;
  const enc = data.get('enc');
  const cipherText = data.get('cipherText');
  return isBytes(enc) && enc.length === ENC_BYTES && isBytes(cipherText) ? { enc, cipherText } : undefined;
}

/**
 * Converts a DeviceResponse to a `vp_token`: one response per document, by query id.
 * @param queryIds by document type.
 * @throws Refusal `malformed`, `response_status`, or an error of `decodeCbor`.
 */
export function toVpToken(bytes: Buffer, queryIds: { readonly [docType: string]: string }): JsonObject {
  const response = decodeCbor(bytes);
  if (!isMap(response)) throw new Refusal('malformed', 'the response is not a map');
  // ISO/IEC 18013-5 section 8.3.2.1.2.3: only 0 is OK.
  if (response.get('status') !== 0) throw new Refusal('response_status');
  const documents = response.get('documents');
  if (!isArray(documents) || documents.length === 0) throw new Refusal('malformed', 'no documents');
  if (response.has('zkDocuments')) throw new Refusal('malformed', 'zkDocuments are not supported');
  const documentsByQuery = new Map<string, string[]>();
  for (const document of documents) {
    const docType = isMap(document) ? document.get('docType') : undefined;
    const id = typeof docType === 'string' && Object.hasOwn(queryIds, docType) ? queryIds[docType] : undefined;
    if (id === undefined) throw new Refusal('malformed', 'a document that was not requested');
    const single = encodeSingleDocument(response, document as CborMap);
    documentsByQuery.set(id, [...(documentsByQuery.get(id) ?? []), single]);
  }
  return Object.fromEntries(documentsByQuery);
}

/** The signed parts of a document are byte strings, which encoding does not change. */
function encodeSingleDocument(response: CborMap, document: CborMap): string {
  const version = response.get('version');
  return encodeBase64url(encodeCbor({ version, documents: [document], status: 0 }));
}

function parseCbor(bytes: Buffer) {
  try {
    return decodeCbor(bytes);
  } catch (error) {
    if (error instanceof Refusal) return undefined;
    throw error;
  }
}
