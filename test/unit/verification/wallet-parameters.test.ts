import { generateKeyPairSync } from 'node:crypto';
import { expect } from 'chai';
import { Failure } from '../../../domain/shared/failure.ts';
import type { JsonObject } from '../../../domain/shared/json.ts';
import { supportedOf } from '../../../domain/verification/request-object.ts';
import {
  type Demands,
  readWalletMetadata,
  readWishes,
} from '../../../domain/verification/wallet-parameters.ts';

const jwkOf = (namedCurve: string, more: JsonObject = {}): JsonObject => ({
  ...(generateKeyPairSync('ec', { namedCurve }).publicKey.export({ format: 'jwk' }) as JsonObject),
  ...more,
});
const MEMBERS = jwkOf('P-256');
const KEY = { ...MEMBERS, use: 'enc', alg: 'ECDH-ES', kid: 'k' };
const OFF_CURVE = { kty: 'EC', crv: 'P-256', x: 'A'.repeat(43), y: 'A'.repeat(43) };
const OTHER_ENC = { request_object_encryption_enc_values_supported: ['A128CBC-HS256'] };

const DEMANDS: Demands = {
  formats: supportedOf(['dc+sd-jwt', 'mso_mdoc']),
  responseMode: 'direct_post.jwt',
  clientIdPrefix: 'x509_hash',
  signedWith: 'ES256',
  encrypts: true,
};

const wishes = (metadata: JsonObject, demands: Demands | undefined = DEMANDS) =>
  readWishes(metadata, demands, undefined);
const keys = (...jwks: (JsonObject | string)[]) => ({ jwks: { keys: jwks } });
const formats = (vp_formats_supported: JsonObject | string | null) => ({ vp_formats_supported });

function messageOf(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    if (error instanceof Failure && error.code === 'invalid_request') return error.message;
    throw error;
  }
  return 'taken';
}

describe('What a wallet says of itself', () => {
  for (const [what, parameters] of Object.entries({
    'no nonce at all': { wallet_nonce: '' },
    'a nonce of two lines': { wallet_nonce: 'a\nb' },
    'metadata that are no JSON': { wallet_metadata: '{' },
    'metadata that are no object': { wallet_metadata: '[]' },
  })) {
    it(`is refused with ${what}`, () => {
      expect(messageOf(() => readWalletMetadata(parameters))).to.match(/^wallet_(nonce|metadata) is/);
    });
  }

  it('may be nothing, and comes back as it is', () => {
    expect(readWalletMetadata({})).to.deep.equal({});
    expect(readWalletMetadata({ wallet_nonce: 'n', wallet_metadata: '{"a":1}' })).to.deep.equal({ a: 1 });
    expect(readWishes({ issuer: 'https://wallet.example' }, DEMANDS, 'n')).to.deep.equal({
      nonce: 'n',
      issuer: 'https://wallet.example',
    });
    expect(wishes({})).to.deep.equal({});
    expect(wishes({ issuer: `https://${'a'.repeat(2040)}` })).to.have.property('issuer');
  });

  const able: Readonly<Record<string, JsonObject>> = {
    'one of the formats, without algorithms': formats({ 'dc+sd-jwt': {}, other: {} }),
    'one of the formats, with one of our algorithms': formats({
      'dc+sd-jwt': { 'sd-jwt_alg_values': ['RS256', 'ES256'], 'kb-jwt_alg_values': ['EdDSA'] },
    }),
    'the other format, by numbers': formats({ mso_mdoc: { issuerauth_alg_values: [-7] } }),
    'one format that fits beside one that does not': formats({
      'dc+sd-jwt': { 'sd-jwt_alg_values': ['RS256'] },
      mso_mdoc: {},
    }),
    'all that is asked for': {
      response_types_supported: ['code', 'vp_token'],
      response_modes_supported: ['direct_post.jwt'],
      client_id_prefixes_supported: ['x509_hash'],
      request_object_signing_alg_values_supported: ['ES256'],
      authorization_encryption_alg_values_supported: ['ECDH-ES'],
      authorization_encryption_enc_values_supported: ['A256GCM'],
    },
  };
  for (const [what, metadata] of Object.entries(able)) {
    it(`suffices with ${what}`, () => expect(wishes(metadata)).to.deep.equal({}));
  }

  const unable: Readonly<Record<string, JsonObject>> = {
    'formats that are no object': formats('dc+sd-jwt'),
    'formats that are null': formats(null),
    'other formats': formats({ jwt_vc_json: {} }),
    'a format that is no object': formats({ 'dc+sd-jwt': 'yes' }),
    'other algorithms of the issuer': formats({ 'dc+sd-jwt': { 'sd-jwt_alg_values': ['RS256'] } }),
    'other algorithms of the holder': formats({
      'dc+sd-jwt': { 'sd-jwt_alg_values': ['ES256'], 'kb-jwt_alg_values': ['RS256'] },
    }),
    'an algorithm that is no list': formats({ 'dc+sd-jwt': { 'sd-jwt_alg_values': 'ES256' } }),
    'other response types': { response_types_supported: ['code'] },
    'a response type that is no list': { response_types_supported: 'vp_token' },
    'other response modes': { response_modes_supported: ['direct_post'] },
    'other prefixes': { client_id_prefixes_supported: ['redirect_uri'] },
    'other algorithms of requests': { request_object_signing_alg_values_supported: ['RS256'] },
    'other key agreements': { authorization_encryption_alg_values_supported: ['RSA-OAEP'] },
    'other content encryption': { authorization_encryption_enc_values_supported: ['A128CBC-HS256'] },
    'an issuer that is no text': { issuer: 1 },
    'an issuer that is too long': { issuer: `https://${'a'.repeat(2041)}` },
    'no key set': { jwks: 'keys' },
    'a key set without keys': { jwks: {} },
    'another content encryption of requests': { ...keys(KEY), ...OTHER_ENC },
    'another key agreement of requests': { request_object_encryption_alg_values_supported: ['RSA-OAEP'] },
    'a wish for encryption without a key': { request_object_encryption_alg_values_supported: ['ECDH-ES'] },
  };
  for (const [what, metadata] of Object.entries(unable)) {
    it(`is refused with ${what}`, () => expect(messageOf(() => wishes(metadata))).to.not.equal('taken'));
  }

  it('counts for its encryption where the answer is encrypted alone, and nowhere without a demand', () => {
    const metadata = { authorization_encryption_alg_values_supported: ['RSA-OAEP'] };
    expect(wishes(metadata, { ...DEMANDS, encrypts: false })).to.deep.equal({});
    expect(readWishes({ response_types_supported: ['code'] }, undefined, undefined)).to.deep.equal({});
  });
});

