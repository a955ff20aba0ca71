import { webcrypto } from 'node:crypto';
import {
  BasicConstraintsExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  X509CertificateGenerator,
} from '@peculiar/x509';
import { expect } from 'chai';
import { NodeCertificates } from '../../../adapters/crypto/certificates.ts';

const NOW = new Date('2026-06-01T00:00:00Z');
const P256 = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const ED25519 = { name: 'Ed25519' } as const;
type Algorithm = typeof P256 | typeof ED25519;

/** A leaf below its authority, DER in standard base64. */
async function pathOf(ofLeaf: Algorithm, ofAuthority: Algorithm) {
  const make = async (algorithm: Algorithm) =>
    (await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])) as webcrypto.CryptoKeyPair;
  const [leaf, authority] = [await make(ofLeaf), await make(ofAuthority)];
  const common = {
    issuer: 'CN=Authority',
    notBefore: new Date('2026-01-01'),
    notAfter: new Date('2027-01-01'),
    signingKey: authority.privateKey,
    signingAlgorithm: ofAuthority,
  };
  const root = await X509CertificateGenerator.create({
    ...{ ...common, serialNumber: '01', subject: 'CN=Authority', publicKey: authority.publicKey },
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign, true),
    ],
  });
  const below = await X509CertificateGenerator.create({
    ...{ ...common, serialNumber: '02', subject: 'CN=Issuer', publicKey: leaf.publicKey },
    extensions: [new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true)],
  });
  const base64 = (raw: ArrayBuffer) => Buffer.from(raw).toString('base64');
  return { chain: [base64(below.rawData)], anchors: [{ certificate: base64(root.rawData) }] };
}

/** ARF 3.0 OIA_03: under the profile `eu` certificates are held to agreed algorithms, too. */
describe('Certificates of who presents, by agreed algorithms', () => {
  const certificates = new NodeCertificates();
  for (const [what, leaf, authority, isAgreed] of [
    ['of ECDSA', P256, P256, true],
    ['whose key is of Ed25519', ED25519, P256, false],
    ['whose authority signs by Ed25519', P256, ED25519, false],
  ] as const) {
    it(`count ${isAgreed ? 'always' : 'only where no profile asks'}: ${what}`, async () => {
      const { chain, anchors } = await pathOf(leaf, authority);
      const under = (agreedOnly: boolean) =>
        certificates.validate(chain, anchors, NOW, { purpose: 'SD-JWT VC', agreedOnly });
      expect(under(false).trusted).to.equal(true);
      const verdict = under(true);
      expect(verdict.trusted).to.equal(isAgreed);
      if (!verdict.trusted) expect(verdict).to.deep.include({ reason: 'certificate_profile' });
      expect(under(false).trusted, 'each question by itself').to.equal(true);
    });
  }
});
