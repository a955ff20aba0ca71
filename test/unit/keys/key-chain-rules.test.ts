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

/** A key chain with its own key and uploaded certificates. */
function chain(id: string, changes: Partial<KeyChain> = {}): KeyChain {
  return { ...aKeyChain('acme' as never, id), active: leafOf(id), ...changes };
}

/** Returns the message of a failure, or an empty text. */
function messageOf(work: () => unknown): string {
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
  const accessBelow = chain('under', { root: rootOf('A'), usages: ['access'] });
  const access = chain('access', { root: rootOf('B'), usages: ['access'] });
  const chains = [signing, access];
  const missingRole = (
    roles: Parameters<typeof assertMayChangeKeys>[0],
    ...parameters: [Parameters<typeof assertMayChangeKeys>[1], KeyChain[]?]
  ) => /role (\S+)$/.exec(messageOf(() => assertMayChangeKeys(roles, parameters[0], parameters[1] ?? chains)))?.[1];

  it('requires the role of its usages', () => {
    expect(missingRole(['issuance:manage'], [signing])).to.equal(undefined);
    expect(missingRole(['presentation:manage'], [signing])).to.equal('issuance:manage');
    expect(missingRole(['presentation:manage'], [access])).to.equal(undefined);
    expect(missingRole([], [access])).to.equal('presentation:manage');
    expect(missingRole([], [{ usages: [] }]), 'a key without a usage').to.equal(undefined);
  });

  it('requires the roles for all usages under its authority, and for its key', () => {
    expect(missingRole(['issuance:manage'], [signing], [signing, accessBelow])).to.equal('presentation:manage');
    expect(missingRole(['issuance:manage'], [{ usages: ['signing'], ...{ root: rootOf('B') } }])).to.equal('presentation:manage');
    const sameKey = { usages: ['signing'], active: access.active } as const;
    expect(missingRole(['issuance:manage'], [sameKey])).to.equal('presentation:manage');
    expect(missingRole(['issuance:manage'], [{ usages: ['signing'] }])).to.equal(undefined);
    const [first, second] = [chain('one'), chain('other', { usages: ['access'] })];
    expect(missingRole(['issuance:manage'], [first], [first, second]), 'both from outside').to.equal(undefined);
  });
});

describe('usage of an authority', () => {
  const A = rootOf('A');
  const signing = chain('signing', { root: A });
  const idle = chain('idle', { root: rootOf('C'), usages: [] });
  const certified = (
    usages: KeyChain['usages'],
    root: KeyChain['root'] = A,
    chains: KeyChain[] = [signing, idle],
    profile: Profile | null = 'eu',
  ) => messageOf(() => assertAuthorityPurpose(usages, root, { all: chains, path: 'rootKeyChainId', profile }));

  it('is its purpose', () => {
    expect(certified(['statusList', 'trustList'])).to.equal('nothing');
    expect(certified(['statusList', 'access'])).to.match(/profile eu .*one authority certifies keys for access/);
    expect(certified(['statusList', 'access'], A, [signing], null), 'without a profile').to.equal('nothing');
    expect(certified(['access'], A, [signing], 'haip'), 'with the profile haip').to.equal('nothing');
    expect(certified(['signing'], idle.root)).to.match(/^the authority of a key chain without usages/);
    expect(certified([])).to.match(/^a key without usages/);
  });

  const purposeProblem = (profile: Profile | null, before: KeyChain, after: KeyChain, ...others: KeyChain[]) =>
    messageOf(() => assertPurposeUnchanged(before, after, { all: [before, ...others], path: 'usages', profile }));
  const purposeProblemOfEu = (before: KeyChain, after: KeyChain, ...others: KeyChain[]) => purposeProblem('eu', before, after, ...others);

  it('is kept regardless of changes of one of its key chains', () => {
    const bothUsages = { ...signing, usages: ['signing', 'access'] as const };
    const separateAuthorities = /profile eu .*one authority certifies keys for access/;
    expect(purposeProblemOfEu(signing, { ...signing, usages: ['statusList'] })).to.equal('nothing');
    expect(purposeProblemOfEu(signing, { ...signing, usages: ['access'] })).to.match(separateAuthorities);
    expect(purposeProblemOfEu(signing, bothUsages)).to.match(separateAuthorities);
    expect(purposeProblemOfEu(bothUsages, signing)).to.match(separateAuthorities);
    expect(purposeProblemOfEu(signing, { ...signing, usages: [] })).to.match(separateAuthorities);
    expect(purposeProblem(null, signing, bothUsages), 'without a profile').to.equal('nothing');
    const second = chain('second', { root: A });
    expect(purposeProblemOfEu(signing, { ...signing, usages: [] }, second), 'another chain continues').to.equal('nothing');
    expect(purposeProblemOfEu(signing, { ...signing, usages: ['access'] }, second)).to.match(separateAuthorities);
  });

  it('may be anything before the first certification, or after the last one', () => {
    expect(purposeProblemOfEu(idle, { ...idle, usages: ['access'] })).to.equal('nothing');
    const { root: _, ...outside } = signing;
    expect(purposeProblemOfEu(signing, { ...outside, usages: ['access'] })).to.equal('nothing');
  });
});

