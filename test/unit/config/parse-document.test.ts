import { expect } from 'chai';
import { parseDocumentText } from '../../../config/import/parse-document.ts';

const parse = (text: string, format: 'json' | 'yaml') => parseDocumentText(Buffer.from(text), format);

const nested = (depth: number) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`;

describe('configuration files', () => {
  it('are read as JSON', () => {
    const text = '\uFEFF{"a": [1, "x", null, true], "b": {"c": 1e3}}';
    expect(parse(text, 'json')).to.deep.equal({ value: { a: [1, 'x', null, true], b: { c: 1000 } } });
  });

  it('are read as YAML 1.2, where no, dates and versions are text', () => {
    const text = [
      '# a comment',
      'id: pid',
      'answer: no',
      'born: 1985-12-10',
      'version: "1.0"',
      'number: 7',
      'on: true',
      'nothing: null',
      'frame: &frame',
      '  0: {_sd: [a, b]}',
      'same: *frame',
      'pem: |',
      '  -----BEGIN',
      '  -----END',
    ].join('\n');
    expect(parse(text, 'yaml')).to.deep.equal({
      value: {
        id: 'pid',
        answer: 'no',
        born: '1985-12-10',
        version: '1.0',
        number: 7,
        on: true,
        nothing: null,
        frame: { 0: { _sd: ['a', 'b'] } },
        same: { 0: { _sd: ['a', 'b'] } },
        pem: '-----BEGIN\n-----END\n',
      },
    });
  });

  const bomb = Array.from({ length: 9 }, (_, i) =>
    i === 0
      ? 'a0: &a0 [x, x, x, x, x, x, x, x, x]'
      : `a${i}: &a${i} [${Array(9)
          .fill(`*a${i - 1}`)
          .join(', ')}]`,
  ).join('\n');
  const refused: [string, 'json' | 'yaml', string, RegExp][] = [
    [
      'JSON that is none, with the place',
      'json',
      '{"a": 1,\n "b": 2 "key-of-somebody"}',
      /is not JSON \(line 2, column 9\)/,
    ],
    ['JSON with a comment', 'json', '{/* key-of-somebody */}', /is not JSON/],
    ['nothing', 'json', '', /is not JSON/],
    [
      'a member twice',
      'json',
      '{"a": 1,\n\n"a": "key-of-somebody"}',
      /has the member "a" twice in one object \(line 3, column 1\)/,
    ],
    [
      'a member twice, once in disguise',
      'json',
      '{"a": 1, "\\u0061": 2}',
      /has the member "a" twice in one object \(line 1, column 10\)/,
    ],
    ['a list', 'json', '[]', /one object/],
    ['a list with a member twice', 'json', '[{"a": 1, "a": 2}]', /must be a JSON object/],
    ['a text', 'json', '"key-of-somebody"', /one object/],
    ['depth', 'json', nested(40), /deeper than 32 levels \(line 1, column 161\)/],
    ['a member that reaches for the prototype', 'json', '{"__proto__": {}}', /called "__proto__"/],
    ['NUL', 'json', '{"a": "\\u0000"}', /has NUL in a text/],
    ['YAML with a member twice', 'yaml', 'a: 1\nb: 2\na: key-of-somebody\n', /duplicate key \(line 3\)/],
    [
      'YAML that is none',
      'yaml',
      'a: [1\nb: key-of-somebody: x',
      /is not YAML as it is taken here: .+ \(line \d+\)/,
    ],
    ['several documents', 'yaml', 'a: 1\n---\na: 2\n', /multiple docs/],
    ['an unknown tag', 'yaml', 'a: !key-of-somebody x\n', /tag resolve failed \(line 1\)/],
    ['binary data', 'yaml', 'a: !!binary aGVsbG8=\n', /JSON does not have/],
    ['an infinite number', 'yaml', 'a: .inf\n', /JSON does not have/],
    ['a list as the name of a member', 'yaml', '? [a]\n: 1\n', /neither text nor a number/],
    ['null as the name of a member', 'yaml', '~: 1\n', /neither text nor a number/],
    ['aliases that multiply', 'yaml', bomb, /aliases that multiply/],
    ['YAML depth', 'yaml', nested(40), /JSON does not have, or too many/],
    ['a YAML member that reaches for the prototype', 'yaml', '__proto__: {a: 1}\n', /JSON does not have/],
    [
      'a prototype in a constructor',
      'json',
      '{"constructor": {"prototype": {}}}',
      /"prototype" in "constructor"/,
    ],
    ['a YAML prototype in a constructor', 'yaml', 'constructor: {prototype: 1}\n', /JSON does not have/],
    ['YAML that is a text', 'yaml', 'key-of-somebody', /one object/],
    ['an empty file', 'yaml', '', /one object/],
  ];
  for (const [what, format, text, fault] of refused) {
    it(`are refused with ${what}, without being quoted`, () => {
      const parsed = parse(text, format);
      expect(parsed).to.have.property('fault').that.matches(fault);
      expect(JSON.stringify(parsed)).to.not.include('key-of-somebody');
    });
  }

  it('are refused when they are no UTF-8', () => {
    const bytes = Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]);
    expect(parseDocumentText(bytes, 'json')).to.deep.equal({ fault: 'is no UTF-8 text' });
  });
});
