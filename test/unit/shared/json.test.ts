import { expect } from 'chai';
import fc from 'fast-check';
import {
  canonicalJson,
  decodeJson,
  estimateJsonLength,
  isStringArray,
  type Json,
  mapStrings,
  parseJson,
  parseJsonObject,
  valueAt,
} from '../../../domain/shared/json.ts';
import { describeJsonProblem } from '../../../domain/shared/json-fault.ts';
import { processorTime } from '../../support/measurements.ts';

/** JSON of an attacker: duplicate names, names of prototypes, unrepresentable numbers and any whitespace. */
function hostileTexts(): fc.Arbitrary<string> {
  const spaces = fc.constantFrom('', ' ', '\n\t');
  const joinWith = (texts: readonly string[], space: string) => texts.join(`${space},${space}`);
  const words = fc.constantFrom('a', 'b', '', 'a:b', '{"', '1e999', '12345678901234567', '__proto__', 'constructor');
  const names = words.map((word) => JSON.stringify(word.replaceAll('"', "'")));
  const numbers = ['0', '-1.50', '1e3', '1e999', '12345678901234567', '0.12345678901234567890', '1700000000'];
  return fc.letrec<{ text: string }>((tie) => ({
    text: fc.oneof(
      { depthSize: 'small' },
      names,
      fc.constantFrom(...numbers, 'true', 'null'),
      fc.tuple(fc.array(tie('text'), { maxLength: 3 }), spaces).map(([texts, space]) => `[${joinWith(texts, space)}]`),
      fc.tuple(fc.array(fc.tuple(names, tie('text')), { maxLength: 3 }), spaces).map(([texts, space]) => {
        const properties = texts.map(([name, value]) => `${name}${space}:${space}${value}`);
        return `{${space}${joinWith(properties, space)}}`;
      }),
    ),
  })).text;
}

