import { expect } from 'chai';
import { decodeCbor } from '../../domain/formats/cbor/decode.ts';
import { embed, encodeCbor } from '../../domain/formats/cbor/encode.ts';
import { type Cbor, EncodedCbor, SimpleValue, TAG, Tagged } from '../../domain/formats/cbor/values.ts';
import { Refusal } from '../../domain/shared/refusal.ts';

const bytes = (hex: string) => Buffer.from(hex, 'hex');
const map = (...entries: [string | number, Cbor][]) => new Map(entries);
const numbersTo25 = Array.from({ length: 25 }, (_, index) => index + 1);
const bignum = (tag: number, hex: string) => new Tagged(tag, bytes(hex));

/** RFC 8949 appendix A: what is read from each example, and written back in the same bytes. */
// biome-ignore format: a table
const BOTH_WAYS: readonly (readonly [string, Cbor])[] = [
  ['00', 0], ['01', 1], ['0a', 10], ['17', 23], ['1818', 24], ['1819', 25], ['1864', 100], ['1903e8', 1000],
  ['1a000f4240', 1_000_000], ['1b000000e8d4a51000', 1_000_000_000_000],
  ['1bffffffffffffffff', 18446744073709551615n], ['c249010000000000000000', bignum(2, '010000000000000000')],
  ['3bffffffffffffffff', -18446744073709551616n], ['c349010000000000000000', bignum(3, '010000000000000000')],
  ['20', -1], ['29', -10], ['3863', -100], ['3903e7', -1000],
  ['f98000', -0], ['fb3ff199999999999a', 1.1], ['f93e00', 1.5], ['fa7f7fffff', 3.4028234663852886e38],
  ['fb7e37e43c8800759c', 1e300], ['f90001', 2 ** -24], ['f90400', 0.00006103515625],
  ['fbc010666666666666', -4.1], ['f97c00', Number.POSITIVE_INFINITY], ['f97e00', Number.NaN],
  ['f9fc00', Number.NEGATIVE_INFINITY], ['f4', false], ['f5', true], ['f6', null], ['f7', undefined],
  ['f0', new SimpleValue(16)], ['f8ff', new SimpleValue(255)],
  ['c074323031332d30332d32315432303a30343a30305a', new Tagged(0, '2013-03-21T20:04:00Z')],
  ['c11a514b67b0', new Tagged(1, 1363896240)], ['c1fb41d452d9ec200000', new Tagged(1, 1363896240.5)],
  ['d74401020304', new Tagged(23, bytes('01020304'))], ['d818456449455446', embed(bytes('6449455446'))],
  ['d82076687474703a2f2f7777772e6578616d706c652e636f6d', new Tagged(32, 'http://www.example.com')],
  ['40', bytes('')], ['4401020304', bytes('01020304')], ['60', ''], ['6161', 'a'], ['6449455446', 'IETF'],
  ['62225c', '"\\'], ['62c3bc', '\u00fc'], ['63e6b0b4', '\u6c34'], ['64f0908591', '\ud800\udd51'],
  ['80', []], ['83010203', [1, 2, 3]], ['8301820203820405', [1, [2, 3], [4, 5]]],
  ['98190102030405060708090a0b0c0d0e0f101112131415161718181819', numbersTo25],
  ['a0', map()], ['a201020304', map([1, 2], [3, 4])], ['a26161016162820203', map(['a', 1], ['b', [2, 3]])],
  ['826161a161626163', ['a', map(['b', 'c'])]],
  ['a56161614161626142616361436164614461656145', map(['a', 'A'], ['b', 'B'], ['c', 'C'], ['d', 'D'], ['e', 'E'])],
];

/** Legal forms that we do not write: floats that are integers or longer than needed, indefinite lengths. */
// biome-ignore format: a table
const READ_ONLY: readonly (readonly [string, Cbor])[] = [
  ['f90000', 0], ['f93c00', 1], ['f97bff', 65504], ['fa47c35000', 100000], ['f9c400', -4],
  ['fa7f800000', Number.POSITIVE_INFINITY], ['fa7fc00000', Number.NaN], ['faff800000', Number.NEGATIVE_INFINITY],
  ['fb7ff0000000000000', Number.POSITIVE_INFINITY], ['fb7ff8000000000000', Number.NaN],
  ['fbfff0000000000000', Number.NEGATIVE_INFINITY],
  ['5f42010243030405ff', bytes('0102030405')], ['7f657374726561646d696e67ff', 'streaming'],
  ['9fff', []], ['9f018202039f0405ffff', [1, [2, 3], [4, 5]]], ['9f01820203820405ff', [1, [2, 3], [4, 5]]],
  ['83018202039f0405ff', [1, [2, 3], [4, 5]]], ['83019f0203ff820405', [1, [2, 3], [4, 5]]],
  ['9f0102030405060708090a0b0c0d0e0f101112131415161718181819ff', numbersTo25],
  ['bf61610161629f0203ffff', map(['a', 1], ['b', [2, 3]])], ['826161bf61626163ff', ['a', map(['b', 'c'])]],
  ['bf6346756ef563416d7421ff', map(['Fun', true], ['Amt', -2])],
];

