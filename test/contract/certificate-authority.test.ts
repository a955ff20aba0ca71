import { X509Certificate } from 'node:crypto';
import { expect } from 'chai';
import { MasterCipher } from '../../adapters/crypto/cipher.ts';
import { X509Authority } from '../../adapters/crypto/x509-authority.ts';
import { KmsRegistry } from '../../adapters/kms/kms-registry.ts';
import { LocalKms } from '../../adapters/kms/local/local-kms.ts';
import { NodeRandom } from '../../adapters/system/random.ts';
import type { CertificateRequest } from '../../application/ports/certificate-authority.ts';
import { type SigningKey, type StoredKey, signingKey } from '../../domain/keys/signing-key.ts';
import { type PublicJwk, SIGNING_ALGORITHMS } from '../../domain/shared/jwk.ts';

const random = new NodeRandom();
const cipher = new MasterCipher({ masterSecrets: ['a master secret of decent length'] });
const provider = new LocalKms({ name: 'local', cipher, random });
const kms = new KmsRegistry({ providers: [{ name: 'local', type: 'local', provider }], default: 'local' });
const x509Authority = new X509Authority({ kms, random });

function aRequest(publicJwk: PublicJwk, changes: Partial<CertificateRequest> = {}): CertificateRequest {
  return {
    kind: 'leaf',
    subject: { commonName: 'Leaf' },
    publicJwk,
    notBefore: new Date('2026-01-01T00:00:00Z'),
    notAfter: new Date('2027-01-01T00:00:00Z'),
    ...changes,
  };
}

function parseCertificate(base64: string): X509Certificate {
  return new X509Certificate(Buffer.from(base64, 'base64'));
}

describe('X509Authority', () => {
  for (const algorithm of SIGNING_ALGORITHMS) {
    it(`issues a CA and a leaf signed with ${algorithm}`, async () => {
      const [root, key] = [await kms.generate('acme', algorithm), await kms.generate('acme', 'ES256')];
      const signer = signingKey('acme', root);
      const subject = { commonName: 'Acme "Ünï" CA, #1', organization: 'Acme', country: 'DE' };
      const caDer = await x509Authority.issue(aRequest(root.publicJwk, { kind: 'ca', subject }), { key: signer });
      const leafDer = await x509Authority.issue(aRequest(key.publicJwk), { key: signer, certificate: caDer });
      const [ca, leaf] = [parseCertificate(caDer), parseCertificate(leafDer)];

      expect(ca.ca).to.equal(true);
      expect(leaf.ca).to.equal(false);
      expect(ca.verify(ca.publicKey)).to.equal(true);
      expect(ca.checkIssued(ca)).to.equal(true);
      expect(leaf.verify(ca.publicKey)).to.equal(true);
      expect(leaf.checkIssued(ca)).to.equal(true);
      expect(leaf.verify(leaf.publicKey)).to.equal(false);
      // Printed with the escapes of RFC 2253.
      expect(ca.subject).to.equal('C=DE\nO=Acme\nCN=Acme \\"Ünï\\" CA\\, #1');
      expect(leaf.issuer).to.equal(ca.subject);
      expect(leaf.publicKey.export({ format: 'jwk' })).to.include({ x: key.publicJwk.x, y: key.publicJwk.y });
    });
  }

  it('writes valid DER for ECDSA signatures with any leading bytes of r and s', async () => {
    const key = await kms.generate('acme', 'ES256');
    const signer = { key: signingKey('acme', key) };
    // The authority verifies what it issues. Repeated runs meet short and padded integers.
    for (let round = 0; round < 300; round++) await x509Authority.issue(aRequest(key.publicJwk), signer);
  });

  it('writes validity, names, positive 20-byte serial numbers and key identifiers', async () => {
    const [root, key] = [await kms.generate('acme', 'ES256'), await kms.generate('acme', 'ES256')];
    const signer = signingKey('acme', root);
    const caDer = await x509Authority.issue(aRequest(root.publicJwk, { kind: 'ca' }), { key: signer });
    const request = aRequest(key.publicJwk, {
      dnsNames: ['issuer.example', 'localhost'],
      uris: ['https://issuer.example/acme'],
      notAfter: new Date('2056-01-01T00:00:00Z'),
    });
    const leafDer = await x509Authority.issue(request, { key: signer, certificate: caDer });
    const leaf = parseCertificate(leafDer);

    expect(leaf.validFromDate).to.deep.equal(request.notBefore);
    expect(leaf.validToDate).to.deep.equal(request.notAfter);
    expect(leaf.subjectAltName).to.equal('DNS:issuer.example, DNS:localhost, URI:https://issuer.example/acme');
    expect(leaf.checkHost('issuer.example')).to.equal('issuer.example');
    expect(leaf.serialNumber).to.match(/^[4-7][0-9A-F]{39}$/);
    expect(leaf.serialNumber).to.not.equal(parseCertificate(caDer).serialNumber);
  });

  it('gives critical basic constraints to a CA and none to a leaf', async () => {
    const key = await kms.generate('acme', 'ES256');
    const signer = { key: signingKey('acme', key) };
    const ca = parseCertificate(await x509Authority.issue(aRequest(key.publicJwk, { kind: 'ca' }), signer)).raw.toString('hex');
    const leaf = parseCertificate(await x509Authority.issue(aRequest(key.publicJwk), signer)).raw.toString('hex');
    // OID, critical TRUE, OCTET STRING: SEQUENCE { cA TRUE, pathLen 0 } and the usage bits.
    expect(ca).to.contain('0603551d130101ff040830060101ff020100');
    expect(ca).to.contain('0603551d0f0101ff040403020106');
    expect(leaf).to.not.contain('0603551d13');
    expect(leaf).to.contain('0603551d0f0101ff040403020780');
  });

  describe('rejects a key that does not belong to the issuing certificate', () => {
    let root: StoredKey;
    let signer: { readonly key: SigningKey; readonly certificate: string };
    beforeEach(async () => {
      root = await kms.generate('acme', 'ES256');
      const certificate = await x509Authority.issue(aRequest(root.publicJwk, { kind: 'ca' }), { key: signingKey('acme', root) });
      signer = { key: signingKey('acme', await kms.generate('acme', 'ES256')), certificate };
    });
    const expectRejected = async (work: Promise<unknown>) => {
      const outcome = await work.catch((error: unknown) => error);
      expect(outcome).to.be.instanceOf(Error).with.property('message').that.contains('does not belong');
    };

    it('for a certificate', () => expectRejected(x509Authority.issue(aRequest(root.publicJwk), signer)));

    it('for a revocation list', () => {
      const [thisUpdate, nextUpdate] = [new Date('2026-01-01T00:00:00Z'), new Date('2026-01-02T00:00:00Z')];
      return expectRejected(x509Authority.revocationList({ thisUpdate, nextUpdate, number: 1, revoked: [] }, signer));
    });

    it('for a certificate request, whose signature proves possession of the key', () =>
      expectRejected(x509Authority.request({ subject: { commonName: 'Acme' }, publicJwk: root.publicJwk }, signer.key)));

    it('for a certificate request of another type of key', async () => {
      const key = signingKey('acme', await kms.generate('acme', 'EdDSA'));
      await expectRejected(x509Authority.request({ subject: { commonName: 'Acme' }, publicJwk: root.publicJwk }, key));
    });
  });
});
