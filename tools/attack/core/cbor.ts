/** A value of a major type that JSON has none for. */
export class Tagged {
  readonly tag: number;
  readonly value: Cbor;

  constructor(tag: number, value: Cbor) {
    this.tag = tag;
    this.value = value;
  }
}

export type Cbor =
  | number
  | bigint
  | string
  | boolean
  | null
  | undefined
  | Buffer
  | Tagged
  | readonly Cbor[]
  | ReadonlyMap<Cbor, Cbor>;

const DEEPEST = 64;

/** The shortest form of each value (RFC 8949 section 4.2.1); maps keep the order that they have. */
export function encodeCbor(value: Cbor): Buffer {
  if (value === false) return Buffer.of(0xf4);
  if (value === true) return Buffer.of(0xf5);
  if (value === null) return Buffer.of(0xf6);
  if (value === undefined) return Buffer.of(0xf7);
  if (typeof value === 'bigint') return value < 0n ? head(1, -1n - value) : head(0, value);
  if (typeof value === 'number') {
    if (Number.isInteger(value)) return value < 0 ? head(1, BigInt(-1 - value)) : head(0, BigInt(value));
    const bytes = Buffer.alloc(9, 0xfb);
    bytes.writeDoubleBE(value, 1);
    return bytes;
  }
  if (typeof value === 'string') return text(value);
  if (Buffer.isBuffer(value)) return Buffer.concat([head(2, BigInt(value.length)), value]);
  if (value instanceof Tagged) return Buffer.concat([head(6, BigInt(value.tag)), encodeCbor(value.value)]);
  if (value instanceof Map) {
    const parts = [...value].flatMap(([key, member]) => [encodeCbor(key), encodeCbor(member)]);
    return Buffer.concat([head(5, BigInt(value.size)), ...parts]);
  }
  const list = value as readonly Cbor[];
  return Buffer.concat([head(4, BigInt(list.length)), ...list.map(encodeCbor)]);
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([head(3, BigInt(bytes.length)), bytes]);
}

function head(major: number, size: bigint): Buffer {
  const first = major << 5;
  if (size < 24n) return Buffer.of(first | Number(size));
  const [mark, length] =
    size < 0x100n ? [24, 1] : size < 0x10000n ? [25, 2] : size < 0x100000000n ? [26, 4] : [27, 8];
  const bytes = Buffer.alloc(1 + length);
  bytes[0] = first | mark;
  for (let at = length, rest = size; at > 0; at--, rest >>= 8n) bytes[at] = Number(rest & 0xffn);
  return bytes;
}

/** Definite lengths alone. @throws RangeError for anything else, and for what is left over. */
export function decodeCbor(bytes: Buffer): Cbor {
  const reader = new Reader(bytes);
  const value = reader.value(0);
  if (!reader.atEnd) throw new RangeError('more than one value');
  return value;
}

class Reader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get atEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  value(depth: number): Cbor {
    if (depth > DEEPEST) throw new RangeError('too deep');
    const first = this.#take(1).readUInt8();
    const major = first >> 5;
    if (major === 7) return this.#simple(first & 31);
    const size = this.#size(first & 31);
    if (major === 0) return small(size);
    if (major === 1) return small(-1n - size);
    if (major === 2) return Buffer.from(this.#take(Number(size)));
    if (major === 3) return this.#take(Number(size)).toString('utf8');
    if (major === 6) return new Tagged(Number(size), this.value(depth + 1));
    if (size > BigInt(this.#bytes.length)) throw new RangeError('longer than what is there');
    if (major === 4) return Array.from({ length: Number(size) }, () => this.value(depth + 1));
    return new Map(
      Array.from({ length: Number(size) }, () => [this.value(depth + 1), this.value(depth + 1)] as const),
    );
  }

  #simple(kind: number): Cbor {
    if (kind === 20 || kind === 21) return kind === 21;
    if (kind === 22) return null;
    if (kind === 23) return undefined;
    if (kind === 26) return this.#take(4).readFloatBE();
    if (kind === 27) return this.#take(8).readDoubleBE();
    throw new RangeError('a simple value that mdocs do not have');
  }

  #size(kind: number): bigint {
    if (kind < 24) return BigInt(kind);
    if (kind > 27) throw new RangeError('an indefinite length');
    return BigInt(`0x${this.#take(1 << (kind - 24)).toString('hex')}`);
  }

  #take(length: number): Buffer {
    if (this.#at + length > this.#bytes.length) throw new RangeError('ends too early');
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }
}

const small = (value: bigint): number | bigint =>
  value <= BigInt(Number.MAX_SAFE_INTEGER) && value >= BigInt(Number.MIN_SAFE_INTEGER)
    ? Number(value)
    : value;
