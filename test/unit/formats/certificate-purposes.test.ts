import { expect } from 'chai';
import { NodeCertificates } from '../../../adapters/crypto/certificates.ts';
import type { CertificatePurpose } from '../../../domain/keys/certificate-purpose.ts';
import { type Certified, certify, READER, WEB_SERVER } from '../../support/test-certificates.ts';

const NOW = new Date('2027-01-15T08:00:00Z');
const ANY = '2.5.29.37.0';
const DOCUMENT_SIGNER = '1.0.18013.5.1.2';
const STATUS_SIGNER = '1.3.6.1.5.5.7.3.30';
const TRUST_LIST_SIGNER = '0.4.0.2231.3.0';

/** Extended key usages that are right for what is signed. */
const RIGHT: Readonly<Record<CertificatePurpose, readonly string[]>> = {
  'SD-JWT VC': [DOCUMENT_SIGNER, '1.0.23220.4.1.2'],
  mdoc: [DOCUMENT_SIGNER, '1.0.23220.4.1.2'],
  'wallet attestation': [],
  'status list': [STATUS_SIGNER],
  'trust list': [TRUST_LIST_SIGNER],
  'registration certificate': [],
  'OCSP answer': ['1.3.6.1.5.5.7.3.9'],
};
const KNOWN = [WEB_SERVER, READER, '1.3.6.1.5.5.7.3.4', ...new Set(Object.values(RIGHT).flat())];

describe('What a certificate is for', () => {
  let root: Certified;
  const shared = new NodeCertificates();
  const judge = (purpose: CertificatePurpose, chain: readonly Certified[], anchors = [root]): string => {
    const texts = chain.map(({ certificate }) => certificate);
    const verdict = shared.validate(texts, anchors, NOW, { purpose });
    return verdict.trusted ? 'trusted' : verdict.reason;
  };
  const leafFor = (purposes: readonly string[], critical = false, by = root) =>
    certify({ name: 'Leaf', by, purposes, critical });

  before(async () => {
    root = await certify({ name: 'Root', ca: true });
  });

  for (const [name, right] of Object.entries(RIGHT)) {
    const purpose = name as CertificatePurpose;
    describe(`when it signed a ${purpose}`, () => {
      it('is open without an extended key usage, and with one that restricts nothing', async () => {
        expect(judge(purpose, [await leafFor([])])).to.equal('trusted');
        expect(judge(purpose, [await leafFor([ANY], true)])).to.equal('trusted');
        expect(judge(purpose, [await leafFor([WEB_SERVER, ANY])])).to.equal('trusted');
      });

      it('is told by an extended key usage, critical or not', async () => {
        for (const usage of KNOWN) {
          const expected = right.includes(usage) ? 'trusted' : 'certificate_profile';
          for (const critical of [false, true]) {
            expect(judge(purpose, [await leafFor([usage], critical)]), usage).to.equal(expected);
            expect(judge(purpose, [await leafFor(['1.2.3.4', usage], critical)]), usage).to.equal(expected);
          }
        }
      });

      it('is restricted by authorities in between, not by the anchor', async () => {
        for (const usage of [...KNOWN, ANY]) {
          const isFine = usage === ANY || right.includes(usage);
          const middle = await certify({
            name: 'Middle',
            by: root,
            ca: true,
            purposes: [usage],
            critical: true,
          });
          const leaf = await leafFor(right.slice(0, 1), false, middle);
          expect(judge(purpose, [leaf, middle]), usage).to.equal(isFine ? 'trusted' : 'certificate_profile');
          expect(judge(purpose, [leaf], [middle]), usage).to.equal('trusted');
        }
      });

      it('is asked of a certificate that is trusted by itself, too', async () => {
        const own = await certify({ name: 'Own' });
        const web = await certify({ name: 'Web', purposes: [WEB_SERVER] });
        expect(judge(purpose, [own], [own])).to.equal('trusted');
        expect(judge(purpose, [web], [web])).to.equal('certificate_profile');
      });
    });
  }

  it('is remembered for that alone', async () => {
    const leaf = await leafFor([STATUS_SIGNER]);
    for (const _ of [1, 2]) {
      expect(judge('status list', [leaf])).to.equal('trusted');
      expect(judge('SD-JWT VC', [leaf])).to.equal('certificate_profile');
      expect(judge('trust list', [leaf])).to.equal('certificate_profile');
    }
  });
});
