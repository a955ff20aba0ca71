import { expect } from 'chai';
import { subjectNames } from '../../../domain/keys/certificate-subject.ts';
import { keyChainResource } from '../../../domain/keys/key-chain.resource.ts';
import { type KeyChain, type KeyLeaf, selectKeyChain } from '../../../domain/keys/key-chain.ts';
import { findKeyChainProblems } from '../../../domain/keys/key-chain-findings.ts';
import {
  CertificateUpdate,
  KeyChainCreation,
  KeyChainImport,
  KeyChainRotation,
  KeyCreation,
} from '../../../domain/keys/key-chain-input.ts';
import { assertAuthorityPurpose, assertMayChangeKeys, assertPurposeUnchanged } from '../../../domain/keys/key-chain-rights.ts';
import { keysAtProviders, keysOutside, mapKeys, removedKeys } from '../../../domain/keys/retired-keys.ts';
import {
  assertRenewable,
  assertRotationFits,
  dueStep,
  isExtendable,
  MAX_PREVIOUS_LEAVES,
  replaceActiveLeaf,
  withoutExpiredLeaves,
} from '../../../domain/keys/rotation.ts';
import { assertSelfSignedUsage, isSelfSigned } from '../../../domain/keys/self-signed.ts';
import { isSameHandle, signingKey } from '../../../domain/keys/signing-key.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { Profile } from '../../../domain/shared/finding.ts';
import { aKeyChain } from '../../contract/store/builders.ts';
import { type CertifiedKey, certify } from '../../support/test-certificates.ts';

const LATER = new Date('2046-01-01T00:00:00Z');
const handleOf = (keyId: string, kms = 'vault') => ({ kms, keyId, algorithm: 'ES256' }) as const;
const keyOf = (keyId: string, kms?: string) => ({
  handle: handleOf(keyId, kms),
  publicJwk: aKeyChain('acme' as never, 'x').active.key.publicJwk,
});
const rootOf = (name: string) => ({ key: keyOf(`root-${name}`), certificate: name, notAfter: LATER });
const leafOf = (keyId: string, certificates: readonly string[] = [keyId]) => ({ key: keyOf(keyId), certificates, notAfter: LATER });

/** A key chain with a key of its own, and certificates from outside. */
function chain(id: string, changes: Partial<KeyChain> = {}): KeyChain {
  return { ...aKeyChain('acme' as never, id), active: leafOf(id), ...changes };
}

/** What a failure says, or nothing. */
function saidBy(work: () => unknown): string {
  try {
    work();
    return 'nothing';
  } catch (error) {
    if (error instanceof Failure) return error.message;
    throw error;
  }
}

describe('permission to change a key chain', () => {
  const signing = chain('signing', { root: rootOf('A') });
  const under = chain('under', { root: rootOf('A'), usages: ['access'] });
  const access = chain('access', { root: rootOf('B'), usages: ['access'] });
  const all = [signing, access];
  const missing = (roles: Parameters<typeof assertMayChangeKeys>[0], ...given: [Parameters<typeof assertMayChangeKeys>[1], KeyChain[]?]) =>
    /role (\S+)$/.exec(saidBy(() => assertMayChangeKeys(roles, given[0], given[1] ?? all)))?.[1];

  it('requires the role of its usages', () => {
    expect(missing(['issuance:manage'], [signing])).to.equal(undefined);
    expect(missing(['presentation:manage'], [signing])).to.equal('issuance:manage');
    expect(missing(['presentation:manage'], [access])).to.equal(undefined);
    expect(missing([], [access])).to.equal('presentation:manage');
    expect(missing([], [{ usages: [] }]), 'a key for nothing').to.equal(undefined);
  });

  it('requires the roles for all usages under its authority, and for its key', () => {
    expect(missing(['issuance:manage'], [signing], [signing, under])).to.equal('presentation:manage');
    expect(missing(['issuance:manage'], [{ usages: ['signing'], ...{ root: rootOf('B') } }])).to.equal('presentation:manage');
    const same = { usages: ['signing'], active: access.active } as const;
    expect(missing(['issuance:manage'], [same])).to.equal('presentation:manage');
    expect(missing(['issuance:manage'], [{ usages: ['signing'] }])).to.equal(undefined);
    const [one, other] = [chain('one'), chain('other', { usages: ['access'] })];
    expect(missing(['issuance:manage'], [one], [one, other]), 'both from outside').to.equal(undefined);
  });
});