/** RFC 8949 appendix F: not well-formed; further down what is well-formed and not valid, or beyond our limits. */
// biome-ignore format: a table
const REFUSED: readonly string[] = [
  '', '18', '19', '1a', '1b', '1901', '1a0102', '1b01020304050607', '38', '58', '78', '98', '9a01ff00',
  'b8', 'd8', 'f8', 'f900', 'fa0000', 'fb000000', '41', '61', '5affffffff00', '5bffffffffffffffff010203',
  '7affffffff00', '7b7fffffffffffffff010203', '81', '818181818181818181', '8200', 'a1', 'a20102', 'a100', 'a2000000',
  '5f4100', '7f6100', '9f', '9f0102', 'bf', 'bf01020102', '819f', '9f8000', '9f9f9f9f9fffffffff', '9f819f819f9fffffff',
  '1c', '1d', '1e', '3c', '3d', '3e', '5c', '5d', '5e', '7c', '7d', '7e', '9c', '9d', '9e', 'bc', 'bd', 'be',
  'dc', 'dd', 'de', 'fc', 'fd', 'fe', 'f800', 'f801', 'f818', 'f81f', '5f00ff', '5f21ff', '5f6100ff', '5f80ff', '5fa0ff',
  '5fc000ff', '5fe0ff', '7f4100ff', '5f5f4100ffff', '7f7f6100ffff', 'ff', '81ff', '8200ff', 'a1ff', 'a1ff00', 'a100ff',
  'a20000ff', '9f81ff', '9f829f819f9fffffffff', 'bf00ff', 'bf000000ff', '1f', '3f', 'df',
  'c0', '0000', '6180', '61ff', '62c328', '63eda080', '7f61c361bcff', 'a201020103', 'a20102180103', 'bf616100616101ff',
  'a1410000', 'a1800000', 'a1f500', 'a1f90000f6', 'd81800', 'd8186161', `${'81'.repeat(33)}00`, `${'c1'.repeat(33)}00`,
  '9b0000ffffffffffff00', 'bb0000ffffffffffff00', `9a0000c351${'00'.repeat(50_001)}`, '00'.repeat(1024 * 1024 + 1),
];

function rejectionReason(parse: () => unknown): string {
  try {
    parse();
    return 'read';
  } catch (error) {
    if (error instanceof Refusal) return error.reason;
    throw error;
  }
}

describe('CBOR vectors (RFC 8949 appendices A and F)', () => {
  for (const [hex, value] of BOTH_WAYS) {
    it(`decode and encode ${hex}`, () => {
      expect(decodeCbor(bytes(hex))).to.deep.equal(value);
      expect(encodeCbor(value).toString('hex')).to.equal(hex);
    });
  }

  for (const [hex, value] of READ_ONLY) {
    it(`decode ${hex}`, () => {
      expect(decodeCbor(bytes(hex))).to.deep.equal(value);
    });
  }

  it('encode bignums only for numbers beyond 64 bits', () => {
    expect(encodeCbor(2n ** 64n).toString('hex')).to.equal('c249010000000000000000');
    expect(encodeCbor(-(2n ** 64n) - 1n).toString('hex')).to.equal('c349010000000000000000');
    expect(encodeCbor(2 ** 60).toString('hex')).to.equal('1b1000000000000000');
  });

  for (const hex of REFUSED) {
    it(`reject ${hex.length > 60 ? `${hex.slice(0, 40)}… (${hex.length / 2} bytes)` : hex || 'nothing'}`, () => {
      expect(rejectionReason(() => decodeCbor(bytes(hex)))).to.equal('malformed');
    });
  }

  it('decode 32 levels, and heads that are longer than needed', () => {
    expect(rejectionReason(() => decodeCbor(bytes(`${'81'.repeat(32)}00`)))).to.equal('read');
    expect(decodeCbor(bytes('1b0000000000000001'))).to.equal(1);
    expect(decodeCbor(bytes('3b001fffffffffffff'))).to.equal(-9007199254740992n);
    expect(decodeCbor(bytes('1b001fffffffffffff'))).to.equal(Number.MAX_SAFE_INTEGER);
  });

  it('preserve the bytes of an embedded item in any encoding', () => {
    const item = decodeCbor(bytes('81da00000018580101'));
    const [embedded] = item as readonly Cbor[];
    expect(embedded).to.be.instanceOf(EncodedCbor);
    if (!(embedded instanceof EncodedCbor)) return;
    expect(embedded.encoded.toString('hex')).to.equal('da00000018580101');
    expect(embedded.content.toString('hex')).to.equal('01');
    expect(encodeCbor(embedded).toString('hex')).to.equal('da00000018580101');
    expect(TAG.encoded).to.equal(24);
  });
});
