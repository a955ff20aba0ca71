import { hash } from 'node:crypto';
import { expect } from 'chai';
import { decodeCbor } from '../../../domain/formats/cbor/decode.ts';
import { embed, encodeCbor } from '../../../domain/formats/cbor/encode.ts';
import { type Cbor, fullDate, Tagged } from '../../../domain/formats/cbor/values.ts';
import { protectedHeaderOf } from '../../../domain/formats/cose/sign1.ts';
import { assertIssuingLocation } from '../../../domain/formats/mdoc/driving-licence.ts';
import { parseElementValue } from '../../../domain/formats/mdoc/element-values.ts';
import { parseMso } from '../../../domain/formats/mdoc/mso.ts';
import { parseDeviceResponse } from '../../../domain/formats/mdoc/parse.ts';
import { verifyDeviceTransactionData } from '../../../domain/formats/mdoc/transaction-data.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { Json } from '../../../domain/shared/json.ts';
import { Refusal } from '../../../domain/shared/refusal.ts';
import { certify } from '../../support/test-certificates.ts';

const IMAGE = Buffer.from('ffd8ffe0', 'hex');
const time = (text: string) => new Tagged(0, text);

const nested = (levels: number, core: Json = 1): Json => (levels === 0 ? core : [nested(levels - 1, core)]);

/** Each case has the name, the claim in JSON and the value in CBOR. */
const CASES: readonly (readonly [string, Json, Cbor])[] = [
  ['family_name', 'Mustermann', 'Mustermann'],
  ['family_name', 'Nyga\u030ard', 'Nyg\u00e5rd'],
  ['sex', 2, 2],
  ['age_over_18', true, true],
  ['given_name_birth', null, null],
  ['birth_date', '1984-01-26', fullDate('1984-01-26')],
  ['birth_date', '2000-02-29', fullDate('2000-02-29')],
  ['issue_date', '2024-01-02T03:04:05.678Z', time('2024-01-02T03:04:05Z')],
  ['issuance_date', '2024-01-02T03:04:05+02:00', time('2024-01-02T01:04:05Z')],
  ['expiry_date', '2034-01-01', fullDate('2034-01-01')],
  ['birth_date', { birth_date: '1984-01-26' }, new Map([['birth_date', fullDate('1984-01-26')]])],
  ['document_number', '1984-01-26', '1984-01-26'],
  ['portrait', '_9j_4A', IMAGE],
  ['portrait', '/9j/4A==', IMAGE],
  ['signature_usual_mark', 'data:image/jpeg;base64,/9j/4A==', IMAGE],
  ['biometric_template_face', '_9j_4A==', IMAGE],
  ['nationality', ['DE', 'FR'], ['DE', 'FR']],
  [
    'place_of_birth',
    { country: 'DE', locality: 'Köln' },
    new Map([
      ['country', 'DE'],
      ['locality', 'Köln'],
    ]),
  ],
  [
    'driving_privileges',
    [{ vehicle_category_code: 'B', issue_date: '2024-01-02', codes: [{ code: '01' }] }],
    [
      new Map<string, Cbor>([
        ['vehicle_category_code', 'B'],
        ['issue_date', fullDate('2024-01-02')],
        ['codes', [new Map([['code', '01']])]],
      ]),
    ],
  ],
  ['since', { $type: 'full-date', value: '2024-01-02' }, fullDate('2024-01-02')],
  ['since', { $type: 'tdate', value: '2024-01-02T03:04:05Z' }, time('2024-01-02T03:04:05Z')],
  ['blobs', [{ $type: 'bytes', value: '_9j_4A' }], [IMAGE]],
  ['issue_date', { $type: 'text', value: 'about 1990' }, 'about 1990'],
  ['any', { $type: 'text', value: 'Nyga\u030ard' }, 'Nyg\u00e5rd'],
  ['any', nested(24, null), nested(24, null) as Cbor],
  ['any', nested(24, 'x'), nested(24, 'x') as Cbor],
];

