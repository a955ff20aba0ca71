import { expect } from 'chai';
import { type CredentialReusePolicy, mostCopies } from '../../../domain/issuance/reuse-policy.ts';
import { aConfiguration, DISPLAY, faultyPaths, MDL } from './kit.ts';

const ONCE = { details: ['once_only'], batch_size: 10, reissue_trigger_unused: 2 };
const LIMITED = { details: ['limited_time'], reissue_trigger_lifetime_left: 3600 };
const ROTATING = { details: ['rotating-batch'], batch_size: 5, reissue_trigger_lifetime_left: 3600 };
const PER_PARTY = {
  details: ['per-relying-party'],
  ...{ batch_size: 20, reissue_trigger_unused: 0, reissue_trigger_lifetime_left: 3600 },
};
const body = (options: readonly object[], changes: object = {}) => ({
  config: { format: 'dc+sd-jwt', display: DISPLAY },
  vct: 'urn:card:1',
  lifeTime: 86_400,
  credentialReusePolicy: { id: 'arf_annex_ii', options },
  ...changes,
});
const without = (option: object, name: string) => ({ ...option, [name]: undefined });
const OPTION = 'credentialReusePolicy.options.0';

describe('A reuse policy', () => {
  const good: [string, object][] = [
    ['copies that are presented once', body([ONCE])],
    ['copies that live shortly', body([LIMITED])],
    ['a preferred method in an option of its own', body([PER_PARTY, ROTATING, ONCE])],
    ['methods that share an option', body([{ ...PER_PARTY, details: ['per-relying-party', 'once_only'] }])],
    ['batches that rotate, or copies that live shortly', body([ROTATING, LIMITED])],
    ['copies without an end, once each', body([ONCE], { lifeTime: null })],
    ['what no key binds', body([LIMITED], { keyBinding: false })],
    [
      'an mdoc, which ends by itself',
      body([LIMITED], { config: { format: 'mso_mdoc', docType: MDL }, vct: null, lifeTime: null }),
    ],
    ['no policy', body([], { credentialReusePolicy: null })],
  ];
  for (const [what, document] of good) {
    it(`may be ${what}`, () => {
      expect(faultyPaths(document)).to.deep.equal([]);
    });
  }

  const bad: [string, object, string][] = [
    ['both once and for a limited time', body([ONCE, LIMITED]), 'credentialReusePolicy.options'],
    [
      'both in one option',
      body([{ ...ONCE, ...LIMITED, details: ['once_only', 'limited_time'] }]),
      'credentialReusePolicy.options',
    ],
    ['neither once nor for a limited time', body([ROTATING]), 'credentialReusePolicy.options'],
    ['a method twice', body([ONCE, ONCE]), 'credentialReusePolicy.options'],
    [
      'a method twice in one option',
      body([{ ...ONCE, details: ['once_only', 'once_only'] }]),
      'credentialReusePolicy.options',
    ],
    ['no option', body([]), 'credentialReusePolicy.options'],
    [
      'another policy',
      body([], { credentialReusePolicy: { id: 'other', options: [ONCE] } }),
      'credentialReusePolicy.id',
    ],
    ['a method that nobody knows', body([{ ...ONCE, details: ['twice'] }]), `${OPTION}.details.0`],
    ['an old spelling', body([{ ...LIMITED, details: ['limited-time'] }]), `${OPTION}.details.0`],
    ['a batch of one', body([{ ...ONCE, batch_size: 1, reissue_trigger_unused: 0 }]), `${OPTION}.batch_size`],
    ['a batch without a size', body([without(ONCE, 'batch_size')]), `${OPTION}.batch_size`],
    [
      'a batch that is never used up',
      body([without(ONCE, 'reissue_trigger_unused')]),
      `${OPTION}.reissue_trigger_unused`,
    ],
    [
      'a batch that is used up from the beginning',
      body([{ ...ONCE, reissue_trigger_unused: 10 }]),
      `${OPTION}.reissue_trigger_unused`,
    ],
    [
      'a limited time without a limit',
      body([without(LIMITED, 'reissue_trigger_lifetime_left')]),
      `${OPTION}.reissue_trigger_lifetime_left`,
    ],
    ['a limited time of a batch', body([{ ...LIMITED, batch_size: 3 }]), `${OPTION}.batch_size`],
    [
      'what is to be renewed when it is issued',
      body([LIMITED], { lifeTime: 3600 }),
      `${OPTION}.reissue_trigger_lifetime_left`,
    ],
    [
      'an end of what has none',
      body([LIMITED], { lifeTime: null }),
      `${OPTION}.reissue_trigger_lifetime_left`,
    ],
    ['copies that no key tells apart', body([ONCE], { keyBinding: false }), `${OPTION}.batch_size`],
    ['copies whose ends lie together', body([ONCE], { lifeTime: 1209 }), `${OPTION}.batch_size`],
    ['another member', body([{ ...ONCE, more: 1 }]), OPTION],
  ];
  for (const [what, document, path] of bad) {
    it(`cannot be ${what}`, () => {
      expect(faultyPaths(document)).to.deep.equal([path]);
    });
  }

  it('says how many copies a request is answered with', () => {
    const copies = (options: readonly object[], batchSize: number) =>
      mostCopies(
        { credentialReusePolicy: { id: 'arf_annex_ii', options } as CredentialReusePolicy },
        batchSize,
      );
    expect(copies([ONCE], 1)).to.equal(10);
    expect(copies([ONCE, PER_PARTY], 50)).to.equal(20);
    expect(copies([LIMITED], 50)).to.equal(1);
    for (const none of [null, undefined])
      expect([0, 1, 7].map((size) => mostCopies({ credentialReusePolicy: none }, size))).to.deep.equal([
        1, 1, 7,
      ]);
    expect(mostCopies(aConfiguration(), 3)).to.equal(3);
  });
});
