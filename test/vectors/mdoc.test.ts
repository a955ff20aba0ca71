import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { NodeCertificates } from '../../adapters/crypto/certificates.ts';
import { NodeSignatures } from '../../adapters/crypto/signatures.ts';
import { type ExpectedMdoc, verifyMdoc } from '../../application/verification/verify-mdoc.ts';
import { decodeCbor } from '../../domain/formats/cbor/decode.ts';
import { toJson } from '../../domain/formats/cbor/to-json.ts';
import { EncodedCbor } from '../../domain/formats/cbor/values.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import type { PublicJwk } from '../../domain/shared/jwk.ts';
import { Refusal } from '../../domain/shared/refusal.ts';
import { parseStatusListClaims } from '../../domain/status-lists/token.ts';
import { parseStatusListCwt } from '../../domain/status-lists/token-cwt.ts';

type Vectors = {
  readonly now: number;
  readonly docType: string;
  readonly trust_anchors: readonly string[];
  readonly vectors: readonly {
    readonly name: string;
    readonly device_response: string;
    readonly transcript: string;
    readonly expect: string;
    readonly elements?: Readonly<Record<string, JsonObject>>;
  }[];
};
type Transcripts = { readonly vectors: readonly { readonly name: string; readonly session_transcript_hex: string }[] };
type StatusListVectors = {
  readonly tokens: {
    readonly public_key_jwk: PublicJwk;
    readonly cwt: { readonly hex: string };
    readonly referenced_cwt: { readonly hex: string };
  };
};

function readVectors<T>(name: string): T {
  return JSON.parse(readFileSync(new URL(name, import.meta.url), 'utf8')) as T;
}

const vectors = readVectors<Vectors>('mdoc.json');
const transcripts = readVectors<Transcripts>('session-transcript.json');
const { tokens } = readVectors<StatusListVectors>('status-list.json');
const ports = { signatures: new NodeSignatures(), certificates: new NodeCertificates() };
const anchors = vectors.trust_anchors.map((certificate) => ({ certificate }));

/** Cases whose outcome the protocols leave to us, and what we decided. */
const DECIDED: Readonly<Record<string, string>> = {
  // ISO/IEC 18013-5 section 9.1.2.4 has one place for it.
  'x5chain in protected header only': 'issuer_key_unresolved',
  'x5chain leaf without mdoc EKU': 'certificate_profile',
  'issuerAuth tagged 18': 'accept',
  // The signature covers the tag, and it is looked at first.
  'MSO not tag 24': 'issuer_signature',
};

function resultOf(check: () => unknown): string {
  try {
    check();
    return 'accept';
  } catch (error) {
    if (error instanceof Refusal) return error.reason;
    throw error;
  }
}

function readTranscript(name: string): Buffer {
  const transcriptVector = transcripts.vectors.find((vector) => vector.name === name);
  if (transcriptVector === undefined) throw new Error(`no transcript ${name}`);
  return Buffer.from(transcriptVector.session_transcript_hex, 'hex');
}

type Vector = Vectors['vectors'][number];

function expectedMdoc(vector: Vector): ExpectedMdoc {
  return {
    now: new Date(vectors.now * 1000),
    transcripts: [readTranscript(vector.transcript)],
    docType: vectors.docType,
    anchors,
    holderBinding: true,
    issuerAlgorithms: ['ES256'],
    deviceAlgorithms: ['ES256'],
  };
}

function check(vector: Vector, changes: Partial<ExpectedMdoc> = {}) {
  return verifyMdoc(ports, vector.device_response, { ...expectedMdoc(vector), ...changes });
}

function vectorNamed(name: string): Vector {
  const vector = vectors.vectors.find((vector) => vector.name === name);
  if (vector === undefined) throw new Error(`no vector ${name}`);
  return vector;
}

