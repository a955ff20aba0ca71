import { expect } from 'chai';
import {
  documentSignerChain,
  type KeyChain,
  type KeyUsage,
  pickKeyChain,
  signingChain,
} from '../../../domain/keys/key-chain.ts';
import type { StoredKey } from '../../../domain/keys/signing-key.ts';
import { Failure } from '../../../domain/shared/failure.ts';

const NOW = new Date('2026-06-01T00:00:00Z');
const LATER = new Date('2027-01-01T00:00:00Z');

const aKey: StoredKey = {
  handle: { kms: 'local', keyId: 'k', algorithm: 'ES256' },
  publicJwk: { kty: 'EC', crv: 'P-256', x: 'AA', y: 'AA' },
};

function aKeyChain(changes: Partial<KeyChain> = {}): KeyChain {
  return {
    id: 'one',
    tenantId: 'acme',
    usages: ['signing'],
    kmsProvider: 'local',
    root: { key: aKey, certificate: 'ROOT', notAfter: LATER },
    active: { key: aKey, certificates: ['LEAF'], notAfter: LATER },
    rotationEnabled: false,
    rotationIntervalDays: 90,
    certValidityDays: 365,
    createdAt: new Date('2026-01-02T00:00:00Z'),
    updatedAt: NOW,
    ...changes,
  };
}

function failureOf(work: () => unknown): Failure {
  try {
    work();
  } catch (error) {
    if (error instanceof Failure) return error;
    throw error;
  }
  throw new Error('Expected a Failure.');
}

describe('signingChain', () => {
  it('is the leaf and its intermediates', () => {
    const active = { key: aKey, certificates: ['LEAF', 'MIDDLE'], notAfter: LATER };
    expect(signingChain(aKeyChain({ active }))).to.deep.equal(['LEAF', 'MIDDLE']);
  });

  it('never contains the root', () => {
    const active = { key: aKey, certificates: ['LEAF', 'ROOT'], notAfter: LATER };
    expect(signingChain(aKeyChain({ active }))).to.deep.equal(['LEAF']);
  });

  it('is what came from outside when there is no root of ours', () => {
    const { root, ...imported } = aKeyChain();
    expect(root).to.not.equal(undefined);
    expect(signingChain(imported)).to.deep.equal(['LEAF']);
  });
});

describe('documentSignerChain', () => {
  it('is that of mdocs where there is one, without the root', () => {
    const active = { ...aKeyChain().active, documentSigner: ['SIGNER', 'ROOT'] };
    expect(documentSignerChain(aKeyChain({ active }))).to.deep.equal(['SIGNER']);
    expect(signingChain(aKeyChain({ active }))).to.deep.equal(['LEAF']);
  });

  it('is the chain of everything else where there is none', () => {
    expect(documentSignerChain(aKeyChain())).to.deep.equal(['LEAF']);
  });
});

describe('pickKeyChain', () => {
  const older = aKeyChain({ id: 'older', createdAt: new Date('2026-01-01T00:00:00Z') });
  const newer = aKeyChain({ id: 'newer' });
  const lists = aKeyChain({ id: 'lists', usages: ['statusList', 'trustList'] });
  const expired = aKeyChain({
    id: 'expired',
    createdAt: new Date('2025-01-01T00:00:00Z'),
    active: { key: aKey, certificates: ['LEAF'], notAfter: NOW },
  });
  const all = [newer, lists, older, expired];

  it('takes the wanted chain', () => {
    expect(pickKeyChain(all, 'signing', NOW, 'newer').id).to.equal('newer');
  });

  it('takes the first made chain of the usage that is still valid', () => {
    expect(pickKeyChain(all, 'signing', NOW).id).to.equal('older');
    expect(pickKeyChain(all, 'trustList', NOW).id).to.equal('lists');
  });

  it('does not reorder the list that it is given', () => {
    pickKeyChain(all, 'signing', NOW);
    expect(all.map(({ id }) => id)).to.deep.equal(['newer', 'lists', 'older', 'expired']);
  });

  const refused: [string, readonly KeyChain[], KeyUsage, string | undefined, string, string][] = [
    ['an unknown id', all, 'signing', 'nobody', 'not_found', '"nobody"'],
    ['a chain for another usage', all, 'signing', 'lists', 'invalid_input', 'usage "signing"'],
    [
      'a wanted chain whose leaf has expired',
      all,
      'signing',
      'expired',
      'invalid_input',
      'expired at 2026-06-01',
    ],
    ['a usage that no chain has', all, 'access', undefined, 'invalid_input', 'usage "access"'],
    ['a usage whose chains have all expired', [expired], 'signing', undefined, 'invalid_input', 'Rotate it'],
    ['a tenant without chains', [], 'signing', undefined, 'invalid_input', 'Create one'],
  ];
  for (const [name, chains, usage, wantedId, code, message] of refused) {
    it(`refuses ${name}`, () => {
      const failure = failureOf(() => pickKeyChain(chains, usage, NOW, wantedId));
      expect(failure.code).to.equal(code);
      expect(failure.message).to.contain(message);
    });
  }
});