describe('untrusted JSON', () => {
  it('is accepted or rejected consistently, with and without an escape', () => {
    const counts = { accepted: 0, rejected: 0 };
    fc.assert(
      fc.property(hostileTexts(), fc.integer({ min: 1, max: 5 }), (text, depth) => {
        const strict = parseJson(`[${text},"A"]`, depth);
        if (strict === undefined) counts.rejected++;
        else counts.accepted++;
        expect(parseJson(`[${text},"\\u0041"]`, depth)).to.deep.equal(strict);
      }),
      { numRuns: 3_000 },
    );
    for (const count of Object.values(counts)) expect(count).to.be.above(300);
  });

  for (const text of [
    '9007199254740995',
    '1'.repeat(400),
    '1e999',
    '{"exp":1e400}',
    '[-1.5E+309]',
    '-9007199254740993',
    '9007199254740993.0',
    '9007199254740994.1',
    '9007199254740993e0',
    '{"a":900719925474099.3E1}',
    '[0.09007199254740993e17]',
    '{"a":[1,9007199254740993]}',
    '{"a":9007199254740993}',
    '[9007199254740993]',
    '{"a":\n  10000000000000000000001}',
    '4503599627370497.5',
    '[1,2,-9007199254740993.000]',
  ]) {
    it(`is rejected with an integer that cannot be represented exactly: ${JSON.stringify(text)}`, () => {
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
    ['{"exp":1700000000.000000}', { exp: 1_700_000_000 }],
    ['-9007199254740991.00', Number.MIN_SAFE_INTEGER],
    ['[1e2,1E+002,12345678901234.50]', [100, 100, 12_345_678_901_234.5]],
    ['10000000000000000000000', 1e22],
    ['-44001619498386330', Number('-44001619498386330')],
    ['["a",null,true,{"b":0.12345678901234567890}]', ['a', null, true, { b: Number('0.1234567890123456789') }]],
    ['{"a":"\\\\","b":"\\"","c":1}', { a: '\\', b: '"', c: 1 }],
    ['{"a":"\\",\\"b\\":","b":1}', { a: '","b":', b: 1 }],
    ['{"a":"\\u0062","b":["\\u0061","b","b"]}', { a: 'b', b: ['a', 'b', 'b'] }],
  ] as const) {
    it(`is accepted: ${text}`, () => expect(parseJson(text)).to.deep.equal(value));
  }

  for (const [description, text, isAccepted] of [
    ['as many properties as allowed', '{"a":1,"b":2,"c":3}', true],
    ['a property too many', '{"a":1,"b":2,"c":3,"d":4}', false],
    ['too many empty lists', '[[],[],[]]', false],
    ['as many escapes as allowed', `"${'\\n'.repeat(30)}"`, true],
    ['an escape too many', `"${'\\n'.repeat(31)}"`, false],
    ['a long number of few digits at once', `[${' '.repeat(70_000)}0.${'1'.repeat(999)}]`, true],
    ['a long number in a short text', `[0.${'1'.repeat(1_500)}]`, true],
    ['an overlong number', `[0.${'1'.repeat(70_000)}]`, false],
    ['a text of digits', `"${'1'.repeat(70_000)}"`, true],
  ] as const) {
    it(`from an untrusted source with ${description} is ${isAccepted ? 'accepted' : 'rejected'}`, () => {
      expect(parseJson(text, 32, 3) !== undefined).to.equal(isAccepted);
      expect(parseJson(text)).to.not.equal(undefined);
    });
  }

  for (const text of [
    '{"__proto__":1}',
    '{"a":[{"__proto__":{}}]}',
    '{"\\u005f_proto__":1}',
    '{"constructor":{"prototype":1}}',
    '{"constructor":{"a":{"b":1},"prototype":{"x":1}}}',
    '[{"a":{"constr\\u0075ctor":{"prototype":{"x":1}}}}]',
    '{"constructor":{"\\u0070rototype":1}}',
  ]) {
    it(`is rejected with a property that reaches a prototype: ${text}`, () => {
      expect(parseJson(text)).to.equal(undefined);
    });
  }

  for (const text of [
    '{"constructor":"ACME Bau GmbH","prototype":false}',
    '{"constructor":{"name":"ACME"},"prototype":{"constructor":1}}',
    '{"constructor":[{"prototype":1}]}',
    '{"constructor":{"a":{"prototype":1}},"b":{"prototype":1}}',
  ]) {
    it(`is accepted with claims called constructor and prototype: ${text}`, () => {
      expect(parseJson(text)).to.deep.equal(JSON.parse(text));
      const escaped = text.replaceAll('prototype', '\\u0070rototype');
      expect(parseJson(escaped)).to.deep.equal(JSON.parse(text));
    });
  }

  for (const text of ['"\\u0000"', '"\\ud800"', '{"\\u0000":1}', '{"a":"\\udc00 x"}']) {
    it(`is rejected with invalid Unicode text: ${text}`, () => expect(parseJson(text)).to.equal(undefined));
  }
  for (const text of [
    '{"a":"\\\\","a":1}',
    '{"\\"":1,"\\"":2}',
    '{"a" :1,"a":2}',
    '{"a"\n\t\r :1,"b":"a","a" : 2}',
    '{"b":[{"c":"d"}],"b" :0}',
  ]) {
    it(`is rejected with a duplicate property: ${JSON.stringify(text)}`, () => {
      expect(parseJson(text)).to.equal(undefined);
    });
  }
  it('may contain one text at several places', () => {
    const value = { a: 'a', b: ['a', 'a'], c: { a: 'a ' } };
    for (const space of [undefined, ' ', '\n\t']) expect(parseJson(JSON.stringify(value, null, space))).to.deep.equal(value);
    expect(parseJson('{"a":"b" ,"b" :"b" }')).to.deep.equal({ a: 'b', b: 'b' });
  });
  it('is parsed in linear time, with any numbers', () => {
    const [manyNumbers, zeros, ones] = ['1,'.repeat(200_000), '0'.repeat(500_000), '1'.repeat(500_000)];
    const texts = [`[1e100,${manyNumbers}1]`, `[1.${zeros}1]`, `[0.${ones}]`, `[${ones}e-${ones}]`];
    for (const text of texts) {
      const cpuMs = processorTime(() => parseJson(text));
      expect(cpuMs, text.slice(0, 20)).to.be.lessThan(400);
    }
  });
  it('may contain any escape sequence', () => {
    expect(parseJson('{"\\u0061":"\\ud83d\\ude00\\n\\\\u0000"}')).to.deep.equal({ a: '😀\n\\u0000' });
    expect(parseJson('{"a":1,"\\u0061":2}'), 'with the same value in another notation').to.equal(undefined);
  });
});

describe('JSON document', () => {
  it('may be nested up to the limit', () => {
    for (const [text, depth] of [
      ['[[1]]', 2],
      ['{"a":[{"b":1}]}', 3],
      ['[[],[[]],{}]', 3],
    ] as const) {
      expect(parseJson(text, depth), text).to.not.equal(undefined);
      expect(parseJson(text, depth - 1), text).to.equal(undefined);
    }
  });

  it('is parsed from base64url of UTF-8', () => {
    const decode = (bytes: string | Buffer) => decodeJson(Buffer.from(bytes as string).toString('base64url'));
    expect(decode('{"a":"ö"}')).to.deep.equal({ a: 'ö' });
    expect(decode(Buffer.from([0x22, 0xff, 0x22]))).to.equal(undefined);
    expect([decodeJson('e30='), decodeJson('*')]).to.deep.equal([undefined, undefined]);
  });

  it('must be an object if one is expected', () => {
    expect(parseJsonObject('{"a":1}')).to.deep.equal({ a: 1 });
    for (const text of ['[]', 'null', '"a"', '1', '{']) expect(parseJsonObject(text), text).to.equal(undefined);
  });

  it('has one canonical text for any order of properties', () => {
    const text = '{"a":{"x":[2,1],"y":null},"b":1,"c":"d"}';
    expect(canonicalJson({ c: 'd', a: { y: null, x: [2, 1] }, b: 1 })).to.equal(text);
    expect(canonicalJson({ b: 1, c: 'd', a: { x: [2, 1], y: null } })).to.equal(text);
    expect(canonicalJson({ b: 1, a: null }, (value) => value !== null)).to.equal('{"b":1}');
    expect([canonicalJson(undefined), canonicalJson(null), canonicalJson('a')]).to.deep.equal(['null', 'null', '"a"']);
  });

  it('is serialized like an object whose properties were added by name, also dates, numbers and absent values', () => {
    /** ETags of stored documents derive from it, so it must not change. */
    const sorted = (_name: string, value: unknown): unknown =>
      typeof value === 'object' && value !== null && !Array.isArray(value)
        ? Object.fromEntries(Object.entries(value).sort(([left], [right]) => (left < right ? -1 : 1)))
        : value;
    const names = fc.oneof(fc.string(), fc.nat().map(String), fc.constantFrom('', '4294967295', '01', '-1', '9', '10'));
    const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
      tree: fc.oneof(
        { depthSize: 'small' },
        fc.constantFrom<unknown>(undefined, null, true, 0, -0, 1e21, Number.NaN, new Date(0), 'ü"\u2028'),
        fc.array(tie('tree'), { maxLength: 4 }),
        fc.dictionary(names, tie('tree'), { maxKeys: 6, noNullPrototype: true }),
      ),
    }));
    fc.assert(
      fc.property(tree, (value) => canonicalJson(value) === JSON.stringify(value ?? null, sorted)),
      { numRuns: 2_000 },
    );
  });

  it('has values at paths, and none of a prototype', () => {
    const value = { a: [{ b: 0 }], c: null, d: 'text' };
    expect([valueAt(value, 'a.0.b'), valueAt(value, ['a', 0, 'b']), valueAt(value, [])]).to.deep.equal([0, 0, value]);
    for (const path of ['a.1', 'a.0.b.c', 'c.x', 'd.length', 'constructor', 'a.length.x', '']) {
      expect(valueAt(value, path), path).to.equal(undefined);
    }
  });

  it('may be required to be a list of strings', () => {
    for (const value of [[], ['a'], ['a', '']]) expect(isStringArray(value)).to.equal(true);
    for (const value of [[1], ['a', null], 'a', { 0: 'a' }, undefined]) expect(isStringArray(value)).to.equal(false);
  });

  it('has each of its strings mapped, with its path', () => {
    const value: Json = { a: ['x', 1, { b: 'y' }], c: null, d: true };
    const describeAt = (text: string, path: string) => `${path}=${text}`;
    expect(mapStrings(value, describeAt)).to.deep.equal({ a: ['a.0=x', 1, { b: 'a.2.b=y' }], c: null, d: true });
    expect(mapStrings('x', describeAt)).to.equal('=x');
    expect(mapStrings(value, describeAt, 'root')).to.have.nested.property('a[0]', 'root.a.0=x');
  });

  it('has an estimated size that is close to its text', () => {
    for (const value of ['text', 1, null, true, undefined, [], {}, { a: 'x'.repeat(500), b: [1, 2, { c: 'y' }] }]) {
      const length = JSON.stringify(value)?.length ?? 4;
      expect(estimateJsonLength(value), JSON.stringify(value)).to.be.within(length * 0.5, length * 2 + 8);
    }
    expect(estimateJsonLength(['x'.repeat(1_000)])).to.be.at.least(1_000);
  });
});

