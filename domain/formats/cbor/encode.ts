import { halfOf } from './half.ts';
import {
  type Cbor,
  type CborKey,
  type CborObject,
  EncodedCbor,
  isArray,
  isMap,
  SimpleValue,
  TAG,
  Tagged,
} from './values.ts';

type Writer = { bytes: Buffer; at: number };

const FIRST_SIZE = 256;
/** Nobody nests deeper; a cycle would. */
const MAX_DEPTH = 64;
const MAX_UINT64 = 0xffff_ffff_ffff_ffffn;
const ASCII_LOOP = 48;

/**
 * Writes an item in the deterministic form of RFC 8949 section 4.2: definite lengths, shortest heads and floats,
 * sorted map keys, integers never as floats. `EncodedCbor` goes out as the bytes it holds.
 * @throws RangeError for nesting deeper than 64.
 */
export function encodeCbor(value: Cbor): Buffer {
  const writer: Writer = { bytes: Buffer.allocUnsafe(FIRST_SIZE), at: 0 };
  write(writer, value, 0);
  return writer.bytes.subarray(0, writer.at);
}

/** Puts an encoded item into a byte string with tag 24 (RFC 8949 section 3.4.5.1). */
export function embed(content: Buffer): EncodedCbor {
  const writer: Writer = { bytes: Buffer.allocUnsafe(content.length + 11), at: 0 };
  writeHead(writer, 6, TAG.encoded);
  writeHead(writer, 2, content.length);
  const start = writer.at;
  append(writer, content);
  const whole = writer.bytes.subarray(0, writer.at);
  return new EncodedCbor(whole.subarray(start), whole);
}

function write(writer: Writer, value: Cbor, depth: number): void {
  if (depth > MAX_DEPTH) throw new RangeError('CBOR nests too deep.');
  if (typeof value === 'string') return writeText(writer, value);
  if (typeof value === 'number') return writeNumber(writer, value);
  if (typeof value === 'bigint') return writeBigint(writer, value);
  if (typeof value === 'boolean') return writeByte(writer, value ? 0xf5 : 0xf4);
  if (value === null || value === undefined) return writeByte(writer, value === null ? 0xf6 : 0xf7);
  if (value instanceof Uint8Array) {
    writeHead(writer, 2, value.length);
    return append(writer, value);
  }
  if (value instanceof EncodedCbor) return append(writer, value.whole);
  if (value instanceof Tagged) {
    writeHead(writer, 6, value.tag);
    return write(writer, value.value, depth + 1);
  }
  if (value instanceof SimpleValue) return writeHead(writer, 7, value.number);
  if (isArray(value)) {
    writeHead(writer, 4, value.length);
    for (const member of value) write(writer, member, depth + 1);
    return;
  }
  writeEntries(writer, isMap(value) ? [...value] : Object.entries(value as CborObject), depth + 1);
}

/** RFC 8949 section 4.2.1: in the bytewise order of the encoded keys. */
function writeEntries(writer: Writer, entries: [CborKey, Cbor][], depth: number): void {
  writeHead(writer, 5, entries.length);
  if (entries.length > 1) entries.sort(compareEntries);
  for (const [key, value] of entries) {
    write(writer, key, depth);
    write(writer, value, depth);
  }
}

function compareEntries([a]: readonly [CborKey, Cbor], [b]: readonly [CborKey, Cbor]): number {
  if (typeof a === 'string') return typeof b === 'string' ? compareTexts(a, b) : 1;
  if (typeof b === 'string') return -1;
  // Non-negative integers come first, upwards; then negative ones, downwards.
  if (a < 0) return b < 0 ? (a > b ? -1 : 1) : 1;
  return b < 0 || a < b ? -1 : 1;
}