describe('usage of an authority', () => {
  const A = rootOf('A');
  const signing = chain('signing', { root: A });
  const idle = chain('idle', { root: rootOf('C'), usages: [] });
  const certified = (
    usages: KeyChain['usages'],
    root: KeyChain['root'] = A,
    all: KeyChain[] = [signing, idle],
    profile: Profile | null = 'eu',
  ) => saidBy(() => assertAuthorityPurpose(usages, root, { all, path: 'rootKeyChainId', profile }));

  it('is its purpose', () => {
    expect(certified(['statusList', 'trustList'])).to.equal('nothing');
    expect(certified(['statusList', 'access'])).to.match(/profile eu .*one authority certifies keys for access/);
    expect(certified(['statusList', 'access'], A, [signing], null), 'without a profile').to.equal('nothing');
    expect(certified(['access'], A, [signing], 'haip'), 'with the profile haip').to.equal('nothing');
    expect(certified(['signing'], idle.root)).to.match(/^the authority of a key chain without usages/);
    expect(certified([])).to.match(/^a key without usages/);
  });

  const keptUnder = (profile: Profile | null, before: KeyChain, after: KeyChain, ...others: KeyChain[]) =>
    saidBy(() => assertPurposeUnchanged(before, after, { all: [before, ...others], path: 'usages', profile }));
  const kept = (before: KeyChain, after: KeyChain, ...others: KeyChain[]) => keptUnder('eu', before, after, ...others);

  it('is kept regardless of changes of one of its key chains', () => {
    const both = { ...signing, usages: ['signing', 'access'] as const };
    const changed = /profile eu .*one authority certifies keys for access/;
    expect(kept(signing, { ...signing, usages: ['statusList'] })).to.equal('nothing');
    expect(kept(signing, { ...signing, usages: ['access'] })).to.match(changed);
    expect(kept(signing, both)).to.match(changed);
    expect(kept(both, signing)).to.match(changed);
    expect(kept(signing, { ...signing, usages: [] })).to.match(changed);
    expect(keptUnder(null, signing, both), 'without a profile').to.equal('nothing');
    const second = chain('second', { root: A });
    expect(kept(signing, { ...signing, usages: [] }, second), 'another one goes on').to.equal('nothing');
    expect(kept(signing, { ...signing, usages: ['access'] }, second)).to.match(changed);
  });

  it('may be anything before the first certification, or after the last one', () => {
    expect(kept(idle, { ...idle, usages: ['access'] })).to.equal('nothing');
    const { root: _, ...outside } = signing;
    expect(kept(signing, { ...outside, usages: ['access'] })).to.equal('nothing');
  });
});

describe('key chain to sign with', () => {
  it('is the one that was created first, or has the requested name', () => {
    const now = new Date('2026-06-01T00:00:00Z');
    const [b, a] = [chain('b'), chain('a')];
    const old = chain('z', { createdAt: new Date(0) });
    expect(selectKeyChain([b, a], 'signing', now).id).to.equal('a');
    expect(selectKeyChain([a, b], 'signing', now).id).to.equal('a');
    expect(selectKeyChain([a, b, old], 'signing', now).id).to.equal('z');
  });
});

