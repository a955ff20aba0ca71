import { hash } from 'node:crypto';
import type { Certificate } from './certificate.ts';
import { type DerElement, DerError, parseElement, parseElements, parseOid, parseSequence, TAG } from './reader.ts';
import { parseSignatureAlgorithm, type SignatureAlgorithm } from './signature-algorithm.ts';
import { parseTime } from './time.ts';

/** A responder's answer about one certificate (RFC 6960 section 4.2.1); it is not trusted before its signature is verified. */
export type OcspResponse = {
  /** The signed part with algorithm and signature. */
  readonly toBeSigned: Buffer;
  readonly algorithm: SignatureAlgorithm;
  readonly signature: Buffer;
  /** Included certificates, DER in standard base64: one of them may be the responder's. */
  readonly certificates: readonly string[];
  readonly status: 'good' | 'revoked' | 'unknown';
  readonly revokedAt?: Date;
  readonly thisUpdate: Date;
  readonly nextUpdate?: Date;
};

/** The certificate in question: content of its serial number, and its issuer's name in DER as encoded in it. */
export type OcspSubject = { readonly serial: Buffer; readonly issuerName: Buffer };

const MAX_PARTS = 20;
const SHA1 = Buffer.from('300906052b0e03021a0500', 'hex');
const BASIC = '1.3.6.1.5.5.7.48.1.1';
const ENUMERATED = 0x0a;
const SUCCESSFUL = Buffer.from([0]);

/** Identifier of the certificate (RFC 6960 section 4.1.1). SHA-1 is supported by every responder and needs no collision resistance here. */
function certificateId(issuer: Certificate, { serial, issuerName }: OcspSubject): Buffer {
  const name = hash('sha1', issuerName, 'buffer');
  const key = Buffer.from(issuer.keyHash, 'base64url');
  return sequence(SHA1, element(TAG.octetString, name), element(TAG.octetString, key), element(TAG.integer, serial));
}

/** A request for one certificate without a nonce, because responses may be precomputed (RFC 5019). */
export function buildOcspRequest(issuer: Certificate, subject: OcspSubject): Buffer {
  return sequence(sequence(sequence(sequence(certificateId(issuer, subject)))));
}

/**
 * @returns the answer about this certificate; undefined if the response contains others only.
 * @throws DerError unless it is a successful basic response.
 */
export function parseOcspResponse(der: Buffer, issuer: Certificate, subject: OcspSubject): OcspResponse | undefined {
  const [state, wrapped] = parseSequence(der, MAX_PARTS);
  if (state?.tag !== ENUMERATED || !state.content.equals(SUCCESSFUL)) throw new DerError('the responder returned an error');
  if (wrapped?.tag !== 0xa0) throw new DerError('no response');
  const [type, body] = parseSequence(wrapped.content, MAX_PARTS);
  if (type?.tag !== TAG.oid || parseOid(type.content) !== BASIC || body?.tag !== TAG.octetString)
    throw new DerError('not a basic OCSP response');
  const [toBeSigned, algorithm, signature, certificates] = parseSequence(body.content, MAX_PARTS);
  if (toBeSigned?.tag !== TAG.sequence || algorithm?.tag !== TAG.sequence) throw new DerError('nothing is signed');
  if (signature?.tag !== TAG.bitString || signature.content[0] !== 0) throw new DerError('signature');
  const expectedId = nameParts(certificateId(issuer, subject));
  const answer = answersOf(toBeSigned).find(({ content }) => {
    const [id] = parseElements(content, MAX_PARTS);
    return id?.tag === TAG.sequence && nameParts(id.encoded) === expectedId;
  });
  if (answer === undefined) return undefined;
  return {
    toBeSigned: toBeSigned.encoded,
    algorithm: parseSignatureAlgorithm(algorithm),
    signature: signature.content.subarray(1),
    certificates:
      certificates?.tag === 0xa0 ? parseSequence(certificates.content, MAX_PARTS).map(({ encoded }) => encoded.toString('base64')) : [],
    ...parseAnswer(answer),
  };
}

/** Normalizes the identifier: the parameters of SHA-1 may be absent or NULL. */
function nameParts(id: Buffer): string {
  const [algorithm, ...parts] = parseSequence(id, MAX_PARTS);
  const [oid] = parseElements(algorithm?.content ?? Buffer.alloc(0), MAX_PARTS);
  return [oid, ...parts].map((part) => part?.encoded.toString('hex')).join(' ');
}

/** `ResponseData`: version, responder, time and the answers. */
function answersOf({ content }: DerElement): readonly DerElement[] {
  const fields = parseElements(content, MAX_PARTS).filter(({ tag }) => tag !== 0xa0);
  const [, , answers] = fields;
  if (answers?.tag !== TAG.sequence) throw new DerError('answers');
  return parseElements(answers.content, MAX_PARTS);
}

function parseAnswer({ content }: DerElement) {
  const [, status, begin, ...optionalFields] = parseElements(content, MAX_PARTS);
  if (status === undefined || begin === undefined) throw new DerError('answer');
  const end = optionalFields.find(({ tag }) => tag === 0xa0);
  return { ...parseStatus(status), thisUpdate: parseTime(begin), ...(end && { nextUpdate: parseTime(parseElement(end.content)) }) };
}

function parseStatus({ tag, content }: DerElement): Pick<OcspResponse, 'status' | 'revokedAt'> {
  if (tag === 0x80) return { status: 'good' };
  if (tag === 0x82) return { status: 'unknown' };
  if (tag !== 0xa1) throw new DerError('status');
  const [time] = parseElements(content, MAX_PARTS);
  if (time === undefined) throw new DerError('status');
  return { status: 'revoked', revokedAt: parseTime(time) };
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return element(TAG.sequence, ...parts);
}

/** Encodes an element of a request: shorter than 128 bytes at each level but the outermost, which may need one length byte more. */
function element(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const length = content.length < 0x80 ? [content.length] : [0x81, content.length];
  if (content.length > 0xff) throw new DerError('length');
  return Buffer.concat([Buffer.from([tag, ...length]), content]);
}
