import { generateKeyPairSync, sign } from 'node:crypto';
import { expect } from 'chai';
import fc from 'fast-check';
import { exportJWK, generateKeyPair, jwtVerify, SignJWT } from 'jose';
import { NodeSignatures } from '../../../adapters/crypto/signatures.ts';
import {
  buildSigningInput,
  fitsKey,
  joinCompact,
  parseCompactJws,
  readAlgorithm,
  readX5c,
  understandsCritical,
} from '../../../domain/formats/jose/compact.ts';
import { readPublicJwk, SIGNING_ALGORITHMS } from '../../../domain/shared/jwk.ts';

const signatures = new NodeSignatures();

function encode(text: string): string {
  return Buffer.from(text).toString('base64url');
}

describe('A compact JWS', () => {
  const refused: Readonly<Record<string, string>> = {
    'one part': 'e30A',
    'two parts': 'e30.e30',
    'four parts': 'e30.e30.AA.AA',
    'an empty header': '.e30.AA',
    padding: `${encode('{"a":1}')}=.e30.AA`,
    'a foreign character': 'e30.e30.A+',
    'a header that is no object': `${encode('[]')}.e30.AA`,
    'a member that stands there twice': `${encode('{"alg":"ES256","alg":"none"}')}.e30.AA`,
    'a payload that is no JSON': `e30.${encode('{')}.AA`,
    'bytes that are not UTF-8': `e30.${Buffer.from([0x22, 0xff, 0x22]).toString('base64url')}.AA`,
    'a header above its limit': `${encode(JSON.stringify({ a: 'x'.repeat(40_000) }))}.e30.AA`,
    'a header of very many members': `${encode(JSON.stringify({ x5c: Array(300).fill('x') }))}.e30.AA`,
    'nesting above its limit': `e30.${encode(`{"a":${'['.repeat(40)}${']'.repeat(40)}}`)}.AA`,
  };
  for (const [what, text] of Object.entries(refused)) {
    it(`is refused with ${what}`, () => expect(parseCompactJws(text)).to.equal(undefined));
  }

  it('is as long as allowed', () => {
    expect(parseCompactJws('e30.e30.AA', { length: 10 })).to.not.equal(undefined);
    expect(parseCompactJws('e30.e30.AA', { length: 9 })).to.equal(undefined);
  });

  it('never throws', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[A-Za-z0-9_.-]{0,100}$/)), (text) => {
        parseCompactJws(text);
      }),
      { numRuns: 500 },
    );
  });

  it('survives being built and parsed', () => {
    const input = buildSigningInput({ alg: 'ES256' }, { name: 'Möbius' });
    const parsed = parseCompactJws(joinCompact(input, Buffer.of(1, 2)));
    expect(parsed?.signingInput).to.equal(input);
    expect(parsed?.payload).to.deep.equal({ name: 'Möbius' });
    expect(parsed?.signature).to.deep.equal(Buffer.of(1, 2));
  });
});

describe('A JOSE header', () => {
  it('names an allowed algorithm', () => {
    expect(readAlgorithm({ alg: 'ES256' }, ['ES256'])).to.deep.equal({ algorithm: 'ES256' });
    expect(readAlgorithm({ alg: 'Ed25519' }, ['EdDSA'])).to.deep.equal({ algorithm: 'EdDSA' });
    expect(readAlgorithm({ alg: 'EdDSA' }, ['Ed25519'])).to.deep.equal({ algorithm: 'EdDSA' });
    expect(readAlgorithm({ alg: 'ES256', b64: true }, ['ES256'])).to.deep.equal({ algorithm: 'ES256' });
  });

  for (const alg of ['none', 'HS256', 'es256', 'ES384', 1, null, 'constructor']) {
    it(`is refused with alg ${alg}`, () => {
      expect(readAlgorithm({ alg }, ['ES256', 'none', 'HS256']).fault).to.equal('alg');
    });
  }

  it('is refused with crit or an unencoded payload', () => {
    expect(readAlgorithm({ alg: 'ES256', crit: ['x'] }, ['ES256']).fault).to.equal('crit');
    expect(readAlgorithm({ alg: 'ES256', b64: false }, ['ES256']).fault).to.equal('crit');
  });
});