describe('keys at providers', () => {
  const noRoot = chain('one');
  const former = { ...leafOf('before'), keptUntil: LATER };

  it('are identified by provider and name', () => {
    expect(isSameHandle(handleOf('a'), handleOf('a'))).to.equal(true);
    expect(isSameHandle(handleOf('a'), handleOf('b'))).to.equal(false);
    expect(isSameHandle(handleOf('a', 'one'), handleOf('a', 'two'))).to.equal(false);
    expect(signingKey('acme', keyOf('a'))).to.not.have.property('sealedKey');
    expect(signingKey('acme', { ...keyOf('a'), sealedKey: 's' })).to.have.property('sealedKey', 's');
  });

  it('are each listed once, including previous ones and those of authorities', () => {
    const ids = (...chains: KeyChain[]) => keysAtProviders(chains).map(({ handle }) => handle.keyId);
    expect(ids(noRoot, chain('two', { active: noRoot.active }))).to.deep.equal(['one']);
    expect(ids(chain('x', { root: rootOf('A'), former: [former] }))).to.deep.equal(['x', 'before', 'root-A']);
    expect(ids(aKeyChain('acme' as never, 'sealed')), 'kept here').to.deep.equal([]);
  });

  it('are dropped by a change or removal of their key chain', () => {
    const dropped = (...given: Parameters<typeof removedKeys>) => removedKeys(...given).map(({ handle }) => handle.keyId);
    expect(dropped(undefined, noRoot)).to.deep.equal([]);
    expect(dropped(noRoot, noRoot)).to.deep.equal([]);
    expect(dropped(noRoot, { ...noRoot, active: leafOf('two') })).to.deep.equal(['one']);
    expect(dropped(noRoot, undefined)).to.deep.equal(['one']);
  });

  it('are kept while another key chain uses them', () => {
    const dropped = removedKeys(noRoot, undefined);
    expect(keysOutside(dropped, [])).to.deep.equal(dropped);
    expect(keysOutside(dropped, [chain('other', { active: noRoot.active })])).to.deep.equal([]);
  });

  it('are changed all at once', () => {
    const moved = (whole: KeyChain) => mapKeys(whole, (key) => ({ ...key, handle: handleOf(`${key.handle.keyId}!`) }));
    const whole = moved(chain('x', { root: rootOf('A'), former: [former] }));
    const { active, root } = whole;
    expect([active, root, ...(whole.former ?? [])].map((part) => part?.key.handle.keyId)).to.deep.equal([...['x!', 'root-A!', 'before!']]);
    expect(moved(noRoot)).to.not.have.any.keys('root', 'former');
  });
});

