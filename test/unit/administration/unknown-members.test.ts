import { expect } from 'chai';
import { z } from 'zod';
import { unknownMembers } from '../../../adapters/http/unknown-members.ts';

describe('Members that nobody knows', () => {
  const schema = z
    .object({
      tx_code: z.string().optional(),
      list: z.array(z.object({ name: z.string() })).default([]),
      table: z
        .record(z.string(), z.object({ id: z.string() }))
        .nullable()
        .optional(),
      open: z.looseObject({ a: z.string() }).optional(),
      free: z.record(z.string(), z.json()).optional(),
      either: z.union([z.string(), z.object({ one: z.string() }), z.object({ two: z.string() })]).optional(),
    })
    .superRefine(() => {})
    .transform((value) => value);
  const paths = (value: unknown) => unknownMembers(schema, value).map(({ path }) => path);

  it('are found at any depth', () => {
    expect(paths({ txCode: 'x', list: [{ name: 'a' }, { name: 'b', nam: 'c' }] })).to.deep.equal([
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
    const view = z.object({ createdAt: z.string() });
    const read = { createdAt: 'x', list: [{ name: 'a', createdAt: 'x' }] };
    expect(unknownMembers(schema, read, view).map(({ path }) => path)).to.deep.equal(['list.0.createdAt']);
  });

  it('come with the name that was meant, where one is near', () => {
    const [near, far] = unknownMembers(schema, { TXCode: 'x', colour: 'y' });
    expect(near?.message).to.equal('there is no such member; did you mean tx_code?');
    expect(far?.message).to.equal('there is no such member');
  });

  it('are bounded, and know no prototype', () => {
    const many = Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`m${index}`, 1]));
    expect(unknownMembers(schema, many)).to.have.length(50);
    expect(paths(JSON.parse('{"__proto__": 1, "constructor": 2}'))).to.deep.equal([
      '__proto__',
      'constructor',
    ]);
  });
});
