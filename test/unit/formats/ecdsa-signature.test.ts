import { createHash, generateKeyPairSync, randomBytes, sign, verify } from 'node:crypto';
import { expect } from 'chai';
import { derSignature, rawSignature } from '../../../domain/formats/der/ecdsa-signature.ts';

const CURVES = [
  { namedCurve: 'P-256', size: 32, hash: 'sha256', rounds: 100 },
  { namedCurve: 'P-384', size: 48, hash: 'sha384', rounds: 10 },
  { namedCurve: 'P-521', size: 66, hash: 'sha512', rounds: 8 },
];

describe('The two forms of an ECDSA signature', () => {
  for (const { namedCurve, size, hash, rounds } of CURVES) {
    it(`are those of the library, both ways (${namedCurve})`, () => {
      const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve });
      const plain = { key: privateKey, dsaEncoding: 'ieee-p1363' } as const;
      for (let round = 0; round < rounds; round++) {
        const data = randomBytes(20);
        const der = sign(hash, data, privateKey);
        const raw = rawSignature(der, size);
        expect(verify(hash, data, { key: publicKey, dsaEncoding: 'ieee-p1363' }, raw)).to.equal(true);
        expect(derSignature(raw).equals(der), der.toString('hex')).to.equal(true);
        expect(verify(hash, data, publicKey, derSignature(sign(hash, data, plain)))).to.equal(true);
      }
    });
  }

  for (const [name, number] of Object.entries({
    zero: Buffer.alloc(32),
    one: Buffer.alloc(32).fill(1, 31),
    'a top bit': Buffer.alloc(32, 0xff),
    'leading zeros before a top bit': Buffer.alloc(32).fill(0x80, 30),
    'a digest': createHash('sha256').update('x').digest(),
  })) {
    it(`are lossless for ${name}`, () => {
      for (const raw of [
        Buffer.concat([number, Buffer.alloc(32, 7)]),
        Buffer.concat([Buffer.alloc(32, 7), number]),
      ]) {
        expect(rawSignature(derSignature(raw), 32).equals(raw)).to.equal(true);
      }
    });
  }

  it('have a digit for each number in DER, also for zero', () => {
    expect(derSignature(Buffer.alloc(64)).toString('hex')).to.equal('3006020100020100');
  });
});