describe('reason for rejected JSON', () => {
  const nested = (depth: number) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`;
  const longName = 'n'.repeat(500);
  const problems: [string, string][] = [
    ['', 'is not JSON'],
    ['{\n"a":1,\n}', 'is not JSON (line 3, column 1)'],
    ['[]', 'must be a JSON object'],
    ['[{"a":1,"a":2}]', 'must be a JSON object'],
    ['"\\u0000"', 'must be a JSON object'],
    ['{"id":"a","id":"b"}', 'has the property "id" twice in one object (line 1, column 11)'],
    ['{"id":"a",\r\n  "\\u0069d":"b"}', 'has the property "id" twice in one object (line 2, column 3)'],
    ['{"a":{"b":1},\r"c":[{"b":1,\n"b" :2}]}', 'has the property "b" twice in one object (line 3, column 1)'],
    ['{"b":"a","a":"b","a":"","c":"c","c":""}', 'has the property "a" twice in one object (line 1, column 18)'],
    ['{"":1,"":2}', 'has the property "" twice in one object (line 1, column 7)'],
    ['{"a":{"__proto__":1}}', 'has a property called "__proto__", which is not allowed (line 1, column 7)'],
    [
      '{"a":{"constructor":{"b":1,"prototype":1}}}',
      'has a property called "prototype" in "constructor", which is not allowed (line 1, column 28)',
    ],
    ['{"a":"x\\u0000"}', 'has NUL in a text (line 1, column 6)'],
    ['{"\\u0000":1}', 'has NUL in a text (line 1, column 2)'],
    ['{"a":["\\ud800"]}', 'has an unpaired surrogate in a text (line 1, column 7)'],
    ['{"a":[1, 12345678901234567]}', 'has a number beyond 2^53 - 1 that would lose precision; send it as text (line 1, column 10)'],
    ['{"a":-1e999}', 'has a number beyond 2^53 - 1 that would lose precision; send it as text (line 1, column 6)'],
    [nested(33), 'is nested deeper than 32 levels (line 1, column 161)'],
    [`{"${longName}":1,"${longName}":2}`, `has the property "${'n'.repeat(32)}"… twice in one object (line 1, column 507)`],
    // Control and bidirectional characters are escaped, and surrogate pairs are not split.
    [
      '{"\\u001b[2J\u202e\u009b\u{e0041}":1,"\\u001b[2J\u202e\u009b\u{e0041}":2}',
      'has the property "\\u001b[2J\\u202e\\u009b\\udb40\\udc41" twice in one object (line 1, column 20)',
    ],
    [`{"${'n'.repeat(31)}😀":1,"${'n'.repeat(31)}😀":2}`, `has the property "${'n'.repeat(31)}"… twice in one object (line 1, column 40)`],
  ];
  for (const [text, fault] of problems) {
    it(`is described: ${JSON.stringify(text).slice(0, 60)}`, () => {
      expect(parseJsonObject(text)).to.equal(undefined);
      expect(describeJsonProblem(text)).to.equal(fault);
      expect(describeJsonProblem(text, 2_000)).to.equal(fault);
    });
  }

  it('is the number of properties, if nothing else is invalid', () => {
    const text = `{"a":[${'0,'.repeat(20)}0]}`;
    expect(parseJsonObject(text, 32, 10)).to.equal(undefined);
    expect(describeJsonProblem(text, 10)).to.equal('has more than 10 properties and entries');
  });

  it('is one of all reasons if the text is too long to be parsed twice', () => {
    const longName = `{${'"a":0,'.repeat(3_000)}"a":0}`;
    expect(describeJsonProblem(longName, 2_000)).to.match(/^must be one complete JSON object: .*, with at most 2000 properties/);
    expect(describeJsonProblem(`\n ${'['.repeat(17_000)}`, 2_000)).to.equal('must be a JSON object');
    const trusted = `{"a":"${'x'.repeat(70_000)}","a":1}`;
    expect(describeJsonProblem(trusted, 10_000)).to.match(/^must be one complete/);
    expect(describeJsonProblem(trusted)).to.equal('has the property "a" twice in one object (line 1, column 70009)');
  });

  it('is found for every text that the parser rejects, in linear time', () => {
    const names = fc.constantFrom('"a"', '"\\u0061"', '"b"', '"constructor"', '"{:"', '"\\"a"', '"\\u0000"');
    const values = fc.constantFrom('1e999', '12345678901234567', '0.12345678901234567890', '[]', '"a"', '1.0e2');
    const { text } = fc.letrec<{ text: string }>((tie) => ({
      text: fc.oneof(
        { depthSize: 'small' },
        values,
        names,
        fc.array(tie('text'), { maxLength: 3 }).map((texts) => `[${texts.join()}]`),
        fc.array(fc.tuple(names, tie('text')), { maxLength: 3 }).map((texts) => `{${texts.map((each) => each.join(' : ')).join()}}`),
      ),
    }));
    const counts = { accepted: 0, rejected: 0 };
    fc.assert(
      fc.property(text, (value) => {
        const document = `{"":${value}}`;
        const isAccepted = parseJsonObject(document, 3) !== undefined;
        counts[isAccepted ? 'accepted' : 'rejected']++;
        const fault = describeJsonProblem(document, undefined, 3);
        expect(fault.startsWith('must be one complete'), `${document}: ${fault}`).to.equal(isAccepted);
      }),
      { numRuns: 2_000 },
    );
    expect(Math.min(counts.accepted, counts.rejected)).to.be.greaterThan(100);
    for (const repeated of ['{},', '"\\\\",', '0,', '"\\u0061",', '1.5,']) {
      const document = `{"a":[${repeated.repeat(300_000 / repeated.length)}0],"a":1}`;
      let fault = '';
      const cpuMs = processorTime(() => {
        fault = describeJsonProblem(document);
      });
      expect(fault).to.include('twice');
      expect(cpuMs, repeated).to.be.lessThan(400);
    }
  });
});