describe('key chain to sign with', () => {
  it('is the one that was created first, or has the requested name', () => {
    const now = new Date('2026-06-01T00:00:00Z');
    const [b, a] = [chain('b'), chain('a')];
    const oldest = chain('z', { createdAt: new Date(0) });
    expect(selectKeyChain([b, a], 'signing', now).id).to.equal('a');
    expect(selectKeyChain([a, b], 'signing', now).id).to.equal('a');
    expect(selectKeyChain([a, b, oldest], 'signing', now).id).to.equal('z');
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
    const idsOf = (...chains: KeyChain[]) => keysAtProviders(chains).map(({ handle }) => handle.keyId);
    expect(idsOf(noRoot, chain('two', { active: noRoot.active }))).to.deep.equal(['one']);
    expect(idsOf(chain('x', { root: rootOf('A'), former: [former] }))).to.deep.equal(['x', 'before', 'root-A']);
    expect(idsOf(aKeyChain('acme' as never, 'sealed')), 'local keys').to.deep.equal([]);
  });

  it('are dropped by a change or removal of their key chain', () => {
    const removedIds = (...parameters: Parameters<typeof removedKeys>) => removedKeys(...parameters).map(({ handle }) => handle.keyId);
    expect(removedIds(undefined, noRoot)).to.deep.equal([]);
    expect(removedIds(noRoot, noRoot)).to.deep.equal([]);
    expect(removedIds(noRoot, { ...noRoot, active: leafOf('two') })).to.deep.equal(['one']);
    expect(removedIds(noRoot, undefined)).to.deep.equal(['one']);
  });

  it('are kept while another key chain uses them', () => {
    const removedIds = removedKeys(noRoot, undefined);
    expect(keysOutside(removedIds, [])).to.deep.equal(removedIds);
    expect(keysOutside(removedIds, [chain('other', { active: noRoot.active })])).to.deep.equal([]);
  });

  it('are changed all at once', () => {
    const withMovedKeys = (fullChain: KeyChain) => mapKeys(fullChain, (key) => ({ ...key, handle: handleOf(`${key.handle.keyId}!`) }));
    const fullChain = withMovedKeys(chain('x', { root: rootOf('A'), former: [former] }));
    const { active, root } = fullChain;
    expect([active, root, ...(fullChain.former ?? [])].map((holder) => holder?.key.handle.keyId)).to.deep.equal([
      ...['x!', 'root-A!', 'before!'],
    ]);
    expect(withMovedKeys(noRoot)).to.not.have.any.keys('root', 'former');
  });
});

