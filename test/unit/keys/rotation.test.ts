import { expect } from 'chai';
import type { KeyChain, KeyLeaf } from '../../../domain/keys/key-chain.ts';
import {
  assertRenewable,
  assertRotationFits,
  dueStep,
  isExtendable,
  MAX_FORMER_LEAVES,
  replaceLeaf,
  withoutEnded,
} from '../../../domain/keys/rotation.ts';
import { Failure } from '../../../domain/shared/failure.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
const NOW = new Date('2026-06-01T00:00:00Z');
const on = (days: number) => new Date(NOW.getTime() + days * DAY_MS);

function leaf(keyId: string, days = 365): KeyLeaf {
  return {
    key: {
      handle: { kms: 'local', keyId, algorithm: 'ES256' },
      publicJwk: { kty: 'EC', crv: 'P-256', x: keyId, y: 'AA' },
    },
    certificates: [`LEAF ${keyId}`],
    notAfter: on(days),
  };
}

function chain(changes: Partial<KeyChain> = {}): KeyChain {
  return {
    id: 'one',
    tenantId: 'acme',
    usages: ['signing'],
    kmsProvider: 'local',
    root: { key: leaf('root').key, certificate: 'ROOT', notAfter: on(3650) },
    active: leaf('first'),
    rotationEnabled: false,
    rotationIntervalDays: 90,
    certValidityDays: 365,
    createdAt: NOW,
    updatedAt: NOW,
    ...changes,
  };
}

const withoutRoot = (changes: Partial<KeyChain> = {}): KeyChain => {
  const { root: _root, ...rest } = chain(changes);
  return rest;
};

const rotate = (before: KeyChain, next: KeyLeaf, now: Date) => replaceLeaf(before, 'rotation', next, now);

function codeOf(work: () => unknown): string | undefined {
  try {
    work();
    return undefined;
  } catch (error) {
    if (error instanceof Failure) return error.code;
    throw error;
  }
}

describe('What a key chain needs to go on', () => {
  const often = { rotationEnabled: true, rotationIntervalDays: 30 };
  const rows: [string, KeyChain, number, 'rotation' | 'renewal' | undefined][] = [
    ['nothing while it is young', chain(often), 29.9, undefined],
    ['another key when the interval is over', chain(often), 30, 'rotation'],
    ['nothing without rotation', chain({ rotationIntervalDays: 30 }), 300, undefined],
    ['nothing soon after a rotation', chain({ ...often, lastRotatedAt: on(20) }), 49.9, undefined],
    ['another key an interval after the last', chain({ ...often, lastRotatedAt: on(20) }), 50, 'rotation'],
    ['nothing 31 days before its certificate ends', chain(), 334, undefined],
    ['another certificate 30 days before', chain(), 335, 'renewal'],
    ['another certificate when it has ended', chain(), 400, 'renewal'],
    [
      'nothing at half of a short certificate',
      chain({ active: leaf('a', 3), certValidityDays: 3 }),
      1.5,
      undefined,
    ],
    ['another one at two thirds of it', chain({ active: leaf('a', 3), certValidityDays: 3 }), 2, 'renewal'],
    ['nothing 8 days before one from outside ends', withoutRoot(), 357, undefined],
    ['a reminder 7 days before', withoutRoot(), 358, 'renewal'],
  ];
  for (const [what, given, days, due] of rows) {
    it(`is ${what}`, () => expect(dueStep(given, on(days))).to.equal(due));
  }

  it('is no certificate that would end with the present one, together with the authority', () => {
    const { root } = chain();
    if (root === undefined) throw new Error('no root');
    expect(isExtendable(chain(), root, on(335))).to.equal(true);
    expect(isExtendable(chain(), { ...root, notAfter: on(365) }, on(335))).to.equal(false);
  });
});

