import { expect } from 'chai';
import { binaryFaults, hasBinaryClaims, withDataUris } from '../../../domain/issuance/binary-claims.ts';
import type { Json, JsonObject } from '../../../domain/shared/json.ts';

const IMAGE = { type: 'string', contentEncoding: 'base64', contentMediaType: 'image/jpeg' };
const SCHEMA: JsonObject = {
  type: 'object',
  properties: {
    picture: IMAGE,
    scan: { contentEncoding: 'base64' },
    note: { contentEncoding: 'base64', contentMediaType: 'text/plain; charset=utf-8' },
    odd: { contentEncoding: 'base64', contentMediaType: 'a,b' },
    text: { type: 'string' },
    hex: { contentEncoding: 'base16' },
    named: { $ref: '#/$defs/image' },
    list: { type: 'array', prefixItems: [{ type: 'string' }], items: { $ref: '#/$defs/image' } },
    holder: { type: 'object', properties: { face: { $ref: '#/$defs/alias' } } },
    circle: { $ref: '#/$defs/circle' },
  },
  $defs: { image: IMAGE, alias: { $ref: '#/$defs/image' }, circle: { $ref: '#/$defs/circle' } },
};
const JPEG = '/9j/4AAQSkZJRg==';

describe('A claim that is bytes by its schema', () => {
  const converted = (claims: JsonObject) => withDataUris(claims, SCHEMA);
  const CASES: [string, string, Json, Json][] = [
    ['base64', 'picture', JPEG, `data:image/jpeg;base64,${JPEG}`],
    ['base64 in lines', 'picture', '/9j/\r\n4AAQ\nSkZJRg==', `data:image/jpeg;base64,${JPEG}`],
    ['base64url without padding', 'picture', '_9j_4AAQSkZJRg', `data:image/jpeg;base64,${JPEG}`],
    ['no media type', 'scan', 'AAEC', 'data:application/octet-stream;base64,AAEC'],
    ['a media type with parameters', 'note', 'AAEC', 'data:text/plain;charset=utf-8;base64,AAEC'],
    ['a media type that is none', 'odd', 'AAEC', 'data:application/octet-stream;base64,AAEC'],
    ['a data URI', 'picture', 'data:image/png;base64,AAEC', 'data:image/png;base64,AAEC'],
    ['a data URI without type', 'picture', 'data:,a%20b', 'data:,a%20b'],
    ['a data URI of text', 'picture', 'data:image/svg+xml;charset=utf-8,%3Csvg/%3E', 'data:image/svg+xml;charset=utf-8,%3Csvg/%3E'], // biome-ignore format: one case
    ['a reference', 'named', 'AAEC', 'data:image/jpeg;base64,AAEC'],
    ['entries of an array', 'list', ['AAEC', 'AAEC'], ['AAEC', 'data:image/jpeg;base64,AAEC']],
    ['members of an object', 'holder', { face: 'AAEC' }, { face: 'data:image/jpeg;base64,AAEC' }],
    ['another claim', 'text', 'AAEC', 'AAEC'],
    ['another encoding', 'hex', '00ff', '00ff'],
    ['a reference that leads in a circle', 'circle', 'AAEC', 'AAEC'],
    ['what is no text', 'picture', 5, 5],
    ['a claim that the schema does not know', 'other', 'AAEC', 'AAEC'],
  ];
  for (const [what, name, given, issued] of CASES) {
    it(`is issued as a data URI, or as it is: ${what}`, () => {
      expect(binaryFaults({ [name]: given }, SCHEMA)).to.deep.equal([]);
      expect(converted({ [name]: given, stays: 1 })).to.deep.equal({ [name]: issued, stays: 1 });
    });
  }

  const REFUSED: [string, JsonObject, string][] = [
    ['words', { picture: 'a face' }, '.picture'],
    ['base64 that is cut', { picture: 'AAECA' }, '.picture'],
    ['two alphabets', { picture: '+_AA' }, '.picture'],
    ['padding too much', { picture: 'AAE==' }, '.picture'],
    ['an address', { picture: 'https://x.example/y.jpg' }, '.picture'],
    ['a data URI of no data', { picture: 'data:image/png;base64' }, '.picture'],
    ['a data URI of bad base64', { picture: 'data:image/png;base64,A A' }, '.picture'],
    ['a data URI of base64 that is cut', { picture: 'data:image/png;base64,AAECA' }, '.picture'],
    ['a data URI with spaces', { picture: 'data:,a b' }, '.picture'],
    ['one entry', { list: ['x', 'AAEC', 'a face'] }, '.list.2'],
    ['one member', { holder: { face: 'a face' } }, '.holder.face'],
  ];
  for (const [what, claims, path] of REFUSED) {
    it(`is refused at its path: ${what}`, () => {
      const faults = binaryFaults(claims, SCHEMA);
      expect(faults.map((fault) => fault.path)).to.deep.equal([path]);
      expect(JSON.stringify(faults), 'no value in words').to.not.include('a face').and.not.include('AAE');
      expect(() => converted(claims)).to.throw(path);
    });
  }

  it('is looked for only where a schema speaks of it', () => {
    expect(hasBinaryClaims(SCHEMA)).to.equal(true);
    expect(hasBinaryClaims({ properties: { name: { type: 'string' } } })).to.equal(false);
  });
});
