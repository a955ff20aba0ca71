import { expect } from 'chai';
import { excessOf, measureSchema } from '../../../adapters/system/schema-size.ts';
import { AjvSchemaValidator } from '../../../adapters/system/schema-validator.ts';
import { sizeOf } from '../../../application/tenant-cache/size-of.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { JsonObject } from '../../../domain/shared/json.ts';
import { processorTime } from '../../support/measurements.ts';

const validator = new AjvSchemaValidator();

const named = (count: number, schema: unknown) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`p${index}`, schema]));
const listed = (count: number, schema: unknown) => Array.from({ length: count }, () => schema);
const nested = (levels: number): object => (levels === 0 ? {} : { properties: { a: nested(levels - 1) } });

/** Each has less than fifty thousand characters, and takes hundreds of milliseconds to compile. */
const SLOW: Readonly<Record<string, object>> = {
  'many properties': { properties: named(1_700, { type: 'string' }) },
  'many alternatives': { anyOf: listed(15_000, {}) },
  'many parts': { allOf: listed(9_000, true) },
  'many conditions': { allOf: listed(1_500, JSON.parse('{"if":{},"then":{},"else":{}}')) },
  'many patterns': { properties: named(1_500, { pattern: 'a' }) },
  'many names by pattern': { patternProperties: named(4_000, {}) },
  'many definitions': { $defs: named(4_000, {}) },
  'many dependencies': { dependentSchemas: named(4_000, {}) },
  'many keywords': { allOf: listed(400, { minimum: 1, maximum: 2, minLength: 1, maxLength: 2, minItems: 1 }) },
  'long patterns': { properties: named(20, { pattern: 'a'.repeat(900) }) },
  'deep nesting': nested(500),
  'much under the name of a keyword': { properties: { enum: { anyOf: listed(15_000, {}) } } },
  'much under a name that is a keyword twice': { properties: { properties: { properties: { enum: { anyOf: listed(15_000, {}) } } } } },
  'much in a keyword that is unknown': { x: { anyOf: listed(15_000, {}) } },
};

function refusalOf(schema: object): string | undefined {
  try {
    validator.assertSize(schema as JsonObject);
    return undefined;
  } catch (error) {
    if (error instanceof Failure && error.code === 'invalid_input') return String(error.details.message);
    throw error;
  }
}

/** What the thread itself has worked, whatever else the machine does. */
function threadMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

describe('schema size', () => {
  for (const [name, schema] of Object.entries(SLOW)) {
    it(`is rejected with ${name}, without delay`, () => {
      // A processor that others use is slower, and once in a while memory is collected: the best of three counts.
      const times = [0, 1, 2].map(() => {
        const start = threadMs();
        expect(refusalOf(schema)).to.match(/the schema has more than \d+ /);
        return threadMs() - start;
      });
      expect(Math.min(...times)).to.be.lessThan(50);
    });
  }

  it('allows realistic sizes', () => {
    const address = { type: 'object', properties: named(20, { type: 'string', maxLength: 100, pattern: '^[a-z]+$' }) };
    const schemas = [
      {},
      { properties: named(400, { type: 'string' }), required: Object.keys(named(400, 0)) },
      { properties: named(4, address), $defs: { address } },
      { enum: Array.from({ length: 3_000 }, (_, index) => ({ code: index })) },
      nested(30),
    ];
    for (const schema of schemas) expect(refusalOf(schema), JSON.stringify(schema).slice(0, 80)).to.equal(undefined);
  });

  it('limits the compile time', () => {
    validator.compile({ type: 'object' });
    const largest = [
      { properties: named(490, { type: 'string' }) },
      { anyOf: listed(490, {}) },
      { patternProperties: named(100, {}) },
      { properties: named(100, { pattern: '(a|b|c){1,40}d{1,40}' }) },
    ];
    for (const schema of largest) {
      expect(excessOf(measureSchema(schema as JsonObject))).to.equal(undefined);
      const spent = processorTime(() => validator.compile(schema as JsonObject));
      expect(spent).to.be.lessThan(400);
    }
  });

  it('includes cached compiled schemas', () => {
    const small = validator.compile({ type: 'object' });
    const large = validator.compile({ properties: named(400, { type: 'string' }) } as JsonObject);
    expect(sizeOf(small)).to.be.greaterThan(40_000);
    expect(sizeOf(large)).to.be.greaterThan(400_000);
  });

  it('does not apply to stored schemas', () => {
    const schema = { properties: named(700, { type: 'string' }) } as JsonObject;
    expect(refusalOf(schema)).to.include('500 subschemas');
    expect(validator.compile(schema)({ p1: 'x' })).to.deep.equal([]);
  });
});