describe('key chain certificates', () => {
  let authority: CertifiedKey;
  let leaf: CertifiedKey;
  let selfSigned: CertifiedKey;
  before(async () => {
    authority = await certify({ name: 'Authority', ca: true });
    leaf = await certify({ name: 'Leaf, O=Acme, C=DE', by: authority });
    selfSigned = await certify({ name: 'Alone' });
  });
  const chainOf = (...certificates: string[]) => chain('x', { active: leafOf('x', certificates), usages: ['access', 'signing'] });

  it('have findings when they come from an external authority', () => {
    const messages = (chain: KeyChain) =>
      findKeyChainProblems(chain, null)
        .filter(({ profileRule }) => profileRule?.startsWith('HAIP'))
        .map(({ profileRule, message }) => `${profileRule}: ${message}`);
    expect(messages(chainOf(leaf.certificate))).to.deep.equal([]);
    expect(messages(chainOf(selfSigned.certificate))).to.deep.equal([
      'HAIP 1.0 section 5: the certificate of the key is self-signed',
      'HAIP 1.0 sections 4.1 and 6.1.1: the certificate of the key is self-signed',
    ]);
    expect(messages({ ...chainOf(leaf.certificate, authority.certificate), usages: ['statusList'] })).to.deep.equal([
      'HAIP 1.0 section 6.1: the chain contains its trust anchor, which is sent with every signature of the key',
    ]);
    expect(messages({ ...chainOf(selfSigned.certificate), root: rootOf('A') }), 'under its own authority').to.deep.equal([]);
    expect(messages({ ...chainOf(selfSigned.certificate), usages: ['trustList'] })).to.deep.equal([]);
    expect(messages(chainOf('AAAA')), 'for an invalid certificate').to.deep.equal([]);
  });

  it('may be self-signed for trust lists', () => {
    expect([selfSigned.certificate, leaf.certificate, 'AAAA'].map((first) => isSelfSigned(leafOf('x', [first])))).to.deep.equal([
      ...[true, false, false],
    ]);
    expect(messageOf(() => assertSelfSignedUsage(['trustList'], 'usages'))).to.equal('nothing');
    expect(messageOf(() => assertSelfSignedUsage(['trustList', 'signing'], 'usages'))).to.match(/not for "signing"/);
    const renew = (certificate: string) => messageOf(() => assertRenewable(chainOf(certificate), new Date()));
    expect(renew(selfSigned.certificate)).to.contain('is self-signed');
    expect(renew(leaf.certificate)).to.contain('come from an external authority');
  });

  it('have names', async () => {
    expect(subjectNames(leaf.certificate)).to.deep.equal({ commonName: 'Leaf', organization: 'Acme', country: 'DE' });
    expect(subjectNames(selfSigned.certificate)).to.deep.equal({ commonName: 'Alone' });
    const { certificate } = await certify({ name: 'Odd\\, Inc., C=Germany' });
    expect(subjectNames(certificate), 'no code of a country').to.deep.equal({ commonName: 'Odd, Inc.' });
    expect(subjectNames('AAAA')).to.deep.equal({});
  });

  it('have names in which a separator within a value begins no attribute', async () => {
    const { certificate } = await certify({ name: 'Evil\\,O=Bank\\,C=FR\\+C=IT, O=Acme\\,C=FR, C=DE' });
    expect(subjectNames(certificate)).to.deep.equal({ commonName: 'Evil,O=Bank,C=FR+C=IT', organization: 'Acme,C=FR', country: 'DE' });
  });

  it('are described in a file by their parameters', async () => {
    const { write } = keyChainResource.file;
    const writtenChain = (first: KeyChain, ...others: KeyChain[]) => write(first, [first, ...others]) as Record<string, unknown>;
    expect(writtenChain(chainOf(leaf.certificate))).to.include({
      subjectName: 'Leaf',
      country: 'DE',
      organization: 'Acme',
      algorithm: 'ES256',
    });
    expect(writtenChain(chainOf(leaf.certificate))['selfSigned']).to.equal(undefined);
    expect(writtenChain(chainOf(selfSigned.certificate))['selfSigned']).to.equal(true);
    expect(writtenChain({ ...chainOf(selfSigned.certificate), root: rootOf('A') })['selfSigned']).to.equal(undefined);
    const longName = await certify({ name: 'x'.repeat(65) });
    expect(writtenChain(chainOf(longName.certificate))['subjectName']).to.equal(undefined);
    expect(writtenChain(chainOf('AAAA'))['subjectName'], 'no name').to.equal(undefined);
  });

  it('are described under the oldest key chain of their authority', () => {
    const { write } = keyChainResource.file;
    const createdAtMs = (id: string, milliseconds: number, root?: KeyChain['root']) =>
      chain(id, { createdAt: new Date(milliseconds), ...(root && { root }) });
    const A = rootOf('A');
    const chains = [
      createdAtMs('c', 2, A),
      createdAtMs('b', 1, A),
      createdAtMs('a', 1, A),
      createdAtMs('z', 0, rootOf('B')),
      createdAtMs('o', 0),
    ];
    const namedRoot = (id: string, parameters: readonly KeyChain[]) => {
      const first = parameters.find((each) => each.id === id);
      return first && (write(first, parameters) as { rootKeyChainId?: string }).rootKeyChainId;
    };
    for (const parameters of [chains, chains.toReversed()]) {
      const names = ['c', 'b', 'a', 'z', 'o'].map((id) => namedRoot(id, parameters));
      expect(names).to.deep.equal(['a', 'a', undefined, undefined, undefined]);
    }
  });
});

