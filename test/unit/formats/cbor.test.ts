import { expect } from 'chai';
import fc from 'fast-check';
import { decodeCbor } from '../../../domain/formats/cbor/decode.ts';
import { embed, encodeCbor } from '../../../domain/formats/cbor/encode.ts';
import { parsePropertyName, toJson } from '../../../domain/formats/cbor/to-json.ts';
import { type Cbor, type CborKey, fullDate, SimpleValue, Tagged, tdate } from '../../../domain/formats/cbor/values.ts';
import { Refusal } from '../../../domain/shared/refusal.ts';
import { unicodeCharacter } from '../../support/hostile-requests.ts';
import { processorTime } from '../../support/measurements.ts';

const number = fc.oneof(
  fc.maxSafeInteger(),
  fc.double().filter((value) => !Number.isInteger(value) || Object.is(value, -0)),
  fc.bigInt({ min: 2n ** 53n, max: 2n ** 64n - 1n }),
  fc.bigInt({ min: -(2n ** 64n), max: -(2n ** 53n) }),
);
const text = fc.string({ unit: unicodeCharacter, maxLength: 60 });
const key: fc.Arbitrary<CborKey> = fc.oneof(text, fc.maxSafeInteger());
const bytes = fc.uint8Array({ maxLength: 300 }).map((value) => Buffer.from(value));
/** Whatever is written is read back as the same thing. */
const { item } = fc.letrec<{ item: Cbor }>((tie) => ({
  item: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.oneof(number, text, bytes, fc.boolean(), fc.constantFrom(null, undefined, new SimpleValue(99))),
    fc.array(tie('item'), { maxLength: 6 }),
    fc.uniqueArray(fc.tuple(key, tie('item')), { maxLength: 6, selector: ([name]) => name }).map((entries) => new Map(entries)),
    fc.tuple(fc.integer({ min: 100, max: 70_000 }), tie('item')).map(([tag, value]) => new Tagged(tag, value)),
    bytes.map(embed),
  ),
}));

function reasonOf(read: () => unknown): string | undefined {
  try {
    read();
    return undefined;
  } catch (error) {
    if (error instanceof Refusal) return error.reason;
    throw error;
  }
}