describe('key chain certificates', () => {
  let authority: CertifiedKey;
  let leaf: CertifiedKey;
  let alone: CertifiedKey;
  before(async () => {
    authority = await certify({ name: 'Authority', ca: true });
    leaf = await certify({ name: 'Leaf, O=Acme, C=DE', by: authority });
    alone = await certify({ name: 'Alone' });
  });
  const of = (...certificates: string[]) => chain('x', { active: leafOf('x', certificates), usages: ['access', 'signing'] });

  it('have findings when they come from an external authority', () => {
    const messages = (found: KeyChain) =>
      findKeyChainProblems(found, null)
        .filter(({ profileRule }) => profileRule?.startsWith('HAIP'))
        .map(({ profileRule, message }) => `${profileRule}: ${message}`);
    expect(messages(of(leaf.certificate))).to.deep.equal([]);
    expect(messages(of(alone.certificate))).to.deep.equal([
      'HAIP 1.0 section 5: the certificate of the key is self-signed',
      'HAIP 1.0 sections 4.1 and 6.1.1: the certificate of the key is self-signed',
    ]);
    expect(messages({ ...of(leaf.certificate, authority.certificate), usages: ['statusList'] })).to.deep.equal([
      'HAIP 1.0 section 6.1: the chain contains its trust anchor, which is sent with every signature of the key',
    ]);
    expect(messages({ ...of(alone.certificate), root: rootOf('A') }), 'of the own authority').to.deep.equal([]);
    expect(messages({ ...of(alone.certificate), usages: ['trustList'] })).to.deep.equal([]);
    expect(messages(of('AAAA')), 'of what is none').to.deep.equal([]);
  });

  it('may be self-signed for trust lists', () => {
    expect([alone.certificate, leaf.certificate, 'AAAA'].map((one) => isSelfSigned(leafOf('x', [one])))).to.deep.equal([
      ...[true, false, false],
    ]);
    expect(saidBy(() => assertSelfSignedUsage(['trustList'], 'usages'))).to.equal('nothing');
    expect(saidBy(() => assertSelfSignedUsage(['trustList', 'signing'], 'usages'))).to.match(/not for "signing"/);
    const renew = (certificate: string) => saidBy(() => assertRenewable(of(certificate), new Date()));
    expect(renew(alone.certificate)).to.contain('is self-signed');
    expect(renew(leaf.certificate)).to.contain('come from an external authority');
  });

  it('have names', async () => {
    expect(subjectNames(leaf.certificate)).to.deep.equal({ commonName: 'Leaf', organization: 'Acme', country: 'DE' });
    expect(subjectNames(alone.certificate)).to.deep.equal({ commonName: 'Alone' });
    const { certificate } = await certify({ name: 'Odd\\, Inc., C=Germany' });
    expect(subjectNames(certificate), 'no code of a country').to.deep.equal({ commonName: 'Odd, Inc.' });
    expect(subjectNames('AAAA')).to.deep.equal({});
  });

  it('are described in a file by their parameters', async () => {
    const { write } = keyChainResource.file;
    const written = (one: KeyChain, ...others: KeyChain[]) => write(one, [one, ...others]) as Record<string, unknown>;
    expect(written(of(leaf.certificate))).to.include({ subjectName: 'Leaf', country: 'DE', organization: 'Acme', algorithm: 'ES256' });
    expect(written(of(leaf.certificate))['selfSigned']).to.equal(undefined);
    expect(written(of(alone.certificate))['selfSigned']).to.equal(true);
    expect(written({ ...of(alone.certificate), root: rootOf('A') })['selfSigned']).to.equal(undefined);
    const long = await certify({ name: 'x'.repeat(65) });
    expect(written(of(long.certificate))['subjectName']).to.equal(undefined);
    expect(written(of('AAAA'))['subjectName'], 'no name').to.equal(undefined);
  });

  it('are described under the oldest key chain of their authority', () => {
    const { write } = keyChainResource.file;
    const at = (id: string, milliseconds: number, root?: KeyChain['root']) =>
      chain(id, { createdAt: new Date(milliseconds), ...(root && { root }) });
    const A = rootOf('A');
    const all = [at('c', 2, A), at('b', 1, A), at('a', 1, A), at('z', 0, rootOf('B')), at('o', 0)];
    const named = (id: string, given: readonly KeyChain[]) => {
      const one = given.find((each) => each.id === id);
      return one && (write(one, given) as { rootKeyChainId?: string }).rootKeyChainId;
    };
    for (const given of [all, all.toReversed()]) {
      const names = ['c', 'b', 'a', 'z', 'o'].map((id) => named(id, given));
      expect(names).to.deep.equal(['a', 'a', undefined, undefined, undefined]);
    }
  });
});

describe('key chain input', () => {
  const isTaken = (schema: { safeParse(value: unknown): { success: boolean } }, value: object) => schema.safeParse(value).success;

  it('states its usages in one form', () => {
    for (const [schema, more] of [
      [KeyChainCreation, {}],
      [KeyChainImport, { key: 'PEM' }],
    ] as const) {
      expect(isTaken(schema, { ...more, usageType: 'signing' })).to.equal(true);
      expect(isTaken(schema, { ...more, usages: ['signing', 'access'] })).to.equal(true);
      expect(isTaken(schema, { ...more, usageType: 'signing', usages: ['signing'] })).to.equal(false);
      expect(isTaken(schema, more)).to.equal(false);
    }
    for (const id of ['providers', 'import']) expect(isTaken(KeyChainCreation, { id, usageType: 'signing' })).to.equal(false);
  });

  it('rejects two names of one property with different values', () => {
    for (const body of [{}, { provider: 'a' }, { kmsProvider: 'a' }, { provider: 'a', kmsProvider: 'a' }]) {
      expect(isTaken(KeyChainRotation, body), JSON.stringify(body)).to.equal(true);
    }
    expect(isTaken(KeyChainRotation, { provider: 'a', kmsProvider: 'b' })).to.equal(false);
    for (const body of [{}, { key: 'PEM' }, { algorithm: 'ES256' }]) expect(isTaken(KeyCreation, body)).to.equal(true);
    expect(isTaken(KeyCreation, { key: 'PEM', algorithm: 'ES256' })).to.equal(false);
    for (const body of [{}, { usages: ['signing'] }, { certUsageTypes: ['signing'] }]) {
      expect(isTaken(CertificateUpdate, body)).to.equal(true);
    }
    expect(isTaken(CertificateUpdate, { usages: ['signing'], certUsageTypes: ['signing'] })).to.equal(false);
  });

  it('may have its key from a variable', () => {
    const { read } = keyChainResource.file;
    expect(read({ id: 'x' })).to.deep.equal({ id: 'x' });
    expect(read({ key: { kty: 'EC' } })).to.deep.equal({ key: { kty: 'EC' } });
    expect(read({ key: ' {"kty":"EC"}' })).to.deep.equal({ key: { kty: 'EC' } });
    expect(read({ key: '{no JSON' })).to.deep.equal({ key: '{no JSON' });
    expect(read({ key: 'BEGIN\\nEND' })).to.deep.equal({ key: 'BEGIN\nEND' });
    expect(read({ key: 'BEGIN\n\\nEND' })).to.deep.equal({ key: 'BEGIN\n\\nEND' });
  });
});