describe('key chain input', () => {
  const isAccepted = (schema: { safeParse(value: unknown): { success: boolean } }, value: object) => schema.safeParse(value).success;

  it('states its usages in one form', () => {
    for (const [schema, properties] of [
      [KeyChainCreation, {}],
      [KeyChainImport, { key: 'PEM' }],
    ] as const) {
      expect(isAccepted(schema, { ...properties, usageType: 'signing' })).to.equal(true);
      expect(isAccepted(schema, { ...properties, usages: ['signing', 'access'] })).to.equal(true);
      expect(isAccepted(schema, { ...properties, usageType: 'signing', usages: ['signing'] })).to.equal(false);
      expect(isAccepted(schema, properties)).to.equal(false);
    }
    for (const id of ['providers', 'import']) expect(isAccepted(KeyChainCreation, { id, usageType: 'signing' })).to.equal(false);
  });

  it('rejects two names of one property with different values', () => {
    for (const body of [{}, { provider: 'a' }, { kmsProvider: 'a' }, { provider: 'a', kmsProvider: 'a' }]) {
      expect(isAccepted(KeyChainRotation, body), JSON.stringify(body)).to.equal(true);
    }
    expect(isAccepted(KeyChainRotation, { provider: 'a', kmsProvider: 'b' })).to.equal(false);
    for (const body of [{}, { key: 'PEM' }, { algorithm: 'ES256' }]) expect(isAccepted(KeyCreation, body)).to.equal(true);
    expect(isAccepted(KeyCreation, { key: 'PEM', algorithm: 'ES256' })).to.equal(false);
    for (const body of [{}, { usages: ['signing'] }, { certUsageTypes: ['signing'] }]) {
      expect(isAccepted(CertificateUpdate, body)).to.equal(true);
    }
    expect(isAccepted(CertificateUpdate, { usages: ['signing'], certUsageTypes: ['signing'] })).to.equal(false);
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
const daysLater = (days: number) => new Date(NOW.getTime() + days * DAY_MS);

function leaf(keyId: string, days = 365): KeyLeaf {
  return {
    key: { handle: { kms: 'local', keyId, algorithm: 'ES256' }, publicJwk: { kty: 'EC', crv: 'P-256', x: keyId, y: 'AA' } },
    certificates: [`LEAF ${keyId}`],
    notAfter: daysLater(days),
  };
}

function rotatingChain(changes: Partial<KeyChain> = {}): KeyChain {
  return {
    id: 'one',
    tenantId: 'acme',
    usages: ['signing'],
    kmsProvider: 'local',
    root: { key: leaf('root').key, certificate: 'ROOT', notAfter: daysLater(3650) },
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
    ['nothing for a new key', rotatingChain(often), 29.9, undefined],
    ['another key when the interval is over', rotatingChain(often), 30, 'rotation'],
    ['nothing if rotation is disabled', rotatingChain({ rotationIntervalDays: 30 }), 300, undefined],
    ['nothing soon after a rotation', rotatingChain({ ...often, lastRotatedAt: daysLater(20) }), 49.9, undefined],
    ['another key an interval after the last', rotatingChain({ ...often, lastRotatedAt: daysLater(20) }), 50, 'rotation'],
    ['nothing 31 days before its certificate expires', rotatingChain(), 334, undefined],
    ['another certificate 30 days before', rotatingChain(), 335, 'renewal'],
    ['another certificate when it has expired', rotatingChain(), 400, 'renewal'],
    ['nothing at half of a short certificate', rotatingChain({ active: leaf('a', 3), certValidityDays: 3 }), 1.5, undefined],
    ['another certificate at two thirds of it', rotatingChain({ active: leaf('a', 3), certValidityDays: 3 }), 2, 'renewal'],
    ['nothing 8 days before an uploaded one expires', withoutRoot(), 357, undefined],
    ['a reminder 7 days before', withoutRoot(), 358, 'renewal'],
  ];
  for (const [description, parameters, days, due] of rows) {
    it(`is ${description}`, () => expect(dueStep(parameters, daysLater(days))).to.equal(due));
  }

  it('is no certificate that would expire with the present one, together with the authority', () => {
    const { root } = rotatingChain();
    if (root === undefined) throw new Error('no root');
    expect(isExtendable(rotatingChain(), root, daysLater(335))).to.equal(true);
    expect(isExtendable(rotatingChain(), { ...root, notAfter: daysLater(365) }, daysLater(335))).to.equal(false);
  });
});

describe('replaced leaf', () => {
  it('is kept until its certificate has expired, with its authority', () => {
    const next = rotate(rotatingChain(), leaf('second'), NOW);
    expect(next.active).to.deep.equal(leaf('second'));
    expect(next.former).to.deep.equal([{ ...leaf('first'), root: 'ROOT', keptUntil: daysLater(365) }]);
    expect([next.lastRotatedAt, next.updatedAt]).to.deep.equal([NOW, NOW]);
    const third = rotate(next, leaf('third'), daysLater(1));
    expect(third.former?.map(({ certificates }) => certificates[0])).to.deep.equal(['LEAF second', 'LEAF first']);
  });

  it('is kept for at least one more day, since it may have signed an access token', () => {
    const { former } = rotate(rotatingChain({ active: leaf('short', 0.1) }), leaf('second'), NOW);
    expect(former?.[0]?.keptUntil).to.deep.equal(daysLater(1));
  });

  it('has no authority after external certification, and only a rotation time', () => {
    const { root, lastRotatedAt, former } = replaceActiveLeaf(rotatingChain(), 'upload', leaf('first', 500), NOW);
    expect([root, lastRotatedAt, former?.[0]?.root]).to.deep.equal([undefined, undefined, 'ROOT']);
    const sameKeyLeaf = replaceActiveLeaf(withoutRoot(), 'upload', leaf('first', 500), NOW);
    expect(sameKeyLeaf.former?.[0]).to.not.have.property('root');
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
    expect(withoutExpiredLeaves(third, daysLater(9.9))).to.equal(undefined);
    expect(withoutExpiredLeaves(third, daysLater(10))?.former?.map(({ key }) => key.handle.keyId)).to.deep.equal(['b']);
    expect(withoutExpiredLeaves(third, daysLater(20))).to.not.have.property('former');
    expect(withoutExpiredLeaves(rotatingChain(), daysLater(20))).to.equal(undefined);
    expect(rotate(third, leaf('d'), daysLater(10)).former).to.have.length(2);
  });

  it('is never dropped when the limit is reached', () => {
    let full = rotatingChain();
    for (let i = 0; i < MAX_PREVIOUS_LEAVES; i++) full = rotate(full, leaf(`key-${i}`, 100 + i), NOW);
    expect(full.former).to.have.length(MAX_PREVIOUS_LEAVES);
    expect(codeOf(() => rotate(full, leaf('more'), NOW))).to.equal('conflict');
    expect(codeOf(() => assertRenewable(full, NOW))).to.equal('conflict');
    expect(() => rotate(full, leaf('more'), daysLater(100))).to.not.throw();
  });
});

describe('rotation', () => {
  it('requires an authority that has not expired', () => {
    expect(assertRenewable(rotatingChain(), NOW).certificate).to.equal('ROOT');
    expect(codeOf(() => assertRenewable(withoutRoot(), NOW))).to.equal('conflict');
    expect(codeOf(() => assertRenewable(rotatingChain(), daysLater(3650)))).to.equal('conflict');
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
  for (const [parameters, code] of rows) {
    const { rotationIntervalDays, certValidityDays, rotationEnabled } = parameters;
    const description = `${rotationIntervalDays} days under certificates of ${certValidityDays}`;
    it(`by ${description}, ${rotationEnabled ? 'enabled' : 'disabled'}: ${code ?? 'accepted'}`, () => {
      expect(codeOf(() => assertRotationFits(parameters))).to.equal(code);
    });
  }
});
