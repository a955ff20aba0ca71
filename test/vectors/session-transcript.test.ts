import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { decodeCbor } from '../../domain/formats/cbor/decode.ts';
import { encodeCbor } from '../../domain/formats/cbor/encode.ts';
import { type Cbor, EncodedCbor } from '../../domain/formats/cbor/values.ts';
import { protectedHeaderOf, sigStructure } from '../../domain/formats/cose/sign1.ts';
import { deviceAuthenticationBytes } from '../../domain/formats/mdoc/device-auth.ts';
import { dcApiTranscript, interactiveTranscript, redirectTranscript } from '../../domain/formats/mdoc/session-transcript.ts';
import { type PublicJwk, thumbprint } from '../../domain/shared/jwk.ts';

type Vector = {
  readonly name: string;
  readonly kind: 'redirect' | 'dc_api' | 'interactive_authorization';
  readonly client_id?: string;
  readonly origin?: string;
  readonly endpoint?: string;
  readonly nonce: string;
  readonly response_or_redirect_uri?: string;
  readonly encryption_jwk: PublicJwk | null;
  readonly jwk_thumbprint_hex?: string | null;
  readonly handover_info_hex: string;
  readonly handover_hex: string;
  readonly session_transcript_hex: string;
};
type Vectors = {
  readonly jwk_thumbprint: {
    readonly jwk: PublicJwk;
    readonly canonical_json: string;
    readonly sha256_hex: string;
    readonly sha256_b64url: string;
  };
  readonly vectors: readonly Vector[];
  readonly must_not_equal: readonly { readonly name: string; readonly base: string; readonly session_transcript_hex: string }[];
  readonly device_authentication: {
    readonly session_transcript: string;
    readonly docType: string;
    readonly device_name_spaces_bytes_hex: string;
    readonly device_authentication_hex: string;
    readonly device_authentication_bytes_hex: string;
    readonly protected_hex: string;
    readonly sig_structure_hex: string;
  };
};

const vectors = JSON.parse(readFileSync(new URL('session-transcript.json', import.meta.url), 'utf8')) as Vectors;

function build(vector: Vector): Buffer {
  const { kind, nonce, origin = '', endpoint = '', client_id: clientId = '' } = vector;
  const encryption = { nonce, encryptionKey: vector.encryption_jwk ?? undefined };
  if (kind === 'dc_api') return dcApiTranscript({ ...encryption, origin });
  if (kind === 'interactive_authorization') return interactiveTranscript({ ...encryption, endpoint });
  return redirectTranscript({ ...encryption, clientId, responseUri: vector.response_or_redirect_uri ?? '' });
}

function vectorNamed(name: string): Vector {
  const vector = vectors.vectors.find((candidate) => candidate.name === name);
  if (vector === undefined) throw new Error(`no vector ${name}`);
  return vector;
}

describe('session transcript vectors', () => {
  for (const vector of vectors.vectors) {
    it(`yield ${vector.name}`, () => {
      expect(build(vector).toString('hex')).to.equal(vector.session_transcript_hex);
    });

    it(`yield key, information and handover of ${vector.name}`, () => {
      const key = vector.encryption_jwk;
      const digest = key === null ? null : Buffer.from(thumbprint(key), 'base64url').toString('hex');
      expect(vector.jwk_thumbprint_hex ?? null).to.equal(digest);
      const info = Buffer.from(vector.handover_info_hex, 'hex');
      expect(encodeCbor(decodeCbor(info)).equals(info), 'deterministic').to.equal(true);
      const [, , handover] = decodeCbor(build(vector)) as readonly Cbor[];
      expect(encodeCbor(handover).toString('hex')).to.equal(vector.handover_hex);
      expect((handover as readonly Cbor[])[1]).to.deep.equal(hash('sha256', info, 'buffer'));
    });
  }

  it('yield the thumbprint of a key over its required properties', () => {
    const { jwk, canonical_json, sha256_hex, sha256_b64url } = vectors.jwk_thumbprint;
    expect(thumbprint(jwk)).to.equal(sha256_b64url);
    expect(hash('sha256', canonical_json)).to.equal(sha256_hex);
  });

  for (const wrongVector of vectors.must_not_equal) {
    it(`do not yield ${wrongVector.name}`, () => {
      expect(build(vectorNamed(wrongVector.base)).toString('hex')).to.not.equal(wrongVector.session_transcript_hex);
    });
  }

  // Each wrong transcript results from its mistake, so it differs only by the mistake.
  it('reject known mistakes', () => {
    const post = vectorNamed('spec-direct_post.jwt');
    const api = vectorNamed('spec-dc_api.jwt');
    const mistakes: Readonly<Record<string, Buffer>> = {
      'prefix-dropped': build({ ...post, client_id: post.client_id?.replace('x509_san_dns:', '') ?? '' }),
      'thumbprint-null-though-encrypted': build({ ...post, encryption_jwk: null }),
      'dcapi-origin-prefixed': build({ ...api, origin: `origin:${api.origin}` }),
      'dcapi-trailing-slash': build({ ...api, origin: `${api.origin}/` }),
    };
    for (const [name, built] of Object.entries(mistakes)) {
      const wrongVector = vectors.must_not_equal.find((candidate) => candidate.name === name);
      expect(built.toString('hex'), name).to.equal(wrongVector?.session_transcript_hex);
    }
  });

  it('yield the bytes that a device signs', () => {
    const deviceAuthentication = vectors.device_authentication;
    const nameSpaces = decodeCbor(Buffer.from(deviceAuthentication.device_name_spaces_bytes_hex, 'hex'));
    expect(nameSpaces).to.be.instanceOf(EncodedCbor);
    if (!(nameSpaces instanceof EncodedCbor)) return;
    const transcript = build(vectorNamed(deviceAuthentication.session_transcript));
    const bytes = deviceAuthenticationBytes(transcript, deviceAuthentication.docType, nameSpaces);
    expect(bytes.toString('hex')).to.equal(deviceAuthentication.device_authentication_bytes_hex);
    const inner = decodeCbor(bytes);
    expect(inner instanceof EncodedCbor && inner.content.toString('hex')).to.equal(deviceAuthentication.device_authentication_hex);
    const protectedBytes = protectedHeaderOf('ES256');
    expect(protectedBytes.toString('hex')).to.equal(deviceAuthentication.protected_hex);
    expect(sigStructure(protectedBytes, bytes).toString('hex')).to.equal(deviceAuthentication.sig_structure_hex);
    expect(encodeCbor(nameSpaces).toString('hex')).to.equal(deviceAuthentication.device_name_spaces_bytes_hex);
  });
});
