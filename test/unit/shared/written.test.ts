import { expect } from 'chai';
import sinon from 'sinon';
import { z } from 'zod';
import { readOnlyNames } from '../../../adapters/http/read-only-members.ts';
import type { Route } from '../../../adapters/http/route.ts';
import type { FieldError } from '../../../domain/shared/failure.ts';
import { readWritten } from '../../../domain/shared/read-written.ts';
import { updateOf } from '../../../domain/shared/update-of.ts';
import { isWritten, written, writtenFreely } from '../../../domain/shared/written.ts';

const faultsOf = (schema: z.ZodType, value: unknown): readonly FieldError[] => {
  const read = readWritten(schema, value);
  return 'errors' in read ? read.errors : [];
};

describe('Members that nobody knows', () => {
  const schema = z
    .object({
      tx_code: z.string().optional(),
      list: z.array(written({ name: z.string() })).default([]),
      table: z
        .record(z.string(), written({ id: z.string() }))
        .nullable()
        .optional(),
      open: writtenFreely({ a: z.string() }).optional(),
      free: z.record(z.string(), z.json()).optional(),
      either: z.union([z.string(), written({ one: z.string() }), written({ two: z.string() })]).optional(),
    })
    .superRefine(() => {});
  const paths = (value: unknown) => faultsOf(schema, value).map(({ path }) => path);

  it('are found beside a member that is missing, also where other members are allowed', () => {
    expect(paths({ list: [{ nam: 'a' }], open: { A: 'x', b: 1 } })).to.have.members([
      'list.0.name',
      'list.0.nam',
      'open.a',
      'open.A',
    ]);
  });

  it('are found at any depth', () => {
    expect(paths({ txCode: 'x', list: [{ name: 'a' }, { name: 'b', nam: 'c' }] })).to.have.members([
      'txCode',
      'list.1.nam',
    ]);
    expect(paths({ table: { any: { id: 'a', idd: 'b' } }, either: { two: 'x', three: 'y' } })).to.deep.equal([
      'table.any.idd',
      'either.three',
    ]);
  });

  it('are none where any member is welcome', () => {
    expect(paths({ open: { a: 'x', b: 'y' }, free: { any: { thing: [1] } }, table: null })).to.deep.equal([]);
    expect(paths({ open: { a: 'x', A: 'y' } }), 'unless it looks like a known one').to.deep.equal(['open.A']);
  });

  it('may be those of the answer', () => {
    const view = z.object({ createdAt: z.string(), tx_code: z.string(), certId: z.string() });
    const names = (body: z.ZodType) => readOnlyNames({ body, responses: { 200: view } } as unknown as Route);
    expect(names(schema)).to.deep.equal(['createdAt', 'certId']);
    expect(names(schema.safeExtend({ keyChainId: z.string() }))).to.deep.equal(['createdAt']);
    expect(paths({ list: [{ name: 'a', createdAt: 'x' }] }), 'only at the top').to.deep.equal([
      'list.0.createdAt',
    ]);
  });

  it('come with the name that was meant, where one is near', () => {
    const [near, far] = faultsOf(schema, { TXCode: 'x', colour: 'y' });
    expect(near?.message).to.equal('there is no such member; did you mean tx_code?');
    expect(far?.message).to.equal('there is no such member');
  });

  it('are refused by name in what people write alone', () => {
    expect(isWritten(written({ a: z.string() }))).to.equal(true);
    expect(isWritten(z.strictObject({ a: z.string() }))).to.equal(false);
  });

  it('are bounded, and know no prototype', () => {
    const many = Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`m${index}`, 1]));
    expect(faultsOf(schema, many)).to.have.length(50);
    expect(paths(JSON.parse('{"__proto__": 1, "constructor": 2}'))).to.deep.equal([
      '__proto__',
      'constructor',
    ]);
  });
});

describe('What a change may have', () => {
  const Body = z.object({
    id: z.string().describe('its name'),
    plain: z.string().optional(),
    seconds: z.number().default(300).describe('how long'),
    maybe: z.string().nullable().optional(),
  });
  const changes: [string, unknown, boolean][] = [
    ['nothing', {}, true],
    ['a member that is needed', { id: 'x' }, true],
    ['null for one that is needed', { id: null }, false],
    ['null for one with a default', { seconds: null }, true],
    ['null for one that may be left out', { plain: null, maybe: null }, true],
    ['another kind of value', { seconds: 'long' }, false],
    ['a member that nobody knows', { second: 1 }, false],
  ];
  for (const [name, change, isFit] of changes) {
    it(`${isFit ? 'is' : 'is not'} ${name}`, () => {
      const read = readWritten(updateOf(Body), change);
      expect('data' in read ? read.data : undefined).to.deep.equal(isFit ? change : undefined);
    });
  }
});

describe('A text in place of an object', () => {
  afterEach(() => sinon.restore());

  it('is rejected without a look at each of its characters', () => {
    const keys = sinon.spy(Object, 'keys');
    const read = writtenFreely({ type: z.string() }).safeParse('x'.repeat(1_000));
    const enumerated = keys.args
      .flat()
      .filter((value) => typeof value === 'string' || value instanceof String);
    expect(read.success).to.equal(false);
    expect(enumerated).to.deep.equal([]);
  });
});
