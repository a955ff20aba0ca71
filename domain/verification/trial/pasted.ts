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

/** A presentation, or a credential that nobody presented yet, in the form in which a `vp_token` has it. */
export type Pasted = {
  /** Of the credential query that it came for, where it came in a `vp_token`. */
  readonly queryId?: string;
  readonly format: SupportedFormat;
  readonly text: string;
};

/** More than anybody pastes at once; each costs signatures. */
const MAX_PRESENTATIONS = 10;
const VERSION = '1.0';
const ENCRYPTED = 'it is an encrypted answer, which only the request that it is for can be decrypted with';

/**
 * What somebody pastes to try a question: an SD-JWT VC with or without key binding; a DeviceResponse, a document of one or an
 * IssuerSigned (ISO/IEC 18013-5) in base64url, base64 or hexadecimal; or an answer in JSON, a `vp_token` or what the Digital Credentials
 * API hands over with one.
 * @throws Refusal `malformed` that says in a sentence what came instead.
 */
export function parsePasted(text: string): readonly Pasted[] {
  const pasted = text.trim();
  const found = pasted.startsWith('{') ? parseAnswer(pasted) : parseOne(pasted);
  if (found.length > MAX_PRESENTATIONS) throw refusal(`it has more than ${MAX_PRESENTATIONS} presentations; paste fewer`);
  return found;
}

function parseAnswer(text: string): readonly Pasted[] {
  const answer = parseJsonObject(text);
  if (answer === undefined) throw refusal('it begins like JSON and is none');
  const data = isJsonObject(answer['data']) ? answer['data'] : answer;
  const token = Object.hasOwn(data, 'vp_token') ? data['vp_token'] : data;
  const byQuery = typeof token === 'string' ? parseJsonObject(token) : token;
  if (!isJsonObject(byQuery)) throw refusal('its vp_token is no object of presentations by credential query');
  if (typeof byQuery['response'] === 'string') return parseOne(byQuery['response']);
  return Object.entries(byQuery).flatMap(([queryId, list]) => textsOf(list, queryId));
}

function textsOf(list: Json, queryId: string): readonly Pasted[] {
  const texts = Array.isArray(list) ? (list as readonly Json[]) : [list];
  // What is too many already is not read any further.
  return texts.slice(0, MAX_PRESENTATIONS + 1).flatMap((text) => {
    if (typeof text !== 'string') throw refusal('a presentation in its vp_token is no text');
    return parseOne(text).map((one) => ({ ...one, queryId }));
  });
}

function parseOne(text: string): readonly Pasted[] {
  const compact = text.replaceAll(/\s/g, '');
  if (compact.includes('~')) return [{ format: 'dc+sd-jwt', text: compact }];
  const dots = compact.split('.', 6).length - 1;
  if (dots === 4) throw refusal(ENCRYPTED);
  if (dots === 2) throw refusal('it is a JWT; an SD-JWT VC has a ~ after it, and after each of its disclosures');
  const bytes = bytesOf(compact);
  if (bytes === undefined) throw refusal('it is neither an SD-JWT VC nor an mdoc nor an answer in JSON');
  return mdocsOf(bytes).map((mdoc) => ({ format: 'mso_mdoc', text: mdoc }));
}

function bytesOf(text: string): Buffer | undefined {
  if (/^(?:[0-9a-f]{2})+$/i.test(text)) return Buffer.from(text, 'hex');
  return /^[\w+/-]+={0,2}$/.test(text) ? Buffer.from(text, 'base64') : undefined;
}

/** Each document in a response of its own, base64url. */
function mdocsOf(bytes: Buffer): readonly string[] {
  const item = cborOf(bytes);
  // ISO/IEC TS 18013-7 section C.3
  if (isArray(item) && item[0] === DC_API) throw refusal(ENCRYPTED);
  if (!isMap(item)) throw refusal('it is CBOR, and no mdoc');
  if (item.has('issuerAuth')) return [alone({ docType: docTypeOf(item), issuerSigned: item })];
  if (item.has('issuerSigned')) return [alone(item)];
  const documents = item.get('documents');
  if (!isArray(documents)) throw refusal('it is CBOR, and no mdoc');
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
    throw refusal(`it is neither an SD-JWT VC nor an mdoc: as CBOR it is broken (${error.message})`);
  }
}

/** What is signed of a document stands in byte strings, which stay as they are. */
function alone(document: Cbor): string {
  return encodeBase64url(encodeCbor({ version: VERSION, documents: [document], status: 0 }));
}

/** A bare IssuerSigned says its type only where its issuer signed it. */
function docTypeOf(issuerSigned: CborMap): string {
  const { payload } = parseCoseSign1(parseMap(issuerSigned, 'IssuerSigned').get('issuerAuth'));
  if (payload === undefined) throw refusal('its issuerAuth has no payload');
  return parseMso(payload).docType;
}

function refusal(what: string): Refusal {
  return new Refusal('malformed', what);
}
