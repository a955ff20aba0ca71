import { decodeBase64url } from '../../shared/base64url.ts';
import { Refusal } from '../../shared/refusal.ts';
import { decodeCbor } from '../cbor/decode.ts';
import { type Cbor, type CborMap, EncodedCbor, isArray, isMap } from '../cbor/values.ts';
import { type CoseSign1, parseCoseSign1 } from '../cose/sign1.ts';
import { MAX_PRESENTATION_LENGTH } from '../credential-size.ts';

/** The single document of a DeviceResponse, parsed. Nothing is verified yet. */
export type ParsedMdoc = {
  readonly docType: string;
  readonly issuerAuth: CoseSign1;
  /** IssuerSignedItemBytes by namespace; empty when the wallet disclosed none. */
  readonly items: ReadonlyMap<string, readonly EncodedCbor[]>;
  readonly deviceSigned?: DeviceSigned;
};

export type DeviceSigned = {
  /** DeviceNameSpacesBytes. */
  readonly nameSpaces: EncodedCbor;
  /** `mac` stands for a COSE_Mac0, which is not supported; absent when neither was sent. */
  readonly auth?: CoseSign1 | 'mac';
};

const VERSION = /^1\.\d{1,3}$/;

/**
 * Parses a DeviceResponse with one document (ISO/IEC 18013-5 section 8.3.2.1.2.2), base64url without padding.
 * @throws Refusal `malformed`, `unsupported_version`, `response_status` or `multiple_documents`.
 */
export function parseDeviceResponse(text: string): ParsedMdoc {
  if (text.length > MAX_PRESENTATION_LENGTH) {
    throw malformed(`the response is too long: at most ${MAX_PRESENTATION_LENGTH} characters are accepted`);
  }
  const bytes = decodeBase64url(text);
  if (bytes === undefined) throw malformed('the response is not base64url');
  const response = parseMap(decodeCbor(bytes), 'the response');
  assertVersion(response.get('version'));
  // ISO/IEC 18013-5 section 8.3.2.1.2.3: only 0 is OK.
  if (response.get('status') !== 0) throw response.has('status') ? new Refusal('response_status') : malformed('status');
  // Zero-knowledge proofs of the second edition are not supported.
  if (response.has('zkDocuments')) throw malformed('zkDocuments are not supported');
  const documents = response.get('documents');
  if (!isArray(documents) || documents.length === 0) throw malformed('no documents');
  // HAIP 1.0 section 5.3.1: one response per document
  if (documents.length > 1) throw new Refusal('multiple_documents');
  return parseDocument(parseMap(documents[0], 'the document'));
}

/** @throws Refusal `malformed` for a missing version, `unsupported_version` for another major version than 1. */
export function assertVersion(version: Cbor): void {
  if (typeof version !== 'string') throw malformed('version');
  if (!VERSION.test(version)) throw new Refusal('unsupported_version');
}

function parseDocument(document: CborMap): ParsedMdoc {
  const docType = document.get('docType');
  if (typeof docType !== 'string') throw malformed('docType');
  const issuerSigned = parseMap(document.get('issuerSigned'), 'issuerSigned');
  const deviceSigned = document.get('deviceSigned');
  return {
    docType,
    issuerAuth: parseCoseSign1(issuerSigned.get('issuerAuth')),
    items: parseNameSpaces(issuerSigned.get('nameSpaces')),
    ...(document.has('deviceSigned') && { deviceSigned: parseDeviceSigned(parseMap(deviceSigned, 'deviceSigned')) }),
  };
}

function parseNameSpaces(value: Cbor): ParsedMdoc['items'] {
  const items = new Map<string, readonly EncodedCbor[]>();
  if (value === undefined) return items;
  for (const [namespace, members] of parseMap(value, 'nameSpaces')) {
    if (typeof namespace !== 'string' || !isArray(members)) throw malformed('nameSpaces');
    const encoded = members.filter((member) => member instanceof EncodedCbor);
    // ISO/IEC 18013-5 section 8.3.2.1.2.2: one or more, each with tag 24
    if (encoded.length === 0 || encoded.length !== members.length) throw malformed('nameSpaces');
    items.set(namespace, encoded);
  }
  return items;
}

function parseDeviceSigned(value: CborMap): DeviceSigned {
  const nameSpaces = value.get('nameSpaces');
  if (!(nameSpaces instanceof EncodedCbor)) throw malformed('nameSpaces of deviceSigned');
  if (!value.has('deviceAuth')) return { nameSpaces };
  const auth = parseMap(value.get('deviceAuth'), 'deviceAuth');
  const hasMac = auth.has('deviceMac');
  if (!auth.has('deviceSignature')) return { nameSpaces, ...(hasMac && { auth: 'mac' }) };
  // ISO/IEC 18013-5 section 8.3.2.1.2.2: exactly one of the two
  if (hasMac) throw malformed('both deviceSignature and deviceMac');
  return { nameSpaces, auth: parseCoseSign1(auth.get('deviceSignature')) };
}

/** @throws Refusal `malformed` */
export function parseMap(value: Cbor, what: string): CborMap {
  if (!isMap(value)) throw malformed(`${what} is not a map`);
  return value;
}

function malformed(detail: string): Refusal {
  return new Refusal('malformed', detail);
}