describe('CBOR', () => {
  it('decodes its own encoding', () => {
    fc.assert(
      fc.property(item, (value) => {
        expect(decodeCbor(encodeCbor(value))).to.deep.equal(value);
      }),
    );
  });

  it('writes a map in canonical order', () => {
    const entries = fc.uniqueArray(fc.tuple(key, fc.nat()), { maxLength: 12, selector: ([name]) => name });
    fc.assert(
      fc.property(entries, (all) => {
        const written = encodeCbor(new Map(all));
        expect(encodeCbor(new Map(all.toReversed())).equals(written)).to.equal(true);
        // The keys, encoded, in bytewise order (RFC 8949 section 4.2.1).
        const keys = all.map(([name]) => encodeCbor(name)).sort(Buffer.compare);
        const read = [...(decodeCbor(written) as ReadonlyMap<CborKey, Cbor>).keys()];
        expect(read.map((name) => encodeCbor(name).toString('hex'))).to.deep.equal(keys.map((name) => name.toString('hex')));
      }),
    );
  });

  it('orders texts by their bytes', () => {
    const names = ['\u{1f600}', '\uff5e', 'zz', 'é', 'b', 'aaaa', ''];
    const written = encodeCbor(Object.fromEntries(names.map((name) => [name, 0])));
    const read = [...(decodeCbor(written) as ReadonlyMap<CborKey, Cbor>).keys()];
    expect(read).to.deep.equal(['', 'b', 'zz', 'é', '\uff5e', 'aaaa', '\u{1f600}']);
  });

  it('orders texts of one length by their bytes, too', () => {
    for (const [first, second] of [
      ['a', 'b'],
      ['\uff5eA', '\u{1f600}'],
      ['zz', 'é'],
    ] as const) {
      for (const names of [
        [first, second],
        [second, first],
      ]) {
        const written = encodeCbor(Object.fromEntries(names.map((name) => [name, 0])));
        expect([...(decodeCbor(written) as ReadonlyMap<CborKey, Cbor>).keys()]).to.deep.equal([first, second]);
      }
    }
  });

  it('encodes every NaN in the same way, regardless of its bits', () => {
    for (const bits of ['f97e00', 'f9fe00', 'fa7fc00001', 'faffffffff', 'fbfff8000000000000', 'fbffffffffffffffff'])
      expect(encodeCbor(decodeCbor(Buffer.from(bits, 'hex'))).toString('hex'), bits).to.equal('f97e00');
  });

  it('decodes or rejects any bytes, without other errors', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (input) => {
        let value: Cbor;
        try {
          value = decodeCbor(input);
        } catch (error) {
          expect(error).to.be.instanceOf(Refusal);
          return;
        }
        // Not the same value: a float that is an integer comes back as one.
        const written = encodeCbor(value);
        expect(encodeCbor(decodeCbor(written)).equals(written)).to.equal(true);
      }),
      { numRuns: 1_500 },
    );
  });

  it('decodes or rejects every change of one byte', () => {
    fc.assert(
      fc.property(item, fc.nat(), fc.integer({ min: 1, max: 255 }), (value, place, change) => {
        const written = Buffer.from(encodeCbor(value));
        const at = place % written.length;
        written[at] = (written[at] ?? 0) ^ change;
        const reason = reasonOf(() => decodeCbor(written));
        expect(reason === undefined || reason === 'malformed').to.equal(true);
      }),
      { numRuns: 600 },
    );
  });

  it('uses little time and memory for large declared lengths', () => {
    const mebibyte = 1024 * 1024;
    const inputs = ['9b', 'bb', '5b', '7b'].map((head) => Buffer.from(`${head}00000fffffffffff`, 'hex'));
    for (const fill of [0x80, 0x81, 0x9f, 0xa0, 0xbf, 0xc1, 0x5f, 0x40, 0xf6]) {
      inputs.push(Buffer.concat([Buffer.from('9f', 'hex'), Buffer.alloc(mebibyte - 1, fill)]));
    }
    inputs.push(Buffer.concat([Buffer.from('5f', 'hex'), Buffer.alloc(mebibyte - 1, 0x40)]));
    const before = process.memoryUsage().rss;
    const spent = processorTime(() => {
      for (const input of inputs) expect(reasonOf(() => decodeCbor(input))).to.equal('malformed');
    });
    expect(spent).to.be.lessThan(2_000);
    expect(process.memoryUsage().rss - before).to.be.lessThan(200 * mebibyte);
  });

  for (const [what, bytes] of [
    ['nothing', ''],
    ['an argument of no length', '1c0000000000000000'],
    ['a tag of no length', 'dd000000000000000000'],
    ['a simple value of no length', 'fc40'],
    ['a simple value in the longer form', 'f81f'],
    ['a break where nothing is open', 'ff40'],
    ['half a number', '1900'],
    ['bytes behind it', '0000'],
    ['a text that is not UTF-8', '61ff'],
    ['a text of chunks that are invalid', '7f61c361bcff'],
    ['chunks of another type', '5f6161ff'],
    ['chunks within chunks', '5f5f4100ffff'],
    ['a key that is a list', 'a18000'],
    ['a key that is bytes', 'a1410000'],
    ['a key twice', 'a201000100'],
    ['an open map with a key twice', 'bf01000100ff'],
    ['an open map that ends behind a key', 'bf01ff'],
    ['a tag for items around none', 'd81801'],
    ['chunks without end', `5f${'40'.repeat(30_000)}ff`],
    ['more items than anybody sends', `9f${'00'.repeat(30_000)}ff`],
    ['lists that nest too deep', `${'81'.repeat(33)}00`],
    ['tags that nest too deep', `${'c1'.repeat(33)}00`],
  ] as const) {
    it(`rejects ${what}`, () => {
      expect(reasonOf(() => decodeCbor(Buffer.from(bytes, 'hex')))).to.equal('malformed');
    });
  }

  it('decodes every encoding of a value', () => {
    for (const [bytes, value] of [
      ['1800', 0],
      ['190001', 1],
      ['1a00000001', 1],
      ['1b0000000000000001', 1],
      ['3b001fffffffffffff', -(2n ** 53n)],
      ['3b001ffffffffffffe', Number.MIN_SAFE_INTEGER],
      ['3bffffffffffffffff', -(2n ** 64n)],
      ['7f616162c3bcff', 'aü'],
      ['5f41004101ff', Buffer.from([0, 1])],
      ['f93c00', 1],
      ['fa3f800000', 1],
      ['f4', false],
      ['f5', true],
      ['e0', new SimpleValue(0)],
      ['f820', new SimpleValue(32)],
      [`${'81'.repeat(31)}80`, undefined],
    ] as const) {
      const read = decodeCbor(Buffer.from(bytes, 'hex'));
      if (value !== undefined) expect(read, bytes).to.deep.equal(value);
    }
    const whole = new Uint8Array(Buffer.from('ff820102ff', 'hex'));
    expect(decodeCbor(whole.subarray(1, 4)), 'a part of a larger buffer').to.deep.equal([1, 2]);
  });

  it('writes numbers of any size in their shortest form', () => {
    for (const [value, bytes] of [
      [23, '17'],
      [24, '1818'],
      [255, '18ff'],
      [256, '190100'],
      [65_536, '1a00010000'],
      [2 ** 32, '1b0000000100000000'],
      [2 ** 53, '1b0020000000000000'],
      [-1, '20'],
      [-(2 ** 53) - 2, '3b0020000000000001'],
      [-0, 'f98000'],
      [1.5, 'f93e00'],
      [100_000.5, 'fa47c35040'],
      [1.1, 'fb3ff199999999999a'],
      [2 ** 64, 'fa5f800000'],
      [2n ** 64n - 1n, '1bffffffffffffffff'],
      [-(2n ** 64n), '3bffffffffffffffff'],
      [2n ** 64n, 'c249010000000000000000'],
      [2n ** 71n, 'c249800000000000000000'],
      [-(2n ** 64n) - 1n, 'c349010000000000000000'],
      [-(2n ** 71n) - 1n, 'c349800000000000000000'],
    ] as const) {
      expect(encodeCbor(value).toString('hex'), `${value}`).to.equal(bytes);
    }
  });

  it('writes long texts, and texts that are not ASCII, as they are', () => {
    for (const text of ['a'.repeat(48), 'a'.repeat(49), `${'a'.repeat(47)}ü`, `${'a'.repeat(48)}ü`, '']) {
      expect(decodeCbor(encodeCbor(text))).to.equal(text);
    }
  });

  it('encodes at most 64 levels', () => {
    const deep = (levels: number): Cbor => (levels === 0 ? 1 : [deep(levels - 1)]);
    expect(encodeCbor(deep(64))).to.have.length(65);
    expect(() => encodeCbor(deep(65))).to.throw(RangeError);
  });

  it('accepts larger input if the caller allows it', () => {
    const large = encodeCbor(Buffer.alloc(1536 * 1024));
    expect(reasonOf(() => decodeCbor(large))).to.equal('malformed');
    expect(reasonOf(() => decodeCbor(large, { bytes: 2 * 1024 * 1024 }))).to.equal(undefined);
  });

  it('does not follow a value that contains itself', () => {
    const cycle: Cbor[] = [];
    cycle.push(cycle);
    expect(() => encodeCbor(cycle)).to.throw(RangeError);
  });
});

