import { generateKeyPairSync } from 'node:crypto';
import { expect } from 'chai';
import { decodeBase64url, encodeBase64url } from '../../../domain/shared/base64url.ts';
import {
  algorithmOf,
  CURVES,
  curveOf,
  isOnCurve,
  parsePublicJwk,
  publicKeyOf,
  SIGNING_ALGORITHMS,
  thumbprint,
} from '../../../domain/shared/jwk.ts';
import { NonceRefusal, Refusal } from '../../../domain/shared/refusal.ts';

const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' });
const okp = generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' });

describe('received public key', () => {
  it('is parsed with its required properties only', () => {
    expect(parsePublicJwk({ ...ec, kid: '1', use: 'sig', alg: 'ES256', more: {} })).to.deep.equal(ec);
    expect(parsePublicJwk({ ...okp, y: 'x' })).to.deep.equal(okp);
  });

  const { x = '', y = '' } = ec;
  for (const [description, value] of [
    ['nothing', undefined],
    ['null', null],
    ['a text', 'key'],
    ['a list', [ec]],
    ['a private key', { ...ec, d: x }],
    ['an empty private key', { ...ec, d: null }],
    ['a symmetric key', { kty: 'oct', k: 'AA' }],
    ['a symmetric key in disguise', { ...ec, k: 'AA' }],
    ['a curve that is unknown', { ...ec, crv: 'secp256k1' }],
    ['a curve that is not a name', { ...ec, crv: 1 }],
    ['a type that contradicts its curve', { ...ec, kty: 'OKP' }],
    ['the type of another curve', { ...okp, kty: 'EC', y: okp.x }],
    ['no y', { kty: 'EC', crv: 'P-256', x }],
    ['no x', { kty: 'EC', crv: 'P-256', y }],
    ['a coordinate that is not a string', { ...ec, x: 1 }],
    ['a coordinate in a list', { ...ec, y: [y] }],
    ['a coordinate that is too short', { ...ec, y: encodeBase64url(Buffer.alloc(31, 1)) }],
    ['a coordinate with a leading zero', { ...ec, x: encodeBase64url(Buffer.alloc(33, 1)) }],
    ['a coordinate with padding', { ...ec, x: `${x}=` }],
  ] as const) {
    it(`is rejected if it is ${description}`, () => expect(parsePublicJwk(value)).to.equal(undefined));
  }

  it('has one thumbprint, regardless of its other properties', () => {
    // The example of RFC 8037 appendix A.3. The example of RFC 7638 section 3.1 has an RSA key.
    const key = { kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' } as const;
    expect(thumbprint(key)).to.equal('kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k');
    const publicKey = parsePublicJwk(ec);
    if (publicKey === undefined) throw new Error('unreadable');
    expect(thumbprint({ ...publicKey, kid: '1' })).to.equal(thumbprint(publicKey));
    expect(thumbprint({ ...publicKey, y: x })).to.not.equal(thumbprint(publicKey));
  });

  it('has the algorithm of its curve', () => {
    const names = ['P-256', 'P-384', 'P-521', 'Ed25519', 'secp256k1'].map((crv) => algorithmOf({ crv }));
    expect(names).to.deep.equal(['ES256', 'ES384', 'ES512', 'EdDSA', undefined]);
    expect([curveOf('P-521')?.bytes, curveOf('P-999'), curveOf(undefined)]).to.deep.equal([66, undefined, undefined]);
  });

  it('must be a point of its curve', () => {
    const keys = [ec, okp].flatMap((jwk) => parsePublicJwk(jwk) ?? []);
    expect(keys.map(isOnCurve)).to.deep.equal([true, true]);
    const offCurve = parsePublicJwk({ ...ec, y: x });
    expect(offCurve && isOnCurve(offCurve)).to.equal(false);
  });

  for (const algorithm of SIGNING_ALGORITHMS) {
    it(`is imported as it was sent (${algorithm})`, () => {
      const { kty, name } = CURVES[algorithm];
      const { publicKey } = kty === 'OKP' ? generateKeyPairSync('ed25519') : generateKeyPairSync('ec', { namedCurve: name });
      const jwk = parsePublicJwk(publicKey.export({ format: 'jwk' }));
      if (jwk === undefined) throw new Error('unreadable');
      expect(publicKeyOf(jwk)?.equals(publicKey)).to.equal(true);
      expect(publicKeyOf({ ...jwk, kty: kty === 'OKP' ? 'EC' : 'OKP', y: jwk.x })).to.equal(undefined);
      expect(publicKeyOf({ ...jwk, crv: 'secp256k1' })).to.equal(undefined);
      expect(publicKeyOf({ ...jwk, x: jwk.x.slice(0, -4) })).to.equal(undefined);
    });
  }

  it('is rejected if its coordinates have the right length only in sum', () => {
    const [left, right] = [ec.x ?? '', ec.y ?? ''].map((text) => Buffer.from(text, 'base64url'));
    if (left === undefined || right === undefined) throw new Error('unreadable');
    const shifted = { x: encodeBase64url(left.subarray(0, 31)), y: encodeBase64url(Buffer.concat([left.subarray(31), right])) };
    expect(publicKeyOf({ kty: 'EC', crv: 'P-256', ...shifted })).to.equal(undefined);
  });
});

describe('base64url', () => {
  it('encodes bytes, also of part of a larger buffer, and text', () => {
    const bytes = Buffer.from('xxMöbius');
    expect(encodeBase64url('Möbius')).to.equal('TcO2Yml1cw');
    expect(encodeBase64url(new Uint8Array(bytes.buffer, bytes.byteOffset + 2, 7))).to.equal('TcO2Yml1cw');
  });

  it('has one encoding', () => {
    expect(decodeBase64url('TcO2Yml1cw')?.toString()).to.equal('Möbius');
    for (const text of ['TcO2Yml1cw==', 'TcO2Yml1cx', 'TcO2 Yml1cw', 'T', 'ab+/']) {
      expect(decodeBase64url(text), text).to.equal(undefined);
    }
  });
});

describe('verification rejection', () => {
  it('has a reason and a detail', () => {
    expect(new Refusal('malformed').message).to.equal('malformed');
    expect(new Refusal('malformed', 'vct').message).to.equal('malformed: vct');
    expect(new NonceRefusal('kb_claim_missing').message).to.equal('kb_claim_missing: nonce');
  });
});