const REJECTED: readonly (readonly [string, Json])[] = [
  ['birth_date', '26.01.1984'],
  ['birth_date', '1984-02-30'],
  ['birth_date', '1984-13-01'],
  ['birth_date', '2100-02-29'],
  ['birth_date', '1984-00-10'],
  ['birth_date', '1984-01-00'],
  ['expiry_date', '2024-01-02T25:00:00Z'],
  ['expiry_date', '2024-02-30T00:00:00Z'],
  ['portrait', 'not an image'],
  ['portrait', '/9j/4'],
  ['portrait', '/9j/4A='],
  ['portrait', '_9j/4A'],
  ['any', { $type: 'image', value: 'x' }],
  ['any', { $type: 'bytes' }],
  ['any', { $type: 'bytes', value: 5 }],
  ['any', { $type: 'full-date', value: 20240102 }],
  ['any', { $type: 'full-date', value: ['2024-01-02'] }],
  ['any', { $type: 'tdate', value: '2024-01-02' }],
  ['any', { $type: 'tdate', value: ['2024-01-02T03:04:05Z'] }],
  ['any', { $type: 'text', other: 'x' }],
  ['any', { $type: 'text', value: 5 }],
  ['any', { $type: 'text', value: nested(100) }],
  ['any', { $type: 'text', value: 'x', more: 1 }],
  ['any', nested(25)],
];

describe('conversion of a claim to an mdoc element', () => {
  for (const [name, json, value] of CASES) {
    it(`converts ${name}: ${JSON.stringify(json).slice(0, 60)}`, () => {
      const read = parseElementValue('org.example.ns', name, json);
      expect(read).to.deep.equal(value);
      expect(decodeCbor(encodeCbor(read))).to.deep.equal(value);
    });
  }

  for (const [name, json] of REJECTED) {
    it(`rejects ${name}: ${JSON.stringify(json).slice(0, 60)}`, () => {
      const read = () => parseElementValue('org.example.ns', name, json);
      expect(read).to.throw(Failure).with.property('code', 'invalid_input');
    });
  }
});

const ISSUER_AUTH = [protectedHeaderOf('ES256'), new Map(), null, Buffer.alloc(64)];
const ITEM = embed(encodeCbor({ digestID: 0 }));
const DOCUMENT = { docType: 'org.example.badge', issuerSigned: { issuerAuth: ISSUER_AUTH } };
const RESPONSE = { version: '1.0', documents: [DOCUMENT], status: 0 };
const parse = (response: Cbor) => parseDeviceResponse(encodeCbor(response).toString('base64url'));
const parseWith = (changes: Record<string, Cbor>) => parse({ ...RESPONSE, documents: [{ ...DOCUMENT, ...changes }] });
const withNameSpaces = (nameSpaces: Cbor) => parseWith({ issuerSigned: { issuerAuth: ISSUER_AUTH, nameSpaces } });

describe('structure of a DeviceResponse', () => {
  it('has one document, with its disclosed elements', () => {
    const { docType, items, deviceSigned } = withNameSpaces({ a: [ITEM] });
    expect([docType, [...items.keys()], deviceSigned]).to.deep.equal(['org.example.badge', ['a'], undefined]);
    expect(parse(RESPONSE).items.size).to.equal(0);
  });

  it('may be signed by its device in one way, or not at all', () => {
    const nameSpaces = embed(encodeCbor(new Map()));
    const authOf = (device: Record<string, Cbor>) => parseWith({ deviceSigned: { nameSpaces, ...device } }).deviceSigned?.auth;
    expect(authOf({})).to.equal(undefined);
    expect(authOf({ deviceAuth: {} })).to.equal(undefined);
    expect(authOf({ deviceAuth: { deviceMac: ISSUER_AUTH } })).to.equal('mac');
    expect(authOf({ deviceAuth: { deviceSignature: ISSUER_AUTH } })).to.have.property('signature');
    expect(() => authOf({ deviceAuth: { deviceSignature: ISSUER_AUTH, deviceMac: ISSUER_AUTH } })).to.throw(Refusal, 'malformed: both');
  });

  const invalidResponses: readonly (readonly [string, string, () => unknown])[] = [
    ['is too long', 'at most 1572864 characters', () => parseDeviceResponse('A'.repeat(1_572_865))],
    ['is padded', 'not base64url', () => parseDeviceResponse(`${encodeCbor(RESPONSE).toString('base64')}=`)],
    ['has no status', 'status', () => parse({ version: '1.0', documents: [DOCUMENT] })],
    ['has no documents', 'no documents', () => parse({ ...RESPONSE, documents: [] })],
    ['has documents that are not a list', 'no documents', () => parse({ ...RESPONSE, documents: DOCUMENT })],
    ['has a type that is not a string', 'docType', () => parseWith({ docType: 1 })],
    ['has a namespace that is not a string', 'nameSpaces', () => withNameSpaces(new Map([[1, [ITEM]]]))],
    ['has a namespace that is not a list', 'nameSpaces', () => withNameSpaces({ a: ITEM })],
    ['has namespaces that are not a map', 'nameSpaces is not a map', () => withNameSpaces([])],
    ['has a namespace without items', 'nameSpaces', () => withNameSpaces({ a: [] })],
    ['has an item without a tag', 'nameSpaces', () => withNameSpaces({ a: [ITEM, 1] })],
    ['has no device signature and no device MAC', 'nameSpaces of deviceSigned', () => parseWith({ deviceSigned: { nameSpaces: {} } })],
    ['has no issuer', 'issuerSigned is not a map', () => parseWith({ issuerSigned: undefined })],
  ];
  for (const [description, message, read] of invalidResponses) {
    it(`is rejected when it ${description}`, () => expect(read).to.throw(Refusal, message).with.property('reason', 'malformed'));
  }

  it('has one document and no more', () => {
    expect(() => parse({ ...RESPONSE, documents: [DOCUMENT, DOCUMENT] }))
      .to.throw(Refusal)
      .with.property('reason', 'multiple_documents');
  });

  it('has a security object inside a byte string', () => {
    expect(() => parseMso(encodeCbor({ version: '1.0' }))).to.throw(Refusal, 'the payload has no tag 24');
  });
});

