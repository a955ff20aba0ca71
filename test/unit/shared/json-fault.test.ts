import { expect } from 'chai';
import fc from 'fast-check';
import { parseJsonObject } from '../../../domain/shared/json.ts';
import { jsonFault } from '../../../domain/shared/json-fault.ts';
import { processorTime } from '../../support/processor-time.ts';

describe('Why JSON is not taken', () => {
  const nested = (depth: number) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`;
  const long = 'n'.repeat(500);
  const told: [string, string][] = [
    ['', 'is not JSON'],
    ['{\n"a":1,\n}', 'is not JSON (line 3, column 1)'],
    ['[]', 'must be a JSON object'],
    ['[{"a":1,"a":2}]', 'must be a JSON object'],
    ['"\\u0000"', 'must be a JSON object'],
    ['{"id":"a","id":"b"}', 'has the member "id" twice in one object (line 1, column 11)'],
    ['{"id":"a",\r\n  "\\u0069d":"b"}', 'has the member "id" twice in one object (line 2, column 3)'],
    ['{"a":{"b":1},\r"c":[{"b":1,\n"b" :2}]}', 'has the member "b" twice in one object (line 3, column 1)'],
    ['{"b":"a","a":"b","a":"","c":"c","c":""}', 'has the member "a" twice in one object (line 1, column 18)'],
    ['{"":1,"":2}', 'has the member "" twice in one object (line 1, column 7)'],
    [
      '{"a":{"__proto__":1}}',
      'has a member called "__proto__", which no document may have (line 1, column 7)',
    ],
    [
      '{"a":{"constructor":{"b":1,"prototype":1}}}',
      'has a member called "prototype" in "constructor", which no document may have (line 1, column 28)',
    ],
    ['{"a":"x\\u0000"}', 'has NUL in a text (line 1, column 6)'],
    ['{"\\u0000":1}', 'has NUL in a text (line 1, column 2)'],
    ['{"a":["\\ud800"]}', 'has half a surrogate pair in a text, which is no character (line 1, column 7)'],
    [
      '{"a":[1, 12345678901234567]}',
      'has a number beyond 2^53 - 1 that is not kept; send it as text (line 1, column 10)',
    ],
    ['{"a":-1e999}', 'has a number beyond 2^53 - 1 that is not kept; send it as text (line 1, column 6)'],
    [nested(33), 'nests deeper than 32 levels (line 1, column 161)'],
    [
      `{"${long}":1,"${long}":2}`,
      `has the member "${'n'.repeat(32)}"… twice in one object (line 1, column 507)`,
    ],
    // What turns a line around, or clears a terminal, is shown as an escape; no pair is cut in two.
    [
      '{"\\u001b[2J\u202e\u009b\u{e0041}":1,"\\u001b[2J\u202e\u009b\u{e0041}":2}',
      'has the member "\\u001b[2J\\u202e\\u009b\\udb40\\udc41" twice in one object (line 1, column 20)',
    ],
    [
      `{"${'n'.repeat(31)}😀":1,"${'n'.repeat(31)}😀":2}`,
      `has the member "${'n'.repeat(31)}"… twice in one object (line 1, column 40)`,
    ],
  ];
  for (const [text, fault] of told) {
    it(`is told: ${JSON.stringify(text).slice(0, 60)}`, () => {
      expect(parseJsonObject(text)).to.equal(undefined);
      expect(jsonFault(text)).to.equal(fault);
      expect(jsonFault(text, 2_000)).to.equal(fault);
    });
  }

  it('is that there are too many members, where nothing else is wrong', () => {
    const text = `{"a":[${'0,'.repeat(20)}0]}`;
    expect(parseJsonObject(text, 32, 10)).to.equal(undefined);
    expect(jsonFault(text, 10)).to.equal('has more than 10 members and entries');
  });

  it('is one of all reasons, where the text is longer than its sender may have it read twice', () => {
    const long = `{${'"a":0,'.repeat(3_000)}"a":0}`;
    expect(jsonFault(long, 2_000)).to.match(/^must be one whole JSON object: .*, with at most 2000 members/);
    expect(jsonFault(`\n ${'['.repeat(17_000)}`, 2_000)).to.equal('must be a JSON object');
    const trusted = `{"a":"${'x'.repeat(70_000)}","a":1}`;
    expect(jsonFault(trusted, 10_000)).to.match(/^must be one whole/);
    expect(jsonFault(trusted)).to.equal('has the member "a" twice in one object (line 1, column 70009)');
  });

  it('is found for whatever the parser refuses, and in the time of its length', () => {
    const names = fc.constantFrom('"a"', '"\\u0061"', '"b"', '"constructor"', '"{:"', '"\\"a"', '"\\u0000"');
    const values = fc.constantFrom(
      '1e999',
      '12345678901234567',
      '0.12345678901234567890',
      '[]',
      '"a"',
      '1.0e2',
    );
    const { text } = fc.letrec<{ text: string }>((tie) => ({
      text: fc.oneof(
        { depthSize: 'small' },
        values,
        names,
        fc.array(tie('text'), { maxLength: 3 }).map((all) => `[${all.join()}]`),
        fc
          .array(fc.tuple(names, tie('text')), { maxLength: 3 })
          .map((all) => `{${all.map((each) => each.join(' : ')).join()}}`),
      ),
    }));
    const seen = { taken: 0, refused: 0 };
    fc.assert(
      fc.property(text, (value) => {
        const document = `{"":${value}}`;
        const isTaken = parseJsonObject(document, 3) !== undefined;
        seen[isTaken ? 'taken' : 'refused']++;
        const fault = jsonFault(document, undefined, 3);
        expect(fault.startsWith('must be one whole'), `${document}: ${fault}`).to.equal(isTaken);
      }),
      { numRuns: 2_000 },
    );
    expect(Math.min(seen.taken, seen.refused)).to.be.greaterThan(100);
    for (const unit of ['{},', '"\\\\",', '0,', '"\\u0061",', '1.5,']) {
      const document = `{"a":[${unit.repeat(300_000 / unit.length)}0],"a":1}`;
      let fault = '';
      const spent = processorTime(() => {
        fault = jsonFault(document);
      });
      expect(fault).to.include('twice');
      expect(spent, unit).to.be.lessThan(400);
    }
  });
});
