import { expect } from 'chai';
import { decodeDocument, encodeDocument } from '../../../adapters/persistence/rows/document-codec.ts';

const through = (document: unknown) => decodeDocument(encodeDocument(document));

describe('documents as they are stored', () => {
  it('come back with their times', () => {
    const at = new Date('2026-01-02T03:04:05.678Z');
    expect(through({ at, list: [at, { at }], text: 'x' })).to.deep.equal({
      at,
      list: [at, { at }],
      text: 'x',
    });
    expect(through(at)).to.deep.equal(at);
    expect(() => encodeDocument({ at: new Date(Number.NaN) })).to.throw('at');
  });

  for (const claims of [
    { '\u0001date': 1_700_000_000_000 },
    { '\u0001date': null },
    { '\u0001date': 5, other: new Date(7) },
    { '\u0001\u0001date': 5, '\u0001date': 6, date: 7 },
    { '\u0001': 1, nested: [{ '\u0001x': { '\u0001date': 1 } }] },
    { text: '\u0001date', '\\u0001date': 1 },
  ]) {
    it(`come back as they were with claims called like our own marks: ${JSON.stringify(claims)}`, () => {
      expect(through({ claims, at: new Date(1) })).to.deep.equal({ claims, at: new Date(1) });
    });
  }

  it('of earlier releases are read', () => {
    const older = '{"at":{"\\u0001date":1000},"ended":{"\\u0001date":null},"claims":{"\\u0001x":1}}';
    expect(decodeDocument(older)).to.deep.equal({
      at: new Date(1000),
      ended: new Date(0),
      claims: { '\u0001x': 1 },
    });
  });
});