describe('CBOR converted to JSON', () => {
  it('contains the values that a webhook can transport', () => {
    const value = new Map<CborKey, Cbor>([
      ['bytes', Buffer.from('ffd8ffe0', 'hex')],
      ['day', fullDate('1984-01-26')],
      ['time', tdate(new Date('2027-01-15T08:00:00.999Z'))],
      ['epoch', new Tagged(1, 1_800_000_000)],
      ['large', 2n ** 63n],
      ['larger', new Tagged(2, Buffer.from('010000000000000000', 'hex'))],
      ['below', new Tagged(3, Buffer.from('010000000000000000', 'hex'))],
      ['inner', embed(encodeCbor(1))],
      ['foreign', new Tagged(4711, [1.5, null, undefined, true])],
    ]);
    expect(toJson(decodeCbor(encodeCbor(value)))).to.deep.equal({
      bytes: '_9j_4A',
      day: '1984-01-26',
      time: '2027-01-15T08:00:00Z',
      epoch: 1_800_000_000,
      large: '9223372036854775808',
      larger: 'AQAAAAAAAAAA',
      below: '~AQAAAAAAAAAA',
      inner: 'AQ',
      foreign: [1.5, null, null, true],
    });
  });

  it('converts values without a JSON equivalent as in RFC 8949 section 6.1', () => {
    const bytes = Buffer.from('fffe3e', 'hex');
    for (const [value, expected] of [
      [new Tagged(21, bytes), '__4-'],
      [new Tagged(22, bytes), '//4+'],
      [new Tagged(23, [bytes, new Map([['in', bytes]])]), ['FFFE3E', { in: 'FFFE3E' }]],
      [new Tagged(22, new Tagged(21, bytes)), '__4-'],
      [null, null],
      [undefined, null],
      [Number.NaN, null],
      [Number.NEGATIVE_INFINITY, null],
      [new SimpleValue(99), null],
      [new Tagged(1, 1.5), 1.5],
      [
        new Map<CborKey, Cbor>([
          [1, 'a'],
          [-7, 'b'],
        ]),
        { 1: 'a', '-7': 'b' },
      ],
    ] as const) {
      expect(toJson(value)).to.deep.equal(expected);
    }
  });

  for (const [what, value] of [
    [
      'keys that are one as text',
      new Map<CborKey, Cbor>([
        [1, 2],
        ['1', 3],
      ]),
    ],
    ['a property of a prototype', new Map([['__proto__', 2]])],
    ['a prototype in a constructor', new Map([['constructor', new Map([['prototype', 2]])]])],
    ['a name that is too long', new Map([['x'.repeat(257), 2]])],
    ['NUL in a text', 'a\0b'],
    ['NUL in a name', new Map([['a\0b', 1]])],
    ['a date that is not a string', new Tagged(1004, 19840126)],
    ['a time that is text', new Tagged(1, '2027')],
    ['an endless bignum', new Tagged(2, Buffer.alloc(65, 1))],
    ['a bignum that is text', new Tagged(3, '1')],
    ['a time as text in a date', new Tagged(0, 'a\0b')],
  ] as const) {
    it(`rejects ${what}`, () => {
      expect(reasonOf(() => toJson(value))).to.equal('malformed');
    });
  }

  it('rejects a name that is not text', () => {
    for (const name of [5, null, undefined, Buffer.from('a')]) {
      expect(reasonOf(() => parsePropertyName(name))).to.equal('malformed');
    }
    expect(parsePropertyName('name')).to.equal('name');
  });
});
