import { createHash, sign } from 'node:crypto';
import { readCertificate } from '../../domain/formats/der/certificate.ts';
import { der, namesOf, type Signing } from './crl-maker.ts';
import type { Certified } from './test-certificates.ts';

export type OcspOptions = {
  /** About whom, and who issued that. */
  readonly about: Certified;
  readonly issuer: Certified;
  /** Who signs; the issuer unless stated. */
  readonly by?: Certified;
  readonly status?: 'good' | 'revoked' | 'unknown';
  readonly thisUpdate: Date;
  readonly nextUpdate?: Date | undefined;
  /** `OCSPResponseStatus`; 0 for success. */
  readonly state?: number;
  /** How it is signed; ECDSA with SHA-256 unless stated. */
  readonly signing?: Signing;
  /** Leaves the parameters of the hash algorithm out. */
  readonly isTerse?: boolean;
};

const hex = (text: string) => Buffer.from(text, 'hex');
const ECDSA_SHA256 = der(0x30, hex('06082a8648ce3d040302'));
const sha1 = (bytes: Buffer) => createHash('sha1').update(bytes).digest();

function time(date: Date): Buffer {
  return der(0x18, Buffer.from(date.toISOString().replace(/[-:T]|\.\d+/g, '')));
}

/** @returns DER of an answer (RFC 6960 section 4.2.1). */
export function makeOcspResponse(options: OcspOptions): Buffer {
  const { about, issuer, by = issuer, status = 'good', thisUpdate, nextUpdate, state = 0, isTerse } = options;
  if (state !== 0) return der(0x30, der(0x0a, Buffer.from([state])));
  const keyHash = readCertificate(Buffer.from(issuer.certificate, 'base64'))?.keyHash ?? '';
  const id = der(
    0x30,
    der(0x30, hex('06052b0e03021a'), isTerse === true ? Buffer.alloc(0) : hex('0500')),
    der(0x04, sha1(namesOf(issuer.certificate).subject)),
    der(0x04, Buffer.from(keyHash, 'base64url')),
    der(0x02, namesOf(about.certificate).serial),
  );
  const said = { good: der(0x80), unknown: der(0x82), revoked: der(0xa1, time(thisUpdate)) }[status];
  const end = nextUpdate === undefined ? [] : [der(0xa0, time(nextUpdate))];
  const toBeSigned = der(
    0x30,
    der(0xa1, namesOf(by.certificate).subject),
    time(thisUpdate),
    der(0x30, der(0x30, id, said, time(thisUpdate), ...end)),
  );
  const {
    signing = { algorithm: ECDSA_SHA256, sign: (data: Buffer) => sign('sha256', data, by.privateKey) },
  } = options;
  const signature = der(0x03, Buffer.from([0]), signing.sign(toBeSigned));
  const certificates = by === issuer ? [] : [der(0xa0, der(0x30, Buffer.from(by.certificate, 'base64')))];
  const basic = der(0x30, toBeSigned, signing.algorithm, signature, ...certificates);
  const type = hex('06092b0601050507300101');
  return der(0x30, hex('0a0100'), der(0xa0, der(0x30, type, der(0x04, basic))));
}
