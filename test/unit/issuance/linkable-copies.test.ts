import { expect } from 'chai';
import sinon from 'sinon';
import { NodeRandom } from '../../../adapters/system/random.ts';
import { repeatsSalt, sharingTimes, tellingPlaces } from '../../../domain/issuance/linkable-copies.ts';
import type { PublicJwk } from '../../../domain/shared/jwk.ts';
import { readIssuerSigned } from '../../support/issuer-signed.ts';
import { newKey } from '../../support/raw-wallet.ts';
import { aConfiguration, aFactory, anMdoc, aView, MDL, MDL_NAMESPACE } from './kit.ts';

const HOUR = 1_780_000_000 - (1_780_000_000 % 3600);
const copy = (...times: number[]) => ({ times, salts: [] });
const salted = (...salts: string[]) => ({ times: [], salts });

describe('The copies of a batch', () => {
  it('share full hours, and the bounds of the certificate, and no other second', () => {
    expect(sharingTimes([copy(HOUR, HOUR + 3600), copy(HOUR, HOUR + 3600)], new Set())).to.deep.equal([]);
    expect(sharingTimes([copy(HOUR, HOUR + 7), copy(HOUR, HOUR + 8)], new Set())).to.deep.equal([]);
    expect(sharingTimes([copy(HOUR + 7), copy(HOUR + 8), copy(HOUR + 7)], new Set())).to.deep.equal([2]);
    expect(sharingTimes([copy(HOUR + 7), copy(HOUR + 7)], new Set([HOUR + 7]))).to.deep.equal([]);
    // An mdoc says when it was signed and from when on it counts.
    expect(sharingTimes([copy(HOUR + 7, HOUR + 7), copy(HOUR + 8)], new Set())).to.deep.equal([]);
    expect(sharingTimes([copy(HOUR + 7), copy(HOUR, HOUR + 7)], new Set())).to.deep.equal([1]);
  });

  it('have salts of their own', () => {
    expect(repeatsSalt([salted('a', 'b'), salted('c')])).to.equal(false);
    expect(repeatsSalt([salted('a', 'b'), salted('b')])).to.equal(true);
    expect(repeatsSalt([salted('a', 'a'), salted()])).to.equal(true);
  });

  it('lie anywhere in the list, in no order', () => {
    const none = [[5], [9000, 4], [4, 9000, 17, 5200, 80, 6100], [1, 2000, 4000, 6000, 8000]];
    for (const indices of none) expect(tellingPlaces(indices, 10_000), String(indices)).to.equal(undefined);
    expect(tellingPlaces([7, 7], 10_000)).to.equal('the same index');
    expect(tellingPlaces([100, 101], 10_000)).to.equal('the page of the list');
    expect(tellingPlaces([100, 110], 10_000)).to.equal(undefined);
    const rising = [1, 2000, 3000, 4000, 5000, 6000];
    expect(tellingPlaces(rising, 10_000)).to.equal('the order of indices');
    expect(tellingPlaces(rising.toReversed(), 10_000)).to.equal('the order of indices');
    // A short list has no pages, and few copies are in some order by chance.
    expect(tellingPlaces([1, 2, 3], 100)).to.equal(undefined);
  });
});

describe('A batch that could be linked', () => {
  afterEach(() => sinon.restore());

  const claims = { given_name: 'Ada' };
  const keys = (count: number) =>
    Array.from({ length: count }, () => ({ holderKey: newKey().jwk as PublicJwk }));
  const outcome = async (made: Promise<readonly string[]>) =>
    made.then(
      ({ length }) => length,
      (error) => error.code,
    );

  const kinds = [
    ['an SD-JWT VC', aConfiguration({ disclosureFrame: { _sd: ['given_name'] } }), claims],
    ['an mdoc', anMdoc(), { [MDL_NAMESPACE]: { given_name: 'Ada' } }],
  ] as const;
  for (const [what, configuration, held] of kinds) {
    it(`by its salts is not issued: ${what}`, async () => {
      const { factory, chain } = await aFactory();
      const make = () => outcome(factory.make(aView(chain), configuration, held, keys(2)));
      expect(await make()).to.equal(2);
      sinon.stub(NodeRandom.prototype, 'bytes').callsFake((length) => Buffer.alloc(length, 7));
      expect(await make()).to.equal('credential_request_denied');
      // Alone there is nothing to link.
      expect(await outcome(factory.make(aView(chain), configuration, held, keys(1)))).to.equal(1);
    });
  }

  it('by the second of its end has it drawn again, and is not issued where that does not help', async () => {
    const { factory, chain } = await aFactory();
    const configuration = aConfiguration({ lifeTime: 1210 });
    const ends = async (count: number) =>
      (await factory.make(aView(chain), configuration, claims, keys(count))).map(
        (text) => JSON.parse(Buffer.from(text.split('.')[1] ?? '', 'base64url').toString()).exp as number,
      );
    for (let round = 0; round < 5; round++) expect(new Set(await ends(60)).size).to.equal(60);
    sinon.stub(NodeRandom.prototype, 'bytes').callsFake((length) => Buffer.alloc(length, 7));
    // Of four copies two are drawn from the whole range, with the same outcome.
    expect(await outcome(factory.make(aView(chain), configuration, claims, keys(4)))).to.equal(
      'credential_request_denied',
    );
  });

  it('has expiry times more than two minutes apart from a lifetime of one hour on, in both formats', async () => {
    const { factory, chain } = await aFactory();
    const view = aView(chain);
    const endOf = (text: string) =>
      JSON.parse(Buffer.from(text.split('.')[1] ?? '', 'base64url').toString()).exp as number;
    const spread = (ends: readonly number[]) => Math.max(...ends) - Math.min(...ends);
    for (const lifeTime of [3600, 7199]) {
      for (const count of [2, 3, 10]) {
        for (let round = 0; round < 20; round++) {
          const made = await factory.make(view, aConfiguration({ lifeTime }), claims, keys(count));
          expect(spread(made.map(endOf)), `${count} copies of ${lifeTime} seconds`).to.be.above(120);
        }
      }
    }
    const mdoc = anMdoc(undefined, { lifeTime: 3600 });
    const held = { [MDL_NAMESPACE]: { given_name: 'Ada' } };
    for (let round = 0; round < 20; round++) {
      const made = await factory.make(view, mdoc, held, keys(2));
      const ends = made.map((text) => {
        return readIssuerSigned(text, MDL).mso.validity.validUntil.getTime() / 1000;
      });
      expect(spread(ends)).to.be.above(120);
    }
  });

  it('because it lives for minutes is issued where no policy forbids it, and warned of', async () => {
    const { factory, chain } = await aFactory();
    const minute = aConfiguration({ lifeTime: 60 });
    expect(await outcome(factory.make(aView(chain), minute, claims, keys(20)))).to.equal(20);
    const options = [{ details: ['once_only'], batch_size: 20, reissue_trigger_unused: 1 }];
    const credentialReusePolicy = { id: 'arf_annex_ii', options } as const;
    const policed = { ...aConfiguration({ credentialReusePolicy, lifeTime: 86_400 }) } as never;
    // What its wallet's status leaves of its life is too short for so many.
    expect(await outcome(factory.make(aView(chain), policed, claims, keys(20), 60))).to.equal(
      'credential_request_denied',
    );
    expect(await outcome(factory.make(aView(chain), policed, claims, keys(20)))).to.equal(20);
  });
});
