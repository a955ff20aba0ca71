import type { SupportedFormat } from '../../dcql/formats.ts';
import { decodeCbor } from '../../formats/cbor/decode.ts';
import { encodeCbor } from '../../formats/cbor/encode.ts';
import { type Cbor, type CborMap, isArray, isMap } from '../../formats/cbor/values.ts';
import { parseCoseSign1 } from '../../formats/cose/sign1.ts';
import { parseMso } from '../../formats/mdoc/mso.ts';
import { parseMap } from '../../formats/mdoc/parse.ts';
import { encodeBase64url } from '../../shared/base64url.ts';
import { isJsonObject, type Json, parseJsonObject } from '../../shared/json.ts';
import { Refusal } from '../../shared/refusal.ts';
import { DC_API } from '../iso-mdoc/request.ts';

/** A presentation, or an unpresented credential, in the form of a `vp_token` entry. */
export type PastedPresentation = {
  /** Id of the credential query in the `vp_token`, if it was part of one. */
  readonly queryId?: string;
  readonly format: SupportedFormat;
  readonly text: string;
};

/** Limit of the presentations in one text, because each needs signature verifications. */
const MAX_PRESENTATIONS = 10;
const VERSION = '1.0';
const ENCRYPTED = 'it is an encrypted response, which only the key of its request can decrypt';

/**
 * Parses a pasted text for a trial of a presentation request: an SD-JWT VC with or without key binding; a DeviceResponse, one of its
 * documents or an IssuerSigned (ISO/IEC 18013-5) in base64url, base64 or hexadecimal; or a JSON response, a `vp_token` or the data of the
 * Digital Credentials API.
 * @throws Refusal `malformed` with a sentence about the actual input.
 */
export function parsePasted(text: string): readonly PastedPresentation[] {
  const pasted = text.trim();
  const presentations = pasted.startsWith('{') ? parseAnswer(pasted) : parseOne(pasted);
  if (presentations.length > MAX_PRESENTATIONS) throw malformedRefusal(`it has more than ${MAX_PRESENTATIONS} presentations; paste fewer`);
  return presentations;
}

function parseAnswer(text: string): readonly PastedPresentation[] {
  const answer = parseJsonObject(text);
  if (answer === undefined) throw malformedRefusal('it is invalid JSON');
  const data = isJsonObject(answer['data']) ? answer['data'] : answer;
  const token = Object.hasOwn(data, 'vp_token') ? data['vp_token'] : data;
  const byQuery = typeof token === 'string' ? parseJsonObject(token) : token;
  if (!isJsonObject(byQuery)) throw malformedRefusal('its vp_token is not an object of presentations by credential query');
  if (typeof byQuery['response'] === 'string') return parseOne(byQuery['response']);
  return Object.entries(byQuery).flatMap(([queryId, list]) => textsOf(list, queryId));
}

function textsOf(list: Json, queryId: string): readonly PastedPresentation[] {
  const texts = Array.isArray(list) ? (list as readonly Json[]) : [list];
  // Presentations beyond the limit are not parsed.
  return texts.slice(0, MAX_PRESENTATIONS + 1).flatMap((text) => {
    if (typeof text !== 'string') throw malformedRefusal('a presentation in its vp_token is not a string');
    return parseOne(text).map((presentation) => ({ ...presentation, queryId }));
  });
}

function parseOne(text: string): readonly PastedPresentation[] {
  const compact = text.replaceAll(/\s/g, '');
  if (compact.includes('~')) return [{ format: 'dc+sd-jwt', text: compact }];
  const dots = compact.split('.', 6).length - 1;
  if (dots === 4) throw malformedRefusal(ENCRYPTED);
  if (dots === 2) throw malformedRefusal('it is a JWT; an SD-JWT VC has a ~ after it, and after each of its disclosures');
  const bytes = bytesOf(compact);
  if (bytes === undefined) throw malformedRefusal('it is neither an SD-JWT VC nor an mdoc nor a response in JSON');
  return mdocsOf(bytes).map((mdoc) => ({ format: 'mso_mdoc', text: mdoc }));
}

function bytesOf(text: string): Buffer | undefined {
  if (/^(?:[0-9a-f]{2})+$/i.test(text)) return Buffer.from(text, 'hex');
  return /^[\w+/-]+={0,2}$/.test(text) ? Buffer.from(text, 'base64') : undefined;
}

/** Encodes each document as a separate response, base64url. */
function mdocsOf(bytes: Buffer): readonly string[] {
  const item = cborOf(bytes);
  // ISO/IEC TS 18013-7 section C.3
  if (isArray(item) && item[0] === DC_API) throw malformedRefusal(ENCRYPTED);
  if (!isMap(item)) throw malformedRefusal('it is CBOR, but not an mdoc');
  if (item.has('issuerAuth')) return [encodeSingleDocument({ docType: docTypeOf(item), issuerSigned: item })];
  if (item.has('issuerSigned')) return [encodeSingleDocument(item)];
  const documents = item.get('documents');
  if (!isArray(documents)) throw malformedRefusal('it is CBOR, but not an mdoc');
  if (documents.length < 2) return [encodeBase64url(bytes)];
  const [version, status] = [item.get('version'), item.get('status')];
  return documents
    .slice(0, MAX_PRESENTATIONS + 1)
    .map((document) => encodeBase64url(encodeCbor({ version, documents: [document], status })));
}

function cborOf(bytes: Buffer): Cbor {
  try {
    return decodeCbor(bytes);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    throw malformedRefusal(`it is neither an SD-JWT VC nor an mdoc: it is malformed CBOR (${error.message})`);
  }
}

/** The signed parts of a document are byte strings, which encoding does not change. */
function encodeSingleDocument(document: Cbor): string {
  return encodeBase64url(encodeCbor({ version: VERSION, documents: [document], status: 0 }));
}

/** The type of a bare IssuerSigned is in its signed part only. */
function docTypeOf(issuerSigned: CborMap): string {
  const { payload } = parseCoseSign1(parseMap(issuerSigned, 'IssuerSigned').get('issuerAuth'));
  if (payload === undefined) throw malformedRefusal('its issuerAuth has no payload');
  return parseMso(payload).docType;
}

function malformedRefusal(what: string): Refusal {
  return new Refusal('malformed', what);
}