describe('mdoc presentation vectors', () => {
  for (const vector of vectors.vectors) {
    const expectedResult = DECIDED[vector.name] ?? vector.expect;
    it(`${expectedResult === 'accept' ? 'accept' : `reject as ${expectedResult}`}: ${vector.name}`, () => {
      expect(resultOf(() => check(vector))).to.equal(expectedResult);
      if (vector.elements !== undefined) expect(check(vector).namespaces).to.deep.equal(vector.elements);
    });
  }

  it('accept a signer without the usage if none is required', () => {
    const vector = vectorNamed('x5chain leaf without mdoc EKU');
    expect(resultOf(() => check(vector, { mdlProfile: 'none' }))).to.equal('accept');
  });

  it('accept a document without deviceSigned when no holder binding is required', () => {
    const checked = check(vectorNamed('deviceSigned missing'), { holderBinding: false });
    expect(checked.holderKey).to.equal(undefined);
    expect(checked.deviceSigned).to.deep.equal({});
  });

  it('check a device signature that was optional', () => {
    for (const [name, reason] of [
      ['device signature by another key', 'device_signature'],
      ['deviceAuth empty', 'device_auth_missing'],
    ] as const) {
      expect(resultOf(() => check(vectorNamed(name), { holderBinding: false }))).to.equal(reason);
    }
  });

  it('separate elements that only the device signed', () => {
    const checked = check(vectorNamed('valid with device-signed elements'));
    expect(Object.keys(checked.namespaces)).to.deep.equal(['org.iso.18013.5.1']);
    expect(Object.keys(checked.deviceSigned)).to.deep.equal(['org.example.tx']);
  });

  it('reject another type and algorithms that were not offered', () => {
    const vector = vectorNamed('valid direct_post.jwt');
    expect(resultOf(() => check(vector, { docType: 'org.example.other' }))).to.equal('doctype_mismatch');
    expect(resultOf(() => check(vector, { issuerAlgorithms: ['ES384'] }))).to.equal('issuer_alg');
    expect(resultOf(() => check(vector, { deviceAlgorithms: ['ES384'] }))).to.equal('device_alg');
    expect(resultOf(() => check(vector, { anchors: [] }))).to.equal('untrusted_chain');
  });
});

describe('mdoc item vector', () => {
  const ITEM =
    'd8185856a4686469676573744944076672616e646f6d507879c25169fdd0bf428a1d92199e286071656c656d656e744964656e' +
    '7469666965726b66616d696c795f6e616d656c656c656d656e7456616c7565674e7967c3a57264';

  it('preserves the bytes that the digest covers', () => {
    const item = decodeCbor(Buffer.from(ITEM, 'hex'));
    expect(item).to.be.instanceOf(EncodedCbor);
    if (!(item instanceof EncodedCbor)) return;
    expect(hash('sha256', item.encoded)).to.equal('b01ce9c654eb1a812acf7ae883640a995cde2b8d50b6250bfd4d635d4938e643');
    expect(toJson(decodeCbor(item.content))).to.deep.include({ digestID: 7, elementValue: 'Nygård' });
  });
});

describe('status list token in CWT form', () => {
  const uri = 'https://example.com/statuslists/1';
  const now = new Date(1_700_000_000_000);

  it('contains the claims and a valid signature of the example', () => {
    const token = parseStatusListCwt(Buffer.from(tokens.cwt.hex, 'hex'));
    expect(token.algorithm).to.equal('ES256');
    expect(ports.signatures.verify(tokens.public_key_jwk, token.toVerify, token.signature)).to.equal(true);
    expect(parseStatusListClaims(token.payload, uri, now)).to.deep.equal({
      bits: 1,
      lst: Buffer.from('78dadbb918000217015d', 'hex').toString('base64url'),
      iat: 1_686_920_170,
      exp: 2_291_720_170,
      ttl: 43_200,
    });
  });

  it('is rejected with another type, truncated or changed, and accepted without its tag', () => {
    const bytes = Buffer.from(tokens.cwt.hex, 'hex');
    for (const otherTranscript of [
      Buffer.from(tokens.referenced_cwt.hex, 'hex'),
      bytes.subarray(0, -1),
      Buffer.concat([Buffer.from([0xd8, 61]), bytes]),
      Buffer.from(tokens.cwt.hex.replace('d28458', 'd18458'), 'hex'),
      Buffer.from(tokens.cwt.hex.replace('a2012610', 'a2010510'), 'hex'),
      Buffer.from(tokens.cwt.hex.replace('636c7374', '636c7375'), 'hex'),
    ]) {
      expect(resultOf(() => parseStatusListCwt(otherTranscript))).to.equal('status_invalid');
    }
    expect(parseStatusListCwt(bytes.subarray(1))).to.deep.equal(parseStatusListCwt(bytes));
    const changedList = parseStatusListCwt(Buffer.from(tokens.cwt.hex.replace('78dadbb9', '78dadbba'), 'hex'));
    expect(ports.signatures.verify(tokens.public_key_jwk, changedList.toVerify, changedList.signature)).to.equal(false);
  });
});
