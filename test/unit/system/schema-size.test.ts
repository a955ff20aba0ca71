import { expect } from 'chai';
import { excessOf, measureSchema } from '../../../adapters/system/schema-size.ts';
import { AjvSchemaValidator } from '../../../adapters/system/schema-validator.ts';
import { sizeOf } from '../../../application/tenant-cache/size-of.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { JsonObject } from '../../../domain/shared/json.ts';
import { processorTime } from '../../support/measurements.ts';

const validator = new AjvSchemaValidator();

const propertiesOf = (count: number, schema: unknown) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`p${index}`, schema]));
const listOf = (count: number, schema: unknown) => Array.from({ length: count }, () => schema);
const nest = (levels: number): object => (levels === 0 ? {} : { properties: { a: nest(levels - 1) } });

/** Each schema has fewer than 50,000 characters and takes hundreds of milliseconds to compile. */
const SLOW_SCHEMAS: Readonly<Record<string, object>> = {
  'many properties': { properties: propertiesOf(1_700, { type: 'string' }) },
  'many alternatives': { anyOf: listOf(15_000, {}) },
  'many parts': { allOf: listOf(9_000, true) },
  'many conditions': { allOf: listOf(1_500, JSON.parse('{"if":{},"then":{},"else":{}}')) },
  'many patterns': { properties: propertiesOf(1_500, { pattern: 'a' }) },
  'many names by pattern': { patternProperties: propertiesOf(4_000, {}) },
  'many definitions': { $defs: propertiesOf(4_000, {}) },
  'many dependencies': { dependentSchemas: propertiesOf(4_000, {}) },
  'many keywords': { allOf: listOf(400, { minimum: 1, maximum: 2, minLength: 1, maxLength: 2, minItems: 1 }) },
  'long patterns': { properties: propertiesOf(20, { pattern: 'a'.repeat(900) }) },
  'deep nesting': nest(500),
  'much under the name of a keyword': { properties: { enum: { anyOf: listOf(15_000, {}) } } },
  'many values under a name that is two keywords': { properties: { properties: { properties: { enum: { anyOf: listOf(15_000, {}) } } } } },
  'many values in an unknown keyword': { x: { anyOf: listOf(15_000, {}) } },
};

function rejectionOf(schema: object): string | undefined {
  try {
    validator.assertSize(schema as JsonObject);
    return undefined;
  } catch (error) {
    if (error instanceof Failure && error.code === 'invalid_input') return String(error.details.message);
    throw error;
  }
}

/** Returns the processor time of this thread, independent of other load. */
function threadMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

describe('schema size', () => {
  for (const [name, schema] of Object.entries(SLOW_SCHEMAS)) {
    it(`is rejected with ${name}, without delay`, () => {
      // The best of three measurements counts, because of other load and garbage collection.
      const times = [0, 1, 2].map(() => {
        const start = threadMs();
        expect(rejectionOf(schema)).to.match(/the schema has more than \d+ /);
        return threadMs() - start;
      });
      expect(Math.min(...times)).to.be.lessThan(50);
    });
  }

  it('allows realistic sizes', () => {
    const address = { type: 'object', properties: propertiesOf(20, { type: 'string', maxLength: 100, pattern: '^[a-z]+$' }) };
    const schemas = [
      {},
      { properties: propertiesOf(400, { type: 'string' }), required: Object.keys(propertiesOf(400, 0)) },
      { properties: propertiesOf(4, address), $defs: { address } },
      { enum: Array.from({ length: 3_000 }, (_, index) => ({ code: index })) },
      nest(30),
    ];
    for (const schema of schemas) expect(rejectionOf(schema), JSON.stringify(schema).slice(0, 80)).to.equal(undefined);
  });

  it('limits the compile time', () => {
    validator.compile({ type: 'object' });
    const largest = [
      { properties: propertiesOf(490, { type: 'string' }) },
      { anyOf: listOf(490, {}) },
      { patternProperties: propertiesOf(100, {}) },
      { properties: propertiesOf(100, { pattern: '(a|b|c){1,40}d{1,40}' }) },
    ];
    for (const schema of largest) {
      expect(excessOf(measureSchema(schema as JsonObject))).to.equal(undefined);
      const cpuMs = processorTime(() => validator.compile(schema as JsonObject));
      expect(cpuMs).to.be.lessThan(400);
    }
  });

  it('includes cached compiled schemas', () => {
    const smallSchema = validator.compile({ type: 'object' });
    const largeSchema = validator.compile({ properties: propertiesOf(400, { type: 'string' }) } as JsonObject);
    expect(sizeOf(smallSchema)).to.be.greaterThan(40_000);
    expect(sizeOf(largeSchema)).to.be.greaterThan(400_000);
  });

  it('does not apply to stored schemas', () => {
    const schema = { properties: propertiesOf(700, { type: 'string' }) } as JsonObject;
    expect(rejectionOf(schema)).to.include('500 subschemas');
    expect(validator.compile(schema)({ p1: 'x' })).to.deep.equal([]);
  });
});