describe('transaction data that a device confirms', () => {
  const [pay, sign] = ['eyJwYXkiOjF9', 'eyJzaWduIjoxfQ'];
  const hashOf = (text: string, name = 'sha256') => hash(name, text, 'base64url');
  const entry = (text: string, changes: object = {}) => ({
    ...{ namespace: 'org.example.tx', element: 'hash', text, algorithms: [], required: true },
    ...changes,
  });
  const confirm = (value: Json | undefined, ...entries: ReturnType<typeof entry>[]) =>
    verifyDeviceTransactionData(value === undefined ? {} : { 'org.example.tx': { hash: value } }, entries);

  it('are identified by their hash, one or several in any order', () => {
    expect(confirm(hashOf(pay), entry(pay))).to.deep.equal([pay]);
    expect(confirm([hashOf(sign), hashOf(pay)], entry(pay), entry(sign))).to.deep.equal([sign, pay]);
    expect(confirm(undefined)).to.deep.equal([]);
  });

  it('may be confirmed by another credential if it is able to', () => {
    expect(confirm(undefined, entry(pay, { required: false }))).to.deep.equal([]);
    expect(confirm(hashOf(sign), entry(pay, { required: false }), entry(sign))).to.deep.equal([sign]);
  });

  it('are hashed with their algorithm, SHA-256 by default', () => {
    const strong = entry(pay, { algorithms: ['sha-384', 'md5', 'sha-512'] });
    expect(confirm(hashOf(pay, 'sha384'), strong)).to.deep.equal([pay]);
    expect(confirm(hashOf(pay, 'sha512'), strong)).to.deep.equal([pay]);
    expect(() => confirm(hashOf(pay), strong)).to.throw(Refusal, 'unknown hash');
    expect(() => confirm(hashOf(pay, 'md5'), strong)).to.throw(Refusal, 'unknown hash');
    expect(() => confirm(hashOf(pay, 'sha384'), entry(pay))).to.throw(Refusal, 'unknown hash');
  });

  for (const [description, value, reason] of [
    ['nothing', undefined, 'transaction_data_missing'],
    ['the hash of another entry alone', [hashOf(sign)], 'transaction_data_missing'],
    ['a hash of no requested data', [hashOf(pay), hashOf(sign), hashOf('x')], 'transaction_data_mismatch'],
    ['an empty list', [], 'transaction_data_mismatch'],
    ['an invalid hash', 1, 'transaction_data_mismatch'],
    ['a list of invalid hashes', [hashOf(pay), 1], 'transaction_data_mismatch'],
  ] as const) {
    it(`are rejected with ${description}`, () => {
      expect(() => confirm(value as Json | undefined, entry(pay), entry(sign, { required: false })))
        .to.throw(Refusal)
        .with.property('reason', reason);
    });
  }

  it('are read from the element of their own type', () => {
    const otherEntry = entry(sign, { element: 'signature' });
    expect(() => confirm([hashOf(pay), hashOf(sign)], entry(pay), otherEntry)).to.throw(Refusal, 'unknown hash');
    expect(() => confirm(hashOf(pay), entry(pay), otherEntry)).to.throw(Refusal, 'org.example.tx signature');
  });
});