/** The head puts the shorter text first; length counts bytes. */
function compareTexts(a: string, b: string): number {
  const length = Buffer.byteLength(a);
  const difference = length - Buffer.byteLength(b);
  if (difference !== 0) return difference;
  if (length === a.length) return a < b ? -1 : 1;
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

function reserve(writer: Writer, length: number): number {
  const at = writer.at;
  const end = at + length;
  if (end > writer.bytes.length) {
    const larger = Buffer.allocUnsafe(Math.max(writer.bytes.length * 2, end));
    writer.bytes.copy(larger, 0, 0, at);
    writer.bytes = larger;
  }
  writer.at = end;
  return at;
}

function writeByte(writer: Writer, byte: number): void {
  const at = reserve(writer, 1);
  writer.bytes[at] = byte;
}

function append(writer: Writer, bytes: Uint8Array): void {
  const at = reserve(writer, bytes.length);
  writer.bytes.set(bytes, at);
}

function writeHead(writer: Writer, major: number, argument: number | bigint): void {
  const first = major << 5;
  if (argument < 24) {
    writeByte(writer, first | Number(argument));
  } else if (argument < 0x100) {
    const at = reserve(writer, 2);
    writer.bytes[at] = first | 24;
    writer.bytes[at + 1] = Number(argument);
  } else if (argument < 0x1_0000) {
    const at = reserve(writer, 3);
    writer.bytes[at] = first | 25;
    writer.bytes.writeUInt16BE(Number(argument), at + 1);
  } else if (argument < 0x1_0000_0000) {
    const at = reserve(writer, 5);
    writer.bytes[at] = first | 26;
    writer.bytes.writeUInt32BE(Number(argument), at + 1);
  } else {
    const at = reserve(writer, 9);
    writer.bytes[at] = first | 27;
    writer.bytes.writeBigUInt64BE(BigInt(argument), at + 1);
  }
}

function writeText(writer: Writer, text: string): void {
  // Short texts are nearly always ASCII, and a loop is then faster than a call out of JavaScript.
  if (text.length <= ASCII_LOOP && writeAscii(writer, text)) return;
  const length = Buffer.byteLength(text);
  writeHead(writer, 3, length);
  const at = reserve(writer, length);
  writer.bytes.write(text, at, 'utf8');
}

function writeAscii(writer: Writer, text: string): boolean {
  const before = writer.at;
  writeHead(writer, 3, text.length);
  const at = reserve(writer, text.length);
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code >= 0x80) {
      writer.at = before;
      return false;
    }
    writer.bytes[at + index] = code;
  }
  return true;
}

function writeBigint(writer: Writer, value: bigint): void {
  const argument = value < 0n ? -1n - value : value;
  if (argument <= MAX_UINT64) return writeHead(writer, value < 0n ? 1 : 0, argument);
  // RFC 8949 section 3.4.3
  const hex = argument.toString(16);
  const bytes = Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, 'hex');
  write(writer, new Tagged(value < 0n ? TAG.negative : TAG.unsigned, bytes), 0);
}

function writeNumber(writer: Writer, value: number): void {
  if (Number.isSafeInteger(value) && !Object.is(value, -0)) {
    return value < 0 ? writeHead(writer, 1, -1 - value) : writeHead(writer, 0, value);
  }
  if (Number.isInteger(value) && value !== 0 && Math.abs(value) < 2 ** 64) {
    return writeBigint(writer, BigInt(value));
  }
  writeFloat(writer, value);
}

/** RFC 8949 section 4.2.2: the shortest float that is the same number. */
function writeFloat(writer: Writer, value: number): void {
  if (Number.isNaN(value) || Math.fround(value) === value) {
    const at = reserve(writer, 5);
    writer.bytes.writeFloatBE(value, at + 1);
    const half = halfOf(writer.bytes.readUInt32BE(at + 1));
    writer.bytes[at] = half === undefined ? 0xfa : 0xf9;
    if (half === undefined) return;
    writer.bytes.writeUInt16BE(half, at + 1);
    writer.at = at + 3;
    return;
  }
  const at = reserve(writer, 9);
  writer.bytes[at] = 0xfb;
  writer.bytes.writeDoubleBE(value, at + 1);
}
