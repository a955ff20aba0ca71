import { decodeCbor } from '../../../domain/formats/cbor/decode.ts';
import { encodeCbor } from '../../../domain/formats/cbor/encode.ts';
import { type CborMap, isArray, isMap } from '../../../domain/formats/cbor/values.ts';
import { parseDeviceResponse } from '../../../domain/formats/mdoc/parse.ts';
import { decodeBase64url, encodeBase64url } from '../../../domain/shared/base64url.ts';
import { isJsonObject, type JsonObject, parseJson } from '../../../domain/shared/json.ts';
import { Refusal } from '../../../domain/shared/refusal.ts';
import { parseDeviceResponses } from '../../../domain/verification/envelope.ts';
import { DC_API } from '../../../domain/verification/iso-mdoc/request.ts';
import { parseSealedResponse } from '../../../domain/verification/iso-mdoc/response.ts';
import { parseAuthentication } from '../../../domain/verification/sca/authentication.ts';
import { findTypeProblem, parseType } from '../../../domain/verification/type-conformance.ts';
import { ensure, isInstanceOfAny, neverExpected, type Target } from '../engine/target.ts';
import { CBOR_WORDS, JSON_WORDS, lines, seed, text } from './seeds.ts';

/** Of the seed `mdoc`, and another one. */
const QUERY_IDS = { 'org.iso.18013.5.1.mDL': 'license', 'eu.europa.ec.eudi.pid.1': 'pid' };
const ASKED = { queryIds: QUERY_IDS } as never;

function decodeDocuments(bytes: Buffer): readonly CborMap[] {
  const response = decodeCbor(bytes);
  const documents = isMap(response) ? response.get('documents') : undefined;
  return isArray(documents) ? documents.filter(isMap) : [];
}

/** Each document is returned in a separate response, unchanged and under the matching query. */
function deviceResponses(input: Buffer): void {
  const parsedResponses = parseDeviceResponses(input, ASKED);
  if (parsedResponses.kind !== 'presentations') return;
  const all = Object.entries(parsedResponses.vpToken as { [id: string]: string[] });
  const sorted = decodeDocuments(input);
  ensure(all.flatMap(([, each]) => each).length === sorted.length, 'no document is lost');
  for (const [id, presentations] of all) {
    const ownDocuments = sorted.filter((each) => QUERY_IDS[each.get('docType') as keyof typeof QUERY_IDS] === id);
    for (const [index, presentation] of presentations.entries()) {
      const [document, ...otherDocuments] = decodeDocuments(decodeBase64url(presentation) ?? Buffer.alloc(0));
      const expectedDocument = ownDocuments[index];
      ensure(document !== undefined && expectedDocument !== undefined && otherDocuments.length === 0, 'one document each');
      ensure(encodeCbor(document).equals(encodeCbor(expectedDocument)), 'a document stays as it is');
      readQuietly(presentation);
    }
  }
}

function readQuietly(presentation: string): void {
  try {
    parseDeviceResponse(presentation);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
  }
}

const VCT = 'urn:example:pid';
const TYPE = {
  vct: VCT,
  extends: 'https://types.example/base',
  'extends#integrity': 'sha256-AAAA',
  claims: [
    { path: ['name'], mandatory: true, sd: 'never' },
    { path: ['nationalities', null], sd: 'always' },
    { path: ['address', 'lines', 0], sd: 'allowed' },
  ],
};
const CREDENTIAL = { name: 'Ada', nationalities: ['DE', { '...': 'x' }], address: { lines: ['Weg 1'] } };

/** A document, and in the next line a credential of the type. */
function type(input: Buffer): void {
  const [document = '', shownLine = ''] = lines(input);
  const parsedType = parseType(document, VCT);
  ensure(parsedType.claims.length <= 500, 'there are no more rules than that');
  ensure(
    parsedType.claims.every(({ path }) => path.length > 0 && path.length <= 32),
    'a rule is about a claim',
  );
  const claims = parseJson(shownLine);
  if (!isJsonObject(claims)) return;
  const fault = findTypeProblem(parsedType.claims, claims, claims as JsonObject);
  const isNamed = parsedType.claims.some(({ path }) => fault?.startsWith(JSON.stringify(path)));
  ensure(fault === undefined || isNamed, 'a fault names a claim of the type and no value');
}

const MODE = 'direct_post.jwt';

function authentication(input: Buffer): void {
  const payload = parseJson(text(input));
  if (!isJsonObject(payload)) return;
  const { amr } = parseAuthentication(payload, MODE);
  const categories = new Set(amr.flatMap((factor) => Object.keys(factor as JsonObject)));
  ensure(payload['response_mode'] === MODE, 'it was made for this way to answer');
  ensure(categories.size >= 2, 'one factor authenticates nobody');
}

const SEALED = encodeCbor([DC_API, { enc: Buffer.alloc(65, 4), cipherText: Buffer.alloc(24, 1) }]);
const [DOCUMENT] = decodeDocuments(decodeBase64url(text(seed('mdoc'))) ?? Buffer.alloc(0));

/**
 * Other responses of wallets than presentations in `vp_token`, and the documents against which a presentation is validated.
 */
export const RESPONSES: readonly Target[] = [
  {
    name: 'sealed-response',
    expected: neverExpected,
    seeds: [encodeBase64url(SEALED)],
    dictionary: [...CBOR_WORDS, DC_API, 'enc', 'cipherText'],
    decode: (input) => {
      const sealed = parseSealedResponse(text(input));
      ensure(sealed === undefined || sealed.enc.length === 65, 'a point is as long as a point');
    },
  },
  {
    name: 'device-responses',
    expected: neverExpected,
    seeds: [
      encodeCbor({ version: '1.0', documents: [DOCUMENT ?? null], status: 0 }),
      encodeCbor({ version: '1.0', documents: [DOCUMENT ?? null, DOCUMENT ?? null], status: 0 }),
      encodeCbor({ version: '1.0', documents: [{ docType: 'eu.europa.ec.eudi.pid.1' }], status: 0 }),
    ],
    dictionary: [...CBOR_WORDS, ...Object.keys(QUERY_IDS), 'documents', 'docType', 'status', 'zkDocuments'],
    decode: deviceResponses,
  },
  {
    name: 'type-metadata',
    expected: isInstanceOfAny(Refusal),
    seeds: [TYPE, { vct: VCT }].map((each) => `${JSON.stringify(each)}\n${JSON.stringify(CREDENTIAL)}`),
    dictionary: [...JSON_WORDS, ...Object.keys(TYPE), 'path', 'mandatory', 'sd', 'always', 'never', '...'],
    decode: type,
  },
  {
    name: 'authentication',
    expected: isInstanceOfAny(Refusal),
    seeds: [
      JSON.stringify({
        jti: '0123456789abcdef',
        response_mode: MODE,
        amr: [{ knowledge: 'pin_6_or_more_digits' }, { possession: 'key_in_remote_wscd' }],
      }),
    ],
    dictionary: [...JSON_WORDS, 'amr', 'inherence', 'fingerprint_device', 'constructor', 'other'],
    decode: authentication,
  },
];
