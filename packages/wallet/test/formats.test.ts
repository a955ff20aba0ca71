import { expect } from 'chai';
import { bytesOfBase64, jsonOfBase64 } from '../src/core/formats/base64.ts';
import { decodeCbor, encodeCbor, Tagged } from '../src/core/formats/cbor.ts';
import { readJwt } from '../src/core/formats/jwt.ts';

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');
const fromHex = (text: string) => Uint8Array.from(Buffer.from(text, 'hex'));

describe('CBOR of the packages', () => {
  for (const [name, value, encoding] of [
    ['an integer in its shortest form', 500, '1901f4'],
    ['a negative integer', -7, '26'],
    ['an integer beyond 2^53', 2n ** 63n, '1b8000000000000000'],
    ['a floating point number in eight bytes', 0.5, 'fb3fe0000000000000'],
    ['a text', 'ä', '62c3a4'],
    ['bytes', Uint8Array.of(1, 2), '420102'],
    ['a list of simple values', [true, false, null, undefined], '84f5f4f6f7'],
    ['a map in its own order, with integers as keys', new Map([[2, 'b'] as const, [1, 'a'] as const]), 'a2026162016161'],
    ['a tag', new Tagged(24, Uint8Array.of(0xa0)), 'd81841a0'],
    ['a tag without a meaning here', new Tagged(70_000, 'x'), 'da000111706178'],
  ] as const)
    it(`encodes and decodes ${name}`, () => {
      expect(hex(encodeCbor(value))).to.equal(encoding);
      expect(decodeCbor(fromHex(encoding))).to.deep.equal(value);
    });

  it('encodes a Buffer as bytes', () => {
    expect(hex(encodeCbor(Buffer.of(1, 2)))).to.equal('420102');
  });

  for (const [name, encoding] of [
    ['no bytes', ''],
    ['bytes behind the item', '0001'],
    ['a list that is cut off', '8201'],
    ['a length of 2^64 - 1', '9bffffffffffffffff'],
    ['a text of two gigabytes', '7a7fffffff00'],
    ['a list without a length', '9f01ff'],
    ['a map key twice', 'a2616101616102'],
    ['a hundred thousand levels', '81'.repeat(100_000)],
  ] as const)
    it(`rejects ${name}`, () => {
      expect(() => decodeCbor(fromHex(encoding))).to.throw();
    });
});

describe('base64 and JWTs of the packages', () => {
  it('reads base64url and base64, padded or not', () => {
    for (const text of ['-_8', '-_8=', '+/8=', '+/8']) expect(hex(bytesOfBase64(text)), text).to.equal('fbff');
  });

  it('rejects text that is not base64, JSON or UTF-8', () => {
    expect(() => bytesOfBase64('***')).to.throw();
    expect(() => jsonOfBase64('e30x')).to.throw();
    expect(() => jsonOfBase64(Buffer.of(0x22, 0xff, 0x22).toString('base64url'))).to.throw();
  });

  it('reads header and payload of a JWT, and rejects text with a missing part', () => {
    const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const payload = { name: 'Zoë' };
    expect(readJwt(`${part({ alg: 'ES256' })}.${part(payload)}.c2ln`)).to.deep.equal({ header: { alg: 'ES256' }, payload });
    expect(() => readJwt(part({}))).to.throw();
  });
});
