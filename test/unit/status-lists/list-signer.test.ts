import { expect } from 'chai';
import type { KeyChain, KeyUsage } from '../../../domain/keys/key-chain.ts';
import {
  areTrustedAlike,
  currentSigner,
  listSigners,
  signerOfList,
} from '../../../domain/status-lists/list-signer.ts';

const NOW = new Date('2027-01-15T08:00:00Z');
const LATER = new Date('2028-01-01T00:00:00Z');
const PAST = new Date('2027-01-01T00:00:00Z');

let made = 0;
/** @param root name of its authority; absent for certificates from outside. */
function chain(id: string, usages: readonly KeyUsage[], root?: string, notAfter = LATER): KeyChain {
  const createdAt = new Date(made++);
  const key = {} as never;
  return {
    ...{ id, tenantId: 'acme', usages, kmsProvider: 'local', createdAt, updatedAt: createdAt },
    ...(root !== undefined && { root: { key, certificate: root, notAfter } }),
    active: { key, certificates: [id], notAfter },
    ...{ rotationEnabled: false, rotationIntervalDays: 90, certValidityDays: 365 },
  };
}

const signers = (chains: readonly KeyChain[], id?: string) => {
  const { preferred, accepted } = listSigners(chains, id, NOW);
  return { preferred, accepted: [...accepted].map(String).sort() };
};

describe('Who signs the status list of a credential', () => {
  const issuer = chain('issuer', ['signing'], 'A');

  it('is the default of the tenant where who trusts the issuer trusts that', () => {
    const lists = chain('lists', ['statusList'], 'A');
    expect(signers([issuer, lists])).to.deep.equal({
      preferred: null,
      accepted: ['issuer', 'lists', 'null'],
    });
  });

  it('is another one under the authority of the issuer where the default is under another', () => {
    const other = chain('other', ['statusList'], 'B');
    const late = chain('late', ['statusList'], 'A');
    expect(signers([issuer, other, late])).to.deep.equal({ preferred: 'late', accepted: ['issuer', 'late'] });
  });

  it('is the issuer itself where nobody else is trusted alike', () => {
    const other = chain('other', ['statusList'], 'B');
    expect(signers([issuer, other])).to.deep.equal({ preferred: 'issuer', accepted: ['issuer'] });
    expect(signers([issuer])).to.deep.equal({ preferred: 'issuer', accepted: ['issuer'] });
  });

  it('is nobody who signs other things, or whose certificate has ended', () => {
    const access = chain('access', ['access', 'trustList'], 'A');
    const ended = chain('ended', ['statusList'], 'A', PAST);
    expect(signers([issuer, access, ended])).to.deep.equal({ preferred: 'issuer', accepted: ['issuer'] });
    const second = chain('second', ['signing'], 'A');
    expect(signers([issuer, second]).accepted, 'one like the issuer').to.deep.equal(['issuer', 'second']);
    expect(signers([issuer, second], 'second').preferred).to.equal('second');
  });

  it('is the issuer where its certificates come from outside, though it be the default as well', () => {
    const outside = chain('outside', ['signing', 'statusList']);
    expect(signers([outside])).to.deep.equal({ preferred: 'outside', accepted: ['null', 'outside'] });
    const stranger = chain('stranger', ['statusList']);
    const alone = chain('alone', ['signing']);
    expect(signers([alone, stranger])).to.deep.equal({ preferred: 'alone', accepted: ['alone'] });
  });

  it('is who the list names, as what that is for', () => {
    const both = chain('both', ['signing', 'statusList'], 'A');
    const of = (keyChainId: string | null, chains = [issuer, both]) =>
      currentSigner(chains, { keyChainId }, NOW)?.id;
    expect([of('issuer'), of('both'), of(null), of('gone')]).to.deep.equal([
      'issuer',
      'both',
      'both',
      undefined,
    ]);
    expect(of(null, [issuer]), 'nobody by default').to.equal(undefined);
    expect(of('lists', [issuer, chain('lists', ['statusList'], 'A')]), 'for lists alone').to.equal('lists');
    expect(() => signerOfList([issuer], { keyChainId: 'gone' }, NOW)).to.throw(
      'There is no key chain "gone"',
    );
    expect(of('access', [chain('access', ['access'], 'A')]), 'for something else').to.equal(undefined);
  });

  it('is trusted like another one by itself, or by its authority', () => {
    const [a, b, c] = [
      chain('a', ['signing'], 'A'),
      chain('b', ['signing'], 'A'),
      chain('c', ['signing'], 'C'),
    ];
    const [x, y] = [chain('x', ['signing']), chain('y', ['signing'])];
    const pairs = [
      [a, b],
      [a, c],
      [a, x],
      [x, a],
      [x, y],
      [x, x],
    ] as const;
    expect(pairs.map(([one, other]) => areTrustedAlike(one, other))).to.deep.equal([
      ...[true, false, false, false, false, true],
    ]);
  });
});