type Elements = Readonly<Record<string, unknown>>;

const outcomeOf = async (signer: string, authority: string | undefined, elements: Elements = {}) => {
  const root = await certify({ name: `Root${authority ?? ''}`, ca: true });
  const { certificate } = await certify({ name: `Signer${signer}`, by: root });
  const authorityCertificate = authority === undefined ? undefined : root.certificate;
  try {
    assertIssuingLocation({ certificate, authority: authorityCertificate }, { 'org.iso.18013.5.1': elements });
    return 'accepted';
  } catch (error) {
    if (error instanceof Refusal) return error.message;
    throw error;
  }
};

describe('country of a driving licence', () => {
  const acceptedCases: readonly (readonly [string, string, string | undefined, Elements?])[] = [
    ['equals the country of signer and authority', ', C=DE', ', C=DE', { issuing_country: 'DE' }],
    ['need not be shown', ', C=DE', ', C=DE'],
    ['is not compared if no certificate names a country', '', '', { issuing_country: 'DE' }],
    ['equals the country of a directly trusted signer', ', C=DE', undefined, { issuing_country: 'DE' }],
    ['is written in any letters', ', C=de', ', C=DE', { issuing_country: 'De' }],
    ['has the state of the signer', ', C=US, ST=US-CA', ', C=US', { issuing_country: 'US', issuing_jurisdiction: 'US-CA' }],
    ['has the state of the signer without a country', ', C=US, ST=CA', ', C=US', { issuing_jurisdiction: 'US-CA' }],
    ['need not show the state of the signer', ', C=US, ST=CA', ', C=US', { issuing_country: 'US' }],
    ['equals the state of signer and authority', ', C=US, ST=CA', ', C=US, ST=CA', { issuing_jurisdiction: 'CA' }],
    ['may be any state if no certificate names one', ', C=US', ', C=US', { issuing_jurisdiction: 'US-NV' }],
  ];
  for (const [description, ...parameters] of acceptedCases) {
    it(description, async () => expect(await outcomeOf(...parameters)).to.equal('accepted'));
  }

  const rejectedCases: readonly (readonly [string, RegExp, string, string | undefined, Elements?])[] = [
    ['another country than the signer', /issuing_country .* DE/, ', C=DE', ', C=DE', { issuing_country: 'FR' }],
    ['no country as text', /issuing_country .* DE/, ', C=DE', ', C=DE', { issuing_country: 49 }],
    ['another country than a signer trusted by itself', /DE/, ', C=DE', undefined, { issuing_country: 'FR' }],
    ['a signer abroad', /country of the signer is DE, that of its authority FR/, ', C=DE', ', C=FR'],
    ['a signer of no country', /country of the signer is no country, that of its authority FR/, '', ', C=FR'],
    ['an authority without a country', /its authority no country/, ', C=DE', '', { issuing_country: 'DE' }],
    ['a signer of two countries', /DE and FR/, ', C=DE, C=FR', undefined, { issuing_country: 'FR' }],
    ['another state than the signer', /issuing_jurisdiction .* US-CA/, ', C=US, ST=US-CA', ', C=US', { issuing_jurisdiction: 'US-NV' }],
    ['another state than the authority', /issuing_jurisdiction .* US-CA/, ', C=US', ', C=US, ST=US-CA', { issuing_jurisdiction: 'US-NV' }],
    ['a signer of another state', /is US-NV, that of its authority US-CA/, ', C=US, ST=US-NV', ', C=US, ST=US-CA'],
  ];
  for (const [description, detail, ...parameters] of rejectedCases) {
    it(`is rejected with ${description}`, async () => {
      const outcome = await outcomeOf(...parameters);
      expect(outcome)
        .to.match(/^issuer_country_mismatch: /)
        .and.to.match(detail);
    });
  }
});
