import { expect } from 'chai';
import { closestName, unknownMember } from '../../../domain/shared/closest-name.ts';

describe('The name that was meant', () => {
  for (const [name, known, meant] of [
    ['txCode', ['name', 'tx_code'], 'tx_code'],
    ['claim', ['claims'], 'claims'],
    ['nam', ['name'], 'name'],
    ['namme', ['name'], 'name'],
    ['nane', ['name'], 'name'],
    ['nmae', ['name'], 'name'],
    ['coluor', ['colour', 'color'], 'colour'],
    ['credentail', ['credential'], 'credential'],
    ['crdentail', ['credential'], 'credential'],
    ['lifetim', ['lifetimes', 'life_time'], 'lifetimes'],
    ['credentiel', ['credentia', 'credential', 'credentiol'], 'credential'],
  ] as const) {
    it(`of ${name} is ${meant}`, () => expect(closestName(name, known)).to.equal(meant));
  }

  for (const [name, known] of [
    ['ab', 'ac'],
    ['id', 'idx'],
    ['cxmd', 'cyxd'],
    ['cmxd', 'cxyd'],
    ['mane', 'name'],
    ['colours', 'flavour'],
    ['crdetail', 'credential'],
    ['name', 'nickname'],
    ['x', 'y'],
  ] as const) {
    it(`of ${name} is not ${known}`, () => expect(closestName(name, [known])).to.equal(undefined));
  }

  it('is asked about where there is one', () => {
    expect(unknownMember('nam', ['name'])).to.equal('there is no such member; did you mean name?');
    expect(unknownMember('colour', ['name'])).to.equal('there is no such member');
    expect(unknownMember('colour', [])).to.equal('there is no such member');
  });
});