describe('The key that a wallet wants its request encrypted to', () => {
  it('is the first that can be used, with its identifier', () => {
    expect(wishes(keys('none', OFF_CURVE, jwkOf('P-384'), KEY, jwkOf('P-256')))).to.deep.equal({
      recipient: { ...MEMBERS, kid: 'k' },
      enc: 'A128GCM',
    });
    const unnamed = { recipient: MEMBERS, enc: 'A128GCM' };
    expect(wishes(keys({ ...MEMBERS }))).to.deep.equal(unnamed);
    expect(wishes(keys({ ...KEY, kid: 1 })), 'an identifier that is no text').to.deep.equal(unnamed);
    expect(wishes(keys({ ...KEY, kid: 'k'.repeat(1025) })), 'or too long').to.deep.equal(unnamed);
  });

  it('is used with what the wallet can decrypt', () => {
    const metadata = { ...keys(KEY), request_object_encryption_enc_values_supported: ['A256GCM'] };
    expect(wishes(metadata)).to.have.property('enc', 'A256GCM');
  });

  it('is none that is for signatures, or for nothing in particular', () => {
    for (const other of [{ ...KEY, use: 'sig' }, jwkOf('P-384'), OFF_CURVE, { ...MEMBERS, alg: 'ES256' }]) {
      expect(wishes(keys(other))).to.deep.equal({});
    }
  });

  for (const [what, key] of Object.entries({
    'says that it is for it': jwkOf('P-384', { use: 'enc' }),
    'is of X25519': { kty: 'OKP', crv: 'X25519', x: 'A'.repeat(43) },
    'is of X448': { kty: 'OKP', crv: 'X448', x: 'A'.repeat(75) },
    'is for key agreement with key wrapping': { ...MEMBERS, alg: 'ECDH-ES+A128KW' },
  })) {
    it(`is missing where the only one ${what}`, () => {
      expect(messageOf(() => wishes(keys(key)))).to.match(/no encryption key/);
    });
  }
});
