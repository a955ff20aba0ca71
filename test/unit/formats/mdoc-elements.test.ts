import { expect } from 'chai';
import { decodeCbor } from '../../../domain/formats/cbor/decode.ts';
import { encodeCbor } from '../../../domain/formats/cbor/encode.ts';
import { type Cbor, fullDate, Tagged } from '../../../domain/formats/cbor/values.ts';
import { readElementValue } from '../../../domain/formats/mdoc/element-values.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { Json } from '../../../domain/shared/json.ts';

const IMAGE = Buffer.from('ffd8ffe0', 'hex');
const time = (text: string) => new Tagged(0, text);

const nested = (levels: number, core: Json = 1): Json => (levels === 0 ? core : [nested(levels - 1, core)]);

/** Name, claim as JSON, value as CBOR. */
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

const REFUSED: readonly (readonly [string, Json])[] = [
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

describe('Reading a claim as an mdoc element', () => {
  for (const [name, json, value] of CASES) {
    it(`reads ${name}: ${JSON.stringify(json).slice(0, 60)}`, () => {
      const read = readElementValue('org.example.ns', name, json);
      expect(read).to.deep.equal(value);
      expect(decodeCbor(encodeCbor(read))).to.deep.equal(value);
    });
  }

  for (const [name, json] of REFUSED) {
    it(`refuses ${name}: ${JSON.stringify(json).slice(0, 60)}`, () => {
      const read = () => readElementValue('org.example.ns', name, json);
      expect(read).to.throw(Failure).with.property('code', 'invalid_input');
    });
  }
});
