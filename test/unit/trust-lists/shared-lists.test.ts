import { expect } from 'chai';
import { SharedLists } from '../../../application/trust-lists/shared-lists.ts';

type List = { readonly name: string; readonly bytes: number };

const names = (lists: SharedLists<List>, tenant: string) =>
  lists
    .entries(tenant)
    .map(({ name }) => name)
    .sort()
    .join('');

describe('The memory for lists of others', () => {
  let lists: SharedLists<List>;
  const add = (tenant: string, name: string, bytes = 10) => lists.set(tenant, name, { name, bytes });
  beforeEach(() => {
    lists = new SharedLists({ maxBytes: 100, sizeOf: ({ bytes }) => bytes });
  });

  it('is taken from the tenant that uses most of it, what was asked for longest ago first', () => {
    add('small', 'a');
    for (const name of 'bcdefghij') add('large', name);
    lists.get('large', 'b');
    add('third', 'k');
    add('third', 'l');
    expect(names(lists, 'small')).to.equal('a');
    expect(names(lists, 'large')).to.equal('befghij');
    expect(names(lists, 'third')).to.equal('kl');
  });
  it('holds no list that does not fit, and nothing of others goes for it', () => {
    add('small', 'a');
    add('large', 'b', 101);
    expect(names(lists, 'small') + names(lists, 'large')).to.equal('a');
  });
  it('counts a list that is replaced once, and what is cleared no more', () => {
    for (let round = 0; round < 50; round += 1) add('one', 'a', 60);
    add('two', 'b', 40);
    expect(names(lists, 'one') + names(lists, 'two')).to.equal('ab');
    lists.clear('one');
    add('two', 'c', 60);
    expect(names(lists, 'two')).to.equal('bc');
  });
});