const DAY_MS = 24 * 60 * 60 * 1000;
const NOW = new Date('2026-06-01T00:00:00Z');
const on = (days: number) => new Date(NOW.getTime() + days * DAY_MS);

function leaf(keyId: string, days = 365): KeyLeaf {
  return {
    key: { handle: { kms: 'local', keyId, algorithm: 'ES256' }, publicJwk: { kty: 'EC', crv: 'P-256', x: keyId, y: 'AA' } },
    certificates: [`LEAF ${keyId}`],
    notAfter: on(days),
  };
}

function rotatingChain(changes: Partial<KeyChain> = {}): KeyChain {
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
  const { root: _root, ...rest } = rotatingChain(changes);
  return rest;
};

const rotate = (before: KeyChain, next: KeyLeaf, now: Date) => replaceActiveLeaf(before, 'rotation', next, now);

function codeOf(work: () => unknown): string | undefined {
  try {
    work();
    return undefined;
  } catch (error) {
    if (error instanceof Failure) return error.code;
    throw error;
  }
}

describe('next step of a key chain', () => {
  const often = { rotationEnabled: true, rotationIntervalDays: 30 };
  const rows: [string, KeyChain, number, 'rotation' | 'renewal' | undefined][] = [
    ['nothing while it is young', rotatingChain(often), 29.9, undefined],
    ['another key when the interval is over', rotatingChain(often), 30, 'rotation'],
    ['nothing without rotation', rotatingChain({ rotationIntervalDays: 30 }), 300, undefined],
    ['nothing soon after a rotation', rotatingChain({ ...often, lastRotatedAt: on(20) }), 49.9, undefined],
    ['another key an interval after the last', rotatingChain({ ...often, lastRotatedAt: on(20) }), 50, 'rotation'],
    ['nothing 31 days before its certificate ends', rotatingChain(), 334, undefined],
    ['another certificate 30 days before', rotatingChain(), 335, 'renewal'],
    ['another certificate when it has ended', rotatingChain(), 400, 'renewal'],
    ['nothing at half of a short certificate', rotatingChain({ active: leaf('a', 3), certValidityDays: 3 }), 1.5, undefined],
    ['another one at two thirds of it', rotatingChain({ active: leaf('a', 3), certValidityDays: 3 }), 2, 'renewal'],
    ['nothing 8 days before one from outside ends', withoutRoot(), 357, undefined],
    ['a reminder 7 days before', withoutRoot(), 358, 'renewal'],
  ];
  for (const [what, given, days, due] of rows) {
    it(`is ${what}`, () => expect(dueStep(given, on(days))).to.equal(due));
  }

  it('is no certificate that would expire with the present one, together with the authority', () => {
    const { root } = rotatingChain();
    if (root === undefined) throw new Error('no root');
    expect(isExtendable(rotatingChain(), root, on(335))).to.equal(true);
    expect(isExtendable(rotatingChain(), { ...root, notAfter: on(365) }, on(335))).to.equal(false);
  });
});

