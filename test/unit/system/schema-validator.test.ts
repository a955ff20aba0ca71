import { expect } from 'chai';
import { AjvSchemaValidator } from '../../../adapters/system/schema-validator.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { JsonObject } from '../../../domain/shared/json.ts';

describe('schemas of tenants', () => {
  const validator = new AjvSchemaValidator();
  const compile = (schema: object) => validator.compile(schema as JsonObject);
  const isValid = (schema: object, document: object) => compile(schema)(document as JsonObject).length === 0;
  const value = (schema: object) => ({ properties: { value: schema } });
  const rejectionOf = (schema: object): string => {
    try {
      compile(schema);
      return 'compiled';
    } catch (error) {
      if (error instanceof Failure && error.code === 'invalid_input') return error.message;
      throw error;
    }
  };
  const expectQuick = <T>(work: () => T): T => {
    // The limit is generous because of other load. A backtracking pattern would take years.
    const began = process.cpuUsage();
    const result = work();
    const { user, system } = process.cpuUsage(began);
    expect((user + system) / 1000).to.be.lessThan(10_000);
    return result;
  };
  before(() => compile({ pattern: '^a$' }));

  const person = {
    type: 'object',
    required: ['given_name', 'birth_date', 'nationalities'],
    additionalProperties: false,
    properties: {
      given_name: { type: 'string', minLength: 1, maxLength: 100, pattern: "^[\\p{L} '-]+$" },
      birth_date: { type: 'string', format: 'date', pattern: '^\\d{4}-\\d{2}-\\d{2}$' },
      sex: { enum: ['f', 'm', 'x'] },
      email: { type: 'string', format: 'email' },
      nationalities: { type: 'array', uniqueItems: true, items: { $ref: '#/$defs/country' } },
      address: {
        type: 'object',
        properties: { country: { $ref: '#/$defs/country' }, postal_code: { pattern: '^(?:[A-Z]-)?\\d{4,5}$' } },
        patternProperties: { '^x-': { type: 'integer' } },
        additionalProperties: false,
      },
    },
    $defs: { country: { type: 'string', pattern: '^[A-Z]{2}$' } },
  };
  const ada = {
    given_name: 'Åda Łovelace',
    birth_date: '2000-02-29',
    sex: 'f',
    email: 'ada@example.org',
    nationalities: ['DE', 'AT'],
    address: { country: 'DE', postal_code: 'D-12345', 'x-floor': 3 },
  };

  it('accept and reject ordinary documents', () => {
    expect(compile(person)(ada)).to.deep.equal([]);
    const invalidChanges: [object, string][] = [
      [{ given_name: 'Ada 2' }, '.given_name'],
      [{ birth_date: '2001-02-29' }, '.birth_date'],
      [{ birth_date: '29.02.2000' }, '.birth_date'],
      [{ sex: 'o' }, '.sex'],
      [{ email: 'ada' }, '.email'],
      [{ nationalities: ['DE', 'DE'] }, '.nationalities'],
      [{ nationalities: ['DEU'] }, '.nationalities.0'],
      [{ address: { country: 'de' } }, '.address.country'],
      [{ address: { postal_code: '1' } }, '.address.postal_code'],
      [{ address: { 'x-floor': 'top' } }, '.address.x-floor'],
      [{ address: { floor: 1 } }, '.address'],
      [{ shoe: 1 }, ''],
    ];
    const check = compile(person);
    for (const [change, path] of invalidChanges) {
      expect(check({ ...ada, ...change }).map((fault) => fault.path)).to.deep.equal([path]);
    }
  });

  it('match patterns like JavaScript', () => {
    const patterns = [
      '^[A-Z]{2}$', '^\\d{4}-\\d{2}-\\d{2}$', '^(a+)+$', 'b', '', '^$', '^(?:ab|a)(?:c|bcd)$', 'a{2,3}b?', '^a{0}b{1,}$',
      '^(?<name>x|y|)z$', '^[^\\]a-c]$', '\\bab\\b', 'a\\B', '^.$', '^\\u{1F600}$', '^\\uD83D\\uDE00$', '^\\x41\\u0042$',
      '^(a*)*b$', '^(|a)+$', '[]', '^[^]$', '(a|b)*?c', '^\\/\\.\\$$', '^\\p{Lu}\\P{Lu}$', '(^a|b$)',
    ]; // biome-ignore format: a table
    const texts = [
      '', 'a', 'b', 'ab', 'AB', 'aa', 'aab', 'abc', 'abcd', 'aabcd', '2026-01-31', 'xz', 'z', ']', 'd', 'x ab y', '😀',
      '\n', '/.$', 'Aa', 'bab', 'c',
    ]; // biome-ignore format: a table
    for (const pattern of patterns) {
      const check = compile(value({ pattern }));
      const expected = texts.filter((text) => new RegExp(pattern, 'u').test(text));
      expect(
        texts.filter((text) => check({ value: text }).length === 0),
        pattern,
      ).to.deep.equal(expected);
    }
  });

  it('with patterns of exponential time terminate', () => {
    const slowPatterns = ['^(a+)+$', '^(a|a)*$', '^a*a*a*a*a*a*b$', '^(a?){500}a{500}$', '(?:.*,){12}x', '^(([a-z])+.)+[A-Z]$'];
    for (const pattern of slowPatterns) {
      const texts = ['a'.repeat(50), 'a'.repeat(200_000), `${'a,'.repeat(2_000)}!`].map((text) => `${text}!`);
      for (const text of texts) {
        expect(
          expectQuick(() => isValid(value({ pattern }), { value: text })),
          pattern,
        ).to.equal(false);
      }
      const withPatternNames = { patternProperties: { [pattern]: true }, additionalProperties: false };
      expect(
        expectQuick(() => isValid(withPatternNames, { [`${'a'.repeat(50)}!`]: 1 })),
        pattern,
      ).to.equal(false);
    }
  });

  it('are rejected for patterns whose time cannot be limited', () => {
    for (const pattern of ['(a)\\1', '(?<n>a)\\k<n>', '(?=a)', '(?!a)', '(?<=a)', '(?<!a)b', '(?i:a)']) {
      expect(rejectionOf(value({ pattern })), pattern).to.match(/patterns must not/);
    }
    const tooLong = ['a'.repeat(1_001), '(a{99}){99}', '((((){1000}){1000}){1000}){1000}', 'a{100000000}', '('];
    for (const pattern of tooLong) {
      expect(
        expectQuick(() => rejectionOf(value({ pattern }))),
        pattern,
      ).to.include('not a usable JSON Schema');
    }
  });

  it('validate many items at once', () => {
    const unique = value({ type: 'array', uniqueItems: true });
    const fortyThousand = Array.from({ length: 40_000 }, (_, a) => ({ a }));
    expect(expectQuick(() => isValid(unique, { value: fortyThousand }))).to.equal(false);
    const distinct = Array.from({ length: 900 }, (_, a) => ({ a }));
    expect(expectQuick(() => isValid(unique, { value: distinct }))).to.equal(true);
    const twice = { value: [{ a: 1, b: [2] }, 1, '1', { b: [2], a: 1 }] };
    expect(isValid(unique, twice)).to.equal(false);
    const often = { allOf: Array.from({ length: 60 }, () => unique) };
    const check = compile(often);
    expect(expectQuick(() => check({ value: distinct })[0]?.message)).to.include('too much work');
  });

  it('are aborted when references multiply the work', () => {
    const doubled = (name: string) => ({ allOf: [{ $ref: `#/$defs/${name}` }, { $ref: `#/$defs/${name}` }] });
    const $defs = Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`d${i}`, doubled(`d${i + 1}`)]));
    const schemas = [
      { $ref: '#/$defs/d0', $defs: { ...$defs, d40: true } },
      { $ref: '#' },
      { properties: { a: { allOf: [{ $ref: '#' }, { $ref: '#' }] } } },
    ];
    let nestedSchema: JsonObject = {};
    for (let i = 0; i < 500; i++) nestedSchema = { a: nestedSchema };
    for (const schema of schemas) {
      const check = compile(schema);
      expect(expectQuick(() => check(nestedSchema)[0]?.message)).to.include('too much work');
    }
  });

  it('are rejected if their work cannot be counted', () => {
    const rejectedSchemas: object[] = [
      { $ref: '#/default', default: { allOf: [] } },
      { $ref: 'https://elsewhere.example/schema' },
      { $dynamicRef: '#x' },
      { properties: { a: { $id: 'https://elsewhere.example/schema' } } },
      { $async: true },
      { maxLength: -1 },
      { description: 'x'.repeat(50_000) },
    ];
    for (const schema of rejectedSchemas) expect(rejectionOf(schema)).to.not.equal('compiled');
    expect(isValid(value({ const: { $ref: 'data' } }), { value: { $ref: 'data' } })).to.equal(true);
    expect(isValid({ properties: { const: { type: 'string' } } }, { const: 1 })).to.equal(false);
  });

  it('may have their own $schema, which validates them', () => {
    const $id = 'https://own.example/dialect';
    expect(isValid({ $id, $schema: $id, ...value({ type: 'string' }) }, { value: 'a' })).to.equal(true);
    expect(rejectionOf({ $id, $schema: $id, ...value({ type: 'string' }), required: ['value'] })).to.match(/schema is invalid.*'value'/);
    // The next schema does not know this $id.
    expect(rejectionOf({ $schema: $id, type: 'object' })).to.match(/no schema with key or ref/);
  });

  it('are compiled in a time that grows linearly with their size', () => {
    // The best processor time of several attempts, because of other load.
    const cost = (count: number) => {
      const properties = Array.from({ length: count }, (_, i) => [`p${i}`, { type: 'string', maxLength: 9 }]);
      const schema = { properties: Object.fromEntries(properties) };
      const attempts = Array.from({ length: 3 }, () => {
        const began = process.cpuUsage();
        compile(schema);
        // For such short times, only the sum is exact.
        const { user, system } = process.cpuUsage(began);
        return user + system;
      });
      return Math.min(...attempts);
    };
    cost(50);
    // The size differs by ten. Quadratic growth would make it a hundred times as expensive.
    expect(cost(500)).to.be.lessThan(40 * cost(50));
  });

  it('limit the documents, but allow a portrait', () => {
    expect(isValid(value({ type: 'string' }), { value: 'A'.repeat(900_000) })).to.equal(true);
    expect(isValid({}, { value: 'A'.repeat(1_100_000) })).to.equal(false);
    expect(isValid({}, { value: Array.from({ length: 2_001 }, () => 0) })).to.equal(false);
  });
});
