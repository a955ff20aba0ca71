import type { Random } from './random.ts';

/** What a mutation may draw on. */
export type Material = {
  readonly random: Random;
  /** Pieces that the format is made of. */
  readonly dictionary: readonly Buffer[];
  /** Another input, to be spliced in. */
  readonly other: () => Buffer;
};

const EDGES = [0x00, 0x01, 0x1f, 0x20, 0x22, 0x7f, 0x80, 0x81, 0xbf, 0xc0, 0xfe, 0xff];

function spliced(bytes: Buffer, from: number, until: number, middle: Buffer): Buffer {
  return Buffer.concat([bytes.subarray(0, from), middle, bytes.subarray(until)]);
}

/** One change of bytes that knows nothing of their format. */
export function mutateBytes(bytes: Buffer, { random, dictionary, other }: Material): Buffer {
  const { from, until } = random.span(bytes.length);
  switch (random.below(9)) {
    case 0:
      return withByte(bytes, random, (byte) => byte ^ (1 << random.below(8)));
    case 1:
      return withByte(bytes, random, () => random.pick(EDGES));
    case 2:
      return withByte(bytes, random, (byte) => byte + random.below(9) - 4);
    case 3:
      return spliced(bytes, from, until, Buffer.alloc(0));
    case 4:
      return spliced(
        bytes,
        from,
        from,
        Buffer.from(Array.from({ length: 1 + random.below(4) }, () => random.below(256))),
      );
    case 5: {
      // Most limits count repetitions.
      const times = random.once(40) ? 1 + random.below(2_000) : 1 + random.below(3);
      return spliced(bytes, from, from, Buffer.concat(Array(times).fill(bytes.subarray(from, until))));
    }
    case 6: {
      const source = other();
      const piece = random.span(source.length);
      return spliced(bytes, from, until, source.subarray(piece.from, piece.until));
    }
    case 7:
      if (dictionary.length === 0) return withByte(bytes, random, () => random.below(256));
      return spliced(bytes, from, random.once(2) ? from : until, random.pick(dictionary));
    default:
      return bytes.subarray(0, random.below(bytes.length + 1));
  }
}

function withByte(bytes: Buffer, random: Random, change: (byte: number) => number): Buffer {
  if (bytes.length === 0) return Buffer.of(random.below(256));
  const copy = Buffer.from(bytes);
  const at = random.below(copy.length);
  copy[at] = change(copy[at] ?? 0) & 0xff;
  return copy;
}
