import { createHash } from 'node:crypto';
import { expect } from 'chai';
import { type Certificate, parseCertificate } from '../../../domain/formats/der/certificate.ts';
import { buildOcspRequest, parseOcspResponse } from '../../../domain/formats/der/ocsp.ts';
import { DerError, parseElement, parseElements, parseSequence } from '../../../domain/formats/der/reader.ts';
import { der, nameParts } from '../../support/revocation-maker.ts';
import { type CertifiedKey, certify } from '../../support/test-certificates.ts';

const hex = (text: string) => Buffer.from(text, 'hex');
const at = (digits: string) => der(0x18, Buffer.from(`${digits}Z`));
const BASIC = hex('06092b0601050507300101');
const ALGORITHM = der(0x30, hex('06082a8648ce3d040302'));
const SIGNATURE = der(0x03, Buffer.from([0]), Buffer.from('signature'));
const RESPONDER = der(0xa2, der(0x04, Buffer.alloc(20)));
const BEGIN = at('20260601000000');
const END = at('20260602000000');
const GOOD = der(0x80);

describe('structure of an OCSP response', () => {
  let issuer: Certificate;
  let serial: Buffer;
  let id: Buffer;
  before(async () => {
    const authority: CertifiedKey = await certify({ name: 'Authority', ca: true });
    const read = parseCertificate(Buffer.from(authority.certificate, 'base64'));
    if (read === undefined) throw new Error('no certificate');
    issuer = read;
    ({ serial } = nameParts((await certify({ name: 'Leaf', by: authority })).certificate));
    id = idIn(buildOcspRequest(issuer, subjectOf(serial)));
  });

  const subjectOf = (number: Buffer) => ({ serial: number, issuerName: Buffer.from(issuer.subject, 'hex') });
  /** `CertID` of the one certificate that a request is about. */
  const idIn = (request: Buffer): Buffer => {
    let element = parseElement(request);
    for (let depth = 0; depth < 4; depth++) element = parseElements(element.content)[0] ?? element;
    return element.encoded;
  };
  const answer = (...said: Buffer[]) => der(0x30, id, ...said);
  const data = (...answers: Buffer[]) => der(0x30, RESPONDER, BEGIN, der(0x30, ...answers));
  const basic = (...parts: Buffer[]) => der(0x30, hex('0a0100'), der(0xa0, der(0x30, BASIC, der(0x04, der(0x30, ...parts)))));
  const read = (bytes: Buffer) => parseOcspResponse(bytes, issuer, subjectOf(serial));
  const about = (...answers: Buffer[]) => read(basic(data(...answers), ALGORITHM, SIGNATURE));

  // RFC 6960 section 4.1.1: the hash is of the issuer field of the certificate that is checked.
  it('is requested with the issuer name in the encoding of the checked certificate', () => {
    const issuerName = der(0x30, der(0x31, der(0x30, hex('0603550403'), der(0x13, Buffer.from('AUTHORITY')))));
    const asked = idIn(buildOcspRequest(issuer, { serial, issuerName }));
    expect(asked.includes(createHash('sha1').update(issuerName).digest())).to.equal(true);
  });

  it('has all required fields', () => {
    expect(about(answer(GOOD, BEGIN))).to.deep.equal({
      toBeSigned: data(answer(GOOD, BEGIN)),
      algorithm: { oid: '1.2.840.10045.4.3.2' },
      signature: Buffer.from('signature'),
      certificates: [],
      status: 'good',
      thisUpdate: new Date('2026-06-01T00:00:00Z'),
    });
    expect(about(answer(GOOD, BEGIN, der(0xa1, der(0x30)))), 'extensions are no end').to.not.have.property('nextUpdate');
  });

  it('may contain additional fields', () => {
    const extensions = der(0xa1, der(0x30));
    const whole = answer(der(0xa1, at('20260501000000'), der(0xa0, hex('0a0101'))), BEGIN, der(0xa0, END), extensions);
    const version = der(0xa0, hex('020100'));
    const said = der(0x30, version, RESPONDER, BEGIN, der(0x30, whole), extensions);
    const [one, two] = [der(0x30, hex('0101ff')), der(0x30)];
    expect(read(basic(said, der(0x30, hex('06022a03'), hex('0500')), SIGNATURE, der(0xa0, der(0x30, one, two))))).to.deep.equal({
      toBeSigned: said,
      algorithm: { oid: '1.2.3' },
      signature: Buffer.from('signature'),
      certificates: [one, two].map((bytes) => bytes.toString('base64')),
      status: 'revoked',
      revokedAt: new Date('2026-05-01T00:00:00Z'),
      thisUpdate: new Date('2026-06-01T00:00:00Z'),
      nextUpdate: new Date('2026-06-02T00:00:00Z'),
    });
  });

  it('contains this certificate, among others', () => {
    const other = idIn(buildOcspRequest(issuer, subjectOf(Buffer.from([7]))));
    const revoked = der(0x30, other, der(0xa1, BEGIN), BEGIN);
    expect(about(revoked, answer(GOOD, BEGIN))?.status).to.equal('good');
    expect(about(answer(der(0x82), BEGIN), revoked)?.status).to.equal('unknown');
    expect(about(revoked)).to.equal(undefined);
    expect(about()).to.equal(undefined);
    const [, ...parts] = parseSequence(id);
    const sha256 = der(0x30, hex('0609608648016503040201'), hex('0500'));
    const strong = der(0x30, sha256, ...parts.map(({ encoded: whole }) => whole));
    expect(about(der(0x30, strong, GOOD, BEGIN)), 'by another hash').to.equal(undefined);
    expect(about(der(0x30, der(0x31, parseElement(id).content), GOOD, BEGIN)), 'by no name').to.equal(undefined);
  });

  const wrong: readonly (readonly [string, string, () => unknown])[] = [
    ['is empty', 'the responder returned an error', () => read(der(0x30))],
    ['failed', 'the responder returned an error', () => read(der(0x30, hex('0a0106')))],
    [
      'failed and answers all the same',
      'the responder returned an error',
      () =>
        read(
          der(
            0x30,
            hex('0a0106'),
            parseElements(parseElement(basic(data(answer(GOOD, BEGIN)), ALGORITHM, SIGNATURE)).content)[1]?.encoded ?? GOOD,
          ),
        ),
    ],
    ['has a state that is not an enumeration', 'the responder returned an error', () => read(der(0x30, hex('020100')))],
    ['answers nothing', 'no response', () => read(der(0x30, hex('0a0100')))],
    ['answers under another tag', 'no response', () => read(der(0x30, hex('0a0100'), der(0xa1, der(0x30, BASIC, der(0x04)))))],
    [
      'answers in another form',
      'not a basic OCSP response',
      () => read(der(0x30, hex('0a0100'), der(0xa0, der(0x30, hex('06022a03'), der(0x04, der(0x30)))))),
    ],
    [
      'names no form',
      'not a basic OCSP response',
      () => read(der(0x30, hex('0a0100'), der(0xa0, der(0x30, der(0x05), der(0x04, der(0x30)))))),
    ],
    [
      'names its form as something else',
      'not a basic OCSP response',
      () => read(der(0x30, hex('0a0100'), der(0xa0, der(0x30, der(0x0d, BASIC.subarray(2)), der(0x04, der(0x30)))))),
    ],
    [
      'has a body that is not an octet string',
      'not a basic OCSP response',
      () => read(der(0x30, hex('0a0100'), der(0xa0, der(0x30, BASIC, der(0x03, der(0x30)))))),
    ],
    ['says nothing', 'nothing is signed', () => read(basic())],
    [
      'signs no sequence',
      'nothing is signed',
      () => read(basic(der(0x31, parseElement(data(answer(GOOD, BEGIN))).content), ALGORITHM, SIGNATURE)),
    ],
    ['has no algorithm', 'nothing is signed', () => read(basic(data(answer(GOOD, BEGIN))))],
    [
      'has an algorithm that is not a sequence',
      'nothing is signed',
      () => read(basic(data(answer(GOOD, BEGIN)), der(0x31, hex('06022a03')), SIGNATURE)),
    ],
    ['has an algorithm without a name', 'algorithm', () => read(basic(data(answer(GOOD, BEGIN)), der(0x30, der(0x05)), SIGNATURE))],
    [
      'has an algorithm of no kind',
      'algorithm',
      () => read(basic(data(answer(GOOD, BEGIN)), der(0x30, der(0x0d, hex('2a03'))), SIGNATURE)),
    ],
    [
      'has an algorithm with two parameters',
      'algorithm',
      () => read(basic(data(answer(GOOD, BEGIN)), der(0x30, hex('06022a03'), der(0x05), der(0x05)), SIGNATURE)),
    ],
    ['has no signature', 'signature', () => read(basic(data(answer(GOOD, BEGIN)), ALGORITHM))],
    [
      'has a signature that is not a bit string',
      'signature',
      () => read(basic(data(answer(GOOD, BEGIN)), ALGORITHM, der(0x04, Buffer.from([0, 1])))),
    ],
    ['has a signature of some bits', 'signature', () => read(basic(data(answer(GOOD, BEGIN)), ALGORITHM, der(0x03, Buffer.from([1, 2]))))],
    ['has no answers', 'answers', () => read(basic(der(0x30, RESPONDER, BEGIN), ALGORITHM, SIGNATURE))],
    [
      'has answers that are not a sequence',
      'answers',
      () => read(basic(der(0x30, RESPONDER, BEGIN, der(0x31, answer(GOOD, BEGIN))), ALGORITHM, SIGNATURE)),
    ],
    ['has an answer without a status', 'answer', () => about(answer())],
    ['has an answer without a time', 'answer', () => about(answer(GOOD))],
    ['has a status that is unknown', 'status', () => about(answer(der(0xa3, BEGIN), BEGIN))],
    ['has a revocation without a time', 'status', () => about(answer(der(0xa1), BEGIN))],
  ];
  for (const [what, message, refused] of wrong) {
    it(`is rejected when it ${what}`, () => expect(refused).to.throw(DerError, message));
  }
});

describe('OCSP request', () => {
  const subjectOf = (serial: Buffer) => ({ serial, issuerName: der(0x30) });
  it('is valid DER for serial numbers of any length', async () => {
    const { certificate } = await certify({ name: 'Authority', ca: true });
    const issuer = parseCertificate(Buffer.from(certificate, 'base64'));
    if (issuer === undefined) throw new Error('no certificate');
    const lengths = [1, 20, 60, 75, 90, 120];
    for (const length of lengths) {
      const request = buildOcspRequest(issuer, subjectOf(Buffer.alloc(length, 1)));
      expect(parseElement(request).encoded.length).to.equal(request.length);
      expect(request.includes(Buffer.alloc(length, 1))).to.equal(true);
    }
    expect(() => buildOcspRequest(issuer, subjectOf(Buffer.alloc(200, 1)))).to.throw(DerError, 'length');
  });
});
