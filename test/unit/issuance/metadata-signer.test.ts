import { expect } from 'chai';
import { metadataSigner } from '../../../domain/issuance/metadata-signer.ts';
import type { KeyChain, KeyUsage } from '../../../domain/keys/key-chain.ts';
import { missingKeys } from '../../../domain/keys/key-chain-findings.ts';
import type { Profile } from '../../../domain/shared/finding.ts';
import { aKeyChain } from '../../contract/store/builders.ts';

const chain = (id: string, usages: readonly KeyUsage[], notAfter = '2030-01-01'): KeyChain => {
  const whole = aKeyChain('acme' as never, id);
  return { ...whole, usages, active: { ...whole.active, notAfter: new Date(notAfter) } };
};
const NOW = new Date('2026-06-01');
const signing = chain('signing', ['signing']);
const access = chain('access', ['access']);
const over = chain('over', ['access'], '2026-05-31');

describe('The signer of issuer metadata', () => {
  const cases: [string, readonly KeyChain[], Profile | null, string | undefined][] = [
    ['the access certificate', [signing, access], null, 'access'],
    ['that of credentials without one', [signing], null, 'signing'],
    ['that of credentials once the other ended', [over, signing], 'haip', 'signing'],
    ['nobody without either', [chain('lists', ['trustList'])], null, undefined],
    ['the access certificate for European wallets', [signing, access], 'eu', 'access'],
    ['nobody else for them', [over, signing], 'eu', undefined],
  ];
  for (const [what, chains, profile, id] of cases) {
    it(`is ${what}`, () => {
      expect(metadataSigner(chains, profile, NOW)?.id).to.equal(id);
    });
  }

  it('is demanded by the profile', () => {
    expect(missingKeys([signing], 'eu')).to.have.length(1);
    expect(missingKeys([signing, access], 'eu')).to.deep.equal([]);
    expect(missingKeys([], 'haip')).to.deep.equal([]);
  });
});
