import { X509Certificate } from 'node:crypto';
import { expect } from 'chai';
import sinon from 'sinon';
import { NodeCertificates } from '../../../adapters/crypto/certificates.ts';
import { parseCertificate } from '../../../domain/formats/der/certificate.ts';
import { type CertifiedKey, certify, forgeCertificate, type RsaNumbers, rsaKey } from '../../support/test-certificates.ts';

const NOW = new Date('2027-01-15T08:00:00Z');
const PURPOSE = { purpose: 'SD-JWT VC' } as const;

describe('untrusted certificates', () => {
  let root: CertifiedKey;
  before(async () => {
    root = await certify({ name: 'Root', ca: true });
  });
  afterEach(() => sinon.restore());

  describe('with RSA keys', () => {
    const read = async (numbers: RsaNumbers) => {
      const text = await forgeCertificate({ subject: 'CN=RSA', issuer: 'CN=RSA' }, rsaKey(numbers));
      return parseCertificate(Buffer.from(text, 'base64'));
    };
    const exponents: Readonly<Record<string, readonly [Buffer, boolean]>> = {
      'of 3': [Buffer.of(3), true],
      'of 65537': [Buffer.of(1, 0, 1), true],
      'of 32 bits': [Buffer.from('ffffffff', 'hex'), true],
      'of 33 bits': [Buffer.from('0100000001', 'hex'), false],
      'of 2048 bits': [Buffer.alloc(256, 0x7f), false],
      'that is even': [Buffer.of(1, 0, 0), false],
      'of 1': [Buffer.of(1), false],
    };
    for (const [what, [exponent, isRead]] of Object.entries(exponents)) {
      it(`are ${isRead ? 'parsed' : 'rejected'} with an exponent ${what}`, async () => {
        expect((await read({ exponent })) !== undefined).to.equal(isRead);
      });
    }

    for (const [bits, isRead] of [
      [1024, false],
      [2040, false],
      [2048, true],
      [4096, true],
      [4104, false],
    ] as const) {
      it(`are ${isRead ? 'parsed' : 'rejected'} with ${bits} bits`, async () => {
        expect((await read({ bits })) !== undefined).to.equal(isRead);
      });
    }

    it('are checked before any other code parses them', async () => {
      const exponent = Buffer.alloc(256, 0x7f);
      const text = await forgeCertificate({ subject: 'CN=RSA', issuer: 'CN=RSA' }, rsaKey({ exponent }));
      const asked = sinon.spy(X509Certificate.prototype, 'publicKey', ['get']);
      parseCertificate(Buffer.from(text, 'base64'));
      expect(asked.get.callCount).to.equal(0);
    });
  });

  describe('in a chain', () => {
    let chain: string[];
    before(async () => {
      const spki = rsaKey({ bits: 4096 });
      chain = [
        await forgeCertificate({ subject: 'CN=Leaf', issuer: 'CN=A' }, Buffer.from(spkiOf(root)), false),
        await forgeCertificate({ subject: 'CN=A', issuer: 'CN=B' }, spki),
        await forgeCertificate({ subject: 'CN=B', issuer: 'CN=C' }, spki),
        await forgeCertificate({ subject: 'CN=C', issuer: 'CN=D' }, spki),
      ];
    });

    it('are not verified while the chain leads to no known certificate', () => {
      const verified = sinon.spy(X509Certificate.prototype, 'verify');
      const certificates = new NodeCertificates();
      const anchors = [root];
      for (let i = 0; i < 60; i++) {
        const verdict = certificates.verifyChain(chain, anchors, new Date(NOW.getTime() + i * 60_000), PURPOSE);
        expect(verdict.trusted || verdict.reason).to.equal('untrusted_chain');
      }
      expect(verified.callCount).to.equal(0);
    });

    it('are verified from the anchor down, so that their keys are never used', async () => {
      const pretending = [...chain.slice(0, 3), await forgeCertificate({ subject: 'CN=C', issuer: 'CN=Root' }, rsaKey())];
      const verified = sinon.spy(X509Certificate.prototype, 'verify');
      const verdict = new NodeCertificates().verifyChain(pretending, [root], NOW, PURPOSE);
      expect(verdict.trusted || verdict.reason).to.equal('untrusted_chain');
      expect(verified.args.map(([key]) => key.asymmetricKeyType)).to.deep.equal(['ec']);
    });

    it('are verified with a limited number of anchors of the same name', async () => {
      const alike = await Promise.all(Array.from({ length: 50 }, () => certify({ name: 'Alike', ca: true })));
      const leaf = await forgeCertificate({ subject: 'CN=Leaf', issuer: 'CN=Alike' }, Buffer.from(spkiOf(root)), false);
      const verified = sinon.spy(X509Certificate.prototype, 'verify');
      expect(new NodeCertificates().verifyChain([leaf], alike, NOW, PURPOSE).trusted).to.equal(false);
      expect(verified.callCount).to.be.greaterThan(1).and.at.most(32);
    });

    it('are rejected from the cache for ten seconds, and verified again after that', async () => {
      const near = await forgeCertificate({ subject: 'CN=Leaf', issuer: 'CN=Root' }, Buffer.from(spkiOf(root)), false);
      const verified = sinon.spy(X509Certificate.prototype, 'verify');
      const certificates = new NodeCertificates();
      const anchors = [root];
      for (const [ms, looks] of [
        [0, 1],
        [9_999, 1],
        [10_001, 2],
      ] as const) {
        const verdict = certificates.verifyChain([near], anchors, new Date(NOW.getTime() + ms), PURPOSE);
        expect(verdict.trusted).to.equal(false);
        expect(verified.callCount, `${ms} ms`).to.equal(looks);
      }
      expect(certificates.verifyChain([near], [root], NOW, { purpose: 'mdoc' }).trusted).to.equal(false);
      expect(verified.callCount, 'for another purpose').to.equal(3);
    });

    it('are evicted when there are too many, unlike trusted ones', async () => {
      const near = await forgeCertificate({ subject: 'CN=Leaf', issuer: 'CN=Root' }, Buffer.from(spkiOf(root)), false);
      const { certificate: known } = await certify({ name: 'Known', by: root });
      const verified = sinon.spy(X509Certificate.prototype, 'verify');
      const certificates = new NodeCertificates();
      const anchors = [root];
      const judge = (certificate: string) => certificates.verifyChain([certificate], anchors, NOW, PURPOSE).trusted;
      expect([judge(near), judge(known)]).to.deep.equal([false, true]);
      expect(verified.callCount).to.equal(2);
      for (let i = 0; i < 10_000; i++) judge(i.toString().padStart(8, 'A'));
      expect(judge(known)).to.equal(true);
      expect(verified.callCount).to.equal(2);
      expect(judge(near)).to.equal(false);
      expect(verified.callCount).to.equal(3);
    });
  });
});

function spkiOf({ certificate }: CertifiedKey): Buffer {
  const { publicKey } = new X509Certificate(Buffer.from(certificate, 'base64'));
  return publicKey.export({ format: 'der', type: 'spki' });
}