describe('replaced leaf', () => {
  it('is kept until its certificate has expired, with its authority', () => {
    const next = rotate(rotatingChain(), leaf('second'), NOW);
    expect(next.active).to.deep.equal(leaf('second'));
    expect(next.former).to.deep.equal([{ ...leaf('first'), root: 'ROOT', keptUntil: on(365) }]);
    expect([next.lastRotatedAt, next.updatedAt]).to.deep.equal([NOW, NOW]);
    const third = rotate(next, leaf('third'), on(1));
    expect(third.former?.map(({ certificates }) => certificates[0])).to.deep.equal(['LEAF second', 'LEAF first']);
  });

  it('is kept for at least one more day, since it may have signed an access token', () => {
    const { former } = rotate(rotatingChain({ active: leaf('short', 0.1) }), leaf('second'), NOW);
    expect(former?.[0]?.keptUntil).to.deep.equal(on(1));
  });

  it('has no authority after external certification, and only a rotation time', () => {
    const { root, lastRotatedAt, former } = replaceActiveLeaf(rotatingChain(), 'upload', leaf('first', 500), NOW);
    expect([root, lastRotatedAt, former?.[0]?.root]).to.deep.equal([undefined, undefined, 'ROOT']);
    const again = replaceActiveLeaf(withoutRoot(), 'upload', leaf('first', 500), NOW);
    expect(again.former?.[0]).to.not.have.property('root');
  });

  it('has the key that its step allows', () => {
    expect(() => rotate(rotatingChain(), leaf('first'), NOW)).to.throw('a rotation takes another key');
    for (const step of ['renewal', 'upload'] as const) {
      expect(() => replaceActiveLeaf(rotatingChain(), step, leaf('second'), NOW)).to.throw(`a ${step} takes the same key`);
      expect(replaceActiveLeaf(rotatingChain(), step, leaf('first', 500), NOW).lastRotatedAt).to.equal(undefined);
    }
  });

  it('is dropped when its retention ends, and not before', () => {
    const next = rotate(rotatingChain({ active: leaf('a', 10) }), leaf('b', 20), NOW);
    const third = rotate(next, leaf('c'), NOW);
    expect(withoutExpiredLeaves(third, on(9.9))).to.equal(undefined);
    expect(withoutExpiredLeaves(third, on(10))?.former?.map(({ key }) => key.handle.keyId)).to.deep.equal(['b']);
    expect(withoutExpiredLeaves(third, on(20))).to.not.have.property('former');
    expect(withoutExpiredLeaves(rotatingChain(), on(20))).to.equal(undefined);
    expect(rotate(third, leaf('d'), on(10)).former).to.have.length(2);
  });

  it('is never dropped when the limit is reached', () => {
    let full = rotatingChain();
    for (let i = 0; i < MAX_PREVIOUS_LEAVES; i++) full = rotate(full, leaf(`key-${i}`, 100 + i), NOW);
    expect(full.former).to.have.length(MAX_PREVIOUS_LEAVES);
    expect(codeOf(() => rotate(full, leaf('more'), NOW))).to.equal('conflict');
    expect(codeOf(() => assertRenewable(full, NOW))).to.equal('conflict');
    expect(() => rotate(full, leaf('more'), on(100))).to.not.throw();
  });
});

describe('rotation', () => {
  it('requires an authority that has not expired', () => {
    expect(assertRenewable(rotatingChain(), NOW).certificate).to.equal('ROOT');
    expect(codeOf(() => assertRenewable(withoutRoot(), NOW))).to.equal('conflict');
    expect(codeOf(() => assertRenewable(rotatingChain(), on(3650)))).to.equal('conflict');
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
    it(`by ${what}, ${rotationEnabled ? 'enabled' : 'disabled'}: ${code ?? 'accepted'}`, () => {
      expect(codeOf(() => assertRotationFits(given))).to.equal(code);
    });
  }
});
