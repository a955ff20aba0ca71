import { expect } from 'chai';
import { NodeCertificates } from '../../../adapters/crypto/certificates.ts';
import { authorityOf } from '../../../application/verification/trusted-authorities.ts';
import { readCertificate } from '../../../domain/formats/der/certificate.ts';
import { type Certified, certify } from '../../support/test-certificates.ts';

const NOW = new Date('2027-01-15T08:00:00Z');
const CLAIMED = '00112233445566778899aabbccddeeff00112233';

const read = ({ certificate }: Certified) => readCertificate(Buffer.from(certificate, 'base64'));
const keyIdOf = (one: Certified) => read(one)?.subjectKeyId ?? '';
const encoded = (keyId: string) => Buffer.from(keyId, 'hex').toString('base64url');

/** Which of the key identifiers that are asked for belong to who vouches for the chain. */
const met = (anchors: readonly Certified[], chain: readonly Certified[], ...asked: readonly string[]) => {
  const trust = {
    anchors,
    ...{ withFormer: [], dated: new Map() },
    listed: new Map(),
    lists: [],
    missing: [],
  };
  const trusted = { chain: chain.map(({ certificate }) => certificate), purpose: 'SD-JWT VC' } as const;
  const demanded = [{ type: 'aki', values: new Set(asked) }];
  return authorityOf(new NodeCertificates(), trust, demanded, trusted, NOW).authorityKeyIds;
};

describe('A demanded key identifier', () => {
  let root: Certified;
  let middle: Certified;
  let leaf: Certified;
  before(async () => {
    root = await certify({ name: 'Root', ca: true });
    middle = await certify({ name: 'Middle', by: root, ca: true });
    leaf = await certify({ name: 'Leaf', by: middle });
  });

  it('is that of the anchor which vouches for the chain', () => {
    expect(met([root], [leaf, middle], keyIdOf(root))).to.deep.equal([keyIdOf(root)]);
    expect(met([root, middle], [leaf, middle], keyIdOf(middle), 'x')).to.deep.equal([keyIdOf(middle)]);
    expect(met([root, middle], [leaf, middle], keyIdOf(root))).to.deep.equal([keyIdOf(root)]);
  });

  it('is that of an authority between the signer and the anchor', () => {
    expect(met([root], [leaf, middle], keyIdOf(middle))).to.deep.equal([keyIdOf(middle)]);
    expect(met([root], [leaf, middle], keyIdOf(leaf))).to.deep.equal([]);
    expect(met([middle], [leaf, middle, root], keyIdOf(root))).to.deep.equal([]);
  });

  it('is not that of an authority outside of the validated chain, nor of an anchor that vouches for others', async () => {
    const apart = await certify({ name: 'Apart', ca: true });
    expect(met([root], [leaf, middle, apart], keyIdOf(apart))).to.deep.equal([]);
    const other = await certify({ name: 'Other', ca: true });
    expect(met([root, other], [leaf, middle], keyIdOf(other))).to.deep.equal([]);
  });

  it('is not what a certificate in between claims', async () => {
    const other = await certify({ name: 'Other', ca: true });
    const keyId = Buffer.from(keyIdOf(other), 'base64url').toString('hex');
    const pretender = await certify({ name: 'Pretender', by: root, ca: true, keyId });
    const below = await certify({ name: 'Below', by: pretender, authorityKeyId: keyId });
    expect(met([root, other], [below, pretender], keyIdOf(other))).to.deep.equal([]);
  });

  it('is the hash of the key of an anchor that has none', async () => {
    const bare = await certify({ name: 'Bare', ca: true, keyId: null });
    const below = await certify({ name: 'Below', by: bare });
    const made = read(bare)?.keyHash ?? '';
    expect(met([bare], [below], made)).to.deep.equal([made]);
    // What others would write as the identifier of its key.
    expect(read(below)?.authorityKeyId).to.equal(made);
  });

  it('is that of a certificate that is trusted by itself, and not of whom that one names', async () => {
    const own = await certify({ name: 'Own', authorityKeyId: CLAIMED });
    expect(met([own], [own], keyIdOf(own))).to.deep.equal([keyIdOf(own)]);
    expect(met([own], [own], encoded(CLAIMED))).to.deep.equal([]);
  });

  it('that several keys claim is that of the key it was made of, or of none', async () => {
    const keyId = Buffer.from(keyIdOf(root), 'base64url').toString('hex');
    const thief = await certify({ name: 'Thief', ca: true, keyId });
    const stolen = await certify({ name: 'Stolen', by: thief, authorityKeyId: keyId });
    expect(met([thief, root], [stolen], keyIdOf(root))).to.deep.equal([]);
    expect(met([thief, root], [leaf, middle], keyIdOf(root))).to.deep.equal([keyIdOf(root)]);
    const claimants = [
      await certify({ name: 'One', ca: true, keyId: CLAIMED }),
      await certify({ name: 'Two', ca: true, keyId: CLAIMED }),
    ];
    for (const by of claimants) {
      const below = await certify({ name: 'Below', by, authorityKeyId: CLAIMED });
      expect(met(claimants, [below], encoded(CLAIMED))).to.deep.equal([]);
      expect(met([by], [below], encoded(CLAIMED))).to.deep.equal([encoded(CLAIMED)]);
    }
  });
});
