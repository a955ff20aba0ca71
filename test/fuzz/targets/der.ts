import { generateKeyPairSync, sign, verify, X509Certificate } from 'node:crypto';
import { NodeCertificates } from '../../../adapters/crypto/certificates.ts';
import { NodeSignatures } from '../../../adapters/crypto/signatures.ts';
import { parseCertificate } from '../../../domain/formats/der/certificate.ts';
import { parseCrl } from '../../../domain/formats/der/crl.ts';
import { RevokedEntries } from '../../../domain/formats/der/crl-entries.ts';
import { derSignature, rawSignature } from '../../../domain/formats/der/ecdsa-signature.ts';
import { attributesOf, formatName } from '../../../domain/formats/der/name.ts';
import { parseOcspResponse } from '../../../domain/formats/der/ocsp.ts';
import { parsePemCertificates, writePemCertificates } from '../../../domain/formats/der/pem.ts';
import { DerError, parseElement, parseElements, parseOid } from '../../../domain/formats/der/reader.ts';
import { revocationSourcesOf } from '../../../domain/formats/der/revocation-sources.ts';
import { subjectLocation } from '../../../domain/formats/der/subject-location.ts';
import { parseTime } from '../../../domain/formats/der/time.ts';
import { parseDocumentSigner } from '../../../domain/formats/mdoc/document-signer.ts';
import { assertIssuingLocation } from '../../../domain/formats/mdoc/driving-licence.ts';
import { subjectNames } from '../../../domain/keys/certificate-subject.ts';
import { Refusal } from '../../../domain/shared/refusal.ts';
import { NOW } from '../constants.ts';
import { ensure, isInstanceOfAny, neverExpected, type Target } from '../engine/target.ts';
import { DER_WORDS, KEYS, seed, text } from './seeds.ts';

const certificates = [seed('certificate'), seed('certificate-server')];
const caCertificate = parsePemCertificates(text(seed('certificates')))?.[1] ?? '';
const knownCertificates = new Set(certificates.map((der) => der.toString('base64')));
const expected = isInstanceOfAny(DerError);

function certificate(der: Buffer): void {
  const parsed = parseCertificate(der);
  if (parsed === undefined) return;
  const x509 = new X509Certificate(der);
  ensure(parsed.notBefore.getTime() === x509.validFromDate.getTime(), 'the beginning is what OpenSSL reads');
  ensure(parsed.notAfter.getTime() === x509.validToDate.getTime(), 'the end is what OpenSSL reads');
  ensure(parsed.x509.raw.equals(der), 'all of the bytes are the certificate');
  if (parsed.basicConstraints !== undefined) ensure(parsed.basicConstraints.ca || !x509.ca, 'who is no CA is none');
  const base64 = der.toString('base64');
  subjectLocation(base64);
  subjectNames(base64);
  checkPlace(base64);
  const profile = { purpose: 'mdoc', haip: true } as const;
  const chainResult = new NodeCertificates().verifyChain([base64], [{ certificate: caCertificate }], NOW, profile);
  ensure(!chainResult.trusted || knownCertificates.has(base64), 'no certificate is trusted that nobody issued');
}

function checkPlace(base64: string): void {
  try {
    assertIssuingLocation({ certificate: base64 }, { 'org.iso.18013.5.1': { issuing_country: 'DE' } });
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
  }
}

const name = parseElements(parseElement(seed('certificate-server')).content)[0]?.content ?? Buffer.alloc(0);
const subjects = parseElements(name).filter(({ tag }) => tag === 0x30);

function parseTimes(input: Buffer): void {
  const [tag = 0, ...content] = input;
  const time = parseTime({ tag, content: Buffer.from(content) });
  ensure(!Number.isNaN(time.getTime()), 'a time can be compared');
  const formattedTime = time.toISOString().replaceAll(/[-:T]|\.000/g, '');
  ensure(formattedTime.endsWith(Buffer.from(content).toString('latin1')), 'a time is the one that stands there');
}

const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const signatures = new NodeSignatures();
const jwk = { ...KEYS.issuer, ...publicKey.export({ format: 'jwk' }) } as typeof KEYS.issuer;
const signature = sign('sha256', Buffer.from('text'), { key: privateKey, dsaEncoding: 'ieee-p1363' });

