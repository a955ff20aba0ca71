import { expect } from 'chai';
import { NodeCertificates } from '../../../adapters/crypto/certificates.ts';
import { readCertificate } from '../../../domain/formats/der/certificate.ts';
import { readTime } from '../../../domain/formats/der/time.ts';
import { readDocumentSigner } from '../../../domain/formats/mdoc/document-signer.ts';
import { type Certified, certify, UNREADABLE_TIMES } from '../../support/test-certificates.ts';

const NOW = new Date('2027-01-15T08:00:00Z');
const UTC_TIME = 0x17;
const GENERALIZED_TIME = 0x18;

const read = ({ certificate }: Certified) => readCertificate(Buffer.from(certificate, 'base64'));

function judge(chain: readonly Certified[], anchors: readonly Certified[]): string {
  const verdict = new NodeCertificates().validate(
    chain.map(({ certificate }) => certificate),
    anchors,
    NOW,
    { purpose: 'SD-JWT VC' },
  );
  return verdict.trusted ? 'trusted' : verdict.reason;
}

describe('The times of a certificate', () => {
  const good: [number, string, string][] = [
    [UTC_TIME, '491231235959Z', '2049-12-31T23:59:59.000Z'],
    [UTC_TIME, '500101000000Z', '1950-01-01T00:00:00.000Z'],
    [UTC_TIME, '280229000000Z', '2028-02-29T00:00:00.000Z'],
    [GENERALIZED_TIME, '20500101000000Z', '2050-01-01T00:00:00.000Z'],
    // RFC 5280 section 4.1.2.5: of a certificate without a well-defined end
    [GENERALIZED_TIME, '99991231235959Z', '9999-12-31T23:59:59.000Z'],
  ];
  for (const [tag, text, time] of good) {
    it(`are read: ${text}`, () => {
      expect(readTime({ tag, content: Buffer.from(text) }).toISOString()).to.equal(time);
    });
  }

  const bad: [number, string][] = [
    [UTC_TIME, '271399000000Z'],
    [UTC_TIME, '270230000000Z'],
    [UTC_TIME, '270229000000Z'],
    [UTC_TIME, '270228240000Z'],
    [UTC_TIME, '270228236000Z'],
    [UTC_TIME, '270228235960Z'],
    [UTC_TIME, '2702280000Z'],
    [UTC_TIME, '270228000000'],
    [UTC_TIME, '270228000000+0100'],
    [UTC_TIME, '20270228000000Z'],
    [UTC_TIME, 'aaaaaaaaaaaaZ'],
    [UTC_TIME, ''],
    [GENERALIZED_TIME, '270228000000Z'],
    [GENERALIZED_TIME, '20270228000000.5Z'],
    [GENERALIZED_TIME, '20270228000000'],
    [GENERALIZED_TIME, '20271399000000Z'],
    [0x0c, '270228000000Z'],
    [0x0c, '20270228000000Z'],
  ];
  for (const [tag, text] of bad) {
    it(`are refused: "${text}" with the tag ${tag}`, () => {
      expect(() => readTime({ tag, content: Buffer.from(text) })).to.throw('time');
    });
  }

  for (const [what, validity] of Object.entries(UNREADABLE_TIMES)) {
    it(`make it no certificate: ${what}`, async () => {
      const root = await certify({ name: 'Root', ca: true });
      const leaf = await certify({ name: 'Leaf', by: root, validity });
      expect(read(leaf)).to.equal(undefined);
      expect(judge([leaf], [root])).to.equal('issuer_key_unresolved');
      expect(judge([leaf], [leaf]), 'pinned itself').to.equal('issuer_key_unresolved');

      const middle = await certify({ name: 'Middle', by: root, ca: true, validity });
      const below = await certify({ name: 'Below', by: middle });
      expect(judge([below, middle], [root])).to.equal('issuer_key_unresolved');
      expect(judge([below], [middle]), 'as an anchor').to.equal('untrusted_chain');
    });
  }

  it('are those of the certificate when they can be read', async () => {
    const validity = { notBefore: '260101000000Z', notAfter: '280229123456Z' };
    const leaf = await certify({ name: 'Leaf', validity });
    expect(read(leaf)).to.deep.include({
      notBefore: new Date('2026-01-01T00:00:00Z'),
      notAfter: new Date('2028-02-29T12:34:56Z'),
    });
    expect(judge([leaf], [leaf])).to.equal('trusted');
  });

  it('are read in the same way for those who sign mdocs', async () => {
    const leaf = await certify({ name: 'Leaf', validity: { notAfter: '270230000000Z' } });
    expect(() => readDocumentSigner(leaf.certificate)).to.throw('not a certificate');
  });
});