describe('What a JOSE header has to do with a key', () => {
  const key = { kty: 'EC', crv: 'P-384', x: '', y: '' } as const;
  it('is that it names the algorithm of the key', () => {
    expect(fitsKey({ alg: 'ES384' }, key)).to.equal(true);
    expect(fitsKey({ alg: 'Ed25519' }, { kty: 'OKP', crv: 'Ed25519', x: '' })).to.equal(true);
    for (const header of [{ alg: 'ES256' }, { alg: 'none' }, {}, { alg: 'ES384', crit: ['x'] }]) {
      expect(fitsKey(header, key)).to.equal(false);
    }
    expect(fitsKey({ alg: 'none' }, { ...key, crv: 'secp256k1' }), 'of a key without one').to.equal(false);
  });

  it('may be its certificates, in base64', () => {
    expect(readX5c({ x5c: ['AAAA', 'AA+/AA=='] })).to.deep.equal(['AAAA', 'AA+/AA==']);
    for (const x5c of [undefined, 'AAAA', [], [''], ['AAAA', 'AA-_'], ['AAA'], [1]]) {
      expect(readX5c(x5c === undefined ? {} : { x5c })).to.equal(undefined);
    }
  });
});

describe('What a JOSE header marks as critical', () => {
  const isUnderstood = (header: Parameters<typeof understandsCritical>[0]) =>
    understandsCritical(header, ['sigT', 'b64']);
  for (const header of [
    {},
    { sigT: 'x' },
    { crit: ['sigT'], sigT: 'x' },
    { crit: ['b64', 'sigT'], sigT: 'x', b64: true },
  ]) {
    it(`is understood: ${JSON.stringify(header)}`, () => expect(isUnderstood(header)).to.equal(true));
  }
  for (const header of [
    { crit: [] },
    { crit: 'sigT', sigT: 'x' },
    { crit: null },
    { crit: ['sigT'] },
    { crit: ['other'], other: 'x' },
    { crit: ['sigT', 'other'], sigT: 'x', other: 'x' },
    { crit: ['sigT', 'sigT'], sigT: 'x' },
    { crit: [['sigT']], sigT: 'x' },
    { crit: ['crit'] },
  ]) {
    it(`is not understood: ${JSON.stringify(header)}`, () => expect(isUnderstood(header)).to.equal(false));
  }
});

describe('Signatures beside jose', () => {
  for (const algorithm of SIGNING_ALGORITHMS) {
    it(`${algorithm}: what jose signs verifies here, and the other way round`, async () => {
      const pair = await generateKeyPair(algorithm, { extractable: true });
      const key = readPublicJwk(await exportJWK(pair.publicKey));
      const text = await new SignJWT({ a: 1 }).setProtectedHeader({ alg: algorithm }).sign(pair.privateKey);
      const jws = parseCompactJws(text);
      if (jws === undefined || key === undefined) throw new Error('unreadable');
      expect(signatures.verify(key, jws.signingInput, jws.signature)).to.equal(true);
      expect(signatures.verify(key, `${jws.signingInput}x`, jws.signature)).to.equal(false);
      expect(signatures.verify(key, jws.signingInput, jws.signature.subarray(1))).to.equal(false);
      await jwtVerify(joinCompact(jws.signingInput, jws.signature), pair.publicKey);
    });
  }

  it('a DER signature, a foreign curve and a point off the curve do not verify', () => {
    const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const key = readPublicJwk(publicKey.export({ format: 'jwk' }));
    if (key === undefined) throw new Error('unreadable');
    const der = sign('sha256', Buffer.from('x'), privateKey);
    expect(signatures.verify(key, 'x', der)).to.equal(false);
    expect(signatures.verify({ ...key, crv: 'secp256k1' }, 'x', Buffer.alloc(64))).to.equal(false);
    expect(signatures.verify({ ...key, y: key.x }, 'x', Buffer.alloc(64))).to.equal(false);
  });
});
