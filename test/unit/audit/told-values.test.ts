import { createHash } from 'node:crypto';
import { expect } from 'chai';
import { describeChange } from '../../../domain/audit/describe-change.ts';
import { type Certified, certify, pem } from '../../support/test-certificates.ts';

const fingerprint = ({ certificate }: Certified) =>
  createHash('sha256').update(Buffer.from(certificate, 'base64')).digest('base64url');

describe('Whom a change trusts', () => {
  let one: Certified;
  let other: Certified;
  before(async () => {
    one = await certify({ name: 'One', ca: true });
    other = await certify({ name: 'Other', ca: true });
  });

  it('is told of a presentation configuration, with who is pinned for a list, and no address', () => {
    const trustList = 'https://lists.example/trust?token=secret';
    const before = { trustAnchors: [{ ownAuthorities: true }] };
    const after = {
      trustAnchors: [{ certificate: pem(one) }, { trustList, signedBy: [pem(other)] }, { trustList }],
      dcql_query: { credentials: [] },
    };
    const { changes } = describeChange('presentation-configuration', 'age', before, after);
    expect(changes).to.deep.equal([
      { member: 'dcql_query' },
      {
        member: 'trustAnchors',
        before: [{ ownAuthorities: true }],
        after: [
          { certificate: fingerprint(one) },
          { trustList: 'lists.example', signedBy: [fingerprint(other)] },
          { trustList: 'lists.example', signedBy: [] },
        ],
      },
    ]);
    expect(JSON.stringify(changes)).to.not.include('secret').and.not.include('CERTIFICATE');
  });

  it('is told when another signer is pinned, and when the first one is', () => {
    const pinned = (...signers: Certified[]) => ({ walletProviderTrustListCertificates: signers.map(pem) });
    const { changes } = describeChange('issuance-configuration', 'default', pinned(one), pinned(other));
    expect(changes).to.deep.equal([
      {
        member: 'walletProviderTrustListCertificates',
        before: [fingerprint(one)],
        after: [fingerprint(other)],
      },
    ]);
    expect(describeChange('issuance-configuration', 'default', undefined, pinned(one)).changes).to.deep.equal(
      [{ member: 'walletProviderTrustListCertificates', after: [fingerprint(one)] }],
    );
  });
});
