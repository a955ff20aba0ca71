import { expect } from 'chai';
import { parseJson } from '../../../domain/shared/json.ts';

describe('JSON of outsiders', () => {
  for (const text of [
    '9007199254740995',
    '1'.repeat(400),
    '1e999',
    '{"exp":1e400}',
    '[-1.5E+309]',
    '-9007199254740993',
    '9007199254740993.0',
    '9007199254740993e0',
    '{"a":900719925474099.3E1}',
    '[0.09007199254740993e17]',
    '{"a":[1,9007199254740993]}',
    '{"a":9007199254740993}',
    '[9007199254740993]',
    '{"a":\n  10000000000000000000001}',
  ]) {
    it(`is refused with an integer that would become another one: ${JSON.stringify(text)}`, () => {
      expect(parseJson(text)).to.equal(undefined);
    });
  }

  for (const [text, value] of [
    ['9007199254740991', Number.MAX_SAFE_INTEGER],
    ['-9007199254740991', Number.MIN_SAFE_INTEGER],
    ['["1234567890123456789012"]', ['1234567890123456789012']],
    ['{"a":" 1234567890123456789"}', { a: ' 1234567890123456789' }],
    ['1e300', 1e300],
    ['-1.0000000000000001e+21', -1.0000000000000001e21],
    ['1.7976931348623157e+308', Number.MAX_VALUE],
    ['0.12345678901234567890', Number('0.1234567890123456789')],
    ['9007199254740992', 2 ** 53],
    ['10000000000000000000000', 1e22],
    ['-44001619498386330', Number('-44001619498386330')],
  ] as const) {
    it(`is taken: ${text}`, () => expect(parseJson(text)).to.deep.equal(value));
  }

  for (const [what, text, isTaken] of [
    ['as many members as allowed', '{"a":1,"b":2,"c":3}', true],
    ['a member too many', '{"a":1,"b":2,"c":3,"d":4}', false],
    ['too many empty lists', '[[],[],[]]', false],
    ['as many escapes as allowed', `"${'\\n'.repeat(30)}"`, true],
    ['an escape too many', `"${'\\n'.repeat(31)}"`, false],
  ] as const) {
    it(`of a stranger with ${what} is ${isTaken ? 'taken' : 'refused'}`, () => {
      expect(parseJson(text, 32, 3) !== undefined).to.equal(isTaken);
      expect(parseJson(text)).to.not.equal(undefined);
    });
  }

  for (const text of ['"\\u0000"', '"\\ud800"', '{"\\u0000":1}', '{"a":"\\udc00 x"}']) {
    it(`is refused with what is no text: ${text}`, () => expect(parseJson(text)).to.equal(undefined));
  }
  it('may have any escape of text', () => {
    expect(parseJson('{"\\u0061":"\\ud83d\\ude00\\n\\\\u0000"}')).to.deep.equal({ a: '😀\n\\u0000' });
    expect(parseJson('{"a":1,"\\u0061":2}'), 'twice, in other words').to.equal(undefined);
  });
});