describe('A leaf that is replaced', () => {
  it('is kept until its certificate has ended, with the authority above it', () => {
    const next = rotate(chain(), leaf('second'), NOW);
    expect(next.active).to.deep.equal(leaf('second'));
    expect(next.former).to.deep.equal([{ ...leaf('first'), root: 'ROOT', keptUntil: on(365) }]);
    expect([next.lastRotatedAt, next.updatedAt]).to.deep.equal([NOW, NOW]);
    const third = rotate(next, leaf('third'), on(1));
    expect(third.former?.map(({ certificates }) => certificates[0])).to.deep.equal([
      'LEAF second',
      'LEAF first',
    ]);
  });

  it('is kept a day longer than now at least, since it may have signed an access token', () => {
    const { former } = rotate(chain({ active: leaf('short', 0.1) }), leaf('second'), NOW);
    expect(former?.[0]?.keptUntil).to.deep.equal(on(1));
  });

  it('leaves no authority behind when others certify the next, and the time of the rotation alone', () => {
    const { root, lastRotatedAt, former } = replaceLeaf(chain(), 'upload', leaf('first', 500), NOW);
    expect([root, lastRotatedAt, former?.[0]?.root]).to.deep.equal([undefined, undefined, 'ROOT']);
    const again = replaceLeaf(withoutRoot(), 'upload', leaf('first', 500), NOW);
    expect(again.former?.[0]).to.not.have.property('root');
  });

  it('has the key that its step allows', () => {
    expect(() => rotate(chain(), leaf('first'), NOW)).to.throw('a rotation takes another key');
    for (const step of ['renewal', 'upload'] as const) {
      expect(() => replaceLeaf(chain(), step, leaf('second'), NOW)).to.throw(`a ${step} takes the same key`);
      expect(replaceLeaf(chain(), step, leaf('first', 500), NOW).lastRotatedAt).to.equal(undefined);
    }
  });

  it('is dropped when its time is over, and not before', () => {
    const next = rotate(chain({ active: leaf('a', 10) }), leaf('b', 20), NOW);
    const third = rotate(next, leaf('c'), NOW);
    expect(withoutEnded(third, on(9.9))).to.equal(undefined);
    expect(withoutEnded(third, on(10))?.former?.map(({ key }) => key.handle.keyId)).to.deep.equal(['b']);
    expect(withoutEnded(third, on(20))).to.not.have.property('former');
    expect(withoutEnded(chain(), on(20))).to.equal(undefined);
    expect(rotate(third, leaf('d'), on(10)).former).to.have.length(2);
  });

  it('is never dropped for want of room', () => {
    let full = chain();
    for (let i = 0; i < MAX_FORMER_LEAVES; i++) full = rotate(full, leaf(`key-${i}`, 100 + i), NOW);
    expect(full.former).to.have.length(MAX_FORMER_LEAVES);
    expect(codeOf(() => rotate(full, leaf('more'), NOW))).to.equal('conflict');
    expect(codeOf(() => assertRenewable(full, NOW))).to.equal('conflict');
    expect(() => rotate(full, leaf('more'), on(100))).to.not.throw();
  });
});

describe('Rotation', () => {
  it('needs an authority that has not ended', () => {
    expect(assertRenewable(chain(), NOW).certificate).to.equal('ROOT');
    expect(codeOf(() => assertRenewable(withoutRoot(), NOW))).to.equal('conflict');
    expect(codeOf(() => assertRenewable(chain(), on(3650)))).to.equal('conflict');
  });

  const settings = (rotationIntervalDays: number, certValidityDays: number, rotationEnabled = true) => ({
    rotationEnabled,
    rotationIntervalDays,
    certValidityDays,
  });
  const rows: [ReturnType<typeof settings>, string | undefined][] = [
    [settings(90, 365), undefined],
    [settings(16, 365), undefined],
    [settings(15, 365), 'invalid_input'],
    [settings(1, 24), undefined],
    [settings(1, 25), 'invalid_input'],
    [settings(1, 3653, false), undefined],
  ];
  for (const [given, code] of rows) {
    const { rotationIntervalDays, certValidityDays, rotationEnabled } = given;
    const what = `${rotationIntervalDays} days under certificates of ${certValidityDays}`;
    it(`by ${what}, ${rotationEnabled ? 'switched on' : 'switched off'}, ${code ?? 'fits'}`, () => {
      expect(codeOf(() => assertRotationFits(given))).to.equal(code);
    });
  }
});