function ecdsa(raw: Buffer): void {
  if (raw.length === 64) {
    ensure(rawSignature(derSignature(raw), 32).equals(raw), 'either form is made of the other');
    const isGood = verify('sha256', Buffer.from('text'), { key: publicKey, dsaEncoding: 'ieee-p1363' }, raw);
    ensure(signatures.verify(jwk, 'text', raw) === isGood, 'OpenSSL says the same of both forms');
  }
  ensure(raw.length === 64 || !signatures.verify(jwk, 'text', raw), 'a signature has the length of its curve');
}

function pem(input: Buffer): void {
  const parsed = parsePemCertificates(text(input));
  if (parsed === undefined) return;
  ensure(parsed.length > 0 && parsed.length <= 10, 'no more than a chain is read');
  ensure(parsePemCertificates(writePemCertificates(parsed))?.join() === parsed.join(), 'what is written is read as it was');
}

function revocationList(input: Buffer): void {
  const list = parseCrl(input);
  ensure(list.thisUpdate <= list.nextUpdate || list.nextUpdate < list.thisUpdate, 'times can be compared');
  const entries = new RevokedEntries(list.entries);
  const revokedEntry = entries.find(Buffer.from([1, 2, 3, 2]));
  ensure(revokedEntry === undefined || entries.count > 0, 'nobody stands on an empty list');
}

const ocspIssuer = parseCertificate(seed('ocsp-issuer'));
const ocspSubject = revocationSourcesOf(seed('ocsp-about').toString('base64'));
const ocspSeeds = [seed('ocsp'), seed('ocsp-revoked')];

function ocspAnswer(input: Buffer): void {
  if (ocspIssuer === undefined) return;
  const answer = parseOcspResponse(input, ocspIssuer, ocspSubject);
  if (answer === undefined) return;
  const isSeed = ocspSeeds.some((seedText) => seedText.includes(answer.toBeSigned));
  const isSigned = new NodeCertificates().hasSigned(seed('ocsp-issuer').toString('base64'), answer);
  ensure(!isSigned || isSeed, 'no answer is signed that nobody gave');
}

export const DER: readonly Target[] = [
  { name: 'ocsp-answer', expected, seeds: ocspSeeds, dictionary: DER_WORDS, decode: ocspAnswer },
  { name: 'revocation-list', expected, seeds: [seed('crl'), seed('crl-empty')], dictionary: DER_WORDS, decode: revocationList },
  { name: 'certificate', expected: neverExpected, seeds: certificates, dictionary: DER_WORDS, decode: certificate },
  {
    name: 'certificate-place',
    expected,
    seeds: certificates,
    dictionary: DER_WORDS,
    decode: (input) => subjectLocation(input.toString('base64')),
  },
  {
    name: 'document-signer',
    expected: isInstanceOfAny(Refusal),
    seeds: certificates,
    dictionary: DER_WORDS,
    decode: (input) => parseDocumentSigner(input.toString('base64')),
  },
  {
    name: 'distinguished-name',
    expected,
    seeds: subjects.map(({ encoded: encoding }) => encoding),
    dictionary: DER_WORDS,
    decode: (input) => {
      ensure(typeof formatName(input) === 'string', 'a name has a text');
      attributesOf(input, '2.5.4.6');
    },
  },
  {
    name: 'der',
    expected,
    seeds: certificates,
    dictionary: DER_WORDS,
    decode: (input) => {
      const { content, encoded: encoding } = parseElement(input);
      ensure(encoding.equals(input), 'an element is all of its bytes');
      const inner = parseElements(content);
      ensure(Buffer.concat(inner.map((element) => element.encoded)).equals(content), 'elements stand side by side');
    },
  },
  {
    name: 'object-identifier',
    expected,
    seeds: [Buffer.from('2a8648ce3d0201', 'hex')],
    dictionary: DER_WORDS,
    decode: (input) => parseOid(input),
  },
  {
    name: 'certificate-time',
    expected,
    seeds: ['\x17260101000000Z', '\x1820500101000000Z', '\x17500229235959Z'],
    dictionary: ['Z', '+0000', '.0', '99', '0229', '2400', '60'],
    decode: parseTimes,
  },
  {
    name: 'ecdsa-signature',
    expected: neverExpected,
    seeds: [signature, Buffer.alloc(64, 255), Buffer.alloc(64)],
    dictionary: [Buffer.alloc(32)],
    decode: ecdsa,
  },
  {
    name: 'pem',
    expected: neverExpected,
    seeds: [seed('certificates')],
    dictionary: ['-----BEGIN CERTIFICATE-----', '-----END CERTIFICATE-----', '\r\n', '\t', '='],
    decode: pem,
  },
];
